"""How a client fails, as one tree; every text is one sentence for people.

Knows: what went wrong between a client and a gateway. Must not know: how it was found out.

    ClientError
    ├── InvalidAddress       the address cannot be one of a gateway
    ├── GatewayUnreachable   no gateway answers there
    ├── EngineNotReady       it answers, and its engine was still loading when the patience ended
    ├── SessionRefused       `session.start` was answered with an error, kept in `error`
    ├── UnreadableMessage    the gateway sent what this version cannot read
    └── SessionClosed        the session is over; `code` and, where the gateway said why, `error`
"""

from __future__ import annotations

from gateway.protocol.messages import Error

__all__ = [
    "ClientError",
    "EngineNotReady",
    "GatewayUnreachable",
    "InvalidAddress",
    "SessionClosed",
    "SessionRefused",
    "UnreadableMessage",
]


class ClientError(Exception):
    """Base of the tree; its text is one sentence for people."""


class InvalidAddress(ClientError):
    """The address cannot be one of a gateway."""


class GatewayUnreachable(ClientError):
    """Nothing answers at the address, or what answers is no gateway.

    `passing`: whether it may be otherwise in a moment, as with a gateway or a network that is just restarting.
    """

    def __init__(self, sentence: str, *, passing: bool = True) -> None:
        super().__init__(sentence)
        self.passing = passing


class EngineNotReady(ClientError):
    """The engine was still loading after `ready_timeout_s`."""


class SessionRefused(ClientError):
    """`session.start` was refused; `error` is the gateway's answer."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


class UnreadableMessage(ClientError):
    """The gateway sent what this version of the client cannot read."""


class SessionClosed(ClientError):
    """The session is over.

    `url`: of the gateway; `code`: the WebSocket close code, null when the connection broke; `error`: why, where
    the gateway said so; `gave_up`: why there is still no connection, where it was tried to open one again.
    """

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
        self.url = url
        self.code = code
        self.error = error
        self.gave_up = gave_up
