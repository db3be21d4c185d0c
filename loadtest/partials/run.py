"""`python -m loadtest partials`: meetings on the gateway under test, in each of which one person speaks streams
and readers write down what they are sent; one source language after the other, and in each the arms.

Knows: its options, the product's client, times, the order of things, what is read off machine and gateway around
each phase, how a result is shown. Must not know: how scores are made (`result`), how a table or a chart is drawn.

The gateway is a process of its own; this one holds the clients. Our arm comes first in each language, so that no
other arm has filled the engine's prefix cache for it.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from msgspec import to_builtins

from demo_model import LANGUAGES, SMALL_MODEL
from gateway.bundled.folder import VARIABLE
from gateway.client import ClientError, ClientSession, connect
from gateway.domain.log import segment_number, whole_id
from gateway.domain.sessions import Stability
from gateway.protocol.messages import (
    Caption,
    Error,
    Pong,
    TranslationDelta,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from loadtest.driving.segments import Segments
from loadtest.options import Command, Say, add_options, between, fields_of, model_name
from loadtest.partials.result import (
    PIVOT,
    Arm,
    Bar,
    Delta,
    Display,
    Final,
    PairScores,
    PartialsPlan,
    PartialsResult,
    Phase,
    Reading,
    Spending,
    bars,
    broken_promises,
    pair_scores,
)
from loadtest.results import LoadtestError, first_error
from loadtest.systems.gateway import gateway
from loadtest.systems.server import until_idle
from loadtest.talk.streams import Revision, Stream, corpus_streams, handwritten_streams, known_languages
from loadtest.trial.content import Chart, Series, Table, formatted, tabulated
from loadtest.trial.values import Finding, Results, WebSocketGateway

# Patience with translations that do not come; what is missing then is a finding, not an error.
_ANSWERS_S = 60.0

_Translation = TranslationDelta | TranslationFinal | TranslationFailed


@dataclass(eq=False)
class _Reader:
    """One reader's session and all that came on it."""

    session: ClientSession
    lang: str
    stability: Stability
    # Set when something comes.
    news: asyncio.Event
    # Utterance → the translations of its segments with the loop's time, in order, and which of them have ended.
    got: defaultdict[str, list[tuple[float, _Translation]]] = field(default_factory=lambda: defaultdict(list))
    ended: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    # A ping was answered.
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        """Write down what comes, until cancelled."""
        now = asyncio.get_running_loop().time
        async for event in self.session:
            match event:
                case TranslationDelta(utterance=utterance):
                    self.got[whole_id(utterance)].append((now(), event))
                case TranslationFinal(utterance=utterance) | TranslationFailed(utterance=utterance):
                    self.got[whole_id(utterance)].append((now(), event))
                    self.ended[whole_id(utterance)].add(utterance)
                    self.news.set()
                case Pong():
                    self.answered.set()

    def reading(self, stream: Stream, arm: Arm, began_s: float, speed: float, segments: Segments) -> Reading:
        """What came of one stream, in milliseconds of the speaker's time."""
        played = dict.fromkeys(id for _, id in _played(stream, arm))
        ended: set[str] = set()
        deltas: list[Delta] = []
        finals: list[Final] = []
        failed: list[str] = []
        late = 0
        arrived = [
            (at_s, number, message) for number, id in enumerate(played, start=1) for at_s, message in self.got[id]
        ]
        for at_s, number, message in sorted(arrived, key=lambda entry: entry[0]):
            at_ms = round((at_s - began_s) * 1000 * speed, 1)
            segment = segment_number(message.utterance)
            match message:
                case TranslationDelta():
                    deltas.append(Delta(at_ms, message.rev, message.committed, message.tentative, segment))
                    late += message.utterance in ended
                case TranslationFinal():
                    revision = number if arm is Arm.NAIVE else message.rev
                    finals.append(Final(at_ms, revision, message.text, message.tokens, segment))
                    ended.add(message.utterance)
                case TranslationFailed():
                    failed.append(message.code)
        further = sum(segments.many.get(id, 1) - 1 for id in played)
        return Reading(arm, stream.id, self.lang, self.stability, deltas, finals, failed, late, further)


