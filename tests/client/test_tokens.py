"""Tokens of a session: asked for at every attempt, refreshed before they end, and never shown."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable

import pytest

from gateway.client import (
    ClientError,
    ClientSession,
    NotAuthorized,
    Reconnecting,
    SessionClosed,
    SessionEvent,
    TokenUnavailable,
    connect,
)
from gateway.client.tokens import Refreshing, Secret, Tokens, TokenSource, checked
from gateway.domain.errors import Forbidden, QuotaExceeded, TokenExpired, Unauthenticated
from gateway.protocol.codec import CODECS
from gateway.protocol.messages import (
    Error,
    Pong,
    SessionRefresh,
    SessionRefreshed,
    SessionStart,
    TokenExpiring,
    UtteranceFinal,
)
from tests.client.reading import connect_at_once, everything, kinds, session_of, until
from tests.clocks import swiftly
from tests.scripted_gateway import Peer, lost_once, refused, scripted_gateway

UNAUTHENTICATED = refused(Unauthenticated.code, "This gateway needs a valid token.")
SECRET = "eyJhbGciOi.J9.secret"


def bearer(peer: Peer) -> str | None:
    """What the client says who it is with."""
    assert peer.connection.request is not None
    return peer.connection.request.headers.get("Authorization")


class Counting:
    """Gives `t1`, `t2`, …; or raises what it is told to, in the order of the questions."""

    def __init__(self, *failures: Exception | None) -> None:
        self.asked = 0
        self._failures = [*failures]

    def __call__(self) -> str:
        self.asked += 1
        if self._failures and (failure := self._failures.pop(0)) is not None:
            raise failure
        return f"t{self.asked}"


# ---------------------------------------------------------------- what a token is


@pytest.mark.parametrize("token", ["a.b-c_d~e+f/g==", "gk_123", "!~"])
def test_a_token_is_visible_ascii(token: str) -> None:
    assert checked(token) == token


@pytest.mark.parametrize("token", ["a b", "a\n", "a\r\nX-Evil: 1", "\ta", "tökén", "a\x00", "a\x7f", "\ud800"])
def test_invalid_token_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(ValueError, match="characters that no header can carry") as caught:
        checked(token)
    assert token not in str(caught.value)


@pytest.mark.parametrize(("token", "why"), [("", "is empty"), (None, "not NoneType"), (b"a", "not bytes")])
def test_what_is_no_token_is_refused(token: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        checked(token)


def test_a_token_is_not_shown_where_it_is_quoted() -> None:
    assert SECRET not in repr([Tokens(SECRET), checked(SECRET), {"a": Secret(SECRET)}])
    assert f"Bearer {checked(SECRET)}" == f"Bearer {SECRET}"


@pytest.mark.parametrize("token", ["a b", "", 7])
async def test_a_bad_token_is_refused_before_anything_is_sent(token: str) -> None:
    for source in (token, lambda: token):
        with pytest.raises(ValueError, match="token"):
            async with connect("http://127.0.0.1:9", reads=["ja"], token=source):
                pass


# ---------------------------------------------------------------- where it comes from


async def later() -> str:
    await asyncio.sleep(0)
    return "t1"


@pytest.mark.parametrize("source", ["t1", lambda: "t1", later, lambda: later()])
async def test_kinds_of_token_sources(source: TokenSource) -> None:
    tokens = Tokens(source)
    assert await tokens.ask() == "t1"
    assert tokens.given
    assert tokens.renewable is not isinstance(source, str)


async def test_there_may_be_no_tokens() -> None:
    assert await Tokens(None).ask() is None
    assert not Tokens(None).given


async def test_failed_source_names_the_failure() -> None:
    with pytest.raises(
        TokenUnavailable, match=r"^There is no token: asking for one failed \(KeyError\)\.$"
    ) as caught:
        await Tokens(Counting(KeyError(SECRET))).ask()
    assert isinstance(caught.value.__cause__, KeyError)
    mine = ClientError("Log in again.")
    with pytest.raises(ClientError) as own:
        await Tokens(Counting(mine)).ask()
    assert own.value is mine


# ---------------------------------------------------------------- connecting


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
async def test_a_token_is_a_header_and_in_no_message(codec: object) -> None:
    seen: list[tuple[str | None, SessionStart]] = []

    async def script(peer: Peer) -> None:
        seen.append((bearer(peer), await peer.start()))
        await peer.leave(1000)

    async with scripted_gateway(script) as url:
        for token in (SECRET, None):
            async with connect(url, reads=["ja"], token=token, codec=codec) as session:  # type: ignore[arg-type]
                assert await everything(session) == []
    start = SessionStart(reads=["ja"])
    assert seen == [(f"Bearer {SECRET}", start), (None, start)]


@pytest.mark.parametrize("error", [UNAUTHENTICATED, refused(Forbidden.code, "Not this meeting.")])
async def test_a_start_that_the_token_does_not_allow(error: Error) -> None:
    async def script(peer: Peer) -> None:
        await peer.expect(SessionStart)
        await peer.leave(4501, error)

    async with scripted_gateway(script) as url:
        with pytest.raises(NotAuthorized) as caught:
            async with connect(url, reads=["ja"], token=SECRET):
                pass
    assert caught.value.error == error
    assert str(caught.value) == error.message


async def test_a_token_is_in_no_log_and_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def script(peer: Peer) -> None:
        assert bearer(peer) == f"Bearer {SECRET}"
        await peer.start()
        await peer.say(TokenExpiring(60_000))
        await peer.expect(SessionRefresh)
        await peer.leave(4503, refused("token_revoked", "The token was revoked."))

    async with session_of(script, token=SECRET) as session:
        with pytest.raises(SessionClosed) as caught:
            await everything(session)
    # The gateway of this test has a log, too.
    ours = [record.getMessage() for record in caplog.records if record.name != "websockets.server"]
    assert not any(SECRET in message for message in ours)
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert SECRET not in "".join(line for line in trace.format() if "/gateway/client/" in line)
    assert SECRET not in repr(session.__dict__)


# ---------------------------------------------------------------- coming back


async def test_every_attempt_has_a_token_of_its_own() -> None:
    seen: list[str | None] = []
    source = Counting()

    async def script(peer: Peer) -> None:
        seen.append(bearer(peer))
        await peer.start()
        if peer.visit == 1:
            await peer.leave(4401, refused(TokenExpired.code, "The session's time is over."))
        await peer.leave(1000)

    async with (
        scripted_gateway(script, statuses=(503, 401, 401, 401)) as url,
        connect_at_once(url, token=source) as session,
    ):
        events = await everything(session)
    address = url.replace("http:", "ws:")
    assert [each.reason for each in events if isinstance(each, Reconnecting)] == [
        "The gateway closed the session: The session's time is over.",
        f"The server at {address} refused the stream with HTTP status 503; is it a gateway?",
        *[f"The gateway at {address} did not accept the token."] * 3,
    ]
    assert kinds(events)[-1] == "Reconnected"
    assert seen == ["Bearer t1", "Bearer t6"]


async def lost_at_once(peer: Peer) -> None:
    """It accepts its first client, drops it, and starts no session any more."""
    if peer.visit == 1:
        await peer.start()
        peer.drop()
        return
    await peer.expect(SessionStart)
    await peer.leave(4501, UNAUTHENTICATED)


@pytest.mark.parametrize(
    ("source", "statuses", "attempts"),
    [
        ("t1", (401,), 1),
        ("t1", (), 1),
        (Counting(), (401,) * 9, 4),
        (Counting(), (401, 401), 4),
        (Counting(), (403,) * 9, 1),
    ],
    ids=["a string", "a string, later", "a source", "a source, later", "what the token does not allow"],
)
async def test_tokens_that_are_not_accepted_are_the_end(
    source: TokenSource, statuses: tuple[int, ...], attempts: int
) -> None:
    events: list[SessionEvent] = []

    async def read(session: ClientSession) -> None:
        async for event in session:
            events.append(event)

    async with (
        scripted_gateway(lost_at_once, statuses=statuses) as url,
        connect_at_once(url, token=source) as session,
    ):
        with pytest.raises(NotAuthorized):
            await read(session)
        with pytest.raises(NotAuthorized):
            await session.final("Anybody?")
    assert kinds(events) == ["Reconnecting"] * attempts


@swiftly
async def test_source_without_token_is_a_failed_attempt() -> None:
    answers: list[Callable[[], Awaitable[str]] | Exception | str] = [
        "t1",
        OSError("no"),
        TokenUnavailable("Nobody is logged in."),
        "t 2",
        lambda: asyncio.get_running_loop().create_future(),
        "t3",
    ]

    async def source() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else await answer()

    async with session_of(lost_once, token=source) as session:
        events = await everything(session)
    assert [each.reason for each in events if isinstance(each, Reconnecting)][1:] == [
        "There is no token: asking for one failed (OSError).",
        "Nobody is logged in.",
        "The token has characters that no header can carry; it may have only visible ASCII, and no spaces.",
        "There is no token: none came within 10 s.",
    ]
    assert kinds(events)[-1] == "Reconnected"


async def test_a_source_may_end_the_session() -> None:
    mine = ClientError("Log in again.")
    async with session_of(lost_at_once, token=Counting(None, mine)) as session:
        with pytest.raises(ClientError, match=r"Log in again\.") as caught:
            await everything(session)
        assert caught.value is mine
        with pytest.raises(ClientError, match=r"Log in again\."):
            await session.final("Anybody?")


# ---------------------------------------------------------------- staying


async def refreshed(peer: Peer, *answers: Error | SessionRefreshed, left_ms: int = 60_000) -> list[str]:
    """Start, announce the end, and answer each new token. Returns the tokens."""
    await peer.start()
    await peer.say(TokenExpiring(left_ms))
    tokens = []
    for answer in answers:
        tokens.append((await peer.expect(SessionRefresh)).token)
        await peer.say(answer)
    return tokens


@swiftly
async def test_failed_source_is_asked_again() -> None:
    seen: list[str] = []

    async def script(peer: Peer) -> None:
        seen.extend(await refreshed(peer, SessionRefreshed(None)))
        await peer.leave(1000)

    source = Counting(None, OSError("no"), ClientError("Log in again."))
    async with session_of(script, token=source) as session:
        assert await everything(session) == [TokenExpiring(60_000), SessionRefreshed(None)]
    assert seen == ["t4"]


@swiftly
async def test_session_without_new_token_runs_out() -> None:
    async def script(peer: Peer) -> None:
        if peer.visit == 1:
            await peer.start()
            await peer.say(TokenExpiring(60_000))
            await asyncio.sleep(60)
            await peer.say(Pong("still there"))
            await peer.leave(4401, refused(TokenExpired.code, "The session's time is over."))
        await peer.start()
        await peer.leave(1000)

    source = Counting(None, *[OSError("no")] * 5)
    async with session_of(script, token=source) as session:
        events = await everything(session)
    assert kinds(events) == ["TokenExpiring", "Pong", "Error", "Reconnecting", "Reconnected"]
    assert source.asked == 7


async def waiting(session: ClientSession, asked: asyncio.Event) -> asyncio.Task[list[SessionEvent]]:
    """A task that reads the session, and waits for a token by now."""
    await until(session, TokenExpiring)
    task = asyncio.create_task(everything(session))
    await asked.wait()
    return task


def slow(asked: asyncio.Event, go_on: asyncio.Event) -> Callable[[], Awaitable[str]]:
    """A source that answers at first, and then only when it is let."""
    first = True

    async def source() -> str:
        nonlocal first
        if first:
            first = False
            return "t1"
        asked.set()
        await go_on.wait()
        return "t2"

    return source


async def test_a_cancelled_wait_for_a_token_is_repeated() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        assert await refreshed(peer, SessionRefreshed(None)) == ["t2"]
        await peer.leave(1000)

    async with session_of(script, token=slow(asked, go_on)) as session:
        task = await waiting(session, asked)
        task.cancel()
        await asyncio.wait([task])
        go_on.set()
        assert await everything(session) == [SessionRefreshed(None)]


async def test_close_while_waiting_for_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.client.session._TOKEN_S", None)
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.say(TokenExpiring(60_000))
        await peer.connection.wait_closed()

    async with scripted_gateway(script) as url:
        async with connect(url, reads=["ja"], token=slow(asked, asyncio.Event())) as session:
            task = await waiting(session, asked)
        assert await task == []


async def test_final_does_not_interrupt_the_source() -> None:
    """A final that must wait for its turn wakes the iteration; the source is asked once all the same."""
    asked, go_on = asyncio.Event(), asyncio.Event()
    source = slow(asked, go_on)
    questions = 0

    async def counted() -> str:
        nonlocal questions
        questions += 1
        return await source()

    async def script(peer: Peer) -> None:
        await peer.start()
        held = await peer.expect(UtteranceFinal)
        await peer.say(refused("overloaded", "Full.", held.id, retry_after_ms=1), TokenExpiring(60_000))
        finals = [await peer.receive() for _ in range(3)]
        assert [type(each).__name__ for each in finals].count("SessionRefresh") == 1
        await peer.leave(1000)

    async with session_of(script, token=counted) as session:
        await session.final("One.", "1")
        task = await waiting(session, asked)
        await session.final("Two.", "2")
        session._wake(0.0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        go_on.set()
        await task
    assert questions == 2


@swiftly
async def test_a_source_that_hangs_does_not_stop_the_reading() -> None:
    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.say(TokenExpiring(60_000), Pong("read"))
        await peer.leave(1000)

    source = slow(asyncio.Event(), asyncio.Event())
    async with session_of(script, token=source) as session:
        assert await everything(session) == [TokenExpiring(60_000), Pong("read")]


async def test_last_words_are_read_when_refresh_fails() -> None:
    closed = asyncio.Event()
    first = True

    async def source() -> str:
        nonlocal first
        if not first:
            await closed.wait()
        first = False
        return "t"

    async def script(peer: Peer) -> None:
        await peer.start()
        await peer.say(TokenExpiring(60_000), Pong("last words"))
        await peer.connection.close(4503)
        closed.set()

    async with session_of(script, token=source) as session:
        assert [await anext(session), await anext(session)] == [TokenExpiring(60_000), Pong("last words")]
        with pytest.raises(SessionClosed):
            await anext(session)


# ---------------------------------------------------------------- when a token is due


def test_tries_are_spread_over_the_time_that_is_left() -> None:
    without_tokens, refreshing = Refreshing(Tokens(None)), Refreshing(Tokens(Counting()))
    for each in (without_tokens, refreshing):
        assert each.due_s is None
        each.note_message(TokenExpiring(90_000), 10.0)
    assert without_tokens.due_s is None
    assert refreshing.is_due(10.0)
    tries: list[int] = []
    while refreshing.due_s is not None:
        assert not refreshing.is_due(refreshing.due_s - 0.001)
        now_s = refreshing.due_s
        tries.append(round(now_s))
        refreshing.failed(now_s)
    assert tries == [10, 40, 60, 73, 82]


def test_there_is_no_try_when_no_time_is_left() -> None:
    refreshing = Refreshing(Tokens(Counting()))
    refreshing.note_message(TokenExpiring(0), 10.0)
    assert refreshing.is_due(10.0)
    refreshing.failed(10.0)
    assert refreshing.due_s is None


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (UNAUTHENTICATED, True),
        (refused(QuotaExceeded.code, "Enough.", retry_after_ms=1), True),
        (refused(Forbidden.code, "No."), False),
        (refused("overloaded", "Full.", "utterance", retry_after_ms=1), False),
    ],
)
def test_which_answers_are_worth_another_try(error: Error, again: bool) -> None:
    refreshing = Refreshing(Tokens(Counting()))
    refreshing.note_message(error, 0.0)
    assert refreshing.due_s is None  # nothing was sent
    refreshing.note_message(TokenExpiring(60_000), 0.0)
    refreshing.sent()
    assert refreshing.due_s is None
    refreshing.note_message(error, 0.0)
    assert (refreshing.due_s is not None) is again


def test_new_announcement_starts_over() -> None:
    refreshing = Refreshing(Tokens(Counting()))
    for _ in range(6):
        refreshing.note_message(TokenExpiring(60_000), 0.0)
        assert refreshing.is_due(0.0)
        refreshing.sent()
    refreshing.note_message(TokenExpiring(60_000), 0.0)
    refreshing.failed(0.0)
    assert refreshing.due_s is not None
    refreshing.sent()
    refreshing.note_message(SessionRefreshed(600_000), 1.0)
    refreshing.note_message(UNAUTHENTICATED, 2.0)
    assert refreshing.due_s is None


def test_the_announcement_of_a_lost_connection_is_void() -> None:
    refreshing = Refreshing(Tokens(Counting()))
    refreshing.note_message(TokenExpiring(60_000), 0.0)
    refreshing.stop()
    assert refreshing.due_s is None
