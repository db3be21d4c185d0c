"""The WebSocket close codes of the gateway.

Knows: what a client does after each. Must not know: sockets, errors.
"""

from __future__ import annotations

from enum import IntEnum


class CloseCode(IntEnum):
    """WebSocket close codes the gateway sends. 4000–4499: reconnect and resume; 4500–4999: do not."""

    NORMAL = 1000
    INTERNAL = 1011
    RESTART = 1012
    SLOW_READER = 4008
    IDLE = 4010
    DRAINING = 4012
    TOKEN_EXPIRED = 4401
    UNAUTHENTICATED = 4501
    TOKEN_REVOKED = 4503
    FOREIGN_ORIGIN = 4504
    TOO_MANY_SESSIONS = 4509
    REPLACED = 4510
    FLOODING = 4511
