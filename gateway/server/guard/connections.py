"""Which connections are let in: bounded in all and for each account, and a health check always is.

Knows: addresses, and which connections have sent nothing yet. Must not know: what they send, file descriptors.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gateway.server.guard.identity import account_of

# Connections above the bound that are held at once. Each is told that there is no room, or how the gateway is.
_CROWDED = 64


@dataclass(eq=False, slots=True)
class Place:
    """One connection's place."""

    account: str
    # Closes the connection at once.
    close: Callable[[], None] = field(repr=False)
    # Whether it is one too many: only a health check is answered.
    crowded: bool = False


class Connections:
    """Every open connection. Newcomers push out those of which nothing was ever heard, the oldest first."""

    def __init__(
        self,
        most: int,
        most_per_account: int,
        # Addresses that many clients may share: reverse proxies.
        shared: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._most = most
        self._most_per_account = most_per_account
        self._shared = shared
        self._places: set[Place] = set()
        self._accounts: Counter[str] = Counter()
        # Connections on which no request has arrived yet, the oldest first.
        self._silent: OrderedDict[Place, None] = OrderedDict()
        self._crowded: OrderedDict[Place, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places) + len(self._crowded)

    def enter(self, address: str, close: Callable[[], None]) -> Place:
        """A connection was opened. Others may be closed for it."""
        place = Place(account_of(address), close)
        if self._accounts[place.account] >= self._most_per_account and not self._shared(address):
            place.crowded = not self._push_out(place.account)
        elif len(self._places) >= self._most:
            place.crowded = not self._push_out(None)
        if place.crowded:
            self._crowded[place] = None
            if len(self._crowded) > _CROWDED:
                self._close(next(iter(self._crowded)))
        else:
            self._places.add(place)
            self._accounts[place.account] += 1
            self._silent[place] = None
        return place

    def heard(self, place: Place) -> None:
        """A whole request came: no other connection pushes this one out any more."""
        self._silent.pop(place, None)

    def leave(self, place: Place) -> None:
        """The connection is closed. May be called again."""
        self._silent.pop(place, None)
        self._crowded.pop(place, None)
        if place in self._places:
            self._places.remove(place)
            self._accounts[place.account] -= 1
            if not self._accounts[place.account]:
                del self._accounts[place.account]

    def _push_out(self, account: str | None) -> bool:
        """Close the oldest silent connection, of one account or of any. Returns whether there was one."""
        oldest = next((place for place in self._silent if account in (None, place.account)), None)
        if oldest is not None:
            self._close(oldest)
        return oldest is not None

    def _close(self, place: Place) -> None:
        self.leave(place)
        place.close()


def in_networks(networks: Iterable[str]) -> Callable[[str], bool]:
    """Tells whether an address is in one of `networks` (addresses, or like `10.0.0.0/8`). Raises `ValueError`."""
    known = [ipaddress.ip_network(network) for network in networks]

    def contains(address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        # On a socket for both, an IPv4 address comes in IPv6 form.
        parsed = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(parsed in network for network in known)

    return contains
