"""`python -m loadtest partials`: meetings on the gateway under test, in each of which one person speaks streams
and readers write down what they are sent; one source language after the other, and in each the arms.

Knows: its options, the product's client, times, the order of things, what is read off machine and gateway around
each phase, the file of the streams that are written by hand. Must not know: what the scores mean (`result`), or
how a result looks (`report`).

The gateway is a process of its own; this one holds the clients. Our arm comes first in each language, so that no
other arm has filled the engine's prefix cache for it.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import time
import tomllib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from demo_model import LANGUAGES, SMALL_MODEL
from gateway.client import ClientError, ClientSession, connect
from gateway.domain.log import segment_number
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
from loadtest.driving.segments import Segments, whole_id
from loadtest.options import Command, Say, add_options, between, fields_of, model_name
from loadtest.partials.report import results
from loadtest.partials.result import (
    PIVOT,
    Arm,
    Delta,
    Final,
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
            session = connect(url, reads=reads, speaks=speaks, meeting=name, stability=stability, reconnect=False)
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
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(SMALL_MODEL / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids) + 1


def _add(parser: argparse.ArgumentParser) -> None:
    plan = PartialsPlan()
    shared = ("--out", "--engine", "--max-num-seqs", "--seed", "--time-limit-s")
    defaults = {"engine": plan.engine, "max_num_seqs": plan.max_num_seqs, "time_limit_s": round(plan.time_limit_s)}
    add_options(parser, *shared, **defaults)
    add = parser.add_argument
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
