"""What vLLM is asked and how its outputs are read, on a stand-in; `tests/contract` has the real one."""

from __future__ import annotations

import asyncio
import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.engine import FinishReason
from gateway.domain.errors import EngineFailed, EngineUnavailable
from gateway.engines.lifecycle import Generations
from gateway.engines.prompting.completions import News, Prompt, Rows, Sampling
from gateway.engines.vllm.completions import EngineLoad, VllmApi, VllmRequests, load_logger

PROMPT = Prompt("r", [5, 6], 9, stop=(7,), salt="abc", priority=3)
ROWS: Any = SimpleNamespace(start_indices=[0, 0], end_indices=[0, 1], token_ids=[6], logprobs=[-0.5], ranks=[1])
STOP = FinishReason.STOP


class Parameters(SimpleNamespace):
    """`SamplingParams` of vLLM 0.26."""


class LaterParameters(Parameters):
    """That of 0.32, where each request has its own interval."""

    stream_interval = 1


def output(
    *token_ids: int,
    reason: str | None = None,
    cached: int | None = None,
    rows: Any = None,
    logprob: float | None = None,
) -> Any:
    new = SimpleNamespace(token_ids=token_ids, finish_reason=reason, cumulative_logprob=logprob)
    return SimpleNamespace(outputs=[new], num_cached_tokens=cached, prompt_logprobs=rows)


class Collector:
    """vLLM's `RequestOutputCollector`: has what came last, or raises it."""

    def __init__(self, *there: Any) -> None:
        self.there = [*there]

    def get_nowait(self) -> Any:
        if self.there and isinstance(self.there[0], Exception):
            raise self.there.pop(0)
        return self.there.pop(0) if self.there else None


class Llm:
    """An `AsyncLLM` in which requests run until a test gives them outputs."""

    def __init__(self, *at_once: Any, refuses: Exception | None = None) -> None:
        self.output_processor = SimpleNamespace(stream_interval=None)
        self.output_handler: asyncio.Future[None] | None = None
        self.at_once = at_once
        self.refuses = refuses
        self.asked: list[tuple[Any, Any, str, int]] = []
        self.collectors: list[Collector] = []
        self.aborted: list[list[str]] = []

    async def add_request(self, request_id: str, prompt: Any, sampling: Any, *, priority: int) -> Collector:
        if self.refuses is not None:
            raise self.refuses
        self.asked.append((prompt, sampling, request_id, priority))
        self.output_handler = self.output_handler or asyncio.get_running_loop().create_future()
        self.collectors.append(collector := Collector(*self.at_once))
        return collector

    async def abort(self, ids: list[str]) -> None:
        self.aborted.append(ids)


class Asking:
    """Requests to such an engine."""

    def __init__(self, llm: Llm, parameters: type = LaterParameters) -> None:
        kinds = SimpleNamespace(DELTA="delta")
        api: Any = SimpleNamespace(
            SamplingParams=parameters,
            RequestOutputKind=kinds,
            tokens_input=lambda ids, cache_salt: (*ids, cache_salt),
        )
        load = EngineLoad()
        load.tokens_a_piece = lambda interval_s: round(interval_s * 100)  # type: ignore[method-assign]
        self.llm = llm
        self.requests = VllmRequests(llm, api, load, delta_interval_s=0.04)
        self.generations = Generations()
        self.news: list[tuple[int, News]] = []

    def ask(self, number: int = 1, prompt: Prompt = PROMPT) -> asyncio.Task[None]:
        def hear(news: News) -> None:
            self.news.append((number, news))

        return asyncio.create_task(self.requests.run(self.generations.open(), prompt, hear))

    async def begun(self, count: int) -> None:
        while len(self.llm.collectors) < count:
            await asyncio.sleep(0)
        await asyncio.sleep(0)

    def step(self, *outputs: Any) -> None:
        """The engine gives these, in the order in which it was asked."""
        for collector, output in zip(self.llm.collectors, outputs, strict=True):
            collector.there += [] if output is None else [output]
        self.requests.look()


async def test_tokens_come_with_the_step_that_made_them() -> None:
    asking = Asking(Llm())
    first, second = asking.ask(1), asking.ask(2)
    await asking.begun(2)
    asking.step(output(1, 2), None)
    asking.step(output(3, reason="stop", cached=32), output(4, reason="length"))
    assert asking.news == [
        (1, News([1, 2])),
        (1, News([3], STOP, cached_tokens=32)),
        (2, News([4], FinishReason.LENGTH)),
    ]
    await asyncio.gather(first, second)
    assert asking.llm.aborted == []
    (prompt, sampling, request_id, priority), (_, _, other, _) = asking.llm.asked
    assert (prompt, priority) == ((5, 6, "abc"), 3)
    # Two gateways may choose the same id.
    assert request_id != other
    assert (sampling.max_tokens, sampling.stop_token_ids, sampling.stream_interval) == (9, [7], 4)
    assert not sampling.detokenize


async def test_what_came_before_it_was_looked_at_is_not_lost() -> None:
    asking = Asking(Llm(output(1, reason="stop")))
    await asking.ask()
    assert asking.news == [(1, News([1], STOP))]


