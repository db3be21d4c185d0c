"""One admitted translation: its stages, its timings, and the id that an engine knows it by."""

from __future__ import annotations

import asyncio
import runpy

import pytest
from msgspec.structs import replace
from prometheus_client import Histogram

from gateway import metrics
from gateway.domain.engine import FinishReason, TokenEvent, TranslationRequest
from gateway.domain.errors import Cancelled, DeadlineExceeded
from gateway.domain.log import Timings
from gateway.tracing.spans import begin
from gateway.translation.scheduling import ticket as ticket_module
from gateway.translation.scheduling.scheduler import Scheduler
from gateway.translation.scheduling.ticket import (
    CATCHING_UP,
    FINAL,
    PARTIAL,
    SUSPECT_CRASHES,
    Stage,
    Ticket,
    request_id,
)
from tests.tracing.recorder import recording
from tests.translation.engines import SteppedEngine
from tests.usual import usual


def request(text: str, priority: int = FINAL) -> TranslationRequest:
    return TranslationRequest(id=text, text=text, source="en", target="ja", priority=priority)


def admitted(text: str = "one", priority: int = FINAL, at_s: float = 0.0) -> Ticket:
    return Ticket(1, "m", request(text, priority), at_s)


def test_while_it_waits_a_newer_request_takes_its_place() -> None:
    ticket = admitted("one")
    assert ticket.exchange(request("two"))
    assert ticket.request.text == "two"


@pytest.mark.parametrize("why", ["another pair", "running", "ended", "given up"])
def test_otherwise_it_is_not_exchanged(why: str) -> None:
    ticket, newer = admitted("one"), request("two")
    match why:
        case "another pair":
            newer = replace(newer, source="de")
        case "given up":
            ticket.given_up = Cancelled("The test says so.")
        case _:
            ticket.stage = Stage(why)
    assert not ticket.exchange(newer)
    assert ticket.request.text == "one"


def test_it_is_ending_from_when_it_was_given_up() -> None:
    ticket = admitted()
    assert not ticket.ending
    ticket.stage = Stage.RUNNING
    assert not ticket.ending
    ticket.given_up = Cancelled("The test says so.")
    assert ticket.ending
    ticket.given_up, ticket.stage = None, Stage.ENDED
    assert ticket.ending


def test_it_is_a_suspect_after_so_many_crashes() -> None:
    ticket = admitted()
    for crashes in range(SUSPECT_CRASHES):
        ticket.crashes = crashes
        assert not ticket.suspect
    ticket.crashes = SUSPECT_CRASHES
    assert ticket.suspect


def test_all_but_finals_are_best_effort() -> None:
    of = {priority: admitted(priority=priority).best_effort for priority in (FINAL, PARTIAL, CATCHING_UP)}
    assert of == {FINAL: False, PARTIAL: True, CATCHING_UP: True}


def test_timings_are_milliseconds_since_its_admission() -> None:
    ticket = admitted(at_s=100.0)
    ticket.started_s, ticket.first_token_s, ticket.finished_s = 100.5, 100.75, 102.00004
    assert ticket.timings() == Timings(queue_ms=500.0, first_token_ms=750.0, total_ms=2000.0)


def test_a_stage_that_was_never_reached_took_no_time() -> None:
    ticket = admitted(at_s=100.0)
    assert ticket.timings() == Timings(0.0, 0.0, 0.0)
    ticket.started_s = 100.0
    assert ticket.timings() == Timings(0.0, 0.0, 0.0)
    ticket.finished_s = 101.0
    assert ticket.timings() == Timings(queue_ms=0.0, first_token_ms=0.0, total_ms=1000.0)


def test_request_ids_of_a_process_differ() -> None:
    ids = [request_id(kind) for kind in ("final", "partial") * 100]
    assert len({each.partition("-")[2] for each in ids}) == 200
    assert ids[0].startswith("final-")


def test_request_ids_of_two_processes_differ() -> None:
    # What a process does once, at its start; each of the two counts from 1.
    ids = [runpy.run_path(str(ticket_module.__file__))["request_id"]("final") for _ in range(2)]
    assert ids[0] != ids[1]
    assert [each.rpartition("-")[2] for each in ids] == ["1", "1"]


