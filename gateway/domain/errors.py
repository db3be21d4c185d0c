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


class ProtocolError(GatewayError):
    """The client sent something that cannot be used; the session goes on."""

    code = "invalid_message"
    http_status = 400

    # Whether it is about a frame that would have been the final of `utterance`.
    of_final = False


class InvalidMessage(ProtocolError):
    """The frame is not a well-formed message of the negotiated subprotocol."""


class UnknownType(ProtocolError):
    """The gateway does not know the message's `type`."""

    code = "unknown_type"


class MessageTooLarge(ProtocolError):
    """The frame has more bytes than `limits.message_bytes`."""

    code = "message_too_large"
    http_status = 413


class InvalidValue(ProtocolError):
    """A field has the right type, but a value that makes no sense."""

    code = "invalid_value"
    http_status = 422


class UnsupportedLanguage(ProtocolError):
    """No model here translates from or into this language, or between these two."""

    code = "unsupported_language"
    http_status = 422


class UnsupportedOption(ProtocolError):
    """The model takes no glossary, context or formality; the session goes on without it."""

    code = "unsupported_option"
    http_status = 422


class LimitExceeded(ProtocolError):
    """A field is longer than the limit advertised in `session.started`."""

    code = "limit_exceeded"
    http_status = 422


class ForeignOrigin(ProtocolError):
    """A web page opened the WebSocket from an origin that the operator did not allow; refused with 403."""

    code = "foreign_origin"
    http_status = 403


class Unauthenticated(ProtocolError):
    """No valid token came, and this gateway serves nobody without one; the connection is closed."""

    code = "unauthenticated"
    http_status = 401

    # The same sentence for every reason: a client that tries tokens learns nothing from the answers.
    def __init__(self, message: str = "This gateway needs a valid token.", **about: Any) -> None:
        super().__init__(message, **about)


class Forbidden(ProtocolError):
    """The token does not allow this."""

    code = "forbidden"
    http_status = 403


class TokenExpired(ProtocolError):
    """The session's time is over and no new token came; the connection is closed."""

    code = "token_expired"
    http_status = 401


class TokenRevoked(ProtocolError):
    """The session's token was revoked; the connection is closed, and the session cannot be resumed."""

    code = "token_revoked"
    http_status = 401


class UnknownMeeting(ProtocolError):
    """There is no log of a meeting with this id: it never existed, or its log has expired."""

    code = "unknown_meeting"
    http_status = 404


class NotRecorded(UnknownMeeting):
    """This meeting keeps nothing of what is said, so it has no transcript."""

    code = "not_recorded"


class StateError(GatewayError):
    """A valid message at the wrong moment; the session goes on."""

    code = "session_not_started"
    http_status = 409


class SessionNotStarted(StateError):
    """Something other than `session.start` came first."""


class SessionAlreadyStarted(StateError):
    """A second `session.start` on one connection."""

    code = "session_already_started"


class SessionEnding(StateError):
    """New work after `session.end`."""

    code = "session_ending"


class StartTimeout(StateError):
    """No `session.start` within `limits.start_timeout_s`; the connection is closed."""

    code = "start_timeout"


class SessionIdle(StateError):
    """Nothing was sent on this connection in either direction for `limits.idle_s`; it is closed."""

    code = "session_idle"
    retryable = True


class SessionReplaced(StateError):
    """Another connection resumed this session; this one is closed, and must not reconnect."""

    code = "session_replaced"


class UnknownUtterance(StateError):
    """`utterance.cancel` for an id that is not in flight."""

    code = "unknown_utterance"


class StaleRevision(StateError):
    """A revision that is not newer than one already received; it is dropped."""

    code = "stale_revision"


class UtteranceFinished(StateError):
    """A different text for an utterance whose final was already accepted."""

    code = "utterance_finished"


class Unavailable(GatewayError):
    """The message is valid, and the same message may succeed later."""

    code = "overloaded"
    http_status = 503
    retryable = True


class RateLimited(Unavailable):
    """More messages a second than `limits.messages_per_s`, past the burst."""

    code = "rate_limited"
    http_status = 429


class TooManyInFlight(Unavailable):
    """`limits.utterances_in_flight` accepted utterances of this session are not finished yet."""

    code = "too_many_in_flight"
    http_status = 429


class TooManySessions(Unavailable):
    """The gateway already holds `max_sessions` sessions."""

    code = "too_many_sessions"
    retryable = False


class QuotaExceeded(Unavailable):
    """The tenant has as much as its quota allows; `message` names the quota."""

    code = "quota_exceeded"
    http_status = 429


class DailyQuotaExceeded(QuotaExceeded):
    """The tenant has had all translated that its quota allows for today."""

    code = "daily_quota_exceeded"


class Overloaded(Unavailable):
    """The engine has more to do than it can finish soon; nothing was accepted."""


class Draining(Unavailable):
    """The gateway is shutting down: reconnect, and send again what was not accepted."""

    code = "draining"


class EngineUnavailable(Unavailable):
    """The engine is loading or has died."""

    code = "engine_unavailable"


class EngineRestarting(EngineUnavailable):
    """The engine died and is being started again; accepted work waits for it, and new work is accepted."""

    code = "engine_restarting"


class LogUnavailable(Unavailable):
    """The meeting's log cannot be used at the moment; nothing was accepted."""

    code = "log_unavailable"


class SlowReader(Unavailable):
    """The client does not read fast enough; its connection is closed with 4008."""

    code = "slow_reader"


class EngineFailed(GatewayError):
    """The engine could not translate this one text."""

    code = "engine_failed"
    http_status = 502


class DeadlineExceeded(GatewayError):
    """The translation was not done `utterance_deadline_s` after its utterance was accepted."""

    code = "deadline_exceeded"
    http_status = 504


class Cancelled(GatewayError):
    """The client cancelled the utterance, or left."""

    code = "cancelled"
    http_status = 499


class StartupError(GatewayError):
    """The gateway cannot start. The message tells the operator why, and what to do."""

    code = "startup_failed"


def error_classes() -> list[type[GatewayError]]:
    """Every class of the tree, parents first."""
    found: list[type[GatewayError]] = [GatewayError]
    for each in found:  # it grows meanwhile
        found += each.__subclasses__()
    return found
