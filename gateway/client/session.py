"""A session that outlives its connections: sends, receives, reconnects, resumes and sends again.

Knows: which connection is in use, and what is done when it is lost. Must not know: how one is opened
(`connection`), what is to be sent next (`sender`), which publication is new (`received`), delays (`reconnecting`).

There is no task behind a session. Whoever iterates it does the reading, and with it the reconnecting and the
sending of what had to wait; a caller of `final` sends what may be sent at once. `_alarm` is the timeout of
whatever the iteration waits for: others move it forward to wake the iteration up.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed

from gateway.client.connection import Connection, Endpoint, close_code, reopen
from gateway.client.errors import ClientError, SessionClosed
from gateway.client.outgoing import Outgoing
from gateway.client.received import Received
from gateway.client.reconnecting import CAP_S, Outage, may_reconnect
from gateway.client.sender import Sender
from gateway.domain.engine import Formality
from gateway.domain.errors import CloseCode
from gateway.domain.sessions import Stability
from gateway.protocol.messages import (
    ClientMessage,
    Error,
    Ping,
    Resume,
    ServerMessage,
    SessionDraining,
    SessionEnd,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    SessionUpdated,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
)

__all__ = ["ClientSession", "Reconnected", "Reconnecting", "SessionEvent"]

# No letter or digit that is easily mistaken for another.
_TOKEN = "23456789abcdefghjkmnpqrstuvwxyz"  # noqa: S105 -- the letters of utterance ids
_TOKEN_CHARS = 4

# For the attempt that is made when the patience ends.
_LAST_ATTEMPT_S = 1.0


class Reconnecting(Struct, frozen=True, tag="client.reconnecting"):
    """The connection is gone; after `delay_s` the `attempt`-th attempt to open one is made.

    reason: one sentence: how the connection was lost, or why the attempt before failed.
    """

    attempt: int
    delay_s: float
    reason: str


class Reconnected(Struct, frozen=True, tag="client.reconnected"):
    """The session goes on. Text of unfinished translations that was received before is void: it is sent anew.

    `started.recovered`: true: exactly what was missed follows. False: this is a new session; the recent transcript
    follows, and accepted utterances whose translations are missing may have to be said again.
    """

    started: SessionStarted


SessionEvent = ServerMessage | Reconnecting | Reconnected


class ClientSession:
    """A started session: send with the methods, read with `async for`; both may be done at the same time.

    Somebody has to iterate: the session reads, reconnects, and sends what had to wait, while it is iterated. One
    task at a time may iterate. What is not read is not buffered beyond a few frames: a caller that stops reading
    is a slow reader to the gateway, which closes the connection; the session goes on from there when it is
    iterated again.

    Every method raises `SessionClosed` once the session is over.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connection: Connection,
        start: SessionStart,
        started: SessionStarted,
        *,
        give_up_s: float,
        max_unacknowledged: int,
        jitter: Callable[[], float],
    ) -> None:
        outgoing = Outgoing(start, started.limits.utterances_in_flight, max_unacknowledged)
        self._endpoint = endpoint
        self._sender = Sender(connection, outgoing, endpoint.codec, started.limits, self._wake)
        self._opened_s = _now_s()
        self._started = started
        self._received = Received(started, start.resume)
        self._give_up_s = give_up_s
        self._jitter = jitter
        self._token = "".join(secrets.choice(_TOKEN) for _ in range(_TOKEN_CHARS))
        self._serial = 0
        self._last_error: Error | None = None
        self._outage: Outage | None = None
        self._attempts = 0
        self._alarm: asyncio.Timeout | None = None

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self._endpoint.address

    @property
    def started(self) -> SessionStarted:
        """The gateway's newest answer to `session.start`, with its languages and limits."""
        return self._started

    @property
    def position(self) -> Resume:
        """Where the session is now; what `connect(resume=…)` takes."""
        return self._received.position

    @property
    def unacknowledged(self) -> tuple[UtteranceFinal, ...]:
        """The finals that the gateway has neither accepted nor refused for good, oldest first."""
        return self._sender.outgoing.finals

    # ------------------------------------------------------------ reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionEvent:
        """The next event. Ends when the gateway is done with the session, else raises `ClientError`.

        It may be cancelled at any moment, as by a timeout; nothing is lost, and the next call goes on.
        """
        if self._alarm is not None:
            raise RuntimeError("A session is iterated by one task at a time.")
        while True:
            self._go_on()
            if (connection := self._sender.connection) is None:
                return await self._reconnect()
            try:
                due_s = None if self._sender.outgoing.idle else await self._sender.send_kept()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(due_s) as self._alarm:
                        message = await connection.receive()
                    if self._take(message):
                        return message
            except ConnectionClosed as closed:
                self._lost(closed)
            finally:
                self._alarm = None

    def _go_on(self) -> None:
        """Raises what ends the iteration."""
        over = self._sender.over
        if isinstance(over, SessionClosed) and over.code == CloseCode.NORMAL:
            raise StopAsyncIteration
        if over is not None:
            raise over

    def _take(self, message: ServerMessage) -> bool:
        """Draw the consequences of a message; false for one that was received before."""
        # The reason for a close is the error right before it; an older one explains nothing.
        self._last_error = message if isinstance(message, Error) else None
        outgoing = self._sender.outgoing
        match message:
            case UtteranceAccepted(id=id):
                outgoing.accepted(id)
            case Error():
                outgoing.refused(message, _now_s())
            case SessionUpdated():
                outgoing.updated()
            case SessionDraining():
                outgoing.draining()
            case _:
                return self._received.is_new(message)
        self._sender.answered()
        return True

    # ------------------------------------------------------------ losing and finding the connection

    def _lost(self, closed: ConnectionClosed) -> None:
        """The connection is gone: is the session over, or is it to be resumed?"""
        self._sender.lost()
        now_s = _now_s()
        loss = SessionClosed(self.url, close_code(closed), self._last_error)
        self._last_error = None
        if not may_reconnect(loss.code) or self._give_up_s <= 0:
            self._sender.end(loss)
            return
        # A connection that lasted was a success; one that did not is part of the same trouble.
        earlier = self._attempts if now_s - self._opened_s < CAP_S else 0
        self._outage = Outage(loss, now_s, self._give_up_s, earlier)

    async def _reconnect(self) -> Reconnecting | Reconnected:
        """The next step: make the attempt that was announced, and announce one more if it fails.

        Cancelled, it leaves the attempt to the next call.
        """
        outage = self._outage
        assert outage is not None  # noqa: S101 -- there is one whenever there is no connection
        try:
            if outage.attempt_at_s is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(outage.attempt_at_s) as self._alarm:
                        await asyncio.get_running_loop().create_future()  # until the alarm
                self._go_on()
                try:
                    until_s = max(outage.until_s, _now_s() + _LAST_ATTEMPT_S)
                    async with asyncio.timeout_at(until_s) as self._alarm:
                        start = replace(self._sender.outgoing.start, resume=self.position)
                        found = await reopen(self._endpoint, start, outage)
                    if found is not None:
                        return self._found(*found, outage)
                except TimeoutError:
                    outage.failed(f"The gateway at {self.url} did not answer in time.")
                self._go_on()
        except ClientError as error:
            self._sender.end(error)
            raise
        finally:
            self._alarm = None
        delay_s = outage.announce(_now_s(), self._jitter)
        if delay_s is None:
            gave_up = outage.gave_up()
            self._sender.end(gave_up)
            raise gave_up
        return Reconnecting(outage.attempt, delay_s, outage.reason)

    def _found(self, connection: Connection, started: SessionStarted, outage: Outage) -> Reconnected:
        """There is a session again, the same one or a new one."""
        self._sender.restarted(connection, started.limits)
        self._opened_s = _now_s()
        self._attempts = outage.attempts
        self._outage = None
        self._started = started
        self._received.restarted(started)
        return Reconnected(started)

    # ------------------------------------------------------------ sending

    async def final(
        self,
        text: str,
        id: str | None = None,
        *,
        lang: str | None = None,
        rev: int | None = None,
        start_ms: int | None = None,
        end_ms: int | None = None,
    ) -> str:
        """Say the last word on utterance `id`, a new one by default; the utterance's id.

        Returns once the session has taken it on: it is sent, as often as needed and in order, until the gateway
        accepts it or refuses it for good. Waits while `max_unacknowledged` are on their way. Raises `ValueError`
        for what is too long to be sent.
        """
        id, rev = self._next(id, rev)
        await self._sender.keep(UtteranceFinal(id, rev, text, lang, start_ms, end_ms))
        return id

    async def partial(
        self,
        text: str,
        id: str | None = None,
        *,
        lang: str | None = None,
        rev: int | None = None,
        start_ms: int | None = None,
        end_ms: int | None = None,
    ) -> str:
        """Send a text that may still change, the next revision of utterance `id`; the utterance's id.

        While there is no connection it is dropped: a newer one comes soon. Raises `ValueError` as `final` does.
        """
        id, rev = self._next(id, rev)
        partial = UtterancePartial(id, rev, text, lang, start_ms, end_ms)
        self._sender.check_size(partial)
        self._sender.outgoing.revised(id, rev)
        await self._send_now(partial)
        return id

    async def cancel(self, id: str) -> None:
        """Stop the translation of an utterance; a final that waits to be sent is forgotten.

        While there is no connection, finals that the gateway has not accepted are forgotten, and nothing else
        happens.
        """
        if self._sender.outgoing.withdraw(id, unanswered=self._sender.connection is None):
            self._sender.answered()
        else:
            await self._send_now(UtteranceCancel(id))

    async def update(
        self,
        *,
        reads: Sequence[str] | None = None,
        speaks: str | None = None,
        stability: Stability | None = None,
        glossary: dict[str, dict[str, str]] | None = None,
        context: str | None = None,
        formality: Formality | None = None,
        originals: bool | None = None,
    ) -> None:
        """Change what is given, answered by `session.updated` or an error: languages and how to translate from the
        next utterance on, `stability` and `originals` at once.

        It gets through as finals do, and holds when the session is resumed.
        """
        languages = None if reads is None else list(reads)
        await self._sender.keep(
            SessionUpdate(languages, speaks, stability, glossary, context, formality, originals)
        )

    async def ping(self, nonce: str = "") -> None:
        """Ask for a `pong`; nothing happens while there is no connection."""
        await self._send_now(Ping(nonce))

    async def end(self) -> None:
        """Say that no more follows, once every final is answered; the gateway finishes what it accepted, upon
        which the iteration ends."""
        self._sender.check()
        self._sender.outgoing.end()
        await self._sender.send_what_may_be_sent()

    async def send(self, message: ClientMessage) -> None:
        """Send any message, as the method for its kind does."""
        match message:
            case UtteranceFinal() | SessionUpdate():
                await self._sender.keep(message)
            case UtteranceCancel(id=id):
                await self.cancel(id)
            case SessionEnd():
                await self.end()
            case _:
                await self._send_now(message)

    async def drop(self) -> None:
        """Break the connection without a goodbye, as a failing network does; the session is then resumed."""
        if self._sender.connection is not None:
            self._sender.connection.drop()

    async def close(self) -> None:
        """Leave: the session is over, in the gateway too. Leaving the context of `connect` does it."""
        self._sender.end(SessionClosed(self.url, CloseCode.NORMAL, None))
        if self._alarm is not None:
            with suppress(RuntimeError):  # it rings already
                self._alarm.reschedule(0)
        if self._sender.connection is not None:
            await self._sender.connection.close()

    def _next(self, id: str | None, rev: int | None) -> tuple[str, int]:
        if id is None:
            self._serial += 1
            # Another process may go on with this session: its ids must not be taken for ours.
            id = f"{self._token}-{self._serial}"
        return id, self._sender.outgoing.next_revision(id) if rev is None else rev

    async def _send_now(self, message: ClientMessage) -> None:
        try:
            await self._sender.send_now(message)
        except ConnectionClosed as closed:
            code = close_code(closed)
            if not may_reconnect(code) or self._give_up_s <= 0:
                raise SessionClosed(self.url, code, self._last_error) from None

    def _wake(self, at_s: float) -> None:
        """See to it that whoever reads looks at what is to be sent, not later than this."""
        alarm = self._alarm
        if alarm is None or self._sender.connection is None:
            return
        when_s = alarm.when()
        if when_s is None or at_s < when_s:
            with suppress(RuntimeError):  # it rings already
                alarm.reschedule(at_s)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