async def test_unknown_finish_reason_fails_the_text() -> None:
    asking = Asking(Llm())
    asked, other = asking.ask(), asking.ask()
    await asking.begun(2)
    asking.step(output(reason="abort"), output(4, reason="stop"))
    with pytest.raises(EngineFailed, match=r"early \(abort\)"):
        await asked
    await other


async def test_death_of_the_engine_reaches_every_request() -> None:
    asking = Asking(Llm())
    asked = [asking.ask(), asking.ask()]
    await asking.begun(2)
    # vLLM's task that fetches outputs tells each request why it ends, and ends.
    for collector in asking.llm.collectors:
        collector.there.append(RuntimeError("dead"))
    assert asking.llm.output_handler is not None
    asking.llm.output_handler.set_result(None)
    for each in asked:
        with pytest.raises(RuntimeError, match="dead"):
            await each


async def test_an_engine_that_hangs_is_not_waited_for() -> None:
    asking = Asking(Llm())
    asked = asking.ask()
    await asking.begun(1)
    asking.generations.end("The engine process died.")
    with pytest.raises(EngineUnavailable, match="process died"):
        await asked


async def test_aborts_of_a_turn_go_together() -> None:
    asking = Asking(Llm())
    asked = [asking.ask(number) for number in range(3)]
    await asking.begun(3)
    for each in asked[:2]:
        each.cancel()
    await asyncio.wait(asked[:2])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asking.llm.aborted == [[request_id for _, _, request_id, _ in asking.llm.asked[:2]]]
    asking.step(output(1), output(1), output(1, reason="stop"))
    await asked[2]
    assert asking.news == [(2, News([1], STOP))]


async def test_readers_error_ends_its_request_alone() -> None:
    asking = Asking(Llm())

    def broken(_: News) -> None:
        raise ZeroDivisionError

    asked = asyncio.create_task(asking.requests.run(asking.generations.open(), PROMPT, broken))
    other = asking.ask()
    await asking.begun(2)
    asking.step(output(1), output(1, reason="stop"))
    with pytest.raises(ZeroDivisionError):
        await asked
    await other
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asking.llm.aborted == [[asking.llm.asked[0][2]]]


async def test_refused_request_raises_what_vllm_says() -> None:
    with pytest.raises(ValueError, match="no prompt_logprobs here"):
        await Asking(Llm(refuses=ValueError("no prompt_logprobs here"))).ask()


async def test_probe_asks_for_prompt_logprobs() -> None:
    asking = Asking(Llm(output(4, reason="length", cached=2, rows=ROWS)))
    probe = replace(PROMPT, max_tokens=1, rows_from=1, reads_cache=False)
    await asking.ask(1, probe)
    await asking.ask(2, replace(probe, reads_cache=True))
    rows = Rows([0], [1], [6], [-0.5], [1])
    assert asking.news[0] == (1, News([4], FinishReason.LENGTH, cached_tokens=2, rows=rows))
    sampling = [sampling for _, sampling, _, _ in asking.llm.asked]
    assert [each.skip_reading_prefix_cache for each in sampling] == [True, False]
    assert {(each.prompt_logprobs, each.max_tokens) for each in sampling} == {(2, 1)}


@pytest.mark.parametrize(("rated", "asked"), [(True, 0), (False, None)])
async def test_logprobs_are_asked_for_where_wanted(rated: bool, asked: int | None) -> None:
    asking = Asking(Llm(output(1, 2, reason="stop", logprob=-0.5)))
    await asking.ask(1, replace(PROMPT, rated=rated))
    assert asking.news == [(1, News([1, 2], STOP, logprob=-0.5))]
    assert getattr(asking.llm.asked[0][1], "logprobs", None) == asked


async def test_parameters_of_one_prompt_are_not_those_of_another() -> None:
    requests = Asking(Llm()).requests
    one = requests.sampling(replace(PROMPT, max_tokens=5))
    other = requests.sampling(replace(PROMPT, sampling=Sampling(temperature=0.7)))
    assert (one.max_tokens, other.max_tokens) == (5, 9)
    assert (one.temperature, other.temperature) == (0.0, 0.7)


async def test_an_earlier_vllm_has_one_interval_for_all_requests() -> None:
    asking = Asking(Llm(), Parameters)
    assert not hasattr(asking.requests.sampling(PROMPT), "stream_interval")
    assert asking.llm.output_processor.stream_interval == 4


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


def test_stat_logger_adds_load_and_steps() -> None:
    class Stats:
        num_running_reqs, num_waiting_reqs = 3, 1

    recorded: list[object] = []

    class Prometheus:
        def record(self, scheduler_stats: Any, iteration_stats: Any, **_: Any) -> None:
            recorded.append((scheduler_stats, iteration_stats))

    load, stats, steps = EngineLoad(), Stats(), list[int]()
    logger = load_logger(load, lambda: steps.append(load.running), Prometheus)()
    logger.record(stats, None, engine_idx=0)
    logger.record(None, None, engine_idx=0)
    assert recorded == [(stats, None), (None, None)]
    assert (load.running, load.waiting) == (3, 1)
    assert steps == [3, 3]
