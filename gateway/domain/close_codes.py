"""The WebSocket close codes of the gateway.

Knows: what a client does after each. Must not know: sockets, errors.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class CloseCode(IntEnum):
    """WebSocket close codes the gateway sends. 4000–4499: reconnect and resume; 4500–4999: do not."""

    # What the code means, for clients.
    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Self:
        self = int.__new__(cls, code)
        self._value_, self.meaning = code, meaning
        return self

    NORMAL = 1000, "Done: `session.end` was carried out."
    INTERNAL = 1011, "A bug of the gateway."
    RESTART = 1012, "The gateway restarts; reconnect with a random delay."
    SLOW_READER = 4008, "The client does not read fast enough; reconnect."
    IDLE = 4010, "Nothing was sent in time."
    DRAINING = 4012, "The gateway is draining and takes no new sessions; reconnect elsewhere."
    TOKEN_EXPIRED = 4401, "The session's time is over; reconnect with a new token."
    UNAUTHENTICATED = 4501, "No valid token came; do not reconnect with the same one."
    TOKEN_REVOKED = 4503, "The token was revoked, or you were removed from the meeting; do not reconnect."
    FOREIGN_ORIGIN = 4504, "Pages of this origin may not use this gateway; do not reconnect."
    MEETING_ENDED = 4505, "The meeting was ended for everyone in it; do not reconnect."
    TOO_MANY_SESSIONS = 4509, "The gateway has reached its limit of sessions; do not reconnect."
    REPLACED = 4510, "Another connection resumed this session; do not reconnect."
    FLOODING = 4511, "The client kept sending far more frames or bytes than `limits` allow; do not reconnect."
