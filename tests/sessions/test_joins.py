"""How often an account may join, and whose kept session gives way."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.domain.errors import RateLimited
from gateway.sessions.joins import JoinRate, to_give_way
from gateway.sessions.seat import Seat


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


def test_joins_are_as_many_at_once_as_within_a_minute_of_each_account() -> None:
    joins = JoinRate(burst=60)
    for _ in range(60):
        joins.check("a", 0.0)
    with pytest.raises(RateLimited, match="joined 60 times within a minute") as limited:
        joins.check("a", 0.5)
    assert limited.value.retry_after_ms == 500
    joins.check("b", 0.5)
    joins.check("a", 1.0)


def test_accounts_that_may_join_as_often_as_any_other_are_forgotten() -> None:
    joins = JoinRate(burst=2)
    joins.check("a", 0.0)
    joins.check("b", 50.0)
    joins.sweep(59.9)
    assert len(joins) == 2
    joins.sweep(60.0)
    assert len(joins) == 1
    joins.check("b", 50.0)
    with pytest.raises(RateLimited):
        joins.check("b", 50.0)
