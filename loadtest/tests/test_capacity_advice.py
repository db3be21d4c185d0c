"""What is recommended from the capacities that were found."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.config import load
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.points import Point
from loadtest.capacity.recommend import Candidate, Tried, advise, choose, recommended_toml
from loadtest.capacity.search import Ended, Found
from loadtest.talk.scenario import Scenario
from loadtest.trial.values import Finding, Objective

OFFER = Offer(scenario=Scenario(targets=("ja", "es"), partial_every_s=0.3), unit=Unit.MEETINGS)
_AT: dict[str, Any] = {
    **{"load": 40, "seed": 1, "long": True, "kept": True, "within": 0.995, "translations": 1_200},
    **{"offered_per_s": 32.0, "requests_per_s": 32.0, "goodput_per_s": 31.9, "tokens_per_s": 400.0},
    **{"generated_per_s": 900.0, "first_p50_ms": 40.0, "first_p99_ms": 280.0},
    **{"running": 15.0, "limit": "nothing"},
}
AT = Point(**_AT)


def carrying(size: int, capacity: float | None, at_most: float = 100, ended: Ended = Ended.CONFIRMED) -> Tried:
    points = [] if capacity is None else [replace(AT, load=capacity)]
    return Tried(Candidate(size), Found(capacity, at_most, ended, 8), points=points)


TRIED = [carrying(8, 20), carrying(16, 40), Tried(Candidate(32), None, "The gateway ended with status 1.")]


def advised(tried: Sequence[Tried], **more: Any) -> list[Finding]:
    told: dict[str, Any] = {"offer": OFFER, "device": "machine", **more}
    return advise(tried, **told)


def test_what_is_recommended_can_be_pasted() -> None:
    toml = recommended_toml(TRIED, OFFER, "GPU")
    assert tomllib.loads(toml)["engine"] == {"max_num_seqs": 16}
    assert load(overrides={"engine.max_num_seqs": 16}).engine.max_num_seqs == 16
    assert "40 meetings a GPU; plan with 28 meetings (30% kept free)" in toml
    found = advised(TRIED, device="GPU", left_out=["64 sequences"])
    said = {each.name: each for each in found}
    assert said["with 30% kept free"].value == "28 meetings"
    assert said["not measured: 32 sequences"].note == "The gateway ended with status 1."
    assert "64 sequences" in said["the search"].note
    # 900 tokens a second, of which 400 are of finals.
    assert said["tokens of partials for each of a final there"].value == "1.25"
    assert not [each.name for each in found if each.passed is False]


def test_what_is_kept_of_unfinished_speech_is_told_where_it_was_asked_for() -> None:
    at = replace(AT, partials_translated=0.83, first_words_p50_ms=400.0, first_words_p99_ms=1_200.0)
    tried = [replace(TRIED[1], points=[replace(at, load=40)])]
    watched = replace(OFFER, objective=Objective(first_words_ms=1_500.0))
    lines = recommended_toml(tried, watched, "GPU").splitlines()
    assert "# as many of the first words within 1500 ms of when an utterance began;" in lines
    assert "# 83% of the partials translated;" in lines
    assert not [line for line in recommended_toml(tried, OFFER, "GPU").splitlines() if "first words" in line]
    (nothing,) = advised([carrying(8, None, 1, Ended.NOTHING)], offer=watched)
    assert "300 ms, and 1500 ms for first words, even under the smallest load" in nothing.note


@pytest.mark.parametrize("ended", [each for each in Ended if each.cut_short])
def test_what_was_not_confirmed_is_no_recommendation_to_plan_with(ended: Ended) -> None:
    tried = [carrying(8, 20), carrying(16, 40, 80, ended)]
    (carries,) = [each for each in advised(tried) if each.passed is False]
    assert (carries.name, carries.value) == ("a machine carries", "40 meetings")
    assert f"# NOT CONFIRMED: {ended.value}." in recommended_toml(tried, OFFER, "machine")
    # Of a batch that is not recommended a warning tells.
    others = [carrying(8, 60), tried[1]]
    found = advised(others)
    assert [each.name for each in found if each.passed is False] == []
    (warning,) = [each for each in found if each.name == "cut short: 16 sequences"]
    assert ended.value.capitalize() in warning.note
    assert "NOT CONFIRMED" not in recommended_toml(others, OFFER, "machine")


def test_nothing_is_recommended_where_nothing_was_kept() -> None:
    tried = [carrying(8, None, 1, Ended.NOTHING)]
    assert recommended_toml(tried, OFFER, "machine") == ""
    assert [each.passed for each in advised(tried)] == [False]


# ---------------------------------------------------------------- which one


def trying(carries: Callable[[Candidate], float], *candidates: Candidate) -> list[Tried]:
    return [Tried(each, Found(carries(each), None, Ended.CONFIRMED, 1)) for each in candidates]


def test_the_smallest_of_those_that_carry_the_same_is_recommended() -> None:
    carried = {8: 20.0, 16: 39.0, 32: 40.0, 64: 31.0}
    choice = choose(trying(lambda each: carried[each.max_num_seqs], *map(Candidate, carried)))
    assert choice is not None
    chosen, why = choice
    assert chosen.candidate == Candidate(16)
    assert "sooner" in why


def test_what_failed_is_not_recommended() -> None:
    assert choose([Tried(Candidate(8), None, failed="out of memory")]) is None


@given(st.dictionaries(st.sampled_from([4, 8, 16, 32, 64, 128]), st.floats(0, 100), min_size=1))
def test_a_choice_is_within_three_per_cent_of_the_best(carried: dict[int, float]) -> None:
    choice = choose(trying(lambda each: carried[each.max_num_seqs], *map(Candidate, sorted(carried))))
    best = max(carried.values())
    if choice is None:
        assert best == 0
    else:
        own, size = choice[0].capacity, choice[0].candidate.max_num_seqs
        assert own >= best * 0.97 or math.isclose(own, best * 0.97)
        assert not any(carried[each] >= best * 0.97 for each in carried if each < size)
