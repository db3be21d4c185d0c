"""The names of vLLM that the adapter uses, imported when the first engine starts.

Knows: where vLLM 0.26 and 0.32 define them. Must not know: how they are used.
"""

from __future__ import annotations


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
