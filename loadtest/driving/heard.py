"""A gateway's messages, as far as a load test looks into them.

Knows: how a message about an utterance begins, and its fields. Must not know: what becomes of it.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

__all__ = ["DELTA", "ERROR", "FAILED", "FINAL", "Heard", "heard"]

# Most messages need no look inside: their type stands first.
DELTA = b'{"type":"translation.delta"'
FINAL = b'{"type":"translation.final"'
FAILED = b'{"type":"translation.failed"'
ERROR = b'{"type":"error"'


class Heard(Struct):
    """As much of any message as is looked at."""

    utterance: str | None = None
    lang: str = ""
    rev: int = 0
    committed: str = ""
    tentative: str = ""
    text: str = ""
    tokens: int = 0
    code: str = ""


heard = msgspec.json.Decoder(Heard)
