"""The whole evaluation: one source language after the other, and in each the arms, on one gateway.

Knows: its options, the order of things, what is read off machine and gateway around each phase, the file of the
streams that are written by hand. Must not know: what the scores mean (`result`), or how a result looks (`report`).

The gateway is a process of its own; this one holds the clients. Our arm comes first in each language, so that no
other arm has filled the engine's prefix cache for it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from demo_model import LANGUAGES
from gateway.client import ClientError
from gateway.config import BUNDLED_MODEL
from loadtest.options import Command, Say, add_options, between, fields_of, model_name
from loadtest.partials.meeting import joined
from loadtest.partials.report import results
from loadtest.partials.result import (
    PIVOT,
    Arm,
    PartialsPlan,
    PartialsResult,
    Phase,
    Reading,
    bars,
    broken_promises,
    pair_scores,
)
from loadtest.results import LoadtestError, first_error
from loadtest.systems.gateway import gateway
from loadtest.systems.server import until_idle
from loadtest.talk.streams import Origin, Revision, Stream, Style, corpus_streams, known_languages
from loadtest.trial.values import Results, WebSocketGateway


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    lang: str
    style: Style
    revisions: list[tuple[int, str]]
    final: tuple[int, str]


def handwritten_streams(lang: str) -> list[Stream]:
    """Those in one language, in the file's order."""
    text = Path(__file__).with_name("handwritten.toml").read_text(encoding="utf-8")
    return [
        Stream(
            id=f"{entry.lang}-{entry.id}",
            lang=entry.lang,
            style=entry.style,
            origin=Origin.HANDWRITTEN,
            revisions=tuple(Revision(*revision) for revision in entry.revisions),
            final=Revision(*entry.final),
        )
        for entry in msgspec.convert(tomllib.loads(text)["stream"], list[_Entry])
        if entry.lang == lang
    ]


# ---------------------------------------------------------------- the evaluation


# A pause between two utterances of one speaker.
_PAUSE_S = 0.4

# Until what a phase began in the engine has ended.
_QUIET_S = 30.0
_LOOK_S = 0.05

_COUNTER = re.compile(r"gateway_\w+_total[{ ]")

_WARM_UP_SEED_STEP = 1_000_003


