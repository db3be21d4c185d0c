"""What an engine gives is charged, timed and told. What fails in the gateway then is not the engine's doing."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from gateway.domain.engine import EngineState, FinishReason, OnEvent, TokenEvent, TranslationRequest
from gateway.domain.errors import Cancelled, EngineFailed, EngineRestarting, EngineUnavailable, GatewayError
from gateway.domain.quotas import DayOfTenant
from gateway.engines.simulated import SimulatedEngine
from gateway.engines.supervisor import Supervisor
from gateway.translation.scheduling.attempt import Attempt, NotTakenIn, OnText
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import Ticket
from tests.translation.engines import SteppedEngine
from tests.usual import usual

STOP = FinishReason.STOP


def request(request_id: str = "r1", text: str = "said", *, final: bool = True) -> TranslationRequest:
    return TranslationRequest(id=request_id, text=text, source="en", target="ja", final=final)


class Situation:
    """A ticket of the tenant acme, what is told of it, and the time."""

    def __init__(self, *, final: bool = True, quotas: Quotas | None = None) -> None:
        self.ticket = Ticket(1, "acme/m", request(final=final), 0.0, "tenant:acme")
        self.quotas = quotas or Quotas()
        self.now_s = 0.0
        self.told: list[str] = []

    def attempt(self, on_text: OnText | None = None) -> Attempt:
        return Attempt(self.ticket, on_text or self.told.append, self.quotas, lambda: self.now_s)

    def times(self) -> tuple[float | None, float | None]:
        """Of the first token and of the end."""
        return self.ticket.first_token_s, self.ticket.finished_s

    @property
    def charged(self) -> DayOfTenant:
        return self.quotas.today("acme")


def broken(_: str) -> None:
    raise ValueError("a bug")


# ---------------------------------------------------------------- text and tokens


def test_whoever_collects_it_is_told_the_whole_text_so_far() -> None:
    s = Situation()
    attempt = s.attempt()
    for event in (TokenEvent("Guten", 1), TokenEvent(" Tag", 1), TokenEvent("!", 1, STOP)):
        attempt.take(event)
    assert s.told == ["Guten", "Guten Tag", "Guten Tag!"]
    assert s.ticket.text == "Guten Tag!"


def test_nobody_needs_to_be_told() -> None:
    s = Situation()
    attempt = Attempt(s.ticket, None, s.quotas, lambda: 0.0)
    attempt.take(TokenEvent("Guten", 1))
    attempt.died()
    assert (s.ticket.text, s.ticket.given_up) == ("Guten", None)


def test_spaces_at_the_beginning_are_no_part_of_it() -> None:
    s = Situation()
    attempt = s.attempt()
    for text in (" ", " Guten", " Tag"):
        attempt.take(TokenEvent(text, 1))
    assert s.ticket.text == "Guten Tag"


def test_tokens_that_were_taken_over_are_not_generated() -> None:
    s = Situation()
    attempt = s.attempt()
    attempt.take(TokenEvent("Guten Tag", 1, reused=4))
    attempt.take(TokenEvent("!", 2, STOP))
    assert (s.ticket.tokens, s.ticket.generated) == (7, 3)


def test_another_attempt_begins_with_nothing() -> None:
    s = Situation()
    s.attempt().take(TokenEvent("Guten Tag", 3, STOP, reused=1))
    s.attempt()
    assert (s.ticket.text, s.ticket.tokens, s.ticket.generated, s.ticket.last) == ("", 0, 0, None)


def test_an_attempt_whose_engine_died_counts_no_more() -> None:
    s = Situation()
    attempt = s.attempt()
    attempt.take(TokenEvent("Guten", 1))
    attempt.died()
    assert s.told == ["Guten", ""]


# ---------------------------------------------------------------- times


def test_the_first_token_is_that_of_the_first_attempt_and_the_end_that_of_the_last_event() -> None:
    s = Situation()
    attempt = s.attempt()
    s.now_s = 1.0
    attempt.take(TokenEvent("Guten", 0, reused=1))
    assert s.times() == (None, None), "nothing was generated yet"
    s.now_s = 2.0
    attempt.take(TokenEvent(" Tag", 1))
    s.now_s = 3.0
    again = s.attempt()
    again.take(TokenEvent("Guten Tag", 2))
    assert (s.times(), s.ticket.last) == ((2.0, None), None)
    s.now_s = 4.0
    last = TokenEvent("!", 1, STOP)
    again.take(last)
    assert (s.times(), s.ticket.last) == ((2.0, 4.0), last)


# ---------------------------------------------------------------- charges


def test_a_final_is_charged_once_however_many_attempts_it_takes() -> None:
    s = Situation()
    attempt = s.attempt()
    assert s.charged.characters == 0, "nothing has come"
    for _ in range(2):
        attempt.take(TokenEvent("Guten", 1))
    s.attempt().take(TokenEvent("Guten", 1))
    assert (s.charged.characters, s.charged.minutes) == (len("said"), 1)


def test_a_partial_is_not_charged() -> None:
    s = Situation(final=False)
    s.attempt().take(TokenEvent("Guten", 1))
    assert s.charged.characters == 0


async def test_a_final_is_charged_once_its_translation_begins_whatever_becomes_of_it() -> None:
    quotas, engine = Quotas(), SteppedEngine(max_running=3)
    scheduler = usual(Scheduler, engine, max_waiting=100, lookahead=0, quotas=quotas)
    finals = [request(name, "x") for name in ("whole", "cut", "never")]
    whole, cut, never = scheduler.admit("acme/m", finals, account="tenant:acme")
    partial = replace(request("live", "x", final=False), priority=1)
    [live] = scheduler.admit("acme/m", [partial], account="tenant:acme")
    scheduler.withdraw(never)
    tasks = [asyncio.create_task(scheduler.collect(ticket)) for ticket in (whole, cut, live)]
    while len(engine.begun) < 3:
        await asyncio.sleep(0)
    engine.let("whole", "live")
    await tasks[0]
    await tasks[2]
    scheduler.withdraw(cut)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert quotas.today("acme").characters == 2
    assert quotas.today("acme").minutes == 1


# ---------------------------------------------------------------- what fails


def test_what_fails_gives_the_ticket_up_and_is_logged_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    s = Situation()
    with pytest.raises(NotTakenIn):
        s.attempt(broken).take(TokenEvent("geheim", 1))
    assert s.ticket.given_up is not None
    assert s.ticket.given_up.code == "internal"
    (record,) = caplog.records
    assert "translation r1" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError
    assert not any(text in caplog.text for text in ("geheim", "said"))


def test_so_does_what_fails_when_it_is_charged() -> None:
    class Broken(Quotas):
        def translated(self, tenant: str, meeting: str, lang: str, characters: int) -> None:
            raise ValueError("a bug")

    s = Situation(quotas=Broken())
    with pytest.raises(NotTakenIn):
        s.attempt().take(TokenEvent("Guten", 1))
    assert s.ticket.given_up is not None


def test_so_does_what_fails_when_the_death_of_the_engine_is_told() -> None:
    s = Situation()
    with pytest.raises(NotTakenIn):
        s.attempt(broken).died()
    assert s.ticket.given_up is not None


def test_the_first_reason_to_give_it_up_counts() -> None:
    s = Situation()
    s.ticket.given_up = first = Cancelled("first")
    with pytest.raises(NotTakenIn):
        s.attempt(broken).take(TokenEvent("Guten", 1))
    assert s.ticket.given_up is first


def test_an_engine_does_not_take_it_for_an_error_of_its_own() -> None:
    assert not issubclass(NotTakenIn, GatewayError)


@pytest.mark.parametrize("error", [RuntimeError, ValueError, EngineFailed, EngineUnavailable, EngineRestarting])
async def test_what_breaks_in_who_is_told_is_not_the_engines_doing(
    error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(_: str) -> None:
        raise error("a bug")

    engine = usual(Supervisor, SimulatedEngine)
    await engine.start()
    scheduler = usual(Scheduler, engine, max_waiting=10)
    broken_one, sound = scheduler.admit("m", [request("a", "x"), request("b", "x")])
    with pytest.raises(GatewayError, match=r"The gateway failed") as raised:
        await scheduler.collect(broken_one, breaks)
    assert (raised.value.code, broken_one.crashes) == ("internal", 0)
    assert engine.health().state is EngineState.READY
    assert (await scheduler.collect(sound)).text == "[ja] x"
    assert len(caplog.records) == 1
    await engine.stop()


async def test_what_breaks_in_who_is_told_that_the_engine_died_is_not_its_doing_either() -> None:
    def breaks(text: str) -> None:
        if not text:
            raise EngineRestarting("a bug")

    engine = SteppedEngine()
    scheduler = usual(Scheduler, engine, max_waiting=10)
    (ticket,) = scheduler.admit("m", [request("a")])
    task = asyncio.create_task(scheduler.collect(ticket, breaks))
    while not ticket.text:
        await asyncio.sleep(0)
    engine.die()
    with pytest.raises(GatewayError, match=r"The gateway failed"):
        await task


async def test_what_breaks_in_the_moment_the_engine_dies_is_not_tried_again() -> None:
    """An engine that is dead by then tells of its own death instead of what it was told."""

    class Dying(SteppedEngine):
        async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
            try:
                await super().generate(request, on_event)
            except NotTakenIn:
                self.die()
                raise EngineUnavailable("dead") from None

    def breaks(_: str) -> None:
        raise RuntimeError("a bug")

    scheduler = usual(Scheduler, Dying(), max_waiting=10)
    (ticket,) = scheduler.admit("m", [request("a")])
    with pytest.raises(GatewayError, match=r"The gateway failed"):
        async with asyncio.timeout(5):
            await scheduler.collect(ticket, breaks)
