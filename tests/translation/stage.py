"""A meeting with the core around it, an engine in the hand of the test, and what each reader sees."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import LogUnavailable
from gateway.domain.log import (
    Accepted,
    LoggedEvent,
    Publication,
    Said,
    Translated,
    Unfinished,
    Untranslated,
    Utterance,
)
from gateway.domain.ports import LiveChannel
from gateway.domain.quotas import NO_QUOTA
from gateway.domain.session_store import Fence
from gateway.domain.sessions import KeptMeeting, Stability
from gateway.meeting.feed import Feed
from gateway.meeting.members import Member
from gateway.meeting.outbox import Outbox, Payload
from gateway.meeting.room import Room
from gateway.protocol.messages import ParticipantJoined, ParticipantLeft, ParticipantUpdated, TranslationDelta
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from gateway.translation.finals import Finals
from gateway.translation.partials import Partials
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.scheduling.scheduler import Scheduler
from tests.translation.engines import AnsweredEngine
from tests.usual import usual

T = TypeVar("T")


class Log(MemoryEventLog):
    """What is to be appended waits while not `open`; what `refuses` says is refused."""

    def __init__(self, earlier: tuple[KeptMeeting, ...] = (), store: MemoryStore | None = None) -> None:
        self.store = store or usual(
            MemoryStore, max_publications=100, keep_s=600, max_bytes=10**7, earlier=earlier
        )
        super().__init__(self.store)
        self.open = asyncio.Event()
        self.open.set()
        # What has been done and does not answer: `accept`, `conclude`, `claim`.
        self.silent: set[str] = set()
        self.answers_claims = True
        self.refuses: Callable[[LoggedEvent], bool] = lambda _: False
        self.refused: list[LoggedEvent] = []

    async def accept(self, meeting: str, utterance: Utterance, fence: Fence | None = None) -> Accepted:
        await self._begin(Said(utterance))
        return await self._answer("accept", await super().accept(meeting, utterance, fence))

    async def conclude(self, meeting: str, outcome: Translated | Untranslated) -> Publication | None:
        await self._begin(outcome)
        return await self._answer("conclude", await super().conclude(meeting, outcome))

    async def claim(self, meeting: str, wanted: Mapping[int, Collection[str]]) -> dict[int, tuple[str, ...]]:
        if not self.answers_claims:
            raise LogUnavailable("The test says so.")
        return await self._answer("claim", await super().claim(meeting, wanted))

    async def _answer(self, what: str, answer: T) -> T:
        while what in self.silent:
            await asyncio.sleep(0)
        return answer

    async def _begin(self, event: LoggedEvent) -> None:
        await self.open.wait()
        if self.refuses(event):
            self.refused.append(event)
            raise LogUnavailable("The test says so.")


class Unmerged(Outbox):
    """Hands out every message as it was put: here nothing lags."""

    def __init__(self) -> None:
        super().__init__(10**6)
        self.put_so_far: list[Any] = []

    def put_shared(self, payload: Payload) -> None:
        self.put_so_far.append(payload.message)


class Screen:
    """What a reader sees: per language the committed and the tentative text, and finals."""

    def __init__(self, member: Member, outbox: Unmerged) -> None:
        self.member = member
        self._outbox = outbox
        self.messages: list[Any] = []
        self.committed: dict[str, str] = {}
        self.tentative: dict[str, str] = {}
        self._committed: dict[str, str] = {}

    def committed_of(self, utterance: str) -> str:
        return self._committed.get(utterance, "")

    def look(self) -> list[Any]:
        """Take in what has come; what is new."""
        new, self._outbox.put_so_far = self._outbox.put_so_far, []
        new = [m for m in new if not isinstance(m, ParticipantJoined | ParticipantLeft | ParticipantUpdated)]
        for message in new:
            match message:
                case TranslationDelta(lang=lang):
                    self.committed[lang] = self.committed.get(lang, "") + message.committed
                    shown = self.committed_of(message.utterance) + message.committed
                    self._committed[message.utterance] = shown
                    self.tentative[lang] = message.tentative
        self.messages += new
        return new


class Stage:
    """A meeting with a speaker, the core around it, and an engine in the test's hand."""

    def __init__(
        self,
        engine: AnsweredEngine,
        log: Log,
        channel: LiveChannel | None,
        partials: Mapping[str, Any],
        **options: Any,
    ) -> None:
        self.engine = engine
        # The quota of every tenant.
        self.quota = NO_QUOTA
        self.quotas = Quotas(lambda _: self.quota)
        self.scheduler = usual(Scheduler, engine, max_waiting=100, lookahead=0, quotas=self.quotas)
        self.partials = usual(Partials, self.scheduler, **{"pace_s": 0.0, "max_bytes": 10**7, **partials})
        self.finals = usual(Finals, self.scheduler, self.partials, **options)
        self.log = log
        self.room = Room("m", log, private=False, snapshot=10, channel=channel)
        self.finished: list[tuple[str, bool]] = []

    async def reader(
        self, stability: Stability = "live", lang: str = "de", participant: str | None = None
    ) -> Screen:
        name = participant or f"{stability}-{lang}-{len(self.room.members)}"
        reads = (lang,)
        member = Member(participant=name, name=name, speaks=None, reads=reads, stability=stability)
        outbox = Unmerged()
        member.feed = Feed(outbox, self.room.offset, participant=name, wants=member.wants)
        member.since = self.room.offset + 1
        async with self.room.reading(member.reads):
            self.room.join(member)
        await self.room.stream_to(member, member.feed)
        return Screen(member, outbox)

    def hear(self, text: str, rev: int = 1, utterance: str = "u", participant: str = "ana") -> None:
        self.partials.hear(self.room, said(text, rev, utterance, participant, final=False))

    async def final(self, text: str, rev: int = 99, utterance: str = "u", traceparent: str = "") -> None:
        spoken = said(text, rev, utterance, "ana", final=True)
        await self.finals.accept(self.room, replace(spoken, traceparent=traceparent))

    async def left(self, text: str, *languages: str, utterance: str = "u", tries: int = 1) -> Unfinished:
        """Another gateway accepts this, is gone, and this one takes over what it left."""
        another = MemoryEventLog(self.log.store)
        async with self.room.reading(languages):
            accepted = await another.accept("m", said(text, 1, utterance, "ana", final=True))
        await another.close()
        [work] = await self.log.take_over()
        assert (work.said, work.languages) == (accepted.offset, languages)
        return replace(work, tries=tries)

    async def says(self, text: str) -> None:
        """The engine, as soon as it is asked, answers with this."""
        await until(lambda: self.engine.running)
        self.engine.says(text)

    async def answer(self, **texts: str) -> None:
        """Let the engine say this in each language, as soon as it is asked."""
        for lang, text in texts.items():
            await until(lambda: self.asked(lang))  # noqa: B023 -- awaited in the loop
            self.engine.end(self.asked(lang)[0], text)

    def asked(self, lang: str) -> list[TranslationRequest]:
        """Those into this language that wait for their answer."""
        return [request for request in self.engine.pending() if request.target == lang]

    async def finish(self, **texts: str) -> None:
        """As `answer`, until the outcome of everything is in the log."""
        await self.answer(**texts)
        await self.finals.quiet()

    async def speaker(self) -> None:
        """Ana, who reads nothing; what she is told when an utterance is finished is in `finished`."""
        ana = Member(participant="ana", name="Ana", speaks="en", reads=(), stability="final")
        ana.on_finished = lambda utterance, failed: self.finished.append((utterance, failed))
        self.room.join(ana)


def said(text: str, rev: int, utterance: str, participant: str, *, final: bool) -> Utterance:
    return Utterance(utterance, rev, text, "en", participant, "Ana", final)


@contextlib.asynccontextmanager
async def stage(
    reads: str = "",
    *,
    speaker: bool = False,
    max_running: int = 4,
    log: Log | None = None,
    channel: LiveChannel | None = None,
    partials: Mapping[str, Any] = {},
    **options: Any,
) -> AsyncIterator[Stage]:
    """reads: languages, each with a live reader. partials: options of `Partials`; the others: of `Finals`."""
    made = Stage(AnsweredEngine(max_running), log or Log(), channel, partials, **options)
    await made.room.open()
    async with made.finals, made.partials:
        if speaker:
            await made.speaker()
        for lang in reads.split():
            await made.reader(lang=lang)
        yield made


def nothing_is_live(stage: Stage) -> bool:
    live = stage.room.live
    return not any((*live.captions, *live.partials("de"), *live.finals("de")))


async def until(condition: Callable[[], object]) -> None:
    """The suite's timeout is the bound."""
    while not condition():
        await asyncio.sleep(0)


async def idle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
