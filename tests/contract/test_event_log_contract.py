"""The duties of every adapter of the EventLog port.

Each runs twice: as it is, and with suspensions around every call, because the core must not come to depend on an
adapter that happens never to suspend.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.log import LoggedEvent, Page, Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.domain.ports import EventLog
from gateway.stores.memory_log import MemoryEventLog


class Clock:
    """Unix time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Delayed:
    """Another adapter with a suspension before and after everything that may suspend."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def append(self, meeting: str, event: LoggedEvent) -> Publication:
        await asyncio.sleep(0)
        publication = await self._log.append(meeting, event)
        await asyncio.sleep(0)
        return publication

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        await asyncio.sleep(0)
        page = await self._log.read(meeting, after, limit)
        await asyncio.sleep(0)
        return page

    @asynccontextmanager
    async def subscribe(
        self, meeting: str, deliver: Callable[[Publication], None], *, account: str = ""
    ) -> AsyncIterator[Page]:
        await asyncio.sleep(0)
        async with self._log.subscribe(meeting, deliver, account=account) as page:
            await asyncio.sleep(0)
            yield page
            await asyncio.sleep(0)


class OpenLog(Protocol):
    """Opens an empty log with these bounds."""

    def __call__(
        self, *, max_publications: int = ..., keep_s: float = ..., clock: Clock = ...
    ) -> AbstractAsyncContextManager[EventLog]: ...


@asynccontextmanager
async def memory(
    *, max_publications: int = 10_000, keep_s: float = 3_600.0, clock: Clock | None = None
) -> AsyncIterator[EventLog]:
    yield MemoryEventLog(max_publications=max_publications, keep_s=keep_s, wall_clock=clock or Clock())


def delayed(open_log: OpenLog) -> OpenLog:
    @asynccontextmanager
    async def opened(**bounds: Any) -> AsyncIterator[EventLog]:
        async with open_log(**bounds) as log:
            yield Delayed(log)

    return opened


ADAPTERS = [pytest.param(memory, id="memory"), pytest.param(delayed(memory), id="memory-delayed")]


@pytest.fixture(params=ADAPTERS)
def open_log(request: pytest.FixtureRequest) -> OpenLog:
    opened: OpenLog = request.param
    return opened


@pytest.fixture
async def log(open_log: OpenLog) -> AsyncIterator[EventLog]:
    async with open_log() as opened:
        yield opened


def said(text: str) -> Said:
    return Said(
        Utterance(
            id=text,
            rev=3,
            text=text,
            lang="en",
            participant="0a1b2c3d",
            speaker="Ana 🎤",
            final=True,
            start_ms=1_000,
            end_ms=2_500,
            glossary=(("ja", (("standup", "朝会"), ("sprint", "スプリント"))), ("de", ())),
            context=("What came before.",),
            formality="formal",
        ),
        languages=("ja", "de"),
    )


def translated(text: str) -> Translated:
    return Translated(
        "0a1b2c3d", "1", "Ana", "ja", 3, text, Timings(0.5, 80.25, 412.0), tokens=12, truncated=True, said=1
    )


def untranslated(message: str) -> Untranslated:
    return Untranslated("0a1b2c3d", "1", "Ana", "ja", 3, code="engine_failed", message=message, said=1)


def texts(publications: list[Publication] | tuple[Publication, ...]) -> list[str]:
    return [each.event.utterance.text for each in publications if isinstance(each.event, Said)]


def offsets(publications: list[Publication] | tuple[Publication, ...]) -> list[int]:
    return [publication.offset for publication in publications]


async def everything(log: EventLog, meeting: str, after: int = 0, limit: int = 200) -> list[Publication]:
    """Page after page until one is empty."""
    found: list[Publication] = []
    while (page := await log.read(meeting, after, limit)).publications:
        assert len(page.publications) <= limit
        found += page.publications
        after = page.publications[-1].offset
    return found


# Order, offsets, epochs


async def test_offsets_are_one_two_three_and_what_was_appended_is_what_is_read(log: EventLog) -> None:
    events: list[LoggedEvent] = [said("one"), translated("一"), untranslated("no luck"), said("two")]
    appended = [await log.append("standup", event) for event in events]
    assert offsets(appended) == [1, 2, 3, 4]
    page = await log.read("standup", after=0)
    assert [*page.publications] == appended
    assert [publication.event for publication in page.publications] == events
    assert (page.first, page.last) == (1, 4)
    assert page.epoch


async def test_an_epoch_lasts(log: EventLog) -> None:
    async with log.subscribe("standup", lambda publication: None) as begun:
        await log.append("standup", said("one"))
    await log.append("standup", said("two"))
    page = await log.read("standup", after=0)
    assert page.epoch == begun.epoch != ""
    assert texts(page.publications) == ["one", "two"]


async def test_meetings_have_their_own_offsets_and_epochs(log: EventLog) -> None:
    assert (await log.append("standup", said("here"))).offset == 1
    assert (await log.append("retro", said("there"))).offset == 1
    standup, retro = await log.read("standup", after=0), await log.read("retro", after=0)
    assert texts(standup.publications) == ["here"]
    assert texts(retro.publications) == ["there"]
    assert standup.epoch != retro.epoch


async def test_a_publication_says_when_it_was_appended(open_log: OpenLog) -> None:
    clock = Clock()
    async with open_log(clock=clock) as log:
        assert (await log.append("standup", said("one"))).at_ms == 1_700_000_000_000
        clock.now += 1.5
        assert (await log.append("standup", said("two"))).at_ms == 1_700_000_001_500


async def test_a_publication_survives_being_written_down(log: EventLog) -> None:
    for event in (said("one"), translated("一"), untranslated("no luck")):
        await log.append("standup", event)
    for publication in (await log.read("standup", after=0)).publications:
        for codec in (msgspec.msgpack, msgspec.json):
            copy = codec.decode(codec.encode(publication), type=Publication)
            assert copy == publication
            if isinstance(copy.event, Said):
                hash(copy.event)  # tuples all the way down


# Reading


async def test_reading_page_by_page(log: EventLog) -> None:
    for n in range(1, 8):
        await log.append("standup", said(str(n)))
    pages = [await log.read("standup", after, limit=3) for after in (0, 3, 6, 7, 100)]
    assert [offsets(page.publications) for page in pages] == [[1, 2, 3], [4, 5, 6], [7], [], []]
    assert {(page.epoch, page.first, page.last) for page in pages} == {(pages[0].epoch, 1, 7)}


async def test_a_limit_of_nothing_gives_the_position_alone(log: EventLog) -> None:
    await log.append("standup", said("one"))
    page = await log.read("standup", after=0, limit=0)
    assert (page.first, page.last, page.publications) == (1, 1, ())


async def test_asking_about_an_unknown_meeting_makes_no_log(log: EventLog) -> None:
    for _ in range(2):
        assert await log.read("nobody", after=0) == Page(epoch="", first=1, last=0)
        assert await log.read("nobody", after=7) == Page(epoch="", first=1, last=0)


# Bounds


async def test_it_holds_the_newest_and_says_which_is_the_oldest(open_log: OpenLog) -> None:
    async with open_log(max_publications=3) as log:
        for n in range(1, 6):
            await log.append("standup", said(str(n)))
        await log.append("retro", said("another meeting trims nothing here"))
        page = await log.read("standup", after=1)
        assert (page.first, page.last) == (3, 5)
        assert texts(page.publications) == ["3", "4", "5"]
        assert texts((await log.read("standup", after=3, limit=1)).publications) == ["4"]


async def test_what_is_too_old_is_trimmed(open_log: OpenLog) -> None:
    clock = Clock()
    async with open_log(keep_s=60.0, clock=clock) as log:
        await log.append("standup", said("old"))
        clock.now += 50.0
        await log.append("standup", said("young"))
        clock.now += 10.0
        assert (await log.read("standup", after=0)).first == 1
        clock.now += 1.0
        page = await log.read("standup", after=0)
        assert (page.first, page.last) == (2, 2)
        assert texts(page.publications) == ["young"]
        assert (await log.append("standup", said("next"))).offset == 3


async def test_a_meeting_that_expired_begins_anew(open_log: OpenLog) -> None:
    clock = Clock()
    async with open_log(keep_s=60.0, clock=clock) as log:
        await log.append("standup", said("long ago"))
        before = await log.read("standup", after=0)
        clock.now += 61.0
        assert await log.read("standup", after=0) == Page(epoch="", first=1, last=0)
        assert (await log.append("standup", said("today"))).offset == 1
        after = await log.read("standup", after=0)
        assert texts(after.publications) == ["today"]
        assert after.epoch not in ("", before.epoch)


async def test_appending_to_an_expired_meeting_begins_anew_as_well(open_log: OpenLog) -> None:
    clock = Clock()
    async with open_log(keep_s=60.0, clock=clock) as log:
        await log.append("standup", said("long ago"))
        before = await log.read("standup", after=0)
        clock.now += 61.0
        assert (await log.append("standup", said("today"))).offset == 1
        assert (await log.read("standup", after=0)).epoch != before.epoch


async def test_a_meeting_that_is_subscribed_to_goes_on_even_with_nothing_in_it(open_log: OpenLog) -> None:
    clock = Clock()
    async with (
        open_log(keep_s=60.0, clock=clock) as log,
        log.subscribe("standup", lambda publication: None) as begun,
    ):
        await log.append("standup", said("long ago"))
        clock.now += 61.0
        assert await log.read("standup", after=0) == Page(begun.epoch, first=2, last=1)
        assert (await log.append("standup", said("today"))).offset == 2


# Subscriptions


async def test_subscribing_to_an_unknown_meeting_gives_it_a_log(log: EventLog) -> None:
    async with log.subscribe("standup", lambda publication: None) as page:
        assert page.epoch
        assert (page.first, page.last, page.publications) == (1, 0, ())
        assert await log.read("standup", after=0) == page


async def test_a_subscriber_gets_exactly_what_comes_behind_its_position(log: EventLog) -> None:
    live: list[Publication] = []
    await log.append("standup", said("before"))
    async with log.subscribe("standup", live.append) as page:
        assert (page.first, page.last, page.publications) == (1, 1, ())
        assert live == []
        await log.append("standup", said("during"))
        assert texts(live) == ["during"]  # when `append` has returned, it was delivered
        await log.append("retro", said("elsewhere"))
        await log.append("standup", translated("これも"))
    await log.append("standup", said("afterwards"))
    assert offsets(live) == [2, 3]
    assert live == (await everything(log, "standup", after=page.last, limit=2))[:2]


async def test_all_subscribers_see_one_order(log: EventLog) -> None:
    seen: list[list[Publication]] = [[], [], []]
    async with AsyncExitStack() as subscriptions:
        for each in seen:
            await subscriptions.enter_async_context(log.subscribe("standup", each.append))
        await in_parallel(*(say(log, f"{speaker}", 20) for speaker in range(5)))
    assert seen[0] == seen[1] == seen[2] == await everything(log, "standup", limit=7)


async def test_one_function_may_be_subscribed_more_than_once(log: EventLog) -> None:
    live: list[Publication] = []
    async with log.subscribe("standup", live.append):
        async with log.subscribe("standup", live.append):
            await log.append("standup", said("twice"))
        await log.append("standup", said("once"))
    assert offsets(live) == [1, 1, 2]


async def test_a_subscription_ends_with_its_context_however_that_ends(log: EventLog) -> None:
    live: list[Publication] = []
    with pytest.raises(LookupError):
        async with log.subscribe("standup", live.append):
            raise LookupError
    inside = asyncio.Event()

    async def subscribed() -> None:
        async with log.subscribe("standup", live.append):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(subscribed())
    await inside.wait()
    task.cancel()
    await asyncio.wait([task])
    await log.append("standup", said("to nobody"))
    assert live == []


async def test_a_subscriber_may_leave_while_a_publication_is_delivered(log: EventLog) -> None:
    """Its task is woken by the delivery, and does so while the one who appended goes on."""
    live: list[Publication] = []
    enough = asyncio.Event()
    ready = asyncio.Event()

    def deliver(publication: Publication) -> None:
        live.append(publication)
        enough.set()

    async def read_one() -> None:
        async with log.subscribe("standup", deliver):
            ready.set()
            await enough.wait()

    reader = asyncio.create_task(read_one())
    await ready.wait()
    await say(log, "Ana", 5)
    await reader
    before = len(live)
    await say(log, "Ana", 5)
    assert offsets(live) == [*range(1, before + 1)]
    assert before >= 1


# Concurrency


async def test_concurrent_appends_leave_no_gap_and_keep_each_speakers_order(log: EventLog) -> None:
    await in_parallel(*(say(log, f"{speaker}", 25) for speaker in range(8)))
    found = await everything(log, "standup", limit=9)
    assert offsets(found) == [*range(1, 201)]
    for speaker in range(8):
        own = [text for text in texts(found) if text.startswith(f"{speaker}:")]
        assert own == [f"{speaker}:{n}" for n in range(25)]


async def say(log: EventLog, speaker: str, count: int, pauses: tuple[int, ...] = ()) -> None:
    for n in range(count):
        await suspend(pauses[n] if pauses else 0)
        await log.append("standup", said(f"{speaker}:{n}"))


async def suspend(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def in_parallel(*coroutines: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for coroutine in coroutines:
            tasks.create_task(coroutine)


class Reader:
    """Resumes as a session does: subscribes and buffers, replays by pages, then what was buffered, then live."""

    def __init__(self, after: int, limit: int, pauses: tuple[int, ...]) -> None:
        self.got: list[Publication] = []
        self._position = after
        self._limit = limit
        self._pauses = pauses
        self._buffer: list[Publication] | None = []

    async def run(self, log: EventLog, until: asyncio.Event) -> None:
        await suspend(self._pauses[0])
        async with log.subscribe("standup", self._deliver):
            await suspend(self._pauses[1])
            while (page := await log.read("standup", self._position, self._limit)).publications:
                for publication in page.publications:
                    self._take(publication)
                await suspend(self._pauses[2])
            buffered, self._buffer = self._buffer or [], None
            for publication in buffered:
                if publication.offset > self._position:
                    self._take(publication)
            await until.wait()

    def _deliver(self, publication: Publication) -> None:
        if self._buffer is None:
            self._take(publication)
        else:
            self._buffer.append(publication)

    def _take(self, publication: Publication) -> None:
        self.got.append(publication)
        self._position = publication.offset


PAUSES = st.integers(0, 4)
REPLAY = st.tuples(PAUSES, PAUSES, PAUSES)


@pytest.mark.parametrize("adapter", ADAPTERS)
@settings(deadline=None)
@given(
    ahead=st.integers(0, 12),
    speakers=st.lists(st.lists(PAUSES, max_size=8), max_size=3),
    readers=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), REPLAY), max_size=4),
)
def test_a_resuming_reader_gets_everything_exactly_once(
    adapter: OpenLog,
    ahead: int,
    speakers: list[list[int]],
    readers: list[tuple[int, int, tuple[int, int, int]]],
) -> None:
    """Whatever is appended before, during and after its replay, and however often everybody is suspended."""

    async def meeting() -> None:
        async with adapter() as log:
            await say(log, "before", ahead)
            resumed = [(min(after, ahead), Reader(min(after, ahead), limit, p)) for after, limit, p in readers]
            spoken = asyncio.Event()

            async def speak() -> None:
                await in_parallel(*(say(log, str(n), len(p), tuple(p)) for n, p in enumerate(speakers)))
                spoken.set()

            await in_parallel(speak(), *(reader.run(log, spoken) for _, reader in resumed))
            whole = await everything(log, "standup", limit=4)
            assert offsets(whole) == [*range(1, ahead + sum(map(len, speakers)) + 1)]
            for after, reader in resumed:
                assert reader.got == whole[after:]

    asyncio.run(meeting())