@dataclass(eq=False)
class Meeting:
    """One speaker at a time, and readers of all kinds."""

    speaker: ClientSession
    readers: Sequence[_Reader]
    arm: Arm
    speed: float
    # Set when something comes.
    news: asyncio.Event
    # By how much a revision was sent behind its time at most, milliseconds of real time.
    late_ms: float = 0.0
    # Segments of what the speaker says.
    _segments: Segments = field(default_factory=Segments)
    # Codes of what the gateway refused the speaker for good.
    _errors: set[str] = field(default_factory=set)
    # Each stream with the loop's time at which the speaker began it.
    _said: list[tuple[Stream, float]] = field(default_factory=list)

    async def say(self, stream: Stream) -> None:
        """Speak one stream in its own time, and wait for its translations."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        if self.arm is Arm.ALONE:
            # No reader waits for the speaker here.
            began_s -= stream.final.at_ms / 1000 / self.speed
        self._said.append((stream, began_s))
        played = _played(stream, self.arm)
        for revision, id in played:
            due_s = began_s + revision.at_ms / 1000 / self.speed
            await asyncio.sleep(due_s - loop.time())
            self.late_ms = max(self.late_ms, (loop.time() - due_s) * 1000)
            if self.arm is Arm.OURS and revision is not stream.final:
                await self.speaker.partial(revision.text, id)
            else:
                await self.speaker.final(revision.text, id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWERS_S):
                while not self._ended({id for _, id in played}):
                    self.news.clear()
                    await self.news.wait()

    def _ended(self, ids: Collection[str]) -> bool:
        """Whether every reader has every segment."""
        return all(
            len(reader.ended[id]) >= self._segments.many.get(id, math.inf) for reader in self.readers for id in ids
        )

    async def readings(self) -> list[Reading]:
        """Everything that came of everything that was said; a second outcome had time to arrive.

        Raises `LoadtestError` when the gateway refused something.
        """
        if self._errors:
            raise LoadtestError(f"The gateway refused what was said: {', '.join(sorted(self._errors))}.")
        try:
            async with asyncio.timeout(_ANSWERS_S):
                for reader in self.readers:
                    await reader.session.ping()
                    await reader.answered.wait()
        except TimeoutError:
            raise LoadtestError(f"The gateway did not answer a ping within {_ANSWERS_S:g} s.") from None
        return [
            reader.reading(stream, self.arm, began_s, self.speed, self._segments)
            for stream, began_s in self._said
            for reader in self.readers
        ]

    async def listen(self) -> None:
        """The speaker's own session has to be read too, until cancelled."""
        async for event in self.speaker:
            match event:
                case Error(retryable=False):
                    self._errors.add(event.code)
                case UtteranceAccepted(id=id, offset=offset):
                    self._segments.accepted(id, offset)
                case Caption(utterance=utterance, offset=int(offset)):
                    self._segments.caption(utterance, offset)
            self.news.set()


@asynccontextmanager
async def joined(
    url: str, name: str, speaks: str, targets: Sequence[str], arm: Arm, speed: float
) -> AsyncIterator[Meeting]:
    """A meeting with everybody in it: in our arm readers of each kind in each language, else one in each.

    Everybody has left when the block ends. Raises `ClientError`, in a group.
    """
    kinds: tuple[Stability, ...] = ("live", "stable", "final") if arm is Arm.OURS else ("final",)
    async with AsyncExitStack() as stack:

        async def enter(reads: list[str], speaks: str | None, stability: Stability) -> ClientSession:
            # Found again after a loss, a session would have been shown something else.
            session = connect(url, reads=reads, speaks=speaks, meeting=name, stability=stability, reconnect=None)
            return await stack.enter_async_context(session)

        news = asyncio.Event()
        readers = [
            _Reader(await enter([target], None, kind), target, kind, news) for target in targets for kind in kinds
        ]
        meeting = Meeting(await enter([], speaks, "final"), readers, arm, speed, news)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        listening = [tasks.create_task(meeting.listen()), *(tasks.create_task(r.listen()) for r in readers)]
        yield meeting
        for task in listening:
            task.cancel()


def _played(stream: Stream, arm: Arm) -> list[tuple[Revision, str]]:
    """What is said of a stream, each with the id of its utterance."""
    revisions = (*stream.revisions, stream.final)
    match arm:
        case Arm.OURS:
            return [(revision, stream.id) for revision in revisions]
        case Arm.NAIVE:
            return [(revision, f"{stream.id}.r{number}") for number, revision in enumerate(revisions, start=1)]
        case Arm.ALONE:
            return [(stream.final, stream.id)]


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
            warm_up = corpus_streams(plan.seed + _WARM_UP_SEED_STEP, PIVOT, 2)
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
        *corpus_streams(plan.seed, source, count),
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
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(os.environ.get(VARIABLE) or SMALL_MODEL) / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids) + 1


