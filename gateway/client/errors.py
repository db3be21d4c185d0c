"""The exceptions of the client, as one tree. The text of each is for people.

Knows: what can go wrong between a client and a gateway. Must not know: how it is detected.

    ClientError
    ├── InvalidAddress       the address cannot be that of a gateway
    ├── GatewayUnreachable   no gateway answers at the address
    ├── EngineNotReady       the engine was still loading after `ready_timeout_s`
    ├── TokenUnavailable     there is no token at the moment
    ├── SessionRefused       the gateway refused `session.start`
    │   └── NotAuthorized    it needs a valid token, or the token does not allow this session
    ├── MessageRefused       the gateway refused what was sent in a session, for good
    ├── TranscriptRefused    the gateway refused a transcript
    ├── UnreadableMessage    the gateway sent a message that this version cannot read
    └── SessionClosed        the session is over
"""

from __future__ import annotations

from gateway.domain.errors import Forbidden, Unauthenticated
from gateway.protocol.messages import Error


class ClientError(Exception):
    """Base of the tree; its text is for people."""


class InvalidAddress(ClientError):
    """The address cannot be that of a gateway."""


class GatewayUnreachable(ClientError):
    """Nothing answers at the address, or the server there is not a gateway."""

    def __init__(self, sentence: str, *, temporary: bool = True) -> None:
        super().__init__(sentence)
        # Whether another attempt may succeed, for example because the gateway or the network is restarting.
        self.temporary = temporary


class EngineNotReady(ClientError):
    """The engine was still loading after `ready_timeout_s`."""


class TokenUnavailable(ClientError):
    """There is no token at the moment. Sources of tokens may raise it too: another attempt may succeed."""


class SessionRefused(ClientError):
    """The gateway refused `session.start`."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        # The gateway's answer.
        self.error = error


class NotAuthorized(SessionRefused):
    """The gateway needs a valid token, or the token does not allow this session.

    `error.code` is `unauthenticated` or `forbidden`.
    """


def refusal(error: Error) -> SessionRefused:
    """The exception for the gateway's answer to a start."""
    kind = NotAuthorized if error.code in (Unauthenticated.code, Forbidden.code) else SessionRefused
    return kind(error)


class MessageRefused(ClientError):
    """The gateway refused what was sent in a session, for good: an utterance, or a change of the options.

    `ClientSession.lines` and `finals` raise it. The session goes on.
    """

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        # The gateway's answer; `error.utterance` is the id of the utterance.
        self.error = error


class TranscriptRefused(ClientError):
    """The gateway refused a transcript, for example because it has no log of the meeting (`unknown_meeting`)."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        # The HTTP status.
        self.status = status
        # The gateway's error code.
        self.code = code


class UnreadableMessage(ClientError):
    """The gateway sent a message that this version of the client cannot read."""


class SessionClosed(ClientError):
    """The session is over."""

    def __init__(self, url: str, code: int | None, error: Error | None, gave_up: str | None = None) -> None:
        if error is not None:
            sentence = f"The gateway closed the session: {error.message}"
        elif code is None:
            sentence = f"The connection to the gateway at {url} was lost."
        else:
            sentence = f"The gateway at {url} closed the session with code {code}."
        if gave_up is not None and gave_up != sentence:
            sentence += f" It could not be resumed: {gave_up}"
        super().__init__(sentence)
        # Address of the gateway.
        self.url = url
        # WebSocket close code. None if the connection broke.
        self.code = code
        # The gateway's reason, if it gave one.
        self.error = error
        # Why reconnecting failed, if it was tried.
        self.gave_up = gave_up