def test_text_without_token_waits_for_its_lane() -> None:
    ticket = admitted()
    ticket.lane = "a"
    ticket.crashed()
    assert (ticket.crashes, ticket.bound_to, ticket.suspect) == (1, "a", False)


def test_begun_text_may_move_until_suspect() -> None:
    ticket = admitted()
    ticket.lane, ticket.tokens = "a", 3
    ticket.crashed()
    assert (ticket.crashes, ticket.bound_to, ticket.suspect) == (1, None, False)
    ticket.lane = "b"
    ticket.crashed()
    assert (ticket.crashes, ticket.bound_to, ticket.suspect) == (SUSPECT_CRASHES, "b", True)


LAST = TokenEvent("!", 1, finish=FinishReason.STOP)


def ticket(*, final: bool = True, crashes: int = 0) -> Ticket:
    """Admitted at 10 s, begun at 11, its first token at 12, all 5 of them at 16."""
    request = TranslationRequest(id="r1", text="x", source="en", target="ja", final=final)
    found = Ticket(1, "m", request, 10.0)
    found.first_token_s = 12.0
    found.tokens, found.crashes = 5, crashes
    return found


def total(histogram: Histogram) -> float:
    return sum(
        sample.value for family in histogram.collect() for sample in family.samples if sample.name.endswith("_sum")
    )


@pytest.mark.parametrize(
    ("of", "queue_s", "first_token_s", "interval_s", "final_s", "partial_s"),
    [
        (ticket(), 1.0, 2.0, 1.0, 6.0, 0.0),
        (ticket(crashes=1), 1.0, 2.0, 0.0, 6.0, 0.0),
        (ticket(final=False), 0.0, 0.0, 0.0, 0.0, 6.0),
    ],
    ids=["final", "final after a crash", "partial"],
)
def test_each_time_is_counted_for_what_it_is_of(
    of: Ticket, queue_s: float, first_token_s: float, interval_s: float, final_s: float, partial_s: float
) -> None:
    counted = (
        metrics.QUEUE_S,
        metrics.FIRST_TOKEN_S,
        metrics.TOKEN_INTERVAL_S,
        metrics.TRANSLATION_S,
        metrics.PARTIAL_S,
    )
    before = [total(each) for each in counted]
    of.begin_turn("", 11.0, lambda: None)
    of.finish(LAST, 16.0)
    more = [total(each) - earlier for each, earlier in zip(counted, before, strict=True)]
    assert more == pytest.approx([queue_s, first_token_s, interval_s, final_s, partial_s])


async def test_span_tells_of_turns_and_retry() -> None:
    engine = SteppedEngine()
    scheduler = usual(Scheduler, engine, max_waiting=10)
    with recording() as spans:
        parent = begin("utterance")
        asked = TranslationRequest(id="r1", text="x", source="en", target="ja", traceparent=parent.traceparent)
        (traced,) = scheduler.admit("m", [asked])
        collecting = asyncio.create_task(scheduler.collect(traced))
        while not engine.begun:
            await asyncio.sleep(0)
        engine.die()
        while scheduler.running:
            await asyncio.sleep(0)
        engine.revive()
        engine.let("r1")
        scheduler.engine_changed()
        await collecting
        _, span = spans
        assert (span.name, span.parent, span.is_over, span.code) == ("translate", parent.traceparent, True, "")
        assert span.events == ["dispatched", "first token", "again", "dispatched"]
        assert (span.fields["crashes"], span.fields["tokens"], span.fields["target"]) == (1, 2, "ja")


async def test_a_span_of_what_is_given_up_says_why() -> None:
    scheduler = usual(Scheduler, SteppedEngine(), max_waiting=10)
    with recording() as spans:
        parent = begin("utterance")
        asked = TranslationRequest(id="r1", text="x", source="en", target="ja", traceparent=parent.traceparent)
        (traced,) = scheduler.admit("m", [asked])
        scheduler.give_up(traced, DeadlineExceeded("Too late."))
        assert (spans[1].code, spans[1].is_over) == ("deadline_exceeded", True)