# ---------------------------------------------------------------- what it shows

_SHOWN_PROBLEMS = 20


def results(result: PartialsResult) -> Results:
    """The whole report."""
    failures = list(result.failures())
    value = f"{len(failures)} failed" if failures else "all held"
    note = "; ".join(failures[:_SHOWN_PROBLEMS])
    parts: list[str | Table] = []
    if result.plan.engine == "simulated":
        parts.append("Words behind a tag are no translations: the bars do not count with the simulated engine.")
    parts += [*_bars(result.bars), *_of_pairs(result.pairs), _phases(result.phases), *_notes(result)]
    return Results(
        model=result.model,
        findings=[Finding("bars and promises", value, "all held", not failures, note)],
        parts=parts,
        charts=_charts(result.pairs),
        details=to_builtins(result),
    )


def _bars(bars: Sequence[Bar]) -> Iterator[Table]:
    pairs = list(dict.fromkeys(bar.pair for bar in bars))
    if not pairs:
        return
    rows: list[list[str]] = []
    for name, limit in dict.fromkeys((bar.name, bar.limit) for bar in bars):
        own = {bar.pair: bar for bar in bars if bar.name == name}
        judged = {
            pair: f"{_number(bar.value, '.3g')} {'pass' if bar.passed else '**FAIL**'}"
            for pair, bar in own.items()
        }
        rows.append([name, limit, *(judged.get(pair, "") for pair in pairs)])
    yield Table("", ("has to be", "", *pairs), rows)


def _by_pair(head: str, pairs: Sequence[PairScores], columns: dict[str, Callable[[PairScores], str]]) -> Table:
    """A row for each pair. columns: their heads, and what is in them."""
    return tabulated("", pairs, [(head, lambda each: each.name), *columns.items()])


def _of_pairs(pairs: Sequence[PairScores]) -> Iterator[Table]:
    def both(display: Display) -> str:
        return f"{display.erasure:.3f} ({display.erasure_before:.3f})"

    yield _by_pair(
        "normalised erasure, the final included (without it)",
        pairs,
        {
            "naive": lambda each: both(each.naive),
            "live": lambda each: both(each.live),
            "stable": lambda each: both(each.stable),
            "naive / live": lambda each: _number(each.times_less, ".1f"),
            "streams": lambda each: f"{each.streams:,}",
            "revisions": lambda each: f"{each.revisions:,}",
        },
    )
    yield _by_pair(
        "behind the speaker: stable / live / naive",
        pairs,
        {
            "source units, median": lambda each: _three(each, lambda of: of.lag_median, ".1f"),
            "first word after the first revision, s": lambda each: _three(each, _first_s, ".2f"),
            "whole sentences only": lambda each: _number(_first_s(each.final_only), ".2f"),
        },
    )
    yield _by_pair(
        "an utterance: ours / naive / alone",
        pairs,
        {
            "generated / final tokens": lambda each: _cost(each, lambda of: of.ratio),
            "engine time, s": lambda each: _cost(each, lambda of: of.engine_s),
            "chrF of finals against alone": lambda each: _number(each.chrf_alone, ".2f"),
            "finals that kept what was committed": lambda each: f"{each.kept:.1%}",
        },
    )
    names = list(dict.fromkeys(name for pair in pairs for name in pair.outcomes))
    rows = [[pair.name, *(f"{pair.outcomes.get(name, 0):,}" for name in names)] for pair in pairs]
    yield Table("", ("revisions, by what became of them", *names), rows)


def _phases(phases: Sequence[Phase]) -> Table:
    columns: dict[str, Callable[[Phase], str]] = {
        "spoken": lambda each: each.source,
        "arm": lambda each: each.arm.value,
        "s": lambda each: f"{each.elapsed_s:.0f}",
        "prompt tokens in the prefix cache": lambda each: _number(each.cached_share, ".0%"),
        "sent late at most, ms": lambda each: f"{each.late_ms:.0f}",
    }
    return tabulated("", phases, columns.items())


