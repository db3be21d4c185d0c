"""One WebSocket: its session, and the task that reads it; `writer` writes it.

Knows: sockets, frames and close codes, what a session that starts is told; carries out the effects that
`sessions.machine` asks for.
Must not know: rules of the protocol, encodings, how translations are made, other connections.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Literal

from msgspec import UNSET, Struct
from starlette.websockets import WebSocket, WebSocketDisconnect

from gateway import metrics
from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import EngineProfile, EngineState
from gateway.domain.errors import (
    Draining,
    EngineRestarting,
    EngineUnavailable,
    Forbidden,
    GatewayError,
    LogUnavailable,
    QuotaExceeded,
    SlowReader,
    StartTimeout,
    TooManySessions,
    Unauthenticated,
)
from gateway.domain.grants import Grant, meeting_name
from gateway.domain.languages import AUTO
from gateway.domain.ports import Engine
from gateway.protocol.checks import targets_by_source
from gateway.protocol.codec import Codec
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    ClientMessage,
    Error,
    Pong,
    ServerMessage,
    SessionRefreshed,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    UtteranceAccepted,
    UtteranceFinal,
    UtterancePartial,
)
from gateway.server.access_log import log_websocket
from gateway.server.guard.audit import Audit
from gateway.server.guard.http import BEGUN_S
from gateway.server.guard.identity import Identity
from gateway.server.translate.detection import Detector
from gateway.server.writer import Traffic, Writer, counted
from gateway.sessions.entrance import Entry
from gateway.sessions.local_session import LocalSession
from gateway.sessions.machine import (
    Accept,
    Acknowledge,
    Cancel,
    Close,
    Effect,
    EndMeeting,
    Entitle,
    Join,
    Lock,
    Mute,
    Refresh,
    Remove,
    Reply,
    SessionState,
    Show,
    State,
    Update,
    Withdraw,
)
from gateway.sessions.sessions import Sessions
from gateway.translation.scheduling.scheduler import Scheduler

_log = logging.getLogger(__name__)

# Pings that are answered once a client has what it missed; of more, the newest.
_MOST_PONGS = 16

# Before a log that could not be read is read again.
_READ_AGAIN_S = 0.5

# For a client without a token to say who it is, and the bytes of the frame that does.
_ANONYMOUS_S, _ANONYMOUS_BYTES = 5.0, 4_096


class Core(Struct, frozen=True):
    """What a connection carries effects out with."""

    engine: Engine
    scheduler: Scheduler
    sessions: Sessions
    limits: Limits
    identity: Identity
    audit: Audit
    detector: Detector

    @property
    def draining(self) -> bool:
        """Whether newcomers are turned away because the gateway is about to stop."""
        return self.scheduler.draining

    def restarting(self) -> EngineRestarting | None:
        """What a newcomer is told while the engine is built again."""
        health = self.engine.health()
        return EngineRestarting(health.reason) if health.state is EngineState.RESTARTING else None

    def profile(self) -> EngineProfile | None:
        """What the model can do; None while the engine is loading."""
        try:
            return self.engine.profile()
        except EngineUnavailable:
            return None

    async def prepare(self, message: ClientMessage) -> None:
        """What is needed to handle a message: the detector's model, where a language is to be detected."""
        match message:
            case SessionStart(speaks=str() as lang) | SessionUpdate(speaks=str() as lang):
                pass
            case UtterancePartial(lang=str() as lang) | UtteranceFinal(lang=str() as lang):
                pass
            case _:
                return
        if lang.lower() == AUTO:
            await self.detector.load()

    def started(self, entry: Entry) -> SessionStarted:
        """The answer to a `session.start`. Raises `EngineUnavailable`."""
        session = entry.session
        is_host = session.grant.is_host
        profile = self.engine.profile()
        return SessionStarted(
            session=session.secret,
            participant=session.member.participant,
            meeting=meeting_name(session.room.id),
            epoch=session.room.epoch,
            offset=entry.feed.position,
            recovered=entry.recovered,
            languages=list(profile.languages),
            participants=session.room.presence.participants(but=session.member.participant),
            options=sorted(profile.options),
            limits=self.limits,
            targets=targets_by_source(profile),
            record=UNSET if session.room.recorded else False,
            host=is_host or UNSET,
            locked=session.room.presence.is_locked or UNSET,
            muted=session.room.presence.is_muted(session.member) or UNSET,
            person=session.member.person or UNSET,
            title=session.room.title.text or UNSET,
            held_by=session.room.title.held_by or UNSET,
        )


