"""Requests to vLLM: prompts of token ids, and their completions.

What has come is fetched once for all requests, when a step of the engine has ended: a task for each request that
waits for its next token would be woken tens of thousands of times a second.
Knows: where vLLM 0.26 and 0.32 define what is used here; its sampling parameters, outputs and load.
Must not know: texts, translations, how the engine is started and stopped.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec.structs import asdict

from gateway import metrics
from gateway.domain.engine import FinishReason
from gateway.domain.errors import EngineFailed
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting.completions import News, OnNews, Prompt, Rows, Sampling, tokens_a_piece

_log = logging.getLogger(__name__)


class VllmApi:
    """The names of vLLM that are used here, imported when an instance is made; this takes about 10 s."""

    def __init__(self) -> None:
        from vllm import SamplingParams
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.inputs import tokens_input
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError
        from vllm.v1.metrics.loggers import PrometheusStatLogger

        self.SamplingParams = SamplingParams
        self.AsyncEngineArgs = AsyncEngineArgs
        self.AsyncLLM = AsyncLLM
        self.RequestOutputKind = RequestOutputKind
        self.EngineDeadError: type[Exception] = EngineDeadError
        self.EngineGenerateError: type[Exception] = EngineGenerateError
        self.PrometheusStatLogger = PrometheusStatLogger
        self.tokens_input = tokens_input

    def cache_environment(self, on: bool) -> None:
        """Let vLLM cache its environment variables; otherwise it reads dozens of them for each request."""
        from vllm import envs

        switch = getattr(envs, "enable_envs_cache" if on else "disable_envs_cache", None)
        if switch is not None:
            switch()


# Time constant of the mean step time, in seconds. The mean is over time, not over a number of steps: when this
# event loop was busy, several steps are seen as one long step and some of no length. Only their sum is right.
_REMEMBERED_S = 1.0


class EngineLoad:
    """The engine's load as of its last step."""

    def __init__(self) -> None:
        self._steps_s = metrics.ENGINE_STEP_S.labels(metrics.DEFAULT_ENGINE)
        # Sequences that run.
        self.running = 0
        # Sequences that wait.
        self.waiting = 0
        self._last_s: float | None = None
        # Exponentially decaying sums over the steps: their time, and their number.
        self._took_s = self._steps = 0.0

    @property
    def step_s(self) -> float:
        """Mean time of a recent step, in seconds; 0 if not known."""
        return self._took_s / self._steps if self._steps else 0.0

    def stepped(self, running: int, waiting: int, now_s: float) -> None:
        """The engine finished a step. now_s: of a monotonic clock."""
        # If the last step left nothing to run, the time since then was idle, not a step.
        if self._last_s is not None and self.running:
            took_s = now_s - self._last_s
            self._steps_s.observe(took_s)
            remembered = math.exp(-took_s / _REMEMBERED_S)
            self._took_s = self._took_s * remembered + took_s
            self._steps = self._steps * remembered + 1
        self._last_s = now_s
        self.running, self.waiting = running, waiting

    def tokens_a_piece(self, interval_s: float) -> int:
        return tokens_a_piece(interval_s, self.step_s, self.running)


def load_logger(load: EngineLoad, on_step: Callable[[], None], prometheus_logger: type) -> type:
    """A subclass of vLLM's Prometheus stat logger that also keeps `load` up to date.

    on_step: called after each step, when its outputs are there; must not raise.
    """

    class LoadLogger(prometheus_logger):  # type: ignore[misc]
        def record(self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any) -> None:
            if scheduler_stats is not None:
                load.stepped(scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs, time.monotonic())
            on_step()
            super().record(scheduler_stats, iteration_stats, *args, **kwargs)

    return LoadLogger


