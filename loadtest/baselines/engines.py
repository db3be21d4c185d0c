"""What a worker translates with: vLLM's offline `LLM`, or a script.

Knows: how several texts become translations, all at once. Must not know: queues, processes, HTTP.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from gateway.config import EngineSettings, Settings
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import EngineFailed
from gateway.engine import engine_options
from gateway.engines.prompting.encoding import EncodedPrompt
from gateway.engines.simulated import Rule, Script
from gateway.engines.vllm.arguments import engine_arguments, engine_environment
from loadtest.systems.prompting import prompts


class Job(Struct, frozen=True):
    """One text for one language."""

    text: str
    source: str
    target: str


class Translation(Struct, frozen=True):
    """What an engine made of a job."""

    text: str = ""
    tokens: int = 0
    # A sentence; None when it was translated.
    failed: str | None = None


class BatchEngine(Protocol):
    """Translates what it is given and returns when all of it is done; blocks."""

    def translate(self, jobs: Sequence[Job]) -> list[Translation]:
        """One for each job, in their order."""
        ...

    def close(self) -> None:
        """End its processes."""
        ...


def build(settings: EngineSettings) -> BatchEngine:
    """Load it; blocks for as long as that takes. Raises whatever the engine raises."""
    return SimulatedBatches(settings.script) if settings.kind == "simulated" else _VllmBatches(settings)


class SimulatedBatches:
    """The gateway's simulated engine, for batches: its words and times. One takes as long as its longest text."""

    def __init__(self, script: Script) -> None:
        self._script = script
        time.sleep(script.load_s)

    def translate(self, jobs: Sequence[Job]) -> list[Translation]:
        script = self._script
        rules = [self._rule(job.text) for job in jobs]
        if any(rule.crash_after is not None for rule in rules):
            os.kill(os.getpid(), signal.SIGKILL)
        said = [f"[{job.target}] {job.text}".split() * rule.repeat for job, rule in zip(jobs, rules, strict=True)]
        time.sleep(script.first_token_s + (max(map(len, said)) - 1) * script.token_s)
        return [
            Translation(failed="The script says that this text fails.")
            if rule.fail_after is not None
            else Translation(" ".join(words), len(words))
            for words, rule in zip(said, rules, strict=True)
        ]

    def close(self) -> None:
        pass

    def _rule(self, text: str) -> Rule:
        return next((rule for rule in self._script.rules if rule.match in text), Rule(match=""))


class _VllmBatches:
    """vLLM as for offline work, with the gateway's prompts, output limits, sampling and engine arguments."""

    def __init__(self, settings: EngineSettings) -> None:
        own = Settings(engine=settings)
        options = engine_options(own)
        for name, value in engine_environment(options).items():
            os.environ.setdefault(name, value)
        # A model that is not there is told of before vLLM is imported.
        self._prompts = prompts(own)

        from vllm import LLM, SamplingParams
        from vllm.inputs import TokensPrompt

        self._prompt_class, self._sampling_class = TokensPrompt, SamplingParams
        self._llm: Any = LLM(**engine_arguments(options))
        sampling = self._prompts.sampling
        self._sampling = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "repetition_penalty": sampling.repetition_penalty,
            "stop_token_ids": self._prompts.encoder.stop_token_ids or None,
            "skip_special_tokens": True,
        }
        self._generate([self._encoded(Job("1 2 3", "en", "de"))])

    def translate(self, jobs: Sequence[Job]) -> list[Translation]:
        prompts: dict[int, EncodedPrompt] = {}
        made: dict[int, Translation] = {}
        for number, job in enumerate(jobs):
            try:
                prompts[number] = self._encoded(job)
            except EngineFailed as error:
                made[number] = Translation(failed=error.message)
        made |= zip(prompts, self._generate(list(prompts.values())), strict=True)
        return [made[number] for number in range(len(jobs))]

    def close(self) -> None:
        # It ends with the process anyway; this way it is told to.
        with suppress(Exception):
            self._llm.llm_engine.engine_core.shutdown()

    def _encoded(self, job: Job) -> EncodedPrompt:
        return self._prompts.encoder.encode(
            TranslationRequest(id="", text=job.text, source=job.source, target=job.target)
        )

    def _generate(self, prompts: Sequence[EncodedPrompt]) -> list[Translation]:
        if not prompts:
            return []
        outputs = self._llm.generate(
            [self._prompt_class(prompt_token_ids=prompt.ids) for prompt in prompts],
            [self._sampling_class(max_tokens=prompt.max_tokens, **self._sampling) for prompt in prompts],
            use_tqdm=False,
        )
        completions = [output.outputs[0] for output in outputs]
        return [Translation(each.text.strip(), len(each.token_ids)) for each in completions]