def leaving() -> Draining:
    """Why a newcomer is turned away while the gateway drains."""
    return Draining("The gateway is shutting down; reconnect.", retry_after_ms=1_000)


class Connection:
    """One socket. The reader feeds the session; the writer empties the outbox; the first to end ends both."""

    def __init__(
        self,
        core: Core,
        websocket: WebSocket,
        codec: Codec,
        outbox_bytes: int,
        address: str = "",  # The account of the client's address.
        grant: Grant | None = None,  # What it may, where it presented a token with the handshake.
    ) -> None:
        self._address = address
        self._grant = grant
        # Whether it is known who the client is, where that is asked.
        self.admitted = grant is not None or not core.identity.required
        self._traffic = Traffic()
        self._writer = Writer(websocket, codec, outbox_bytes, self._traffic)
        self.outbox, self.finish = self._writer.outbox, self._writer.finish
        self._core = core
        self._websocket = websocket
        self._codec = codec
        self._state = SessionState(core.limits, core.detector.rank)
        self._entry: Entry | None = None
        self._is_to_wait = False
        self._pongs: list[Pong] = []
        self._tasks = asyncio.TaskGroup()
        # Brings the client up to date.
        self._streaming: asyncio.Task[None] | None = None

    @property
    def active_s(self) -> float:
        """When something was last read or written, by the monotonic clock."""
        return max(self._traffic.read_s, self._writer.active_s)

    async def run(self) -> None:
        """Serve until the client leaves, the session ends or the gateway closes it."""
        try:
            try:
                async with self._tasks as tasks:
                    reader = tasks.create_task(self._read())
                    # Either end of a connection ends the other: a reader without a writer cannot answer.
                    self._writer.start(tasks).add_done_callback(lambda _: self._stop(reader))
                    reader.add_done_callback(lambda _: self.outbox.close())
            except* Exception:
                _log.exception("a connection failed")
                self.finish(CloseCode.INTERNAL, GatewayError("The gateway failed; this is a bug of the gateway."))
            await self._writer.farewell()
        finally:
            self._leave()

    def _stop(self, reader: asyncio.Task[None]) -> None:
        """Nothing can be written any more."""
        reader.cancel()
        if self._streaming is not None:
            self._streaming.cancel()

    async def turn_away(self, error: GatewayError, code: CloseCode) -> None:
        """Close a connection that gets no session."""
        self.finish(code, error)
        await self._writer.farewell()
        self._leave()

    # ------------------------------------------------------------ reading

    async def _read(self) -> None:
        loop, start_timeout_s = asyncio.get_running_loop(), float(self._core.limits.start_timeout_s)
        # In all: what a client took for TLS and for the head of its handshake is gone.
        due_s = self._websocket.scope["state"].get(BEGUN_S, loop.time()) + start_timeout_s
        if not self.admitted:
            start_timeout_s = min(start_timeout_s, _ANONYMOUS_S)
            due_s = min(due_s, loop.time() + start_timeout_s)
        try:
            async with asyncio.timeout_at(due_s) as until_start:
                while True:
                    frame = await self._receive()
                    until_s, self._is_to_wait = until_start.when(), False
                    until_start.reschedule(None)  # how long the store takes is not the client's fault
                    await self._handle(frame)
                    if self._state.state is State.AWAITING_START:
                        # Told to wait for the engine or the store, it is not late.
                        is_to_wait = self._is_to_wait or self._core.profile() is None
                        later_s = loop.time() + start_timeout_s
                        until_start.reschedule(later_s if self.admitted and is_to_wait else until_s)
        except TimeoutError:
            self.finish(CloseCode.IDLE, StartTimeout(f"No session.start within {start_timeout_s:g} s."))
        except WebSocketDisconnect as gone:
            # Any other code, or none, is a connection that was lost: its session is kept.
            self._traffic.client_code = gone.code
        except asyncio.CancelledError:
            # The end of this task in any case. As its outcome, the error would hold this frame and the frame the
            # task, and all that was said in a meeting would wait for a pass of the garbage collector.
            pass

    async def _receive(self) -> str | bytes:
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        text: str | None = message.get("text")
        frame: str | bytes = text if text is not None else message.get("bytes") or b""
        self._traffic.received(frame)
        return frame

    async def _handle(self, frame: str | bytes) -> None:
        now_s, limits = time.monotonic(), self._core.limits
        max_bytes = limits.message_bytes if self.admitted else min(limits.message_bytes, _ANONYMOUS_BYTES)
        try:
            message: ClientMessage = self._codec.decode(frame, max_bytes=max_bytes)
        except GatewayError as error:
            await self._carry_out(self._state.unreadable(error, now_s))
            return
        if isinstance(message, SessionStart) and not await self._identify(message.token):
            return
        await self._core.prepare(message)
        effects = self._state.receive(message, now_s, self._core.profile())
        if any(isinstance(effect, Reply) and _forbids(effect.message) for effect in effects):
            self._record_forbidden(message)
        await self._carry_out(effects)

    def _record_forbidden(self, message: ClientMessage) -> None:
        grant = self._state.grant
        if isinstance(message, SessionStart):
            self._core.audit.record(_joining(message), self._websocket, Forbidden.code, grant, message.meeting)
        else:
            meeting = meeting_name(self._local_session().room.id)
            self._core.audit.record("message", self._websocket, Forbidden.code, grant, meeting)

    async def _identify(self, token: str | None) -> bool:
        """Find out who starts the session. False: the client may not."""
        if self._state.state is not State.AWAITING_START:
            return True
        if token is not None or self._grant is None:
            try:
                self._grant = await self._core.identity.grant(token)
            except Unauthenticated as error:
                self._core.audit.record("join", self._websocket, error.code)
                self.finish(CloseCode.UNAUTHENTICATED, error)
                return False
        self._state.grant, self.admitted = self._grant, True
        return True

    # ------------------------------------------------------------ effects

    async def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if not await self._do(effect):
                return  # what follows says that it was done

    async def _do(self, effect: Effect) -> bool:
        """Carry out one effect. False: what follows it in the list is not to be done."""
        sessions = self._core.sessions
        match effect:
            case Reply(message):
                self._reply(message)
            case Join():
                return await self._join(effect)
            case Refresh():
                return await self._refresh(effect)
            case Update():
                return await self._update(effect)
            case Show():
                await sessions.hear(self._local_session(), effect)
            case Accept():
                await self._accept(effect)
            case Acknowledge():
                self._acknowledge(effect)
            case Cancel(id):
                sessions.cancel(self._local_session(), id)
            case Withdraw(id, wait_s):
                sessions.withdraw(self._local_session(), id, wait_s)
            case Remove() | Mute() | Lock() | Entitle() | EndMeeting():
                await sessions.hosting.carry_through(self._host(effect))
            case Close(code, reason):
                self.finish(code, reason)
        return True

    def _reply(self, message: ServerMessage) -> None:
        if isinstance(message, Error):
            metrics.ERRORS.labels(message.code).inc()
        if isinstance(message, Pong) and self._entry is not None and not self._entry.feed.live:
            # Behind everything that was missed, so that a client can find the end of it.
            self._pongs = [*self._pongs[1 - _MOST_PONGS :], message]
        else:
            self.outbox.put(message)

    async def _join(self, effect: Join) -> bool:
        core = self._core
        if core.draining:
            self.finish(CloseCode.DRAINING, leaving())
            return False
        self.outbox.hold()  # others may tell it something before it knows that it has joined
        started: ServerMessage | None = None
        try:
            entry = await self._joined(effect)
            started = core.started(entry)
        except (TooManySessions, QuotaExceeded, Unauthenticated) as error:
            is_unknown = isinstance(error, Unauthenticated)
            self.finish(CloseCode.UNAUTHENTICATED if is_unknown else CloseCode.TOO_MANY_SESSIONS, error)
            return False
        except GatewayError as error:
            self._state.not_joined()
            self._is_to_wait = isinstance(error, LogUnavailable)
            self.outbox.put(counted(error))
            return False
        finally:
            self.outbox.release(started)
        self._entry = entry
        if (restarting := core.restarting()) is not None:
            self.outbox.put(counted(restarting))
        self._streaming = self._tasks.create_task(self._stream_to(entry))
        return True

    async def _joined(self, join: Join) -> Entry:
        """Raises what `Sessions.join` raises."""
        core, state = self._core, self._state
        with core.audit.attempt(_joining(join), self._websocket) as attempt:
            attempt.grant, attempt.meeting = state.grant, join.meeting
            entry = await core.sessions.join(join, state, self.outbox, self.finish, self._address)
            attempt.meeting = meeting_name(entry.session.room.id)
            if join.resume is not None and join.resume.session != entry.session.secret:
                attempt.action = "join"  # what was to be resumed is not there any more
        return entry

    async def _refresh(self, effect: Refresh) -> bool:
        core = self._core
        try:
            with core.audit.attempt("refresh", self._websocket) as attempt:
                attempt.grant = self._state.grant
                attempt.meeting = meeting_name(self._local_session().room.id)
                attempt.grant = await core.identity.grant(effect.token)
                left_s = await core.sessions.refresh(self._local_session(), attempt.grant)
        except GatewayError as error:
            self.outbox.put(counted(error))
            return False
        self.outbox.put(SessionRefreshed(None if left_s is None else round(left_s * 1_000)))
        return True

    async def _host(self, effect: Remove | Mute | Lock | Entitle | EndMeeting) -> None:
        session, hosting = self._local_session(), self._core.sessions.hosting
        try:
            with self._core.audit.attempt("host", self._websocket) as attempt:
                attempt.grant, attempt.meeting = self._state.grant, meeting_name(session.room.id)
                match effect:
                    case Remove(participant):
                        attempt.detail = f"remove {participant}"
                        await hosting.remove(session, participant)
                    case Mute(participant, muted):
                        attempt.detail = f"{'mute' if muted else 'unmute'} {participant}"
                        await hosting.mute(session, participant, muted)
                    case Lock(locked):
                        attempt.detail = "lock" if locked else "unlock"
                        await hosting.lock(session, locked)
                    case Entitle(title):
                        attempt.detail = "title"
                        await hosting.entitle(session, title)
                    case EndMeeting():
                        attempt.detail = "end"
                        await hosting.end_meeting(session)
        except GatewayError as error:
            self.outbox.put(counted(error))

    async def _update(self, effect: Update) -> bool:
        session = self._local_session()
        try:
            await self._core.sessions.update(session, effect)
        except GatewayError as error:
            member = session.member
            self._state.not_updated(Update(member.speaks, member.reads, member.stability, member.originals))
            self.outbox.put(counted(error))
            return False
        return True

    async def _accept(self, effect: Accept) -> None:
        said = effect.utterance
        try:
            known = await self._core.sessions.accept(self._local_session(), effect)
        except GatewayError as error:
            metrics.UTTERANCES.labels("refused").inc()
            self.outbox.put(counted(error.for_utterance(said.id)))
            await self._carry_out(self._state.give_up(said.id, error))
        else:
            if known:  # the log, which tells of what is new, has it already
                self._acknowledge(Acknowledge(said.id, said.rev))

    def _acknowledge(self, effect: Acknowledge) -> None:
        """Once more: at a position that this client has received everything up to."""
        entry = self._present()
        offset = entry.session.room.offset if entry.feed.live else entry.feed.passed
        self.outbox.put(UtteranceAccepted(effect.id, effect.rev, offset))

    async def _stream_to(self, entry: Entry) -> None:
        try:
            await self._bring_up_to_date(entry)
            for pong in self._pongs:
                self.outbox.put(pong)
        except SlowReader as error:
            self.finish(CloseCode.SLOW_READER, error)
        except GatewayError as error:
            self.finish(CloseCode.INTERNAL, error)
        except asyncio.CancelledError:
            pass  # as in `_read`

    async def _bring_up_to_date(self, entry: Entry) -> None:
        """Also where the store is away for a while."""
        while not entry.feed.live:
            try:
                await entry.session.room.stream_to(entry.session.member, entry.feed)
            except LogUnavailable:
                await asyncio.sleep(_READ_AGAIN_S)

    def _present(self) -> Entry:
        assert self._entry is not None  # noqa: S101 -- the session lets nothing through before its start
        return self._entry

    def _local_session(self) -> LocalSession:
        return self._present().session

    def _leave(self) -> None:
        self._state.disconnected()
        entry, code = self._entry, self._writer.close_code
        session = None if entry is None else entry.session
        log_websocket(self._traffic, self._websocket, code, self._writer.reason, session, self.outbox)
        if entry is None:
            return
        session, feed, self._entry = entry.session, entry.feed, None
        left_for_good = self._traffic.client_code == CloseCode.NORMAL
        why = code.name.lower() if code is not None else "left" if left_for_good else "lost"
        self._core.audit.record("leave", self._websocket, why, self._state.grant, meeting_name(session.room.id))
        if session.member.feed is feed and (left_for_good or code is CloseCode.NORMAL):
            self._core.sessions.local.end(session)
        else:
            self._core.sessions.local.away(session, feed)


def _joining(start: SessionStart | Join) -> Literal["join", "resume"]:
    return "join" if start.resume is None else "resume"


def _forbids(message: ServerMessage) -> bool:
    return isinstance(message, Error) and message.code == Forbidden.code
