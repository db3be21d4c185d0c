"""A session over any number of connections: sends, receives, reconnects, resumes and sends again.

Knows: which connection is in use, and what to do when it is lost.
Must not know: how a connection is opened (`client.connection`), which message is next (`client.outgoing`), which
publication is new (`client.received`), delays (`client.reconnecting`), when a token is due (`client.tokens`).

A session has no background task. The task that iterates it reads, reconnects, and sends what had to wait. A caller
of `final` sends whatever may be sent at once. `_alarm` is the timeout of the iteration's current wait; other tasks
move it to an earlier time to wake the iteration.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed

from gateway.client.connection import Connection, Endpoint, close_code, reopen
from gateway.client.errors import ClientError, MessageRefused, SessionClosed
from gateway.client.events import Reconnected, Reconnecting, SessionEvent
from gateway.client.lines import Line, Lines, LineStream
from gateway.client.outgoing import Entry, Outgoing
from gateway.client.received import Received
from gateway.client.reconnecting import Outage, Reconnect, may_reconnect
from gateway.client.tokens import Refreshing
from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import Formality
from gateway.domain.errors import Forbidden, MeetingEnded, Removed, UnsupportedOption
from gateway.domain.sessions import Stability
from gateway.protocol.checks import position
from gateway.protocol.codec import well_formed, whole_characters
from gateway.protocol.messages import (
    ClientMessage,
    Error,
    LanguagesChanged,
    MeetingEnd,
    MeetingLock,
    MeetingTitle,
    ParticipantMute,
    ParticipantRemove,
    Ping,
    Resume,
    ServerMessage,
    SessionDraining,
    SessionEnd,
    SessionRefresh,
    SessionStart,
    SessionStarted,
    SessionUpdate,
    SessionUpdated,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceFinal,
    UtterancePartial,
    UtteranceReplaced,
)
from gateway.protocol.rate_limit import TokenBucket

# Without configured logging Python prints its warnings to stderr.
_LOG = logging.getLogger("gateway.client")

# What ids of utterances begin with, for callers that choose none: no letters and digits that look alike.
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_PREFIX_CHARS = 4

# Time for the last attempt before the session gives up.
_LAST_ATTEMPT_S = 1.0

# Longest wait for a new token while the connection is open: nothing is read meanwhile.
_TOKEN_S = 10.0


class ClientSession:
    """A started session: send with the methods, read with `async for`; both may happen at the same time.

    Iterate the session, in one task at a time. Only then does it read, reconnect, and send what had to wait. It
    buffers only a few frames. If you stop reading, the gateway treats you as a slow reader and closes the
    connection. The session is resumed when you iterate again.

    Every method raises `SessionClosed` once the session is over.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connection: Connection,
        start: SessionStart,
        started: SessionStarted,
        *,
        reconnect: Reconnect,
        max_unacknowledged: int,
    ) -> None:
        limits = started.limits
        self._endpoint = endpoint
        # None while there is no connection.
        self._connection: Connection | None = connection
        self._outgoing = Outgoing(start, limits.utterances_in_flight, max_unacknowledged)
        # Set when the gateway has answered something, so that there may be room in the queue.
        self._answered = asyncio.Event()
        # Half of the burst that the gateway accepts: messages may arrive closer together than they were sent.
        self._pace = TokenBucket(limits.messages_per_s, max(limits.messages_burst / 2, 1.0))
        self._is_sending = False
        # Whether a command of a host was sent, and no refusal came.
        self._has_commanded = False
        # Why the session is over. Every later attempt to send raises it.
        self._over: ClientError | None = None
        self._opened_s = _now_s()
        self._started = started
        self._received = Received(started, start.resume)
        self._lines = Lines(start, started)
        # What `lines` and `finals` give next.
        self._unread: deque[Line] = deque()
        self._policy = reconnect
        # Another process may resume this session; its ids must differ from ours.
        self._id_prefix = "".join(secrets.choice(_LETTERS) for _ in range(_PREFIX_CHARS))
        self._last_id = 0
        self._last_error: Error | None = None
        self._outage: Outage | None = None
        self._attempts = 0
        self._alarm: asyncio.Timeout | None = None
        self._refreshing = Refreshing(endpoint.tokens)
        self._asking = False

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self._endpoint.address

    @property
    def started(self) -> SessionStarted:
        """The gateway's newest answer to `session.start`, with its limits and what it can translate now."""
        return self._started

    @property
    def position(self) -> Resume:
        """Where the session is now; what `connect(resume=…)` takes."""
        return self._received.position

    @property
    def unacknowledged(self) -> tuple[UtteranceFinal, ...]:
        """The finals that the gateway has neither accepted nor refused for good, oldest first."""
        return self._outgoing.finals

    # ------------------------------------------------------------ reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionEvent:
        """The next event. Ends when the gateway has closed the session with 1000; else raises `ClientError`.

        It may be cancelled at any moment, for example by a timeout. Nothing is lost; the next call continues.
        What the gateway refuses for good is an event, `Error`, and also a warning in the log.
        """
        event = await self._next_event()
        self._lines.apply(event)  # for a loop over lines that follows
        if isinstance(event, Error) and (_is_refusal(event) or self._answers_host(event)):
            _log_refusal(event)
        return event

    def lines(self) -> LineStream:
        """Everything in the languages that are read, while it is being said: a line for each change of its text.

        Translations, and captions of what is said in a language that is read. It ends as the session does. Raises
        `ClientError`; `MessageRefused` for what the gateway refuses for good, after which it may be called again
        and goes on. A refused command of a host (`remove`, `mute`, `lock`, `entitle`, `end_meeting`) is logged
        instead.
        """
        return LineStream(self._next_line)

    def finals(self) -> LineStream:
        """As `lines`, but only what is complete; a failed translation is a line with its `failure`."""
        return LineStream(self._next_line, only_final=True)

    async def _next_line(self) -> Line:
        while not self._unread:
            event = await self._next_event()
            self._unread.extend(self._lines.apply(event))
            match event:
                case Error(code=UnsupportedOption.code):
                    _LOG.warning(event.message)
                case Error() if self._answers_host(event):
                    _log_refusal(event)
                case Error() if _is_refusal(event):
                    raise MessageRefused(event)
                case Reconnecting(attempt=1):
                    _LOG.warning("%s Trying again.", event.reason)
        return self._unread.popleft()

    def _answers_host(self, error: Error) -> bool:
        """Whether it refuses what only a host may do, or may do so, for the moment: that is not sent again."""
        if error.utterance is not None:
            return False
        has_commanded, self._has_commanded = self._has_commanded, False
        is_forbidden = error.code == Forbidden.code and error.field is None
        return is_forbidden or error.field == "participant" or (error.retryable and has_commanded)

    async def _command(
        self, message: ParticipantRemove | ParticipantMute | MeetingLock | MeetingTitle | MeetingEnd
    ) -> None:
        self._has_commanded = True
        await self._send_now(message)

    async def _next_event(self) -> SessionEvent:
        if self._alarm is not None:
            raise RuntimeError("A session is iterated by one task at a time.")
        while True:
            self._raise_if_over()
            if (connection := self._connection) is None:
                return await self._reconnect()
            try:
                if self._refreshing.is_due(_now_s()):
                    await self._refresh()
                    continue
                due_s = None if self._outgoing.idle else await self._send_queued()
                dues_s = [each_s for each_s in (due_s, self._refreshing.due_s) if each_s is not None]
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(min(dues_s, default=None)) as self._alarm:
                        message = await connection.receive()
                    if (taken := self._apply_message(message)) is not None:
                        return taken
            except ConnectionClosed as closed:
                self._lost(closed)
            finally:
                self._alarm = None

    def _raise_if_over(self) -> None:
        """Raises the exception that ends the iteration, if the session is over."""
        if isinstance(self._over, SessionClosed) and self._over.code == CloseCode.NORMAL:
            raise StopAsyncIteration
        self._check_open()

    def _apply_message(self, message: ServerMessage) -> ServerMessage | None:
        """Apply a message to the state. Returns it; None for a publication that was received before."""
        # Only the error right before a close is its reason.
        self._last_error = message if isinstance(message, Error) else None
        self._refreshing.note_message(message, _now_s())
        match message:
            case UtteranceAccepted(id=id):
                self._outgoing.accepted(id)
            case Error():
                message = self._outgoing.refused(message, _now_s())
            case SessionUpdated():
                self._outgoing.updated()
            case SessionDraining():
                self._outgoing.draining()
            case LanguagesChanged(languages, options, targets):
                self._started = replace(self._started, languages=languages, options=options, targets=targets)
            case UtteranceReplaced():
                return self._received.replace(message)
            case _:
                return message if self._received.is_new(message) else None
        self._answered.set()
        return message

    async def _refresh(self) -> None:
        """Ask for a new token and send it. Without one the session lasts until its time is over.

        If this is cancelled, the next call of `__anext__` asks again.
        """
        token = None
        self._asking = True
        try:
            with suppress(TimeoutError, ClientError, ValueError):
                async with asyncio.timeout(_TOKEN_S) as self._alarm:
                    token = await self._endpoint.tokens.ask()
        finally:
            self._asking = False
        if token is None:
            self._refreshing.failed(_now_s())
        elif self._over is None:
            with suppress(ConnectionClosed):  # reading finds out why, after what came before the close
                await self._send_in_turn(SessionRefresh(str(token)))
            self._refreshing.sent()

    # ------------------------------------------------------------ losing and finding the connection

    def _lost(self, closed: ConnectionClosed) -> None:
        """The connection was lost: end the session, or begin an outage."""
        self._connection = None
        self._outgoing.connection_lost()
        self._refreshing.stop()
        now_s = _now_s()
        loss = SessionClosed(self.url, close_code(closed), self._last_error)
        self._last_error = None
        # A proxy may close with a code of its own.
        is_over = loss.error is not None and loss.error.code in (MeetingEnded.code, Removed.code)
        if is_over or not may_reconnect(loss.code) or self._policy.give_up_s <= 0:
            self._end(loss)
            return
        # A connection that broke soon after it was opened counts as part of the same outage.
        earlier = self._attempts if now_s - self._opened_s < self._policy.most_s else 0
        self._outage = Outage(loss, now_s, self._policy, earlier)

    async def _reconnect(self) -> Reconnecting | Reconnected:
        """Make the announced attempt; announce another one if it fails, or if none was announced.

        If this is cancelled, the next call makes the attempt.
        """
        outage = self._outage
        assert outage is not None  # noqa: S101 -- set whenever there is no connection
        try:
            if outage.attempt_at_s is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(outage.attempt_at_s) as self._alarm:
                        await asyncio.get_running_loop().create_future()  # until the alarm
                self._raise_if_over()
                try:
                    until_s = max(outage.until_s, _now_s() + _LAST_ATTEMPT_S)
                    async with asyncio.timeout_at(until_s) as self._alarm:
                        start = self._received.start_to_resume(self._outgoing.start)
                        found = await reopen(self._endpoint, start, outage)
                    if found is not None:
                        return self._resumed(*found, outage)
                except TimeoutError:
                    outage.failed(f"The gateway at {self.url} did not answer in time.")
                self._raise_if_over()
        except ClientError as error:
            self._end(error)
            raise
        finally:
            self._alarm = None
        delay_s = outage.announce(_now_s())
        if delay_s is None:
            gave_up = outage.gave_up()
            self._end(gave_up)
            raise gave_up
        return Reconnecting(outage.attempt, delay_s, outage.reason)

    def _resumed(self, connection: Connection, started: SessionStarted, outage: Outage) -> Reconnected:
        """The session was resumed, or a new one was started in its place."""
        self._connection = connection
        if started.recovered is not True:
            self._outgoing.start_over()
        self._outgoing.window = started.limits.utterances_in_flight
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
        start_ms: float | None = None,
        end_ms: float | None = None,
        traceparent: str | None = None,
        replaces: str | None = None,
        participant: str | None = None,
    ) -> str:
        """Send the final text of utterance `id`, by default of a new one. Returns the utterance's id.

        Returns as soon as the session has queued it. The session sends it in order, and again if needed, until the
        gateway accepts it or refuses it for good. Waits while `max_unacknowledged` messages are queued. Raises
        `ValueError` if the message is too long to send. A final without text gives up what was begun with
        `partial`. Times are rounded, and left out where they make no sense.
        replaces: an utterance of this session that this text corrects, for everybody and in the transcript;
        without text, it is taken back. Its id is what `final` has returned; with `~` and a number, one segment.
        participant: as whom it was said, if that was an earlier session of the same person: who has the same
        `person`.
        """
        id, rev = self._next(id, rev)
        if not text.strip() and replaces is None:
            self._check_open()
            if self._outgoing.is_begun(id):
                await self.cancel(id)
            return id
        times = position(start_ms, end_ms)
        try:
            await self._queue(UtteranceFinal(id, rev, text, lang, *times, traceparent, replaces, participant))
        except ValueError:  # it is too long
            if self._outgoing.is_begun(id):
                await self.cancel(id)
            raise
        return id

    async def partial(
        self,
        text: str,
        id: str | None = None,
        *,
        lang: str | None = None,
        rev: int | None = None,
        start_ms: float | None = None,
        end_ms: float | None = None,
    ) -> str:
        """Send the next revision of utterance `id`, which may still change. Returns the utterance's id.

        It is dropped while there is no connection, since a newer one follows soon, and where it says what the last
        one said. Raises `ValueError` as `final` does.
        """
        id, rev = self._next(id, rev)
        partial = well_formed(UtterancePartial(id, rev, text, lang, *position(start_ms, end_ms)))
        self._check_open()
        self._check_size(partial)
        if self._connection is not None and not self._outgoing.is_news(partial):
            return id
        self._outgoing.note_revision(id, rev)
        await self._send_now(partial)
        return id

    async def cancel(self, id: str) -> None:
        """Stop the translation of an utterance, or give up one that is not final.

        Its final is dropped if it still waits to be sent. Without a connection, finals that the gateway has not
        accepted are dropped, and it is told later of what is not final.
        """
        id = whole_characters(id)
        is_away = self._connection is None
        withdrawn, shown = self._outgoing.withdraw(id, unanswered=is_away), self._outgoing.give_up_utterance(id)
        if withdrawn:
            self._answered.set()
        if is_away and shown:
            self._outgoing.queue_cancel(id)
        elif shown or not withdrawn:
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
        """Change the given options; the answer is `session.updated` or an error.

        `stability` and `originals` change at once, the others from the next utterance on. An update is sent again
        if needed, as finals are, and stays in force when the session is resumed.
        """
        languages = None if reads is None else list(reads)
        await self._queue(SessionUpdate(languages, speaks, stability, glossary, context, formality, originals))

    async def remove(self, participant: str) -> None:
        """As a host, remove a participant from the meeting; `ParticipantLeft` or an error follows.

        This, `mute`, `lock`, `entitle` and `end_meeting` are dropped while there is no connection.
        """
        await self._command(ParticipantRemove(participant))

    async def mute(self, participant: str, muted: bool = True) -> None:
        """As a host, have what a participant says refused (`muted`), or taken again.

        `ParticipantUpdated` or an error follows.
        """
        await self._command(ParticipantMute(participant, muted))

    async def lock(self, locked: bool = True) -> None:
        """As a host, let nobody else into the meeting, or let them in again; all get `MeetingLocked`."""
        await self._command(MeetingLock(locked))

    async def entitle(self, title: str) -> None:
        """As a host, say what the meeting is called, empty: in no way; the answer is `MeetingTitled`."""
        await self._command(MeetingTitle(title))

    async def end_meeting(self) -> None:
        """As a host, end the meeting for everyone; then iterating raises `SessionClosed` (`meeting_ended`)."""
        await self._command(MeetingEnd())

    async def ping(self, nonce: str = "") -> None:
        """Ask for a `pong`; nothing happens while there is no connection."""
        await self._send_now(Ping(nonce))

    async def end(self) -> None:
        """Send `session.end` once every final is answered. The gateway finishes accepted work; then the iteration
        ends."""
        self._check_open()
        self._outgoing.end()
        await self._send_soon()

    async def send(self, message: ClientMessage) -> None:
        """Send any message, in the same way as the method for its type."""
        match message:
            case UtteranceFinal() | SessionUpdate():
                await self._queue(message)
            case UtteranceCancel(id=id):
                await self.cancel(id)
            case SessionEnd():
                await self.end()
            case _:
                await self._send_now(message)

    async def drop(self) -> None:
        """Break the connection without a closing handshake, as a failing network does. The session is resumed."""
        if self._connection is not None:
            self._connection.drop()

    async def close(self) -> None:
        """End the session, in the gateway too. Leaving the context of `connect` does this."""
        self._end(SessionClosed(self.url, CloseCode.NORMAL, None))
        if self._alarm is not None:
            with suppress(RuntimeError):  # it has expired already
                self._alarm.reschedule(0)
        if self._connection is not None:
            await self._connection.close()

    def _next(self, id: str | None, rev: int | None) -> tuple[str, int]:
        if id is None:
            self._last_id += 1
            id = f"{self._id_prefix}-{self._last_id}"
        id = whole_characters(id)
        return id, self._outgoing.next_revision(id) if rev is None else rev

    async def _queue(self, message: UtteranceFinal | SessionUpdate) -> None:
        """Queue a message when there is room, and send it in its turn. Raises `ValueError`."""
        self._check_open()
        message = well_formed(message)
        self._check_size(message)
        if isinstance(message, UtteranceFinal) and self._outgoing.holds_final(message):
            return
        while self._outgoing.full:
            self._answered.clear()
            await self._answered.wait()
            self._check_open()
        self._outgoing.queue_message(message)
        await self._send_soon()

    async def _send_soon(self) -> None:
        """Send what may be sent now, and let the iteration send the rest."""
        due_s = await self._send_queued()
        if due_s is not None:
            self._wake(due_s)

    async def _send_queued(self) -> float | None:
        """Send what may be sent now. Returns when to call again, if that is known."""
        if self._is_sending:
            return None  # the task that is sending continues until nothing is left
        self._is_sending = True
        try:
            while (connection := self._connection) is not None:
                now_s = _now_s()
                taken = self._outgoing.next_message(now_s)
                if taken is None:
                    return self._outgoing.due_s()
                if (wait_s := self._pace.take(now_s)) > 0:
                    self._outgoing.put_back(taken)
                    return now_s + wait_s
                try:
                    await connection.send(taken.message if isinstance(taken, Entry) else taken)
                except ConnectionClosed:
                    self._outgoing.put_back(taken)
                    if self._connection is connection:
                        return None  # the reading task finds out why
                except BaseException:
                    # Cancelled: it may or may not have been sent, and another task has to continue.
                    self._outgoing.put_back(taken)
                    self._wake(now_s)
                    raise
            return None
        finally:
            self._is_sending = False

    async def _send_now(self, message: ClientMessage) -> None:
        """Send a message now or never."""
        try:
            await self._send_in_turn(message)
        except ConnectionClosed as closed:
            code = close_code(closed)
            if not may_reconnect(code) or self._policy.give_up_s <= 0:
                raise SessionClosed(self.url, code, self._last_error) from None

    async def _send_in_turn(self, message: ClientMessage) -> None:
        """Send a message at the gateway's rate. Raises `ConnectionClosed`."""
        self._check_open()
        while (wait_s := self._pace.take(_now_s())) > 0:  # noqa: ASYNC110 -- the rate limit
            await asyncio.sleep(wait_s)
        if self._connection is not None:
            await self._connection.send(well_formed(message))

    def _check_size(self, message: ClientMessage) -> None:
        """Raises `ValueError` for a frame that the gateway would refuse as too large, without its id."""
        frame = self._endpoint.codec.encode(message)
        size = len(frame) if isinstance(frame, bytes) else len(frame.encode())
        most = self._started.limits.message_bytes
        if size > most:
            raise ValueError(f"The message has {size} bytes; the gateway takes {most}.")

    def _check_open(self) -> None:
        """Raises the reason if the session is over."""
        if self._over is not None:
            raise self._over

    def _end(self, reason: ClientError) -> None:
        """The session is over. The first reason counts."""
        if self._over is None:
            self._over = reason
        self._answered.set()

    def _wake(self, at_s: float) -> None:
        """Wake the iteration at this time at the latest, so that it sends what is due."""
        alarm = self._alarm
        if alarm is None or self._connection is None or self._asking:
            return
        when_s = alarm.when()
        if when_s is None or at_s < when_s:
            with suppress(RuntimeError):  # it has expired already
                alarm.reschedule(at_s)


def _is_refusal(error: Error) -> bool:
    """Whether it answers what this client sent, and is for good. The last words before a close are neither."""
    return not error.retryable and (error.utterance is not None or error.field is not None)


def _log_refusal(error: Error) -> None:
    _LOG.warning("The gateway refused what was sent (%s): %s", error.code, error.message)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
