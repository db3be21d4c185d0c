"""Every error of the gateway, with the stable code that clients program against.

Knows: codes, whether a client may retry, and the matching HTTP status.
Must not know: sockets, frames, engines. An error outside this tree reaches a client as `internal`.

    GatewayError                        internal
    ├── ProtocolError                   (what the client sent)
    │   ├── InvalidMessage              invalid_message
    │   ├── UnknownType                 unknown_type
    │   ├── MessageTooLarge             message_too_large
    │   ├── InvalidValue                invalid_value
    │   ├── UnsupportedLanguage         unsupported_language
    │   ├── UnsupportedOption           unsupported_option
    │   ├── LimitExceeded               limit_exceeded
    │   ├── ForeignOrigin               foreign_origin
    │   ├── Unauthenticated             unauthenticated
    │   ├── Forbidden                   forbidden
    │   ├── TokenExpired                token_expired
    │   ├── TokenRevoked                token_revoked
    │   ├── Removed                     removed
    │   ├── Muted                       muted
    │   ├── MeetingEnded                meeting_ended
    │   ├── MeetingLocked               meeting_locked
    │   └── UnknownMeeting              unknown_meeting
    │       └── NotRecorded             not_recorded
    ├── StateError                      (when the client sent it)
    │   ├── SessionNotStarted           session_not_started
    │   ├── SessionAlreadyStarted       session_already_started
    │   ├── SessionEnding               session_ending
    │   ├── StartTimeout                start_timeout
    │   ├── SessionIdle                 session_idle
    │   ├── SessionReplaced             session_replaced
    │   ├── UnknownUtterance            unknown_utterance
    │   ├── StaleRevision               stale_revision
    │   └── UtteranceFinished           utterance_finished
    ├── Unavailable                     (the gateway, for now)
    │   ├── RateLimited                 rate_limited
    │   ├── TooManyInFlight             too_many_in_flight
    │   ├── TooManySessions             too_many_sessions
    │   ├── QuotaExceeded               quota_exceeded
    │   │   └── DailyQuotaExceeded      daily_quota_exceeded
    │   ├── Overloaded                  overloaded
    │   ├── Draining                    draining
    │   ├── EngineUnavailable           engine_unavailable
    │   │   └── EngineRestarting        engine_restarting
    │   ├── LogUnavailable              log_unavailable
    │   └── SlowReader                  slow_reader
    ├── EngineFailed                    engine_failed
    │   └── TextTooLong                 text_too_long
    ├── DeadlineExceeded                deadline_exceeded
    ├── Cancelled                       cancelled
    └── StartupError                    startup_failed
"""

from __future__ import annotations

from typing import Any, ClassVar


class GatewayError(Exception):
    """The gateway failed; this is a bug of the gateway. Base of the tree."""

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, code: str | None = None, http_status: int | None = None, retryable: bool | None = None
    ) -> None:
        """What is left out is as in the parent."""
        cls.code = code or cls.code
        cls.http_status = http_status or cls.http_status
        cls.retryable = cls.retryable if retryable is None else retryable

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        utterance: str | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message  # one sentence for people
        self.field = field  # JSON path of the offending one, such as `reads[1]`
        self.utterance = utterance  # the client's own id of it
        self.retry_after_ms = retry_after_ms  # only where `retryable` is true

    def for_utterance(self, utterance: str) -> GatewayError:
        """The same error, naming the utterance it is about."""
        self.utterance = utterance
        return self


class ProtocolError(GatewayError, code="invalid_message", http_status=400):
    """The client sent something that cannot be used; the session goes on."""

    # Whether it is about a frame that would have been the final of `utterance`.
    of_final = False


class InvalidMessage(ProtocolError):
    """The frame is not a well-formed message of the negotiated subprotocol."""


class UnknownType(ProtocolError, code="unknown_type"):
    """The gateway does not know the message's `type`."""


class MessageTooLarge(ProtocolError, code="message_too_large", http_status=413):
    """The frame has more bytes than `limits.message_bytes`."""


class InvalidValue(ProtocolError, code="invalid_value", http_status=422):
    """A field has the right type, but a value that makes no sense."""


class UnsupportedLanguage(ProtocolError, code="unsupported_language", http_status=422):
    """No model here translates from or into this language, or between these two."""


class UnsupportedOption(ProtocolError, code="unsupported_option", http_status=422):
    """The model takes no glossary, context or formality; the session goes on without it."""


class LimitExceeded(ProtocolError, code="limit_exceeded", http_status=422):
    """A field is longer than the limit advertised in `session.started`."""


class ForeignOrigin(ProtocolError, code="foreign_origin", http_status=403):
    """A web page opened the WebSocket from an origin that the operator did not allow; refused with 403."""


class Unauthenticated(ProtocolError, code="unauthenticated", http_status=401):
    """No valid token came, and this gateway serves nobody without one; the connection is closed."""

    # The same sentence for every reason: a client that tries tokens learns nothing from the answers.
    def __init__(
        self, message: str = "This gateway needs a valid token.", *, why: str = "missing", **about: Any
    ) -> None:
        super().__init__(message, **about)
        # Code of the reason, for the log alone.
        self.why = why