def _notes(result: PartialsResult) -> Iterator[str]:
    plan, origins = result.plan, Counter(stream.origin.value for stream in result.streams)
    said = " and ".join(f"{count} {origin}" for origin, count in origins.items())
    yield (
        f"Engine {plan.engine}, `max_num_seqs` {plan.max_num_seqs}, prefix cache on; "
        f"{result.elapsed_s:.0f} s in all."
    )
    pace = "at the pace of speech" if plan.speed == 1 else f"{plan.speed:g} times as fast as people speak"
    yield (
        f"{said} streams, seed {plan.seed}, spoken {pace}. Naive: each revision is a final utterance of its own, "
        "whose translation takes the place of the one before. Alone: the finals only. Units are words, in ja and "
        "zh characters; text that only grew took nothing back. Lag is sampled before each next revision: source "
        "units heard, less target units shown, counted in source units. Tokens are the model's, with one for the "
        f"end; chrF is that of {result.chrf} with its defaults."
    )
    if result.broken:
        yield "Promises that were broken, the first of them:"
        yield "\n".join(f"- {problem}" for problem in result.broken[:_SHOWN_PROBLEMS])


def _three(pair: PairScores, value: Callable[[Display], float | None], form: str) -> str:
    return " / ".join(_number(value(display), form) for display in (pair.stable, pair.live, pair.naive))


def _cost(pair: PairScores, value: Callable[[Spending], float]) -> str:
    return " / ".join(f"{value(spending):.2f}" for spending in (pair.ours, pair.naively, pair.alone))


def _first_s(display: Display) -> float | None:
    return None if display.first_ms is None else display.first_ms / 1000


def _number(value: float | None, form: str) -> str:
    return formatted(None if value is not None and math.isinf(value) else value, form)


def _charts(pairs: Sequence[PairScores]) -> list[Chart]:
    """Erasure, lag, tokens, and time to the first word; a place on the x axis for each pair."""
    places = [float(place) for place in range(1, len(pairs) + 1)]

    def chart(title: str, y_label: str, kinds: dict[str, list[float | None]]) -> Chart:
        return Chart(
            title=title,
            x_label="",
            y_label=y_label,
            series=[Series(name, places, values, line=False) for name, values in kinds.items()],
            x_ticks=[(place, f"{pair.source}\n→{pair.target}") for place, pair in zip(places, pairs, strict=True)],
        )

    def seen(value: Callable[[Display], float | None]) -> dict[str, list[float | None]]:
        return {
            "naive": [value(pair.naive) for pair in pairs],
            "live": [value(pair.live) for pair in pairs],
            "stable": [value(pair.stable) for pair in pairs],
        }

    spent: dict[str, list[float | None]] = {
        "naive": [pair.naively.ratio for pair in pairs],
        "ours": [pair.ours.ratio for pair in pairs],
    }
    whole = {"whole sentences": [_first_s(pair.final_only) for pair in pairs]}
    return [
        chart(
            "Normalised erasure, the final included", "units taken back / final units", seen(lambda of: of.erasure)
        ),
        chart("Behind the speaker, median", "source units", seen(lambda of: of.lag_median)),
        chart("Tokens generated for one that stays", "generated / final tokens", spent),
        chart("First word after the first revision, median", "seconds", seen(_first_s) | whole),
    ]


# ---------------------------------------------------------------- the command


def _add(parser: argparse.ArgumentParser) -> None:
    plan = PartialsPlan()
    shared = ("--out", "--engine", "--max-num-seqs", "--seed", "--time-limit-s")
    defaults = {"engine": plan.engine, "max_num_seqs": plan.max_num_seqs, "time_limit_s": round(plan.time_limit_s)}
    add_options(parser, *shared, **defaults)
    parser.add_argument(
        "--streams",
        type=between(1, 10_000),
        default=plan.streams,
        metavar="N",
        help="utterances from the corpus in English; a quarter of it in each other language",
    )


async def _run(options: argparse.Namespace, say: Say) -> Results:
    return results(await run(PartialsPlan(**fields_of(options, PartialsPlan)), say))


PARTIALS = Command(
    name="partials",
    help="translations of speech that is going on: flicker, lag, cost, quality",
    description="Revisions as a recogniser sends them, in real time into meetings of the real gateway: as "
    "partials, each as a final of its own, and the finals alone. What readers were shown is scored. Exit status 1 "
    "unless every bar was cleared and no promise broken.",
    add=_add,
    run=_run,
)
