"""Ids of utterances, for callers that choose none.

Knows: how ids of several processes with one session differ. Must not know: what is said.
"""

from __future__ import annotations

import secrets

# Without letters and digits that look alike.
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_PREFIX_CHARS = 4


class Ids:
    """Gives one id after the other, such as `k3f9-1`, `k3f9-2`."""

    def __init__(self) -> None:
        # Another process may resume this session; its ids must differ from ours.
        self._prefix = "".join(secrets.choice(_LETTERS) for _ in range(_PREFIX_CHARS))
        self._serial = 0

    def next(self) -> str:
        """An id that was not given before."""
        self._serial += 1
        return f"{self._prefix}-{self._serial}"
