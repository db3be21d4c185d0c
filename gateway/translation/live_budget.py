"""Bounds the memory of what is being said, in all: whoever holds the most gives way first.

Knows: accounts, names of what they hold, estimates of bytes. Must not know: utterances, meetings, what giving way
means.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_Name = TypeVar("_Name", bound=Hashable)


class LiveBudget(Generic[_Name]):
    """What is held, by account; each in the order in which it was last used."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        # Account → name → bytes, the least recently used first.
        self._held: dict[str, OrderedDict[_Name, int]] = {}
        self._bytes_of: dict[str, int] = {}
        self._accounts: dict[_Name, str] = {}

    @property
    def bytes(self) -> int:
        return self._bytes

    def use(self, account: str, name: _Name, size: int) -> None:
        """`name` takes `size` bytes now, for which `account` is charged."""
        if self._accounts.get(name) != account:
            self.release(name)
            self._accounts[name] = account
        held = self._held.setdefault(account, OrderedDict())
        more = size - held.get(name, 0)
        held[name] = size
        held.move_to_end(name)
        self._bytes_of[account] = self._bytes_of.get(account, 0) + more
        self._bytes += more

    def release(self, name: _Name) -> None:
        """It is not held any more. Does nothing the second time."""
        account = self._accounts.pop(name, None)
        if account is None:
            return
        size = self._held[account].pop(name)
        self._bytes -= size
        self._bytes_of[account] -= size
        if not self._held[account]:
            del self._held[account], self._bytes_of[account]

    def excess(self) -> _Name | None:
        """What has to go while too much is held: the least recently used of the account that holds the most."""
        if self._bytes <= self._max_bytes:
            return None
        account = max(self._bytes_of, key=self._bytes_of.__getitem__)
        return next(iter(self._held[account]))
