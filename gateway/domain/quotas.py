"""What one tenant may use, and what it uses.

Knows: the names of quotas and what each counts. Must not know: who counts, clocks, where quotas are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from gateway.domain.errors import QuotaExceeded, RateLimited

# After which a place that was taken may be free again.
_PLACE_MS = 5_000

_Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class Quota(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one tenant may use. None: as much as the settings allow everybody."""

    # Meetings with participants.
    meetings: _Count | None = None
    # Sessions, connected or kept.
    sessions: _Count | None = None
    # Sessions begun or resumed within a minute; as many may begin at once.
    joins: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None
    # Languages read in one meeting.
    languages: _Count | None = None
    # Translations that wait for the engine.
    waiting: _Count | None = None
    # Estimated bytes of the logs of all its meetings; beyond it their oldest entries go.
    log_bytes: Annotated[int, Meta(ge=2**20, le=2**53 - 1)] | None = None
    # Characters translated in a day (UTC): of each final text whose translation has begun, once for each language.
    characters: _Count | None = None
    # Minutes translated in a day (UTC): each in which a translation began in a meeting, once for each language.
    minutes: _Count | None = None


NO_QUOTA = Quota()


class Usage(Struct, frozen=True, kw_only=True):
    """What a tenant uses now, and has used today; the fields mean what they mean in `Quota`."""

    meetings: int = 0
    sessions: int = 0
    waiting: int = 0
    log_bytes: int = 0
    characters: int = 0
    minutes: int = 0


class DayOfTenant(Struct, frozen=True, kw_only=True):
    """What one tenant has had translated in one day."""

    tenant: str
    # Days since 1970-01-01, UTC.
    day: int
    characters: int = 0
    minutes: int = 0


class MinuteOfMeeting(Struct, frozen=True):
    """A minute in which a translation into a language began in a meeting."""

    tenant: str
    # The meeting's key.
    meeting: str
    lang: str
    # Minutes since 1970-01-01, UTC.
    minute: int


class Metered(Struct, frozen=True, kw_only=True):
    """What one gateway has had translated since it last told, and what waits there now."""

    # Counts up from 1 with every new one of a gateway; what is told again has the same number.
    number: int
    # As in `DayOfTenant`.
    day: int
    # Tenant → characters translated.
    characters: Mapping[str, int] = {}
    minutes: tuple[MinuteOfMeeting, ...] = ()
    # Tenant → translations that wait for the engine.
    waiting: Mapping[str, int] = {}


class Totals(Struct, frozen=True):
    """What tenants use at all gateways."""

    # Days of every tenant whose day has changed since the gateway asked before, and maybe of others.
    days: tuple[DayOfTenant, ...]
    # Tenant → translations that wait at other gateways.
    waiting_elsewhere: Mapping[str, int]


def check_quota(name: str, most: int | None, count: int, more: int = 1) -> None:
    """Raises `QuotaExceeded` if `count` of something leave no room for `more`. name: of the quota."""
    if most is not None and count + more > most:
        raise QuotaExceeded(
            f"There are {count} already: this tenant's quota {name} is {most}.", retry_after_ms=_PLACE_MS
        )


def check_joins(most: int | None, wait_s: float) -> None:
    """Raises `RateLimited` unless a tenant may join at once. most: its quota."""
    if wait_s > 0:
        raise RateLimited(
            f"This tenant's quota joins is {most} a minute.", retry_after_ms=max(1, round(wait_s * 1_000))
        )
