"""What a quota leaves room for."""

from __future__ import annotations

import pytest

from gateway.domain.errors import QuotaExceeded
from gateway.domain.quotas import check_quota


@pytest.mark.parametrize(("most", "count", "more"), [(None, 10**9, 1), (1, 0, 1), (5, 2, 3), (0, 0, 0)])
def test_what_there_is_room_for(most: int | None, count: int, more: int) -> None:
    check_quota("sessions", most, count, more)


@pytest.mark.parametrize(("most", "count", "more"), [(0, 0, 1), (1, 1, 1), (5, 3, 3), (2, 9, 1)])
def test_what_there_is_no_room_for(most: int, count: int, more: int) -> None:
    with pytest.raises(QuotaExceeded, match=f"There are {count} already: this tenant's quota sessions is {most}."):
        check_quota("sessions", most, count, more)
