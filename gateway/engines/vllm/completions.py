"""Requests to vLLM: takes prompts of token ids, and gives new text or probes of what the model would say.

Knows: where vLLM 0.26 and 0.32 define what is used here; its sampling parameters, outputs and load.
Must not know: translations, how the engine is started and stopped.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

from gateway import metrics
from gateway.domain.engine import FinishReason, TranslationRequest
from gateway.domain.errors import EngineFailed
from gateway.engines.lifecycle import Generation
from gateway.engines.prompting.completions import Completion, cache_salt, tokens_a_piece
from gateway.engines.prompting.families import Sampling
from gateway.engines.prompting.verification import Probe


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


def load_logger(load: EngineLoad, prometheus_logger: type) -> type:
    """A subclass of vLLM's Prometheus stat logger that also keeps `load` up to date."""

    class LoadLogger(prometheus_logger):  # type: ignore[misc]
        def record(self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any) -> None:
            if scheduler_stats is not None:
                load.stepped(scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs, time.monotonic())
            super().record(scheduler_stats, iteration_stats, *args, **kwargs)

    return LoadLogger


_FINISH = {None: None, "stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class VllmRequests:
    """Makes every request to one `AsyncLLM`.

    sampling: how the model chooses tokens.
    rates: whether to ask for the log-probability of each token of a final.
    delta_interval_s: about how often new text is handed on, in seconds; 0: every token.
    """

    def __init__(
        self,
        llm: Any,
        api: VllmApi,
        load: EngineLoad,
        *,
        sampling: Sampling,
        stop_token_ids: list[int],
        delta_interval_s: float,
        rates: bool = False,
    ) -> None:
        self._llm = llm
        self._api = api
        self._load = load
        self._sampling = sampling
        self._stop_token_ids = stop_token_ids
        self._delta_interval_s = delta_interval_s
        self._rates = rates
        # Making and checking sampling parameters takes as long as sending the request; copying them is cheap.
        self._translation_sampling = self.sampling_params(skip_clone=True)
        self._rated_sampling = self.sampling_params(skip_clone=True, **self.rating(rated=True)) if rates else None
        self.greedy = sampling.temperature == 0 and sampling.repetition_penalty == 1

    def translation_sampling(self, max_tokens: int, *, rated: bool = False) -> Any:
        """The sampling parameters of a translation with at most `max_tokens` tokens. rated: see `rating`."""
        sampling = copy.copy((rated and self._rated_sampling) or self._translation_sampling)
        sampling.max_tokens = max_tokens
        interval = self._load.tokens_a_piece(self._delta_interval_s)
        if hasattr(self._api.SamplingParams, "stream_interval"):
            sampling.stream_interval = interval
        else:
            # Earlier versions have one interval for all requests, which is read when a request begins.
            self._llm.output_processor.stream_interval = interval
        return sampling

    def rating(self, *, rated: bool) -> dict[str, Any]:
        """What asks for the log-probability of each token that is generated. rated: if those of finals are."""
        return {"logprobs": 0, "flat_logprobs": True} if rated and self._rates else {}

    def sampling_params(self, **arguments: Any) -> Any:
        sampling = self._sampling
        return self._api.SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            repetition_penalty=sampling.repetition_penalty,
            stop_token_ids=self._stop_token_ids or None,
            output_kind=self._api.RequestOutputKind.DELTA,
            skip_special_tokens=True,
            **arguments,
        )

    async def outputs(
        self, generation: Generation, ids: list[int], sampling: Any, request_id: str, request: TranslationRequest
    ) -> AsyncGenerator[Any, None]:
        """vLLM's outputs of one request. Raises `EngineFailed` if it ends early for vLLM's own reason."""
        prompt = self._api.tokens_input(ids, cache_salt=cache_salt(request.cache_scope))
        outputs = self._llm.generate(prompt, sampling, request_id, priority=request.priority)
        async with aclosing(outputs):
            while True:
                with generation:
                    try:
                        output = await anext(outputs)
                    except StopAsyncIteration:
                        return
                reason = output.outputs[0].finish_reason
                if reason not in _FINISH:
                    raise EngineFailed(f"The engine ended this text early ({reason}).")
                yield output


class TranslationCompletions:
    """The `Completions` of one translation.

    request: the translation; probes use its id with a suffix.
    generation: ends every wait when the engine dies.
    """

    def __init__(self, requests: VllmRequests, generation: Generation, request: TranslationRequest) -> None:
        self.greedy = requests.greedy
        self._requests = requests
        self._generation = generation
        self._request = request
        self._probes = itertools.count(1)

    async def complete(self, ids: list[int], max_tokens: int) -> AsyncGenerator[Completion, None]:
        sampling = self._requests.translation_sampling(max_tokens, rated=self._request.final)
        async with aclosing(self._outputs(ids, sampling, self._request.id)) as outputs:
            async for output in outputs:
                new = output.outputs[0]
                finish = _FINISH[new.finish_reason]
                cached = output.num_cached_tokens or 0
                yield Completion(new.text, len(new.token_ids), finish, cached, new.cumulative_logprob)

    async def probe(self, ids: list[int], read_cache: bool) -> Probe:
        asked = {"prompt_logprobs": 2, "flat_logprobs": True, "skip_reading_prefix_cache": not read_cache}
        asked |= self._requests.rating(rated=self._request.final)
        sampling = self._requests.sampling_params(max_tokens=1, detokenize=False, **asked)
        found = Probe()
        # Some configurations of vLLM refuse prompt_logprobs. Any other problem shows again without them.
        with suppress(ValueError):
            async with aclosing(
                self._outputs(ids, sampling, f"{self._request.id}-probe-{next(self._probes)}")
            ) as outputs:
                async for output in outputs:
                    rows = output.prompt_logprobs
                    found = Probe(
                        logprobs=rows if hasattr(rows, "start_indices") else found.logprobs,
                        cached_tokens=output.num_cached_tokens or 0,
                        stopped=output.outputs[0].finish_reason == "stop",
                        said=next(iter(output.outputs[0].token_ids), found.said),
                        said_logprob=output.outputs[0].cumulative_logprob,
                    )
        return found

    def _outputs(self, ids: list[int], sampling: Any, request_id: str) -> AsyncGenerator[Any, None]:
        return self._requests.outputs(self._generation, ids, sampling, request_id, self._request)
