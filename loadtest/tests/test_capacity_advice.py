"""Recorded workloads, memory, and what is recommended from them."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.config import BUNDLED_MODEL, load
from loadtest.capacity.advice import Advice, Fit, advise, scale
from loadtest.capacity.candidates import Candidate, Tried, choose
from loadtest.capacity.memory import Cache, Model, need, read_model
from loadtest.capacity.offer import Offer, Unit
from loadtest.capacity.points import Point
from loadtest.capacity.recorded import Recorded, compare, parse, watch
from loadtest.capacity.search import Ended, Found
from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario

# ---------------------------------------------------------------- recorded workloads


def scraped(finals: int, *, began_s: float = 1_000.0, meetings: int = 4) -> str:
    """A gateway's metrics after so many utterances: all into German, half into Spanish, a tenth into Japanese."""
    return f"""
# TYPE process_start_time_seconds gauge
process_start_time_seconds {began_s}
# TYPE gateway_meetings gauge
gateway_meetings {meetings}.0
# TYPE gateway_utterances counter
gateway_utterances_total{{outcome="accepted"}} {finals}.0
gateway_utterances_total{{outcome="refused"}} 3.0
# TYPE gateway_translations counter
gateway_translations_total{{lang="de",outcome="final"}} {finals}.0
gateway_translations_total{{lang="es",outcome="final"}} {finals / 2}
gateway_translations_total{{lang="ja",outcome="final"}} {finals / 10}
gateway_translations_total{{lang="de",outcome="engine_failed"}} 2.0
# TYPE gateway_partials counter
gateway_partials_total{{lang="de",outcome="translated"}} {finals * 3.2}
gateway_partials_total{{lang="de",outcome="superseded"}} {finals}
# TYPE gateway_tokens counter
gateway_tokens_total {finals * 32.0}
# TYPE gateway_prompt_tokens counter
gateway_prompt_tokens_total {finals * 240.0}
# TYPE gateway_translation_seconds histogram
gateway_translation_seconds_bucket{{le="+Inf"}} {finals * 1.6}
gateway_translation_seconds_count {finals * 1.6}
gateway_translation_seconds_sum 1.0
# TYPE gateway_partial_seconds histogram
gateway_partial_seconds_bucket{{le="+Inf"}} {finals * 3.2}
gateway_partial_seconds_count {finals * 3.2}
gateway_partial_seconds_sum 1.0
# TYPE gateway_first_token_seconds histogram
gateway_first_token_seconds_bucket{{le="0.1"}} {finals * 0.5}
gateway_first_token_seconds_bucket{{le="0.2"}} {finals * 0.995}
gateway_first_token_seconds_bucket{{le="+Inf"}} {finals}
gateway_first_token_seconds_count {finals}
gateway_first_token_seconds_sum 1.0
"""


def test_the_workload_between_two_looks() -> None:
    recorded = compare(parse(scraped(100), 5_000), parse(scraped(400), 5_180))
    assert recorded == Recorded(
        seconds=180,
        utterances=300,
        utterances_per_min=100,
        meetings=4,
        targets={"de": 0.625, "es": 0.3125, "ja": 0.0625},
        targets_per_utterance=1.6,
        tokens_per_translation=20,
        partials_per_final=2,
        prompt_tokens=50,
        first_token_p99_ms=200,
    )
    assert recorded.translations_per_min == 160
    assert recorded.scenario_targets == ("de", "es")


def test_the_workload_since_a_gateway_began() -> None:
    assert compare(None, parse(scraped(600), 1_600)).utterances_per_min == 60
    # A file that nobody dated.
    assert compare(None, parse(scraped(600))).utterances_per_min is None


@pytest.mark.parametrize(("first", "last", "why"), [
    (scraped(100), scraped(50), "started anew"),
    (scraped(100), scraped(100), "no translations"),
    (scraped(100), "up 1", "no metrics of a gateway"),
    (scraped(100), "<html>", "no Prometheus text"),
])  # fmt: skip
def test_metrics_that_tell_nothing(first: str, last: str, why: str) -> None:
    with pytest.raises(LoadtestError, match=why):
        compare(parse(first, 0), parse(last, 60))