_FINISH = {None: None, "stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class _Running:
    """A request in vLLM. collector: vLLM's own, which merges what comes until it is asked."""

    def __init__(self, collector: Any, on_news: OnNews, rows: int) -> None:
        self._collector = collector
        self._on_news = on_news
        # How many rows of the prompt are wanted.
        self._rows = rows
        # Set at its end, to the error if there is one; cancelled with the task that waits for it.
        self.end: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def look(self) -> None:
        """Hand on what has come."""
        if self.end.done():
            return
        try:
            if (output := self._collector.get_nowait()) is None:
                return
            new = output.outputs[0]
            if new.finish_reason not in _FINISH:
                raise EngineFailed(f"The engine ended this text early ({new.finish_reason}).")
            finish, rows = _FINISH[new.finish_reason], output.prompt_logprobs
            if hasattr(rows, "start_indices"):
                columns = (rows.start_indices, rows.end_indices, rows.token_ids, rows.logprobs, rows.ranks)
                rows = Rows(*columns).last(self._rows)
            else:
                rows = None
            cached = output.num_cached_tokens or 0
            self._on_news(News(list(new.token_ids), finish, cached, new.cumulative_logprob, rows))
        except Exception as error:  # vLLM's, or the reader's; others go on
            self.end.set_result(error)
        else:
            if finish is not None:
                self.end.set_result(None)


class VllmRequests:
    """Makes every request to one `AsyncLLM`. vLLM makes no text of what it generates.

    delta_interval_s: about how often new tokens are handed on, in seconds; 0: every token.
    """

    def __init__(self, llm: Any, api: VllmApi, load: EngineLoad, *, delta_interval_s: float) -> None:
        self._llm = llm
        self._api = api
        self._load = load
        self._delta_interval_s = delta_interval_s
        # Making and checking sampling parameters takes as long as sending the request; copying them is cheap.
        self._made = lru_cache(maxsize=64)(self._make)
        self._numbers = itertools.count(1)
        self._running: dict[str, _Running] = {}
        # Requests that nobody waits for any more; all of one turn are told together.
        self._unwanted: list[str] = []
        self._aborting: set[asyncio.Task[None]] = set()
        self._handler: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Hand on what all requests have given in the step that has ended."""
        for running in [*self._running.values()]:
            running.look()

    async def run(self, generation: Generation, prompt: Prompt, on_news: OnNews) -> None:
        """As `Complete`, with vLLM's errors."""
        # Two gateways may choose the same id.
        id = f"{prompt.id}-{next(self._numbers)}"
        rows = 0 if prompt.rows_from is None else len(prompt.ids) - prompt.rows_from
        tokens = self._api.tokens_input(prompt.ids, cache_salt=prompt.salt)
        try:
            with generation:
                collector = await self._llm.add_request(
                    id, tokens, self.sampling(prompt), priority=prompt.priority
                )
                self._running[id] = running = _Running(collector, on_news, rows)
                self._watch()
                # It may have ended before it was there to be looked at.
                running.look()
                error = await running.end
            if error is not None:
                raise error
        except BaseException:
            self._abort(id)
            raise
        finally:
            self._running.pop(id, None)

    def _watch(self) -> None:
        """vLLM's task that fetches what is generated ends with the engine, and tells each request why."""
        handler = self._llm.output_handler
        if handler is not self._handler and handler is not None:
            self._handler = handler
            handler.add_done_callback(lambda _: self.look())

    def _abort(self, id: str) -> None:
        if not self._unwanted:
            asyncio.get_running_loop().call_soon(self._abort_all)
        self._unwanted.append(id)

    def _abort_all(self) -> None:
        ids, self._unwanted = self._unwanted, []
        self._aborting.add(task := asyncio.ensure_future(self._llm.abort(ids)))
        task.add_done_callback(self._aborted)

    def _aborted(self, task: asyncio.Task[None]) -> None:
        self._aborting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The engine has died, or is being stopped.
            _log.debug("vLLM could not abort requests: %r", error)

    def sampling(self, prompt: Prompt) -> Any:
        """vLLM's sampling parameters of one prompt."""
        is_probe = prompt.rows_from is not None
        made = self._made(prompt.sampling, prompt.stop, prompt.rated, is_probe, prompt.reads_cache)
        sampling = copy.copy(made)
        sampling.max_tokens = prompt.max_tokens
        interval = self._load.tokens_a_piece(self._delta_interval_s)
        if hasattr(self._api.SamplingParams, "stream_interval"):
            sampling.stream_interval = interval
        else:
            # Earlier versions have one interval for all requests, which is read when a request begins.
            self._llm.output_processor.stream_interval = interval
        return sampling

    def _make(
        self, sampling: Sampling, stop: tuple[int, ...], rated: bool, is_probe: bool, reads_cache: bool
    ) -> Any:
        asked: dict[str, Any] = {}
        if rated:
            asked |= {"logprobs": 0, "flat_logprobs": True}
        if is_probe:
            asked |= {"prompt_logprobs": 2, "flat_logprobs": True, "skip_reading_prefix_cache": not reads_cache}
        return self._api.SamplingParams(
            **asdict(sampling),
            stop_token_ids=list(stop) or None,
            output_kind=self._api.RequestOutputKind.DELTA,
            detokenize=False,
            skip_clone=True,
            **asked,
        )
