"""`GET /v1/stream`: one WebSocket, its session, and the two tasks that read and write it.

Knows: sockets, frames and close codes; carries out the effects that `session` asks for.
Must not know: rules of the protocol (`session`), encodings (`codec`), how translations are made (`publisher`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from gateway import metrics
from gateway.domain.engine import EngineProfile, EngineState
from gateway.domain.errors import (
    CloseCode,
    Draining,
    EngineRestarting,
    EngineUnavailable,
    ForeignOrigin,
    GatewayError,
    SessionIdle,
    SlowReader,
    StartTimeout,
    TooManySessions,
)
from gateway.domain.ports import Engine
from gateway.meeting.members import Member
from gateway.meeting.outbox import Outbox
from gateway.protocol.codec import Codec, negotiate
from gateway.protocol.from_domain import error_message
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    ClientMessage,
    Error,
    Pong,
    SessionDraining,
    SessionStarted,
    UtteranceAccepted,
)
from gateway.sessions.machine import (
    Accept,
    Acknowledge,
    Cancel,
    Close,
    Effect,
    Join,
    Reply,
    Session,
    Show,
    State,
    Update,
    Withdraw,
)
from gateway.sessions.registry import Attendance, Entry
from gateway.translation.finals import Publisher
from gateway.translation.partials import Interpreter
from gateway.translation.scheduler import Scheduler

__all__ = ["Stream"]

_log = logging.getLogger(__name__)

# How long a peer that may not be reading gets to take the last frames.
_FAREWELL_S = 2.0

# Pings that are answered once a client has what it missed; of more, the newest.
_MOST_PONGS = 16

# Connections that have not started a session yet.
_MOST_UNSTARTED = 1_000


class Stream:
    """Owns every open connection; `endpoint` is the route."""

    def __init__(
        self,
        *,
        engine: Engine,
        scheduler: Scheduler,
        publisher: Publisher,
        interpreter: Interpreter,
        attendance: Attendance,
        limits: Limits,
        outbox_bytes: int,
        max_sessions: int,
        allowed_origins: frozenset[str] = frozenset(),
    ) -> None:
        self.engine = engine
        self.scheduler = scheduler
        self.publisher = publisher
        self.interpreter = interpreter
        self.attendance = attendance
        self.limits = limits
        self.outbox_bytes = outbox_bytes
        self.max_sessions = max_sessions
        self.allowed_origins = allowed_origins
        self._connections: set[_Connection] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    async def endpoint(self, websocket: WebSocket) -> None:
        """Serve one WebSocket from its handshake to its close."""
        try:
            self._check_origin(websocket)
            codec, subprotocol = negotiate(websocket.scope.get("subprotocols", []))
        except GatewayError as error:
            # Before the handshake there is no frame to send: the HTTP refusal carries the reason.
            metrics.ERRORS.labels(error.code).inc()
            await websocket.send_denial_response(PlainTextResponse(error.message, error.http_status))
            return
        await websocket.accept(subprotocol=subprotocol)
        connection = _Connection(self, websocket, codec)
        if self.scheduler.draining:
            await connection.turn_away(_leaving(), CloseCode.DRAINING)
        elif len(self._connections) >= self.max_sessions + _MOST_UNSTARTED:
            # Below that nobody is turned away before it is known whether they resume a session.
            await connection.turn_away(
                TooManySessions(f"This gateway holds {self.max_sessions} sessions already."),
                CloseCode.TOO_MANY_SESSIONS,
            )
        else:
            self._connections.add(connection)
            self._empty.clear()
            try:
                await connection.run()
            finally:
                self._connections.discard(connection)
                if not self._connections:
                    self._empty.set()

    def _check_origin(self, websocket: WebSocket) -> None:
        """Raises `ForeignOrigin`. A browser tells which page opens a WebSocket, and lets any page do so."""
        origin = websocket.headers.get("origin")
        if origin is None or not self.allowed_origins.isdisjoint({origin, "*"}):
            return
        if urlsplit(origin).netloc != websocket.headers.get("host"):
            raise ForeignOrigin(f"Pages of {origin} may not use this gateway; its operator can allow them.")

    @property
    def open_sessions(self) -> int:
        """Connections being served now."""
        return len(self._connections)

    def announce_drain(self, deadline_s: float) -> None:
        """Tell every client that the gateway is leaving."""
        for connection in self._connections:
            connection.outbox.put(SessionDraining(deadline_ms=round(deadline_s * 1000)))

    def close_idle(self) -> None:
        """Close every connection on which nothing was said for `limits.idle_s`; called now and then."""
        since_s = time.monotonic() - self.limits.idle_s
        for connection in self._connections:
            if connection.active_s <= since_s:
                connection.finish(
                    CloseCode.IDLE,
                    SessionIdle(
                        f"Nothing was sent on this connection for {self.limits.idle_s} s; reconnect to go on.",
                        retry_after_ms=0,
                    ),
                )

    async def close_all(self, deadline_s: float) -> None:
        """Close every connection with 1012, after what is in its outbox; a peer that reads slowly has so long."""
        for connection in self._connections:
            connection.finish(
                CloseCode.RESTART, Draining("The gateway restarts; reconnect.", retry_after_ms=1_000)
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await self._empty.wait()


class _Connection:
    """One socket. The reader feeds the session; the writer empties the outbox; the first to end ends both.

    active_s: when something was last read or written, by the monotonic clock.
    """

    def __init__(self, stream: Stream, websocket: WebSocket, codec: Codec) -> None:
        self.outbox = Outbox(stream.outbox_bytes, on_overflow=self._overflowed)
        self.active_s = time.monotonic()
        self._stream = stream
        self._websocket = websocket
        self._codec = codec
        self._session = Session(stream.limits)
        self._entry: Entry | None = None
        self._left_for_good = False
        self._pongs: list[Pong] = []
        self._close_code: CloseCode | None = None
        self._last_word: Error | None = None
        self._tasks = asyncio.TaskGroup()
        self._writer: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until the client leaves, the session ends or the gateway closes it."""
        try:
            try:
                async with self._tasks as tasks:
                    reader = tasks.create_task(self._read())
                    self._writer = tasks.create_task(self._write())
                    # Either end of a connection ends the other: a reader without a writer has nobody to answer.
                    self._writer.add_done_callback(lambda _: reader.cancel())
                    reader.add_done_callback(lambda _: self.outbox.close())
            except* Exception:
                _log.exception("a connection failed")
                self.finish(CloseCode.INTERNAL, GatewayError("The gateway failed; this is a bug of the gateway."))
            await self._farewell()
        finally:
            self._leave()

    async def turn_away(self, error: GatewayError, code: CloseCode) -> None:
        """Close a connection that gets no session."""
        self._close_code, self._last_word = code, _counted(error)
        await self._farewell()

    def finish(self, code: CloseCode, error: GatewayError | None = None) -> None:
        """Close once everything in the outbox is written; the first reason given is the one that counts."""
        if self._close_code is None:
            self._close_code = code
            self._last_word = _counted(error) if error is not None else None
            self.outbox.close()

    # ------------------------------------------------------------ reading

    async def _read(self) -> None:
        start_timeout_s = self._stream.limits.start_timeout_s
        try:
            async with asyncio.timeout(start_timeout_s) as until_start:
                while True:
                    await self._take(await self._receive())
                    if self._session.state is not State.AWAITING_START:
                        until_start.reschedule(None)
                    elif self._profile() is None:
                        # Told to wait for the engine, it is not late.
                        until_start.reschedule(asyncio.get_running_loop().time() + start_timeout_s)
        except TimeoutError:
            self.finish(CloseCode.IDLE, StartTimeout(f"No session.start within {start_timeout_s} s."))
        except WebSocketDisconnect as gone:
            # Any other code, or none, is a connection that was lost: its session is kept.
            self._left_for_good = gone.code == CloseCode.NORMAL
        except asyncio.CancelledError:
            # The end of this task in any case. As its outcome, the error would hold this frame and the frame the
            # task, and all that was said in a meeting would wait for a pass of the garbage collector.
            pass

    async def _receive(self) -> str | bytes:
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        self.active_s = time.monotonic()
        text: str | None = message.get("text")
        data: bytes | None = message.get("bytes")
        return text if text is not None else data or b""

    async def _take(self, frame: str | bytes) -> None:
        now_s = time.monotonic()
        try:
            message: ClientMessage = self._codec.decode(frame, max_bytes=self._stream.limits.message_bytes)
        except GatewayError as error:
            await self._carry_out(self._session.unreadable(error, now_s))
        else:
            await self._carry_out(self._session.receive(message, now_s, self._profile()))

    def _profile(self) -> EngineProfile | None:
        try:
            return self._stream.engine.profile()
        except EngineUnavailable:
            return None

    # ------------------------------------------------------------ effects

    async def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(message=message):
                    if isinstance(message, Error):
                        metrics.ERRORS.labels(message.code).inc()
                    if isinstance(message, Pong) and self._entry is not None and not self._entry.feed.live:
                        # Behind everything that was missed, so that a client can find the end of it.
                        self._pongs = [*self._pongs[1 - _MOST_PONGS :], message]
                    else:
                        self.outbox.put(message)
                case Join():
                    if not await self._join(effect):
                        return  # what follows is about a session that did not begin
                case Update():
                    member = self._member()
                    try:
                        self._stream.attendance.update(member, effect)
                    except GatewayError as error:
                        before = Update(member.speaks, member.reads, member.stability, member.originals)
                        self._session.not_updated(before)
                        self.outbox.put(_counted(error))
                        return  # what follows says that it was taken
                case Show(utterance=utterance):
                    self._stream.interpreter.hear(self._member().meeting, utterance)
                case Accept():
                    try:
                        await self._stream.attendance.accept(self._member(), effect)
                    except GatewayError as error:
                        metrics.UTTERANCES.labels("refused").inc()
                        self.outbox.put(_counted(error.about(effect.utterance.id)))
                    else:
                        if effect.again:  # the log, which tells of what is new, has it already
                            self._acknowledge(effect.utterance.id, effect.utterance.rev)
                case Acknowledge(id=utterance_id, rev=rev):
                    self._acknowledge(utterance_id, rev)
                case Cancel(id=utterance_id):
                    member = self._member()
                    self._stream.publisher.cancel(member.meeting, member.participant, utterance_id)
                case Withdraw(id=utterance_id):
                    member = self._member()
                    member.meeting.withdraw((member.participant, utterance_id))
                case Close(code=code):
                    self.finish(code)

    def _acknowledge(self, utterance_id: str, rev: int) -> None:
        """Once more: at a position that this client has received everything up to."""
        entry = self._present()
        feed, meeting = entry.feed, entry.member.meeting
        self.outbox.put(UtteranceAccepted(utterance_id, rev, meeting.offset if feed.live else feed.passed))

    async def _join(self, join: Join) -> bool:
        if self._stream.scheduler.draining:
            self.finish(CloseCode.DRAINING, _leaving())
            return False
        try:
            entry = await self._stream.attendance.join(join, self._session, self.outbox, self.finish)
        except TooManySessions as error:
            self.finish(CloseCode.TOO_MANY_SESSIONS, error)
            return False
        except GatewayError as error:
            self._session.not_joined()
            self.outbox.put(_counted(error))
            return False
        self._entry = entry
        member, profile = entry.member, self._stream.engine.profile()
        self.outbox.put(
            SessionStarted(
                session=member.session,
                participant=member.participant,
                meeting=member.meeting.id,
                epoch=member.meeting.epoch,
                offset=entry.feed.position,
                recovered=entry.recovered,
                languages=list(profile.languages),
                participants=member.meeting.participants(but=member),
                options=sorted(profile.options),
                limits=self._stream.limits,
            )
        )
        if (health := self._stream.engine.health()).state is EngineState.RESTARTING:
            self.outbox.put(_counted(EngineRestarting(health.reason)))
        self._tasks.create_task(self._stream_to(entry))
        return True

    async def _stream_to(self, entry: Entry) -> None:
        """Everything missed, then live."""
        try:
            await entry.member.meeting.stream_to(entry.member, entry.feed)
            for pong in self._pongs:
                self.outbox.put(pong)
        except SlowReader as error:
            self.finish(CloseCode.SLOW_READER, error)
        except GatewayError as error:
            self.finish(CloseCode.INTERNAL, error)

    def _present(self) -> Entry:
        assert self._entry is not None  # noqa: S101 -- the session lets nothing through before its start
        return self._entry

    def _member(self) -> Member:
        return self._present().member

    def _leave(self) -> None:
        self._session.disconnected()
        if self._entry is not None:
            member, feed = self._entry.member, self._entry.feed
            if member.feed is feed and (self._left_for_good or self._close_code is CloseCode.NORMAL):
                self._stream.attendance.end(member)
            else:
                self._stream.attendance.away(member, feed)
            self._entry = None

    # ------------------------------------------------------------ writing

    async def _write(self) -> None:
        with suppress(WebSocketDisconnect):
            while payloads := await self.outbox.get():
                for payload in payloads:
                    await self._send(payload.frame(self._codec))
                self.active_s = time.monotonic()

    async def _send(self, frame: str | bytes) -> None:
        kind = "text" if isinstance(frame, str) else "bytes"
        try:
            await self._websocket.send({"type": "websocket.send", kind: frame})
        except RuntimeError:
            # The server has closed the connection meanwhile, because a ping went unanswered.
            raise WebSocketDisconnect(1006) from None

    def _overflowed(self) -> None:
        """The writer hangs in a send that the client does not read: nothing more can reach it in order."""
        self.finish(CloseCode.SLOW_READER, SlowReader("Too much waits to be read; reconnect.", retry_after_ms=0))
        if self._writer is not None:
            self._writer.cancel()

    async def _farewell(self) -> None:
        """The error that says why, then the close frame; a peer that does not read gets neither."""
        if self._websocket.application_state is not WebSocketState.CONNECTED or self._close_code is None:
            return
        # The peer may be gone or not reading: then there is nobody to say it to.
        with suppress(TimeoutError, WebSocketDisconnect, RuntimeError, OSError):
            async with asyncio.timeout(_FAREWELL_S):
                if self._last_word is not None:
                    await self._send(self._codec.encode(self._last_word))
                reason = self._last_word.code if self._last_word is not None else ""
                await self._websocket.close(self._close_code, reason)


def _leaving() -> Draining:
    return Draining("The gateway is shutting down; reconnect.", retry_after_ms=1_000)


def _counted(error: GatewayError) -> Error:
    metrics.ERRORS.labels(error.code).inc()
    return error_message(error)
