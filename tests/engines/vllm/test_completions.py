"""What vLLM is asked and how its outputs are read, on a stand-in; `tests/contract` has the real one."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import AsyncGenerator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import FinishReason, TranslationRequest
from gateway.domain.errors import EngineFailed, EngineUnavailable
from gateway.engines.lifecycle import Generations
from gateway.engines.prompting.completions import Completion
from gateway.engines.prompting.families import Sampling
from gateway.engines.prompting.verification import Probe
from gateway.engines.vllm.completions import EngineLoad, TranslationCompletions, VllmApi, VllmRequests, load_logger

GREEDY = Sampling()
REQUEST = TranslationRequest(id="r", text="Good morning.", source="en", target="de", priority=3)
ROWS: Any = SimpleNamespace(start_indices=[])


class Parameters(SimpleNamespace):
    """`SamplingParams` of vLLM 0.26."""


class LaterParameters(Parameters):
    """That of 0.32, where each request has its own interval."""

    stream_interval = 1


def output(
    text: str,
    *token_ids: int,
    reason: str | None = None,
    cached: int | None = None,
    rows: Any = None,
    logprob: float | None = None,
) -> Any:
    new = SimpleNamespace(text=text, token_ids=token_ids, finish_reason=reason, cumulative_logprob=logprob)
    return SimpleNamespace(outputs=[new], num_cached_tokens=cached, prompt_logprobs=rows)


class Llm:
    """An `AsyncLLM` that gives these outputs, or raises them."""

    def __init__(self, *outputs: Any) -> None:
        self.output_processor = SimpleNamespace(stream_interval=None)
        self.outputs = outputs
        self.asked: list[tuple[Any, Any, str, int]] = []

    async def generate(
        self, prompt: Any, sampling: Any, request_id: str, *, priority: int
    ) -> AsyncGenerator[Any, None]:
        self.asked.append((prompt, sampling, request_id, priority))
        for each in self.outputs:
            if isinstance(each, Exception):
                raise each
            yield each


def requests(
    llm: Llm, parameters: type = LaterParameters, sampling: Sampling = GREEDY, *, rates: bool = False
) -> VllmRequests:
    kinds = SimpleNamespace(DELTA="delta")
    api: Any = SimpleNamespace(
        SamplingParams=parameters, RequestOutputKind=kinds, tokens_input=lambda ids, cache_salt: (*ids, cache_salt)
    )
    load = EngineLoad()
    load.tokens_a_piece = lambda interval_s: round(interval_s * 100)  # type: ignore[method-assign]
    return VllmRequests(llm, api, load, sampling=sampling, stop_token_ids=[7], delta_interval_s=0.04, rates=rates)


@pytest.fixture
def completions() -> Callable[[Llm], TranslationCompletions]:
    return lambda llm: TranslationCompletions(requests(llm), Generations().open(), REQUEST)


async def test_new_text_comes_as_the_engine_gives_it(completions: Callable[[Llm], TranslationCompletions]) -> None:
    llm = Llm(output("Guten", 1, 2), output(" Morgen.", 3, reason="stop", cached=32))
    assert [new async for new in completions(llm).complete([5, 6], 9)] == [
        Completion("Guten", 2),
        Completion(" Morgen.", 1, FinishReason.STOP, cached_tokens=32),
    ]
    ((prompt, sampling, request_id, priority),) = llm.asked
    assert (prompt, request_id, priority) == ((5, 6, None), "r", 3)
    assert (sampling.max_tokens, sampling.stop_token_ids, sampling.stream_interval) == (9, [7], 4)


async def test_salts_do_not_tell_their_scope() -> None:
    salts = []
    for scope in ("standup", "standup", "Vorstand – Übernahme\x00", ""):
        llm = Llm(output("Guten", 1, reason="stop"))
        ours = TranslationCompletions(requests(llm), Generations().open(), replace(REQUEST, cache_scope=scope))
        _ = [new async for new in ours.complete([5], 9)]
        await ours.probe([5], True)
        [completed, probed] = [prompt[-1] for prompt, *_ in llm.asked]
        assert completed == probed
        salts.append(completed)
    assert salts[0] == salts[1] != salts[2]
    assert salts[3] is None
    assert all(re.fullmatch("[0-9a-f]{32}", salt) for salt in salts[:3])


async def test_unknown_finish_reason_fails_the_text(completions: Callable[[Llm], TranslationCompletions]) -> None:
    llm = Llm(output("Guten", 1), output("", reason="abort"))
    said = completions(llm).complete([5], 9)
    assert (await anext(said)).text == "Guten"
    with pytest.raises(EngineFailed, match=r"early \(abort\)"):
        await anext(said)


async def test_an_engine_that_died_gives_nothing_more() -> None:
    generations = Generations()
    said = TranslationCompletions(requests(Llm(output("a", 1))), generations.open(), REQUEST).complete([5], 9)
    generations.end("The engine process died.")
    with pytest.raises(EngineUnavailable, match="process died"):
        await anext(said)


async def test_probe_asks_for_prompt_logprobs(completions: Callable[[Llm], TranslationCompletions]) -> None:
    llm = Llm(output("", 4, reason="length", cached=2, rows=ROWS))
    ours = completions(llm)
    assert await ours.probe([5, 6], False) == Probe(ROWS, cached_tokens=2, stopped=False, said=4)
    await ours.probe([5, 6], True)
    assert [request_id for _, _, request_id, _ in llm.asked] == ["r-probe-1", "r-probe-2"]
    sampling = [sampling for _, sampling, _, _ in llm.asked]
    assert [each.skip_reading_prefix_cache for each in sampling] == [True, False]
    assert {(each.prompt_logprobs, each.max_tokens, each.detokenize) for each in sampling} == {(2, 1, False)}


async def test_an_engine_that_refuses_probes_says_nothing_in_them(
    completions: Callable[[Llm], TranslationCompletions],
) -> None:
    assert await completions(Llm(ValueError("no prompt_logprobs here"))).probe([5], True) == Probe()
    with pytest.raises(RuntimeError, match="dead"):
        await completions(Llm(RuntimeError("dead"))).probe([5], True)


def test_parameters_of_one_translation_are_not_those_of_another() -> None:
    ours = requests(Llm())
    one, other = ours.translation_sampling(5), ours.translation_sampling(9)
    assert (one.max_tokens, other.max_tokens) == (5, 9)


def test_an_earlier_vllm_has_one_interval_for_all_requests() -> None:
    llm = Llm()
    sampling = requests(llm, Parameters).translation_sampling(5)
    assert not hasattr(sampling, "stream_interval")
    assert llm.output_processor.stream_interval == 4


@pytest.mark.parametrize(
    ("sampling", "greedy"),
    [(GREEDY, True), (Sampling(temperature=0.7), False), (Sampling(repetition_penalty=1.1), False)],
)
def test_only_the_likeliest_token_is_greedy(sampling: Sampling, greedy: bool) -> None:
    assert requests(Llm(), sampling=sampling).greedy is greedy


@pytest.mark.parametrize(("rates", "final", "asked"), [(True, True, 0), (True, False, None), (False, True, None)])
async def test_logprobs_are_asked_for_calibrated_finals_alone(rates: bool, final: bool, asked: int | None) -> None:
    llm = Llm(output("Guten", 1, 2, reason="stop", logprob=-0.5, rows=ROWS))
    asking = TranslationCompletions(
        requests(llm, rates=rates), Generations().open(), replace(REQUEST, final=final)
    )
    assert [new.logprob async for new in asking.complete([5, 6], 9)] == [-0.5]
    assert (await asking.probe([5, 6], read_cache=True)).said_logprob == -0.5
    assert [getattr(sampling, "logprobs", None) for _, sampling, _, _ in llm.asked] == [asked, asked]


@pytest.fixture
def envs(monkeypatch: pytest.MonkeyPatch) -> Any:
    vllm: Any = types.ModuleType("vllm")
    vllm.envs = types.ModuleType("vllm.envs")
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    monkeypatch.setitem(sys.modules, "vllm.envs", vllm.envs)
    return vllm.envs


@pytest.mark.parametrize(("on", "called"), [(True, ["enabled"]), (False, ["disabled"])])
def test_the_environment_is_cached_or_not(envs: Any, on: bool, called: list[str]) -> None:
    calls: list[str] = []
    envs.enable_envs_cache = lambda: calls.append("enabled")
    envs.disable_envs_cache = lambda: calls.append("disabled")
    VllmApi.cache_environment(object.__new__(VllmApi), on)
    assert calls == called


@pytest.mark.usefixtures("envs")
def test_a_release_without_such_a_cache_does_without() -> None:
    for on in (True, False):
        VllmApi.cache_environment(object.__new__(VllmApi), on)


def steps(load: EngineLoad, count: int, took_s: float, *, running: int = 4, begin_s: float = 0.0) -> float:
    """So many steps, the first at `begin_s`; when the last one was."""
    for step in range(count):
        load.stepped(running=running, waiting=0, now_s=begin_s + step * took_s)
    return begin_s + (count - 1) * took_s


def test_step_time_leaves_idleness_out() -> None:
    load = EngineLoad()
    assert load.tokens_a_piece(0.04) == 1
    last_s = steps(load, 50, 0.010)
    assert load.step_s == pytest.approx(0.010)
    assert load.tokens_a_piece(0.04) == 4
    load.stepped(running=0, waiting=0, now_s=last_s + 0.010)
    # The next text comes ten minutes later.
    load.stepped(running=1, waiting=0, now_s=last_s + 600.0)
    assert load.step_s == pytest.approx(0.010)
    steps(load, 100, 0.100, begin_s=last_s + 600.0)
    assert load.tokens_a_piece(0.04) == 1
    load.stepped(running=4, waiting=2, now_s=last_s + 610.0)
    assert (load.running, load.waiting) == (4, 2)


def test_late_steps_are_not_a_faster_engine() -> None:
    load = EngineLoad()
    last_s = steps(load, 100, 0.010)
    # The loop was elsewhere for half a second, in which the engine made fifty steps.
    steps(load, 50, 1e-5, begin_s=last_s + 0.5)
    assert load.step_s == pytest.approx(0.010, rel=0.2)


def test_stat_logger_only_adds_the_load() -> None:
    class Stats:
        num_running_reqs, num_waiting_reqs = 3, 1

    recorded: list[object] = []

    class Prometheus:
        def record(self, scheduler_stats: Any, iteration_stats: Any, **_: Any) -> None:
            recorded.append((scheduler_stats, iteration_stats))

    load, stats = EngineLoad(), Stats()
    logger = load_logger(load, Prometheus)()
    logger.record(stats, None, engine_idx=0)
    logger.record(None, None, engine_idx=0)
    assert recorded == [(stats, None), (None, None)]
    assert (load.running, load.waiting) == (3, 1)