class Forbidden(ProtocolError, code="forbidden", http_status=403):
    """The token does not allow this."""


class TokenExpired(ProtocolError, code="token_expired", http_status=401):
    """The session's time is over and no new token came; the connection is closed."""


class TokenRevoked(ProtocolError, code="token_revoked", http_status=401):
    """The session's token was revoked; the connection is closed, and the session cannot be resumed."""


class Removed(ProtocolError, code="removed", http_status=403):
    """The host has removed this participant; the connection is closed, and the session cannot be resumed."""


class Muted(ProtocolError, code="muted", http_status=403):
    """The host has muted this participant: what they say is not taken until that is undone; they go on reading."""


class MeetingEnded(ProtocolError, code="meeting_ended", http_status=410):
    """The meeting was ended for everyone in it; the connection is closed, and the session cannot be resumed."""


class MeetingLocked(ProtocolError, code="meeting_locked", http_status=423):
    """The host has locked this meeting: those who are in it stay, and others are not let in."""


class UnknownMeeting(ProtocolError, code="unknown_meeting", http_status=404):
    """There is no log of a meeting with this id: it never existed, or its log has expired."""


class NotRecorded(UnknownMeeting, code="not_recorded"):
    """This meeting keeps nothing of what is said, so it has no transcript."""


class StateError(GatewayError, code="session_not_started", http_status=409):
    """A valid message at the wrong moment; the session goes on."""


class SessionNotStarted(StateError):
    """Something other than `session.start` came first."""


class SessionAlreadyStarted(StateError, code="session_already_started"):
    """A second `session.start` on one connection."""


class SessionEnding(StateError, code="session_ending"):
    """New work after `session.end`."""


class StartTimeout(StateError, code="start_timeout"):
    """No `session.start` within `limits.start_timeout_s`; the connection is closed."""


class SessionIdle(StateError, code="session_idle", retryable=True):
    """Nothing was sent on this connection in either direction for `limits.idle_s`; it is closed."""


class SessionReplaced(StateError, code="session_replaced"):
    """Another connection resumed this session; this one is closed, and must not reconnect."""


class UnknownUtterance(StateError, code="unknown_utterance"):
    """`utterance.cancel` for an id that is not in flight, or `replaces` for one that the log does not have."""


class StaleRevision(StateError, code="stale_revision"):
    """A revision that is not newer than one already received; it is dropped."""


class UtteranceFinished(StateError, code="utterance_finished"):
    """A different text for an utterance whose final was already accepted."""


class Unavailable(GatewayError, code="overloaded", http_status=503, retryable=True):
    """The message is valid, and the same message may succeed later."""


class RateLimited(Unavailable, code="rate_limited", http_status=429):
    """More messages a second than `limits.messages_per_s`, past the burst."""


class TooManyInFlight(Unavailable, code="too_many_in_flight", http_status=429):
    """`limits.utterances_in_flight` accepted utterances of this session are not finished yet."""


class TooManySessions(Unavailable, code="too_many_sessions", retryable=False):
    """The gateway already holds `max_sessions` sessions."""


class QuotaExceeded(Unavailable, code="quota_exceeded", http_status=429):
    """The tenant has as much as its quota allows; `message` names the quota."""


class DailyQuotaExceeded(QuotaExceeded, code="daily_quota_exceeded"):
    """The tenant has had all translated that its quota allows for today."""


class Overloaded(Unavailable):
    """The engine has more to do than it can finish soon; nothing was accepted."""


class Draining(Unavailable, code="draining"):
    """The gateway is shutting down: reconnect, and send again what was not accepted."""


class EngineUnavailable(Unavailable, code="engine_unavailable"):
    """The engine is loading or has died."""


class EngineRestarting(EngineUnavailable, code="engine_restarting"):
    """The engine died and is being started again; accepted work waits for it, and new work is accepted."""


class LogUnavailable(Unavailable, code="log_unavailable"):
    """The meeting's log cannot be used at the moment; nothing was accepted."""


class SlowReader(Unavailable, code="slow_reader"):
    """The client does not read fast enough; its connection is closed with 4008."""


class EngineFailed(GatewayError, code="engine_failed", http_status=502):
    """The engine could not translate this one text."""


class TextTooLong(EngineFailed, code="text_too_long", http_status=413):
    """The text does not fit into the model's window; `message` names the limit in tokens."""


class DeadlineExceeded(GatewayError, code="deadline_exceeded", http_status=504):
    """The translation was not done `utterance_deadline_s` after its utterance was accepted."""


class Cancelled(GatewayError, code="cancelled", http_status=499):
    """The client cancelled the utterance, or left."""


class StartupError(GatewayError, code="startup_failed"):
    """The gateway cannot start. The message tells the operator why, and what to do."""


def error_classes() -> list[type[GatewayError]]:
    """Every class of the tree, parents first."""
    found: list[type[GatewayError]] = [GatewayError]
    for each in found:  # it grows meanwhile
        found += each.__subclasses__()
    return found
