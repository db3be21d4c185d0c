"""The whole evaluation: one source language after the other, and in each the arms, on one gateway.

Knows: the order of things, what is read off machine and gateway around each phase.
Must not know: what the scores mean (`summary`), or how a result looks (`report`).

The gateway is a process of its own; this one holds the clients. Our arm comes first in each
language, so that no other arm has filled the engine's prefix cache for it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

from demo_model import LANGUAGES
from gateway.client import ClientError
from gateway.config import BUNDLED_MODEL
from gateway.engines.vllm import hardware
from gateway.translation import commit_policy
from loadtest.machine import describe
from loadtest.measuring.accounting import Accounts
from loadtest.options import model_name
from loadtest.partials.counters import Counters, read_counters
from loadtest.partials.handwritten import handwritten_streams
from loadtest.partials.meeting import Meeting, joined
from loadtest.partials.result import PIVOT, PartialsPlan, PartialsResult, Phase, bars
from loadtest.partials.screens import Arm, Reading
from loadtest.partials.summary import broken_promises, pair_scores
from loadtest.results import LoadtestError, first_error
from loadtest.systems.gateway import gateway
from loadtest.systems.metrics import get, metric
from loadtest.systems.running import Running
from loadtest.talk.streams import Stream, corpus_streams
from loadtest.trial.values import WebSocketGateway

__all__ = ["planned_streams", "run"]

# A pause between two utterances of one speaker.
_PAUSE_S = 0.4

# Until what a phase began in the engine has ended.
_QUIET_S = 30.0
_LOOK_S = 0.05

_WARM_UP_SEED_STEP = 1_000_003


async def run(plan: PartialsPlan, command: str, say: Callable[[str], object]) -> PartialsResult:
    """Run the plan. `say` is told what is going on, one short line at a time. Raises `LoadtestError`."""
    machine = describe()
    began, began_s = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
    # Before the engine starts, so that a mistake costs no half a minute.
    spoken = {source: planned_streams(plan, source) for source in plan.sources}
    tokenizer, tokens = _token_count(plan)
    settings = _settings(plan)
    phases: list[Phase] = []
    readings: list[Reading] = []
    try:
        async with asyncio.timeout(plan.time_limit_s), gateway(settings, say) as running:
            await _Phase(plan, running, Arm.ALONE, PIVOT, _warm_up(plan), say, "warming-up").run()
            for source, streams in spoken.items():
                for arm in Arm:
                    phase, read = await _Phase(plan, running, arm, source, streams, say).run()
                    phases.append(phase)
                    readings += read
    except TimeoutError:
        raise LoadtestError("The load test took longer than its time limit allows.") from None
    except ExceptionGroup as errors:
        # Task groups wrap what their blocks raise.
        first = first_error(errors)
        if isinstance(first, ClientError):
            raise LoadtestError(f"A client lost its session: {first}") from None
        raise first from None
    streams = [stream for each in spoken.values() for stream in each]
    pairs = pair_scores(streams, readings, phases, tokens)
    return PartialsResult(
        command=command,
        began=began,
        model=model_name(settings),
        dtype=_dtype(plan),
        tokenizer=tokenizer,
        chrf=f"sacrebleu {metadata.version('sacrebleu')}",
        policy=_policy(),
        plan=plan,
        machine=machine,
        elapsed_s=round(time.monotonic() - began_s, 1),
        phases=phases,
        pairs=pairs,
        bars=bars(pairs),
        broken=broken_promises(streams, readings),
        streams=streams,
        readings=readings,
    )


def planned_streams(plan: PartialsPlan, source: str) -> list[Stream]:
    """What is said in one language: from the corpus, then by hand. Raises `LoadtestError`."""
    if source not in LANGUAGES:
        raise LoadtestError(f"The corpus has no {source!r}; it has {', '.join(LANGUAGES)}.")
    count = plan.streams if source == PIVOT else -(-plan.streams // 4)
    return [
        *corpus_streams(plan.seed, source, _targets(source), count),
        *handwritten_streams(source)[: plan.handwritten],
    ]


class _Phase:
    """One arm in one source language."""

    def __init__(
        self,
        plan: PartialsPlan,
        running: Running,
        arm: Arm,
        source: str,
        streams: list[Stream],
        say: Callable[[str], object],
        title: str | None = None,
    ) -> None:
        self._plan = plan
        assert isinstance(running.address, WebSocketGateway)  # noqa: S101 -- what a gateway has
        assert running.pid is not None  # noqa: S101 -- we started it
        self._url = running.address.url
        self._accounts = Accounts({"serving": [running.pid], "clients": [os.getpid()]})
        self._arm = arm
        self._source = source
        self._streams = streams
        self._say = say
        self._title = f"{source}-{arm.value}" if title is None else title
        self._targets = _targets(source)
        # One language alone is a fifth of the load.
        many = plan.speakers * (1 if source == PIVOT else len(LANGUAGES) - 1)
        self._speakers = max(1, min(many, len(streams)))
        self._done = 0

    async def run(self) -> tuple[Phase, list[Reading]]:
        """Everything that is said in it, by several speakers in meetings of their own."""
        await self._quiet()
        counted, used, began_s = await read_counters(self._url), self._accounts.read(), time.monotonic()
        # The longest first, so that no speaker is left alone with one at the end.
        left = iter(sorted(self._streams, key=lambda stream: -stream.final.at_ms))
        self._show()
        async with asyncio.TaskGroup() as tasks:
            speaking = [tasks.create_task(self._speak(number, left)) for number in range(self._speakers)]
        elapsed_s, used_s = time.monotonic() - began_s, self._accounts.read().since(used)
        await self._quiet()
        spoken = [task.result() for task in speaking]
        counters = (await read_counters(self._url)).since(counted)
        return self._phase(elapsed_s, used_s, max(late_ms for _, late_ms in spoken), counters), [
            reading for readings, _ in spoken for reading in readings
        ]

    def _phase(self, elapsed_s: float, used_s: dict[str, float], late_ms: float, counters: Counters) -> Phase:
        return Phase(
            arm=self._arm,
            source=self._source,
            targets=self._targets,
            speakers=self._speakers,
            streams=len(self._streams),
            elapsed_s=round(elapsed_s, 2),
            serving_cores=round(used_s["serving"] / elapsed_s, 3),
            engine_cores=round(used_s["engine"] / elapsed_s, 3),
            other_cores=round(used_s["other"] / elapsed_s, 3),
            in_engine=round(counters.total("gateway_generation_seconds_total") / elapsed_s, 3),
            late_ms=round(late_ms, 1),
            counters=counters,
        )

    async def _speak(self, number: int, left: Iterator[Stream]) -> tuple[list[Reading], float]:
        name = f"{self._title}-{number}"
        async with joined(self._url, name, self._source, self._targets, self._arm, self._plan.speed) as meeting:
            for stream in left:
                await meeting.say(stream)
                self._done += 1
                self._show()
                await asyncio.sleep(_PAUSE_S / self._plan.speed)
            readings = await meeting.readings()
            _check(meeting)
        return readings, meeting.late_ms

    async def _quiet(self) -> None:
        """Wait until the gateway has nothing to translate, so that counters are of one phase only."""
        names = ("gateway_translations_waiting", "gateway_translations_running")
        until_s = time.monotonic() + _QUIET_S
        while True:
            _, text = await asyncio.to_thread(get, f"{self._url}/metrics")
            if not any(metric(text, name) for name in names):
                return
            if time.monotonic() > until_s:
                raise LoadtestError(f"The gateway was still translating {_QUIET_S:g} s after the last word.")
            await asyncio.sleep(_LOOK_S)

    def _show(self) -> None:
        self._say(f"{self._title}: {self._done} of {len(self._streams)} streams")


def _check(meeting: Meeting) -> None:
    if meeting.errors:
        raise LoadtestError(f"The gateway refused what was said: {', '.join(sorted(set(meeting.errors)))}.")


def _targets(source: str) -> list[str]:
    return [lang for lang in LANGUAGES if lang != PIVOT] if source == PIVOT else [PIVOT]


def _warm_up(plan: PartialsPlan) -> list[Stream]:
    return corpus_streams(plan.seed + _WARM_UP_SEED_STEP, PIVOT, _targets(PIVOT), 2)


def _settings(plan: PartialsPlan) -> dict[str, Any]:
    return {"engine": {"kind": plan.engine, "max_num_seqs": plan.max_num_seqs, "dtype": plan.dtype}}


def _dtype(plan: PartialsPlan) -> str:
    """What the engine computes in."""
    if plan.engine == "simulated":
        return "none"
    return hardware.cpu_dtype() if plan.dtype == "auto" and not hardware.gpu_present() else plan.dtype


def _policy() -> dict[str, str]:
    """What the gateway's commit policy is set to, so that a result can be told from another."""
    names = ("SPAN", "MASK", "TOLERANCE", "FINAL_TOLERANCE")
    return {name: str(getattr(commit_policy, name)) for name in names}


def _token_count(plan: PartialsPlan) -> tuple[str, Callable[[str], int]]:
    """What final texts are counted with, its name and itself; the token that ends a text is one more."""
    if plan.engine == "simulated":
        return "words", lambda text: len(text.split())
    from demo_model.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(BUNDLED_MODEL)
    return (
        "the model's, with one for the end",
        lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids) + 1,
    )
