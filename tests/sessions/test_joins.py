"""How often somebody may join, whose kept session gives way, and what a tenant's quota leaves room for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from gateway.domain.errors import LimitExceeded, QuotaExceeded, RateLimited
from gateway.domain.log import Page
from gateway.domain.quotas import Quota
from gateway.protocol.messages import Resume
from gateway.sessions.effects import Update
from gateway.sessions.entrance import Entry
from gateway.sessions.joins import JoinRate, to_give_way
from gateway.sessions.seat import Seat
from tests.sessions.desk import Desk, api_key_of, desk
from tests.sessions.two_gateways import two
from tests.translation.stage import Log, idle


class Away:
    """Of a seat, what counts here."""

    def __init__(self, account: str, since_s: float | None) -> None:
        self.account = account
        self.away_since_s = since_s


def gives_way(account: str, *seats: Away) -> Any:
    return to_give_way(cast(list[Seat], seats), account)


def test_the_account_that_has_the_most_gives_way_with_what_is_away_for_longest() -> None:
    old, many, more, here = Away("small", 1.0), Away("crowd", 3.0), Away("crowd", 2.0), Away("crowd", None)
    assert gives_way("small", old, many, more, here) is more
    assert gives_way("crowd", old, many, more, here) is more


def test_nobody_gives_way_to_an_account_that_has_more() -> None:
    old, connected = Away("small", 1.0), [Away("crowd", None) for _ in range(3)]
    assert gives_way("crowd", old, *connected) is None
    assert gives_way("another", old, *connected) is old


def test_among_equals_the_newcomers_own_gives_way() -> None:
    first, second = Away("a", 1.0), Away("b", 2.0)
    assert gives_way("b", first, second) is second
    assert gives_way("a", first, second) is first
    assert gives_way("c", first, second) in (first, second)


def test_nobody_who_is_connected_gives_way() -> None:
    assert gives_way("a", Away("a", None), Away("b", None)) is None


def test_joins_are_as_many_at_once_as_within_a_minute_of_each_name() -> None:
    joins = JoinRate()
    assert not any(joins.take("a", 60, 0.0) for _ in range(60))
    assert joins.take("a", 60, 0.5) == 0.5
    assert joins.take("b", 60, 0.5) == 0.0
    assert joins.take("a", 60, 1.0) == 0.0


def test_another_bound_holds_at_once() -> None:
    joins = JoinRate()
    assert joins.take("a", 1, 0.0) == 0.0
    assert joins.take("a", 1, 0.0) > 0.0
    assert not any(joins.take("a", 2, 0.0) for _ in range(2))
    assert joins.take("a", 2, 0.0) > 0.0


def test_names_that_may_join_as_often_as_any_other_are_forgotten() -> None:
    joins = JoinRate()
    joins.take("a", 2, 0.0)
    joins.take("b", 2, 50.0)
    joins.sweep(59.9)
    assert len(joins) == 2
    joins.sweep(60.0)
    assert len(joins) == 1
    assert joins.take("b", 2, 50.0) == 0.0
    assert joins.take("b", 2, 50.0) > 0.0


# ---------------------------------------------------------------- quotas of tenants


def resume(entry: Entry) -> Resume:
    return Resume(entry.seat.secret, entry.seat.room.epoch, entry.seat.room.offset)


async def refused(d: Desk, quota: str, **fields: Any) -> None:
    before = len(d.sessions.seats.all)
    expected = {"joins": RateLimited, "languages": LimitExceeded}.get(quota, QuotaExceeded)
    with pytest.raises(expected, match=f"his tenant's quota {quota} is 2") as error:
        await d.join(**{"grant": api_key_of("acme"), **fields})
    assert (error.value.retry_after_ms is not None) is error.value.retryable
    assert len(d.sessions.seats.all) == before


async def test_a_tenant_has_so_many_sessions_connected_or_kept() -> None:
    async with desk() as d:
        d.quota = Quota(sessions=2)
        kept, _ = await d.join(grant=api_key_of("acme"))
        d.sessions.seats.away(kept.seat, kept.feed)
        gone, _ = await d.join(grant=api_key_of("acme"), meeting="n")
        await refused(d, "sessions")
        await refused(d, "sessions", meeting=None)
        await d.join(grant=api_key_of("other"))
        again, _ = await d.join(grant=api_key_of("acme"), resume=resume(kept))
        assert again.recovered
        d.sessions.seats.end(gone.seat)
        await idle()
        await d.join(grant=api_key_of("acme"))


async def test_a_tenant_has_so_many_meetings_that_somebody_is_in() -> None:
    async with desk() as d:
        d.quota = Quota(meetings=2)
        await d.join(grant=api_key_of("acme"), meeting="a")
        last, _ = await d.join(grant=api_key_of("acme"), meeting=None)
        await refused(d, "meetings", meeting="b")
        await refused(d, "meetings", meeting=None)
        await d.join(grant=api_key_of("acme"), meeting="a")
        await d.join(grant=api_key_of("other"), meeting="b")
        d.sessions.seats.end(last.seat)
        await idle()
        await d.join(grant=api_key_of("acme"), meeting="b")


class SlowLog(Log):
    """One whose answers take a turn of the event loop."""

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        await asyncio.sleep(0)
        return await super().read(meeting, after, limit)


@pytest.mark.parametrize(
    ("quota", "joins"),
    [
        (Quota(meetings=2), [{"meeting": name} for name in "bcd"]),
        (Quota(sessions=2), [{"meeting": "a"}] * 3),
        (Quota(languages=2), [{"meeting": "a", "reads": [lang]} for lang in ("de", "fr", "en")]),
    ],
    ids=["meetings", "sessions", "languages"],
)
async def test_of_those_that_come_at_once_for_the_last_place_one_gets_it(
    quota: Quota, joins: list[dict[str, Any]]
) -> None:
    async with desk(log=SlowLog()) as d:
        d.quota = quota
        await d.join(grant=api_key_of("acme"), meeting="a", reads=["ja"])
        outcomes = await asyncio.gather(
            *(d.join(grant=api_key_of("acme"), **fields) for fields in joins), return_exceptions=True
        )
        refused = [outcome for outcome in outcomes if isinstance(outcome, QuotaExceeded | LimitExceeded)]
        assert len(refused) == 2


async def test_what_a_tenant_has_too_much_of_takes_nothing_from_its_address() -> None:
    async with desk(joins=3) as d:
        d.quota = Quota(joins=2)
        for _ in range(2):
            await d.join("office", grant=api_key_of("acme"))
        for _ in range(10):
            await refused(d, "joins", account="office")
        await d.join("office", grant=api_key_of("other"))


async def test_a_tenant_joins_so_often_within_a_minute_from_wherever() -> None:
    async with desk() as d:
        d.quota = Quota(joins=2)
        first, _ = await d.join("here", grant=api_key_of("acme"))
        await d.join("there", grant=api_key_of("acme"), resume=resume(first))
        await refused(d, "joins", account="elsewhere")
        await d.join("here", grant=api_key_of("other"))
        d.now_s += 30
        await d.join("here", grant=api_key_of("acme"))


async def test_joins_at_every_gateway_count_and_a_session_that_is_resumed_too_often_goes_on() -> None:
    async with two() as g:
        g.here.quota = g.there.quota = Quota(joins=2)
        first, connection = await g.here.join(grant=api_key_of("acme"))
        await g.there.join(grant=api_key_of("acme"))
        await refused(g.there, "joins")
        for gateway in (g.there, g.here):
            await refused(gateway, "joins", resume=resume(first))
        await idle()
        assert (first.seat.connected, connection.closed) == (True, [])
        await g.pass_time(30, g.here, g.there)
        again, _ = await g.there.join(grant=api_key_of("acme"), resume=resume(first))
        assert again.recovered


async def test_a_tenants_meeting_is_translated_into_so_many_languages() -> None:
    async with desk() as d:
        d.quota = Quota(languages=2)
        entry, _ = await d.join(grant=api_key_of("acme"), reads=["ja", "de"])
        await refused(d, "languages", reads=["fr"])
        with pytest.raises(LimitExceeded) as error:
            await d.sessions.update(entry.seat, Update("en", ("ja", "de", "fr"), "live", originals=False))
        assert error.value.field == "reads"
        await d.join(grant=api_key_of("acme"), reads=["de"])
        await d.join(grant=api_key_of("other"), reads=["ja", "de", "fr"])
        d.quota = Quota(languages=1)
        # Nobody loses what they read, and nothing is added.
        await d.sessions.update(entry.seat, Update("en", ("ja", "de"), "live", originals=False))
