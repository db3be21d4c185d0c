"""Which lane is chosen: the one that has the prompt cached, as long as it is hardly fuller; then the emptiest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.translation.scheduling.routing import AFFINITY_BOUND, LaneLoad, choose

LOADS = st.lists(
    st.builds(LaneLoad, st.sampled_from("abcdef"), st.integers(0, 64), st.integers(0, 80)),
    unique_by=lambda lane: lane.name,
    max_size=6,
)


def test_the_emptiest_by_the_share_of_its_seats() -> None:
    assert choose([LaneLoad("small", 4, 2), LaneLoad("large", 64, 20)]) == "large"


def test_of_lanes_that_are_as_full_the_one_with_the_most_free_seats_then_the_first() -> None:
    assert choose([LaneLoad("a", 4, 1), LaneLoad("b", 8, 2)]) == "b"
    assert choose([LaneLoad("a", 13, 0), LaneLoad("b", 16, 0)]) == "b"
    assert choose([LaneLoad("a", 4, 1), LaneLoad("b", 4, 1)]) == "a"


def test_the_preferred_one_while_it_is_not_much_fuller() -> None:
    other = LaneLoad("other", 8, 1)
    assert choose([other, LaneLoad("cached", 8, 3)], "cached") == "cached"
    assert choose([other, LaneLoad("cached", 8, 4)], "cached") == "other"


def test_a_full_one_is_preferred_only_where_all_are_full() -> None:
    assert choose([LaneLoad("cached", 4, 4), LaneLoad("other", 4, 3)], "cached") == "other"
    assert choose([LaneLoad("cached", 4, 4), LaneLoad("other", 4, 4)], "cached") == "cached"


def test_one_that_is_not_there_is_not_preferred() -> None:
    assert choose([LaneLoad("a", 8, 7)], "gone") == "a"


def test_there_may_be_none() -> None:
    assert choose([], "gone") is None


@given(LOADS, st.sampled_from("abcdef"))
def test_nobody_waits_longer_for_the_sake_of_the_cache_than_the_bound(loads: list[LaneLoad], name: str) -> None:
    chosen = choose(loads, name)
    if not loads:
        assert chosen is None
        return
    fullness = {lane.name: lane.fullness for lane in loads}
    assert chosen is not None
    least = min(fullness.values())
    assert fullness[chosen] <= least + (AFFINITY_BOUND if chosen == name else 0)
    has_room = fullness.get(name, 2) < 1 or least >= 1
    if name in fullness and has_room and fullness[name] <= least + AFFINITY_BOUND:
        assert chosen == name
