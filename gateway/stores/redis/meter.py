"""What tenants have had translated in a day, counted in Redis for all gateways.

Knows: the script's arguments, up to which change this gateway knows the totals.
Must not know: how the script works, quotas.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from gateway.domain.ports import LEASE_S
from gateway.domain.quotas import DayOfTenant, Metered, Totals
from gateway.stores.redis.store import RedisStore

# How long a gateway that tells waits for the store.
_SHORT_PATIENCE_S = 1.0

_encoder = msgspec.msgpack.Encoder()
_waiting = msgspec.msgpack.Decoder(dict[str, int])


class RedisMeter:
    """One gateway's access to a store that gateways share, once it has started."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        # The day, and the version of the newest change of its totals that is known here.
        self._day = 0
        self._version = 0

    async def record(self, metered: Metered) -> Totals:
        day = metered.day
        since = self._version if day == self._day else 0
        characters = [part for pair in metered.characters.items() for part in pair]
        minutes = [
            part for each in metered.minutes for part in (each.tenant, each.minute, f"{each.meeting} {each.lang}")
        ]
        version, waiting, totals = await self.store.run_script(
            *("meter/record", self.store.prefix, self.store.id, round(LEASE_S * 1_000)),
            *(day, metered.number, since),
            *(_encoder.encode(metered.waiting) if metered.waiting else b"", len(characters)),
            *(*characters, *minutes),
            patience_s=_SHORT_PATIENCE_S,
        )
        self._day, self._version = day, int(version)
        elsewhere: Counter[str] = Counter()
        for each in waiting:
            elsewhere.update(_waiting.decode(each))
        days = (
            DayOfTenant(tenant=tenant.decode(), day=day, characters=int(characters), minutes=int(minutes))
            for tenant, characters, minutes in zip(totals[::3], totals[1::3], totals[2::3], strict=True)
        )
        return Totals(tuple(days), elsewhere)