async def test_two_files_are_as_far_apart_as_they_were_written(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text(scraped(100))
    after.write_text(scraped(200))
    os.utime(before, (10_000, 10_000))
    os.utime(after, (10_060, 10_060))
    assert (await watch(str(before), str(after), 0, print)).utterances_per_min == 100
    assert (await watch(str(after), None, 0, print)).utterances_per_min is None
    with pytest.raises(LoadtestError, match="cannot be read"):
        await watch(str(tmp_path / "nothing"), None, 0, print)
    with pytest.raises(LoadtestError, match="does not answer"):
        await watch("http://127.0.0.1:9", None, 0, print)


# ---------------------------------------------------------------- memory


def test_the_bundled_model_as_its_config_says() -> None:
    model = read_model(BUNDLED_MODEL, "float32")
    assert model is not None
    assert model.cache_bytes_per_token == 6 * 2 * 6 * 64 * 4
    # From the size of its file; its shape says the same.
    assert model.parameters == pytest.approx(13.77e6, rel=0.01)


def test_a_model_without_files_is_estimated_from_its_shape(tmp_path: Path) -> None:
    shape = {
        **{"num_hidden_layers": 28, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 8},
        **{"head_dim": 128, "intermediate_size": 6144, "vocab_size": 151_936, "tie_word_embeddings": True},
        **{"torch_dtype": "bfloat16"},
    }
    (tmp_path / "config.json").write_text(json.dumps(shape))
    model = read_model(tmp_path)
    assert model is not None
    # Qwen3 1.7 B: 1.72 thousand million parameters, 112 KiB of cache a token.
    assert model.parameters == pytest.approx(1.72e9, rel=0.01)
    assert model.cache_bytes_per_token == 114_688
    assert read_model(tmp_path / "nowhere") is None


def test_the_cache_holds_whole_blocks() -> None:
    cache = Cache(sequences=10, prompt_tokens=60.5, output_tokens=20, kept_prompts=3, block=16)
    assert cache.tokens == 10 * 96 + 3 * 64


def test_the_share_of_a_gpu_is_weights_cache_and_reserve() -> None:
    model = Model(parameters=1.72e9, bytes_each=2, cache_bytes_per_token=114_688, vocabulary=151_936)
    cache = Cache(sequences=66, prompt_tokens=100, output_tokens=60, kept_prompts=0, block=16)
    needed = need(model, cache, batched_tokens=1_024, gpu_gib=80)
    assert needed.weights_gib == pytest.approx(3.2, abs=0.01)
    assert needed.cache_gib == pytest.approx(1.13, abs=0.01)
    assert needed.reserve_gib == pytest.approx(5.16, abs=0.01)
    assert needed.share == 0.12


# ---------------------------------------------------------------- advice

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


def workload(tokens: float, per_min: float | None = None, partials: float = 3) -> Recorded:
    return Recorded(
        seconds=60 if per_min else None,
        utterances=500,
        utterances_per_min=per_min,
        meetings=10,
        targets={"ja": 0.5, "es": 0.5},
        targets_per_utterance=2,
        tokens_per_translation=tokens,
        partials_per_final=partials,
        prompt_tokens=60,
        first_token_p99_ms=200,
    )


def test_what_is_recommended_can_be_pasted() -> None:
    model = read_model(BUNDLED_MODEL, "bfloat16")
    advice = advise(
        choose(TRIED),
        TRIED,
        offer=OFFER,
        at=AT,
        output_tokens_p99=30,
        workload=workload(20),
        recorded=None,
        fit=Fit(model=model, gpu_gib=80.0),
        left_out=["64 sequences"],
    )
    # No gateway was run with the share of memory that was reckoned.
    assert tomllib.loads(advice.toml)["engine"] == {"max_num_seqs": 16}
    assert "# gpu_memory_utilization = 0.06  # reckoned" in advice.toml
    assert load(overrides={"engine.max_num_seqs": 16}).engine.max_num_seqs == 16
    assert "40 meetings a GPU; plan with 28 meetings" in advice.toml
    said = {each.name: each for each in advice.findings}
    assert said["with 30% kept free"].value == "28 meetings"
    assert said["not measured: 32 sequences"].note == "The gateway ended with status 1."
    assert "64 sequences" in said["the search"].note
    # 18 sequences of 60 + 30 tokens, 80 channels with 60 of prompt, in blocks of 16.
    assert f"{18 * 96 + 80 * 64:,} tokens of cache" in said["gpu_memory_utilization, reckoned"].note
    assert not [each.name for each in advice.findings if each.passed is False]


@pytest.mark.parametrize("ended", [each for each in Ended if each.cut_short])
def test_what_was_not_confirmed_is_no_recommendation_to_plan_with(ended: Ended) -> None:
    tried = [Tried(Candidate(8), Found(20, 21, Ended.CONFIRMED, 8)), Tried(Candidate(16), Found(40, 80, ended, 3))]

    def advised(tried: list[Tried]) -> Advice:
        return advise(
            choose(tried),
            tried,
            offer=OFFER,
            at=AT,
            output_tokens_p99=None,
            workload=None,
            recorded=None,
            fit=Fit(),
        )

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


def test_on_a_cpu_the_cache_is_set_in_gib() -> None:
    fit = Fit(model=read_model(BUNDLED_MODEL, "float32"), block=32)
    advice = advise(
        choose(TRIED),
        TRIED,
        offer=OFFER,
        at=AT,
        output_tokens_p99=30,
        workload=workload(20),
        recorded=None,
        fit=fit,
    )
    assert tomllib.loads(advice.toml)["engine"] == {"max_num_seqs": 16}
    assert "# kv_cache_gib = 1.0  # reckoned" in advice.toml
    assert "40 meetings a machine" in advice.toml


def test_what_ran_is_recommended_although_it_should_not_have_fitted() -> None:
    model = Model(parameters=70e9, bytes_each=2, cache_bytes_per_token=327_680, vocabulary=128_256)
    advice = advise(
        choose(TRIED),
        TRIED,
        offer=OFFER,
        at=AT,
        output_tokens_p99=30,
        workload=workload(20),
        recorded=None,
        fit=Fit(model=model, gpu_gib=80.0),
    )
    (reckoned,) = [each for each in advice.findings if each.name.startswith("gpu_memory_utilization")]
    assert (reckoned.passed, reckoned.note.count("More than there is")) == (None, 1)
    assert "gpu_memory_utilization" not in advice.toml


def test_a_recorded_workload_is_scaled_by_its_pace_and_its_lengths() -> None:
    # Measured: 32/s in 40 meetings are 48 a minute each. Recorded: 1,200 a minute in 10 meetings are 120 each.
    recorded = workload(30, per_min=600)
    by = scale(recorded, [workload(20)], AT, Unit.MEETINGS)
    assert (by.pace, by.tokens) == (2.5, 1.5)
    advice = advise(
        choose(TRIED),
        TRIED,
        offer=OFFER,
        at=AT,
        output_tokens_p99=30,
        workload=workload(15, partials=1),
        recorded=recorded,
        fit=Fit(),
        workloads=[workload(20), workload(15, partials=1)],
    )
    said = {each.name: each.value for each in advice.findings}
    # 40 ÷ 2.5 ÷ 1.5 = 10.7, of which 30 % are kept free.
    assert said["of your meetings a machine carries"] == "7 meetings"
    # 1,200 × 1.5 of 1,920 × 0.7.
    assert said["machines for the recorded load"] == "2"
    assert said["revisions translated for each final there"] == "1.0"


def test_a_recorded_translation_is_compared_where_as_many_revisions_were_translated() -> None:
    measured = [workload(24, partials=2.9), workload(8, partials=0.4)]
    assert scale(workload(24), measured, AT, Unit.MEETINGS).tokens == 1
    assert scale(workload(8, partials=0.5), measured, AT, Unit.MEETINGS).tokens == 1
    assert scale(workload(8), [], AT, Unit.MEETINGS).tokens == 1


def test_a_single_file_tells_no_number_of_machines() -> None:
    advice = advise(
        choose(TRIED),
        TRIED,
        offer=OFFER,
        at=AT,
        output_tokens_p99=30,
        workload=workload(20),
        recorded=workload(30),
        fit=Fit(),
    )
    said = {each.name: each for each in advice.findings}
    assert said["machines for the recorded load"].value == "not known"
    assert "--metrics-again" in said["machines for the recorded load"].note


def test_nothing_is_recommended_where_nothing_was_kept() -> None:
    tried = [Tried(Candidate(8), Found(None, 1, Ended.NOTHING, 3))]
    advice = advise(
        choose(tried),
        tried,
        offer=OFFER,
        at=None,
        output_tokens_p99=None,
        workload=None,
        recorded=None,
        fit=Fit(),
    )
    assert advice.toml == ""
    assert [each.passed for each in advice.findings] == [False]
