"""What is recommended from the capacities that were found."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.config import load
from loadtest.capacity.advice import Advice, advise
from loadtest.capacity.candidates import Candidate, Tried, choose
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.points import Point
from loadtest.capacity.search import Ended, Found
from loadtest.talk.scenario import Scenario

OFFER = Offer(scenario=Scenario(targets=("ja", "es"), partial_every_s=0.3), unit=Unit.MEETINGS)
TRIED = [
    Tried(Candidate(8), Found(20, 21, Ended.CONFIRMED, 8)),
    Tried(Candidate(16), Found(40, 41, Ended.CONFIRMED, 7)),
    Tried(Candidate(32), None, failed="The gateway ended with status 1."),
]
_AT: dict[str, Any] = {
    **{"load": 40, "seed": 1, "long": True, "kept": True, "behind": False, "within": 0.995, "translations": 1_200},
    **{"failed": 0, "offered_per_s": 32.0, "requests_per_s": 32.0, "goodput_per_s": 31.9, "tokens_per_s": 400.0},
    **{"generated_per_s": 900.0, "first_p50_ms": 40.0, "first_p99_ms": 280.0, "total_p99_ms": 900.0},
    **{"running": 15.0, "waiting": 1.0, "limit": "nothing"},
}
AT = Point(**_AT)


def advised(tried: Sequence[Tried], at: Point | None = AT, **more: Any) -> Advice:
    points = [] if at is None else [at]
    told: dict[str, Any] = {"offer": OFFER, "points": points, "at": at, "device": "machine", **more}
    return advise(choose(tried), tried, **told)


def test_what_is_recommended_can_be_pasted() -> None:
    advice = advised(TRIED, device="GPU", left_out=["64 sequences"])
    assert tomllib.loads(advice.toml)["engine"] == {"max_num_seqs": 16}
    assert load(overrides={"engine.max_num_seqs": 16}).engine.max_num_seqs == 16
    assert "40 meetings a GPU; plan with 28 meetings" in advice.toml
    said = {each.name: each for each in advice.findings}
    assert said["with 30% kept free"].value == "28 meetings"
    assert said["not measured: 32 sequences"].note == "The gateway ended with status 1."
    assert "64 sequences" in said["the search"].note
    # 900 tokens a second, of which 400 are of finals.
    assert said["tokens of partials for each of a final there"].value == "1.25"
    assert not [each.name for each in advice.findings if each.passed is False]


@pytest.mark.parametrize("ended", [each for each in Ended if each.cut_short])
def test_what_was_not_confirmed_is_no_recommendation_to_plan_with(ended: Ended) -> None:
    tried = [Tried(Candidate(8), Found(20, 21, Ended.CONFIRMED, 8)), Tried(Candidate(16), Found(40, 80, ended, 3))]
    advice = advised(tried)
    (carries,) = [each for each in advice.findings if each.passed is False]
    assert (carries.name, carries.value) == ("a machine carries", "40 meetings")
    assert f"# NOT CONFIRMED: {ended.value}." in advice.toml
    # Of a batch that is not recommended a warning tells.
    other = advised([Tried(Candidate(8), Found(60, 61, Ended.CONFIRMED, 8)), tried[1]])
    assert [each.name for each in other.findings if each.passed is False] == []
    (warning,) = [each for each in other.findings if each.name == "cut short: 16 sequences"]
    assert ended.value.capitalize() in warning.note
    assert "NOT CONFIRMED" not in other.toml


def test_nothing_is_recommended_where_nothing_was_kept() -> None:
    advice = advised([Tried(Candidate(8), Found(None, 1, Ended.NOTHING, 3))], at=None)
    assert advice.toml == ""
    assert [each.passed for each in advice.findings] == [False]
