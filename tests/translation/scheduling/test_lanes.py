"""Lanes: what each runs, how much more it may, and which of them can run a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.engine import EngineState, TranslationRequest
from gateway.domain.errors import EngineFailed, EngineUnavailable, UnsupportedLanguage
from gateway.translation.scheduling.lanes import AFFINITY_BOUND, Lane, LaneLoad, Lanes, Route, choose
from gateway.translation.scheduling.ticket import FINAL, PARTIAL, SUSPECT_CRASHES, Ticket
from tests.translation.engines import EN_DE, EN_JA, HandPool, SteppedEngine


def ticket(name: str = "t", target: str = "ja", priority: int = FINAL, scope: str = "m") -> Ticket:
    final = priority == FINAL
    request = TranslationRequest(
        id=name, text="x", source="en", target=target, priority=priority, final=final, cache_scope=scope
    )
    return Ticket(1, "m", request, 0.0)


def lanes_of(pool: HandPool) -> Lanes:
    return Lanes(pool, pool.lanes, lookahead=0, best_effort_share=0.5)


def two() -> tuple[HandPool, SteppedEngine, SteppedEngine, Lanes]:
    a, b = SteppedEngine(4), SteppedEngine(4)
    pool = HandPool(a=a, b=b)
    return pool, a, b, lanes_of(pool)


# ---------------------------------------------------------------- one lane


def test_lane_gives_turns_for_slots_and_lookahead() -> None:
    lane = Lane("a", SteppedEngine(2), lookahead=1, best_effort_share=0.5)
    assert lane.free(quarantined=False) == 3
    lane.add(first := ticket())
    assert (lane.free(quarantined=False), lane.overflow) == (2, 0)
    lane.add(ticket())
    lane.add(ticket())
    assert (lane.free(quarantined=False), lane.overflow) == (0, 1)
    lane.remove(first)
    assert lane.free(quarantined=False) == 1


def test_restarting_or_leaving_lane_gives_no_turns() -> None:
    engine = SteppedEngine(2)
    lane = Lane("a", engine, lookahead=0, best_effort_share=0.5)
    engine.die()
    assert lane.free(quarantined=False) == 0
    engine.revive()
    lane.leaves = True
    assert lane.free(quarantined=False) == 0


def test_a_quarantined_lane_runs_one_once_nothing_else_runs() -> None:
    lane = Lane("a", SteppedEngine(4), lookahead=0, best_effort_share=0.5)
    lane.add(innocent := ticket())
    assert lane.free(quarantined=True) == 0
    lane.remove(innocent)
    assert lane.free(quarantined=True) == 1
    suspect = ticket()
    suspect.crashes = SUSPECT_CRASHES
    lane.add(suspect)
    assert lane.suspect_runs
    assert (lane.free(quarantined=True), lane.free(quarantined=False)) == (0, 0)


def test_best_effort_has_its_share_of_each_lane() -> None:
    lane = Lane("a", SteppedEngine(2), lookahead=2, best_effort_share=0.5)
    assert lane.free(quarantined=False, best_effort=True)
    lane.add(partial := ticket(priority=PARTIAL))
    assert not lane.free(quarantined=False, best_effort=True)
    assert lane.partials() == [partial]
    lane.remove(partial)
    lane.add(ticket())
    assert lane.free(quarantined=False, best_effort=True)
    lane.add(ticket())
    assert not lane.free(quarantined=False, best_effort=True)


# ---------------------------------------------------------------- which lanes


def test_text_waits_for_lanes_of_its_pair() -> None:
    _, a, b, lanes = two()
    a.pairs, b.pairs = EN_JA, EN_JA | EN_DE
    lanes.refresh()
    assert lanes.route("en", "ja") == Route("ab")
    assert lanes.route("en", "de") == Route("b")
    assert lanes.route_for(ticket(target="de")) == Route("b")


def test_restarting_lane_is_waited_for_failed_is_not() -> None:
    _, a, b, lanes = two()
    a.die()
    assert lanes.route("en", "ja") == Route("ab")
    a.die(EngineState.FAILED)
    assert lanes.route("en", "ja") == Route("b")
    b.die(EngineState.FAILED)
    assert lanes.route("en", "ja") == Route()


def test_pair_without_lane_says_why() -> None:
    _, a, b, lanes = two()
    a.pairs, b.pairs = EN_JA, EN_DE
    lanes.refresh()
    assert lanes.refusal("en", "de") is None
    assert isinstance(lanes.refusal("ja", "en"), UnsupportedLanguage)
    with pytest.raises(UnsupportedLanguage, match="Nothing here translates English into French"):
        lanes.route_for(ticket(target="fr"))
    b.die()
    assert lanes.refusal("en", "de") is None, "it will be there again soon"
    b.die(EngineState.FAILED)
    assert isinstance(lanes.refusal("en", "de"), EngineFailed)
    assert lanes.refusal("en", "ja") is None
    with pytest.raises(EngineUnavailable, match="The engine of these languages has failed"):
        lanes.route_for(ticket(target="de"))
    a.die(EngineState.FAILED)
    assert lanes.refusal("en", "de") is None, "the whole engine has failed: that is said otherwise"


def test_suspect_waits_for_its_lane() -> None:
    _, a, _, lanes = two()
    kept = ticket()
    kept.bound_to, kept.crashes = "a", 1
    a.die()
    assert lanes.route_of(kept) == Route("a")
    assert not kept.suspect


def test_suspect_of_a_failed_lane_moves_alone() -> None:
    _, a, _, lanes = two()
    kept = ticket()
    kept.bound_to, kept.crashes = "a", 1
    a.die(EngineState.FAILED)
    assert lanes.route_of(kept) == Route("b")
    assert (kept.bound_to, kept.suspect) == ("b", True)
    assert lanes.route_of(kept) == Route("b")


def test_text_bound_too_long_moves_alone() -> None:
    _, a, b, lanes = two()
    kept = ticket()
    kept.bound_to, kept.crashes, kept.bound_too_long = "a", 1, True
    assert lanes.route_of(kept) == Route("a"), "it is back"
    a.die()
    assert lanes.route_of(kept) == Route("b")
    assert (kept.bound_to, kept.suspect) == ("b", True)
    # Where no other lane has its languages, there is nothing but to wait.
    a.pairs, b.pairs = EN_JA, EN_DE
    lanes.refresh()
    kept.bound_to = "a"
    assert lanes.route_of(kept) == Route("a")


def test_nothing_waits_for_a_lane_that_is_gone() -> None:
    pool, _, _, lanes = two()
    kept = ticket()
    kept.bound_to = "a"
    lanes["a"].add(running := ticket())
    pool.goes("a")
    lanes.refresh()
    assert lanes["a"].leaves
    assert lanes.route("en", "ja") == Route("b")
    assert lanes.route_of(kept) == Route("b")
    running.lane = "a"
    lanes.remove(running)
    assert [lane.name for lane in lanes] == ["b"]


def test_lane_of_the_same_name_waits_for_the_first() -> None:
    pool, _, _, lanes = two()
    running = ticket()
    running.lane = "a"
    lanes["a"].add(running)
    pool.by_name["a"] = newer = SteppedEngine(8)
    lanes.refresh()
    assert lanes["a"].leaves
    assert lanes.route("en", "ja") == Route("b")
    lanes.remove(running)
    assert lanes["a"].engine is newer
    assert lanes.route("en", "ja") == Route("ab")


def test_a_lane_that_comes_is_used() -> None:
    pool, _, _, lanes = two()
    pool.by_name["c"] = SteppedEngine(8)
    lanes.refresh()
    assert lanes.route("en", "ja") == Route("abc")
    assert lanes.choose(lanes, ticket().request).name == "c"


# ---------------------------------------------------------------- the best of them


def test_meeting_stays_on_its_lane() -> None:
    _, _, _, lanes = two()
    lanes["a"].add(ticket())
    assert lanes.choose(lanes, ticket(scope="m").request).name == "b"
    lanes["b"].add(ticket())
    assert lanes.choose(lanes, ticket(scope="m", target="de").request).name == "b"
    lanes["b"].add(ticket())
    lanes["b"].add(ticket())
    assert lanes.choose(lanes, ticket(scope="m").request).name == "a"
    assert lanes.choose(lanes, ticket(scope="n").request).name == "a"


def test_oldest_cached_meetings_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.translation.scheduling.lanes._MOST_REMEMBERED", 2)
    _, _, _, lanes = two()
    lanes["a"].add(ticket())
    for scope in "mno":
        lanes.choose(lanes, ticket(scope=scope).request)
    assert list(lanes._cached) == ["n", "o"]


def test_text_waits_for_lanes_sure_to_take_it() -> None:
    _, a, b, lanes = two()
    a.max_text_tokens, b.max_text_tokens = 10, 20
    for text, route in (
        ("x" * 9, {"a", "b"}),
        ("x" * 10, {"b"}),
        # Each of them may be three tokens.
        ("文" * 4, {"b"}),
        ("x" * 1_000, {"b"}),
    ):
        assert lanes.route("en", "ja", text) == Route(route)
    waits = Ticket(1, "m", TranslationRequest(id="t", text="x" * 10, source="en", target="ja"), 0.0)
    assert lanes.route_for(waits) == Route({"b"})
    b.die()
    lanes.refresh()
    # One that is ready need not stand idle; it would not take a text twice as long.
    assert lanes.route("en", "ja", "x" * 19) == Route({"a", "b"})
    assert lanes.route("en", "ja", "x" * 20) == Route({"b"})
    b.die(EngineState.FAILED)
    lanes.refresh()
    # It may fit after all.
    assert lanes.route_for(waits) == Route({"a"})


# ---------------------------------------------------------------- which lane is chosen


LOADS = st.lists(
    st.builds(LaneLoad, st.sampled_from("abcdef"), st.integers(0, 64), st.integers(0, 80)),
    unique_by=lambda lane: lane.name,
    max_size=6,
)


def test_the_emptiest_by_the_share_of_its_slots() -> None:
    assert choose([LaneLoad("small", 4, 2), LaneLoad("large", 64, 20)]) == "large"


def test_equally_full_lanes_prefer_most_free_slots() -> None:
    assert choose([LaneLoad("a", 4, 1), LaneLoad("b", 8, 2)]) == "b"
    assert choose([LaneLoad("a", 13, 0), LaneLoad("b", 16, 0)]) == "b"
    assert choose([LaneLoad("a", 4, 1), LaneLoad("b", 4, 1)]) == "a"


def test_the_preferred_one_while_it_is_not_much_fuller() -> None:
    other = LaneLoad("other", 8, 1)
    assert choose([other, LaneLoad("cached", 8, 3)], "cached") == "cached"
    assert choose([other, LaneLoad("cached", 8, 4)], "cached") == "other"


def test_full_lane_is_preferred_only_if_all_are() -> None:
    assert choose([LaneLoad("cached", 4, 4), LaneLoad("other", 4, 3)], "cached") == "other"
    assert choose([LaneLoad("cached", 4, 4), LaneLoad("other", 4, 4)], "cached") == "cached"


def test_one_that_is_not_there_is_not_preferred() -> None:
    assert choose([LaneLoad("a", 8, 7)], "gone") == "a"


def test_there_may_be_none() -> None:
    assert choose([], "gone") is None


@given(LOADS, st.sampled_from("abcdef"))
def test_affinity_stays_within_its_bound(loads: list[LaneLoad], name: str) -> None:
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