async def run(plan: PartialsPlan, say: Say) -> PartialsResult:
    """Run the plan. Raises `LoadtestError`."""
    began_s = time.monotonic()
    # Before the engine starts, so that a mistake costs no half a minute.
    spoken = {source: planned_streams(plan, source) for source in plan.sources}
    tokens = _token_count(plan)
    settings = {"engine": {"kind": plan.engine, "max_num_seqs": plan.max_num_seqs}}
    phases: list[Phase] = []
    readings: list[Reading] = []
    try:
        async with asyncio.timeout(plan.time_limit_s), gateway(settings, say) as running:
            assert isinstance(running.address, WebSocketGateway)  # noqa: S101 -- what a gateway has
            url = running.address.url
            warm_up = corpus_streams(plan.seed + _WARM_UP_SEED_STEP, PIVOT, _targets(PIVOT), 2)
            await _phase(plan, url, Arm.ALONE, PIVOT, warm_up, "warming-up", say)
            for source, streams in spoken.items():
                for arm in Arm:
                    phase, read = await _phase(plan, url, arm, source, streams, f"{source}-{arm.value}", say)
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
        model=model_name(settings),
        chrf=f"sacrebleu {metadata.version('sacrebleu')}",
        plan=plan,
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
    known_languages(source)
    count = plan.streams if source == PIVOT else -(-plan.streams // 4)
    return [
        *corpus_streams(plan.seed, source, _targets(source), count),
        *handwritten_streams(source)[: plan.handwritten],
    ]


async def _phase(
    plan: PartialsPlan, url: str, arm: Arm, source: str, streams: list[Stream], title: str, say: Say
) -> tuple[Phase, list[Reading]]:
    """One arm in one source language: everything that is said, by several speakers in meetings of their own."""
    targets = _targets(source)
    # One language alone is a fifth of the load.
    many = plan.speakers * (1 if source == PIVOT else len(LANGUAGES) - 1)
    speakers = max(1, min(many, len(streams)))
    # The longest first, so that no speaker is left alone with one at the end.
    left = sorted(streams, key=lambda stream: stream.final.at_ms)

    async def speak(number: int) -> tuple[list[Reading], float]:
        async with joined(url, f"{title}-{number}", source, targets, arm, plan.speed) as meeting:
            while left:
                say(f"{title}: {len(streams) - len(left)} of {len(streams)} streams")
                await meeting.say(left.pop())
                await asyncio.sleep(_PAUSE_S / plan.speed)
            return await meeting.readings(), meeting.late_ms

    before = await until_idle(f"{url}/metrics", _QUIET_S, _LOOK_S, say)
    began_s = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        speaking = [tasks.create_task(speak(number)) for number in range(speakers)]
    elapsed_s = time.monotonic() - began_s
    spoken = [task.result() for task in speaking]
    phase = Phase(
        arm=arm,
        source=source,
        targets=targets,
        elapsed_s=round(elapsed_s, 2),
        late_ms=round(max(late_ms for _, late_ms in spoken), 1),
        counters=growth(before, await until_idle(f"{url}/metrics", _QUIET_S, _LOOK_S, say)),
    )
    return phase, [reading for readings, _ in spoken for reading in readings]


def growth(before: str, after: str) -> str:
    """What the gateway's counters grew by between two readings; all are Prometheus' text."""

    def values(text: str) -> dict[str, float]:
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if _COUNTER.match(line))
        return {series: float(value) for series, value in lines}

    earlier = values(before)
    grown = {series: round(value - earlier.get(series, 0.0), 4) for series, value in values(after).items()}
    return "".join(f"{series} {value}\n" for series, value in grown.items() if value)


def _targets(source: str) -> list[str]:
    return [lang for lang in LANGUAGES if lang != PIVOT] if source == PIVOT else [PIVOT]


def _token_count(plan: PartialsPlan) -> Callable[[str], int]:
    """Counts the tokens of a final text; the token that ends it is one more."""
    if plan.engine == "simulated":
        return lambda text: len(text.split())
    from demo_model.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(BUNDLED_MODEL)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids) + 1


# ---------------------------------------------------------------- the command


def _add(parser: argparse.ArgumentParser) -> None:
    plan = PartialsPlan()
    add_options(parser, "--out")
    add = parser.add_argument
    add("--engine", choices=("vllm", "simulated"), default=plan.engine, help="which engine")
    add("--max-num-seqs", type=between(1, 1024), default=plan.max_num_seqs, metavar="N", help="the engine's batch")
    add(
        "--streams",
        type=between(1, 10_000),
        default=plan.streams,
        metavar="N",
        help="utterances from the corpus in English; a quarter of it in each other language",
    )
    add(
        "--speakers",
        type=between(1, 100),
        default=plan.speakers,
        metavar="N",
        help="at the same time while five languages are read; five times as many while one is",
    )
    add("--seed", type=int, default=plan.seed, help="which streams")
    add("--time-limit-s", type=between(1, 86_400), default=round(plan.time_limit_s), metavar="S", help="stop then")
    add("--smoke", action="store_true", help="a few streams in two languages at twice the pace: does it run?")


async def _run(options: argparse.Namespace, say: Say) -> Results:
    plan = PartialsPlan(**fields_of(options, PartialsPlan))
    if options.smoke:
        plan = replace(plan, sources=("en", "ja"), streams=3, handwritten=1, speed=2.0)
    return results(await run(plan, say))


PARTIALS = Command(
    name="partials",
    help="translations of speech that is going on: flicker, lag, cost, quality",
    description="Revisions as a recogniser sends them, in real time into meetings of the real gateway: as "
    "partials, each as a final of its own, and the finals alone. What readers were shown is scored. Exit status 1 "
    "unless every bar was cleared and no promise broken.",
    add=_add,
    run=_run,
)
