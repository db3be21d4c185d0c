"""The duties of every adapter of the EventLog port: order, reading, bounds, delivery.

Whoever calls is now on one gateway of the store, now on the other. What is promised and concluded:
`test_promises_contract`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.log import (
    NO_TITLE,
    Logged,
    LoggedEvent,
    Page,
    Publication,
    Said,
    Title,
    Translated,
    Untranslated,
)
from gateway.domain.ports import EventLog
from tests.contract.stores import STORES, OpenStore, Store
from tests.logs import append, nothing, offsets, said, texts, translated, untranslated, utterance
from tests.patience import until


class _InTurns:
    """Two gateways as one: every call goes to the next of them."""

    def __init__(self, *gateways: EventLog) -> None:
        self._gateways = gateways
        self._turns = itertools.cycle(gateways)

    def __getattr__(self, name: str) -> Any:
        return getattr(next(self._turns), name)

    async def conclude(self, meeting: str, outcome: Translated | Untranslated) -> Publication | None:
        """A failure counts from the gateway that has promised."""
        for gateway in self._gateways:
            if (publication := await gateway.conclude(meeting, outcome)) is not None:
                return publication
        return None


async def in_turns(store: Store) -> EventLog:
    return cast(EventLog, _InTurns(await store.gateway(), await store.gateway()))


@pytest.fixture(params=list(STORES))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return STORES[request.param]


@pytest.fixture
async def log(open_store: OpenStore) -> AsyncIterator[EventLog]:
    async with open_store() as store:
        yield await in_turns(store)


async def everything(log: EventLog, meeting: str, after: int = 0, limit: int = 200) -> list[Publication]:
    """Page after page until one is empty."""
    found: list[Publication] = []
    while (page := await log.read(meeting, after, limit)).publications:
        assert len(page.publications) <= limit
        found += page.publications
        after = page.publications[-1].offset
    return found


# What was said under an id


async def test_an_utterance_is_found_by_its_key(log: EventLog) -> None:
    assert await log.find_utterance("standup", ("ana", "u")) is None
    first = replace(utterance("one", id="u"), participant="ana", continues=True)
    second = replace(first, id="u~2", text="two", part_of="u", continues=False)
    for spoken in (first, second):
        await log.accept("standup", spoken)
    held = (await log.read("standup", after=0)).publications
    for spoken, publication in zip((first, second), held, strict=True):
        logged = Logged(spoken, publication.offset, publication.at_ms)
        assert await log.find_utterance("standup", spoken.key) == logged
    assert await log.find_utterance("standup", ("ben", "u")) is None
    assert await log.find_utterance("retro", ("ana", "u")) is None


# Order, offsets, epochs


async def test_offsets_count_up_and_reads_match_appends(log: EventLog) -> None:
    events: list[LoggedEvent] = [
        said("one", id="1"),
        translated("一"),
        untranslated("no luck", lang="de"),
        said("two", languages=()),
    ]
    appended = [await append(log, "standup", event) for event in events]
    assert offsets(appended) == [1, 2, 3, 4]
    page = await log.read("standup", after=0)
    assert [*page.publications] == appended
    assert [publication.event for publication in page.publications] == events
    assert (page.first, page.last) == (1, 4)
    assert page.epoch


async def test_an_epoch_lasts(log: EventLog) -> None:
    async with log.subscribe("standup", nothing) as begun:
        await append(log, "standup", said("one"))
    await append(log, "standup", said("two"))
    page = await log.read("standup", after=0)
    assert page.epoch == begun.start.epoch != ""
    assert texts(page.publications) == ["one", "two"]


async def test_meetings_have_their_own_offsets_and_epochs(log: EventLog) -> None:
    assert (await append(log, "standup", said("here"))).offset == 1
    assert (await append(log, "retro", said("there"))).offset == 1
    standup, retro = await log.read("standup", after=0), await log.read("retro", after=0)
    assert texts(standup.publications) == ["here"]
    assert texts(retro.publications) == ["there"]
    assert standup.epoch != retro.epoch


async def test_a_publication_says_when_it_was_appended(open_store: OpenStore) -> None:
    async with open_store() as store:
        log = await in_turns(store)
        first = await append(log, "standup", said("one"))
        await store.pass_time(1.5)
        second = await append(log, "standup", said("two"))
        assert second.at_ms >= first.at_ms + 1_500 > 1_500_000_000_000


async def test_a_publication_survives_being_written_down(log: EventLog) -> None:
    for event in (said("one", id="1"), translated("一"), untranslated("no luck", lang="de")):
        await append(log, "standup", event)
    for publication in (await log.read("standup", after=0)).publications:
        for codec in (msgspec.msgpack, msgspec.json):
            copy = codec.decode(codec.encode(publication), type=Publication)
            assert copy == publication
            if isinstance(copy.event, Said):
                hash(copy.event)  # tuples all the way down


# Reading


async def test_reading_page_by_page(log: EventLog) -> None:
    for n in range(1, 8):
        await append(log, "standup", said(str(n)))
    pages = [await log.read("standup", after, limit=3) for after in (0, 3, 6, 7, 100)]
    assert [offsets(page.publications) for page in pages] == [[1, 2, 3], [4, 5, 6], [7], [], []]
    assert {(page.epoch, page.first, page.last) for page in pages} == {(pages[0].epoch, 1, 7)}


async def test_a_limit_of_nothing_gives_the_position_alone(log: EventLog) -> None:
    await append(log, "standup", said("one"))
    page = await log.read("standup", after=0, limit=0)
    assert (page.first, page.last, page.publications) == (1, 1, ())


async def test_asking_about_an_unknown_meeting_makes_no_log(log: EventLog) -> None:
    for _ in range(2):
        assert await log.read("nobody", after=0) == Page(epoch="", first=1, last=0)
        assert await log.read("nobody", after=7) == Page(epoch="", first=1, last=0)


# Bounds


async def test_log_holds_the_newest_and_names_the_oldest(open_store: OpenStore) -> None:
    async with open_store(max_publications=3) as store:
        log = await in_turns(store)
        for n in range(1, 6):
            await append(log, "standup", said(str(n)))
        await append(log, "retro", said("another meeting trims nothing here"))
        page = await log.read("standup", after=1)
        assert (page.first, page.last) == (3, 5)
        assert texts(page.publications) == ["3", "4", "5"]
        assert texts((await log.read("standup", after=3, limit=1)).publications) == ["4"]


class Accounts:
    """Meetings of several accounts, and what each account may hold."""

    def __init__(self, store: Store, log: EventLog, stack: AsyncExitStack) -> None:
        self.log = log
        self.bounds: dict[str, int] = {}
        self._store, self._stack = store, stack

    async def begin(self, account: str, *meetings: str) -> None:
        """Somebody is in these meetings from now on."""
        for meeting in meetings:
            await self._stack.enter_async_context(self.log.subscribe(meeting, nothing, account=account))

    async def say(self, meeting: str, *words: str) -> None:
        for word in words:
            await self._store.pass_time(0.002)  # which meeting is the quietest is known to a millisecond
            await self.log.accept(meeting, utterance(word))

    async def held(self, *meetings: str) -> list[str]:
        return ["".join(texts((await self.log.read(meeting, 0)).publications)) for meeting in meetings]

    async def bytes_of(self, account: str) -> int:
        return (await self.log.usage()).bytes_by_account[account]


@asynccontextmanager
async def accounts(open_store: OpenStore) -> AsyncIterator[Accounts]:
    async with AsyncExitStack() as stack:
        bounds: dict[str, int] = {}
        store = await stack.enter_async_context(open_store(account_bytes=bounds.get))
        made = Accounts(store, await in_turns(store), stack)
        made.bounds = bounds
        yield made


async def test_full_account_trims_its_quietest_meeting_first(
    open_store: OpenStore,
) -> None:
    """It loses what was said first there."""
    async with accounts(open_store) as a:
        await a.begin("acme", "first", "second")
        await a.begin("other", "elsewhere")
        for meeting in ("first", "elsewhere", "second"):
            await a.say(meeting, *"abc")
        assert await a.held("first", "second") == ["abc", "abc"], "without a bound it holds as much as it likes"
        a.bounds["acme"] = await a.bytes_of("acme")
        await a.say("second", "d")
        assert await a.held("first", "second", "elsewhere") == ["bc", "abcd", "abc"]
        await a.say("first", "d")
        assert await a.held("first", "second", "elsewhere") == ["bcd", "bcd", "abc"], "that is the second one now"
        await a.log.claim("second", {4: ["ja"]})
        await a.log.conclude("second", translated("…", said=4, utterance="d"))
        assert await a.held("first", "second", "elsewhere") == ["cd", "bcd", "abc"]
        assert await a.bytes_of("acme") <= a.bounds["acme"]


async def test_full_account_keeps_the_latest_utterances(open_store: OpenStore) -> None:
    async with accounts(open_store) as a:
        await a.begin("acme", "first", "second", "third")
        for meeting in ("first", "second", "third"):
            await a.say(meeting, *"abc")
        epoch = (await a.log.read("first", 0)).epoch
        a.bounds["acme"] = 0
        await a.say("second", "d")
        assert await a.held("first", "second", "third") == ["", "d", ""]
        assert await a.log.read("first", 0) == Page(epoch, first=4, last=3), "people are in it"
        await a.say("first", "d")
        assert await a.held("first", "second", "third") == ["d", "", ""]


async def test_meetings_that_somebody_is_in_lose_entries_last(open_store: OpenStore) -> None:
    async with accounts(open_store) as a:
        await a.begin("acme", "running", "heard")
        await a.say("running", "z")
        await a.say("heard", *"ab")
        async with a.log.subscribe("over", nothing, account="acme"):
            await a.say("over", *"ab")
        a.bounds["acme"] = await a.bytes_of("acme")
        await a.say("running", "a")
        assert await a.held("heard", "over") == ["ab", "b"]
        async with a.log.subscribe("over", nothing, account="acme"):
            await a.say("running", "b")
            assert await a.held("heard", "over") == ["b", "b"], "somebody came back"
        await a.say("running", "c")
        assert await a.held("heard", "over") == ["b", ""]
        assert await a.log.read("over", 0) == Page("", first=1, last=0), "nobody needs it any more"


async def test_unfinished_utterances_are_owed_beyond_account_bounds(open_store: OpenStore) -> None:
    async with accounts(open_store) as a:
        async with a.log.subscribe("quiet", nothing, account="acme") as subscription:
            await subscription.reads(["ja"])
            await a.log.accept("quiet", utterance("hello", id="1"))
        a.bounds["acme"] = 0
        await a.begin("acme", "running")
        await a.say("running", "a")
        assert await a.held("quiet", "running") == ["", "a"]
        [owed] = (await a.log.recent("quiet", 5)).unfinished
        assert (owed.said, owed.languages) == (1, ("ja",))
        publication = await a.log.conclude("quiet", translated("やあ"))
        assert publication is not None
        assert publication.offset == 2


async def test_what_is_too_old_is_trimmed(open_store: OpenStore) -> None:
    async with open_store(keep_s=1.0) as store:
        log = await in_turns(store)
        async with log.subscribe("standup", nothing) as begun:
            await append(log, "standup", said("old", languages=()))
            await store.pass_time(1.1)
            assert await log.read("standup", after=0) == Page(begun.start.epoch, first=2, last=1)
            assert (await append(log, "standup", said("next"))).offset == 2


async def test_a_meeting_that_expired_begins_again(open_store: OpenStore) -> None:
    async with open_store(keep_s=1.0) as store:
        log = await in_turns(store)
        await append(log, "standup", said("long ago", languages=()))
        before = await log.read("standup", after=0)
        await store.pass_time(1.1)
        assert await log.read("standup", after=0) == Page(epoch="", first=1, last=0)
        got: list[Publication] = []
        async with log.subscribe("standup", got.append) as after:
            assert after.start.epoch not in ("", before.epoch)
            assert (await append(log, "standup", said("today"))).offset == 1
            await until(lambda: texts(got) == ["today"])


async def test_appending_to_an_expired_meeting_begins_again_as_well(open_store: OpenStore) -> None:
    async with open_store(keep_s=1.0) as store:
        log = await in_turns(store)
        await append(log, "standup", said("long ago", languages=()))
        before = await log.read("standup", after=0)
        await store.pass_time(1.1)
        assert (await append(log, "standup", said("today"))).offset == 1
        assert (await log.read("standup", after=0)).epoch != before.epoch


# Subscriptions


async def test_subscribing_to_an_unknown_meeting_gives_it_a_log(log: EventLog) -> None:
    async with log.subscribe("standup", nothing) as subscription:
        assert subscription.start.epoch
        start = subscription.start
        assert (start.first, start.last, start.publications) == (1, 0, ())
        assert await log.read("standup", after=0) == start


async def test_subscriber_gets_what_follows_its_position(log: EventLog) -> None:
    live: list[Publication] = []
    await append(log, "standup", said("before"))
    async with log.subscribe("standup", live.append) as subscription:
        start = subscription.start
        assert (start.first, start.last, start.publications) == (1, 1, ())
        await append(log, "standup", said("during"))
        await append(log, "retro", said("elsewhere"))
        await append(log, "standup", translated("これも", said=2, utterance="during"))
        await until(lambda: len(live) >= 2)
    await append(log, "standup", said("afterwards"))
    assert live == (await everything(log, "standup", after=start.last, limit=2))[:2]


async def test_all_subscribers_see_one_order(log: EventLog) -> None:
    seen: list[list[Publication]] = [[], [], []]
    async with AsyncExitStack() as subscriptions:
        for each in seen:
            await subscriptions.enter_async_context(log.subscribe("standup", each.append))
        await in_parallel(*(say(log, f"{speaker}", 20) for speaker in range(5)))
        await until(lambda: all(len(each) == 100 for each in seen))
    assert seen[0] == seen[1] == seen[2] == await everything(log, "standup", limit=7)


async def test_one_function_may_be_subscribed_more_than_once(log: EventLog) -> None:
    live: list[Publication] = []
    async with log.subscribe("standup", live.append):
        async with log.subscribe("standup", live.append):
            await append(log, "standup", said("twice"))
            await until(lambda: len(live) == 2)
        await append(log, "standup", said("once"))
        await until(lambda: len(live) == 3)
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
    others: list[Publication] = []
    async with log.subscribe("standup", others.append), log.subscribe("standup", others.append):
        await append(log, "standup", said("to others"))
        await until(lambda: len(others) == 2)
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
    await say(log, "Ben", 5)
    assert offsets(live) == [*range(1, before + 1)]
    assert before >= 1


# Concurrency


async def test_concurrent_appends_are_gapless_and_keep_speaker_order(log: EventLog) -> None:
    await in_parallel(*(say(log, f"{speaker}", 25) for speaker in range(8)))
    found = await everything(log, "standup", limit=9)
    assert offsets(found) == [*range(1, 201)]
    for speaker in range(8):
        own = [text for text in texts(found) if text.startswith(f"{speaker}:")]
        assert own == [f"{speaker}:{n}" for n in range(25)]


async def say(log: EventLog, speaker: str, count: int, pauses: tuple[int, ...] = ()) -> None:
    for n in range(count):
        await suspend(pauses[n] if pauses else 0)
        await log.accept("standup", utterance(f"{speaker}:{n}"))


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

    async def run(self, log: EventLog, spoken: asyncio.Event, last: int) -> None:
        """To the end: until the publication `last` came."""
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
            await spoken.wait()
            await until(lambda: self._position >= last)

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


@pytest.mark.parametrize("opened", STORES.values(), ids=list(STORES))
@settings(deadline=None)
@given(
    ahead=st.integers(0, 12),
    speakers=st.lists(st.lists(PAUSES, max_size=8), max_size=3),
    readers=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), REPLAY), max_size=4),
)
def test_a_resuming_reader_gets_everything_exactly_once(
    opened: OpenStore,
    ahead: int,
    speakers: list[list[int]],
    readers: list[tuple[int, int, tuple[int, int, int]]],
) -> None:
    """Whatever is appended before, during and after its replay, and however often everybody is suspended."""

    async def meeting() -> None:
        async with opened() as store:
            log = await in_turns(store)
            await say(log, "before", ahead)
            resumed = [(min(after, ahead), Reader(min(after, ahead), limit, p)) for after, limit, p in readers]
            spoken = asyncio.Event()

            async def speak() -> None:
                await in_parallel(*(say(log, str(n), len(p), tuple(p)) for n, p in enumerate(speakers)))
                spoken.set()

            last = ahead + sum(map(len, speakers))
            await in_parallel(speak(), *(reader.run(log, spoken, last) for _, reader in resumed))
            whole = await everything(log, "standup", limit=4)
            assert offsets(whole) == [*range(1, last + 1)]
            for after, reader in resumed:
                assert reader.got == whole[after:]

    asyncio.run(meeting())


# Erasing


async def test_the_meetings_that_have_a_log_are_listed(log: EventLog) -> None:
    assert await log.meetings() == ()
    await append(log, "standup", said("one"))
    newest = await append(log, "standup", said("two", id="2", languages=()))
    async with log.subscribe("empty", nothing):
        first, second = sorted(await log.meetings(), key=lambda each: each.meeting)
    assert (first.meeting, first.publications, first.newest_ms) == ("empty", 0, None)
    assert (second.meeting, second.publications, second.newest_ms) == ("standup", 2, newest.at_ms)
    assert second.bytes == (await log.usage()).bytes > 0


async def test_title_is_kept_as_long_as_the_log(log: EventLog) -> None:
    await log.entitle("standup", Title("Weekly", "Ana"))  # it has no log yet
    await append(log, "standup", said("one"))
    assert (await log.read("standup", 0)).title == NO_TITLE
    await log.entitle("standup", Title("週次", "Ana"))
    assert (await log.read("standup", 0)).title == Title("週次", "Ana")
    assert (await log.recent("standup", 1)).page.title == Title("週次", "Ana")
    async with log.subscribe("standup", nothing) as subscription:
        assert subscription.start.title == Title("週次", "Ana")
    await log.entitle("standup", Title())
    assert (await log.read("standup", 0)).title == NO_TITLE
    await log.entitle("standup", Title("Weekly"))
    assert await log.erase("standup")
    await append(log, "standup", said("two"))
    assert (await log.read("standup", 0)).title == NO_TITLE


async def test_nothing_is_left_of_what_was_erased(log: EventLog) -> None:
    await append(log, "standup", said("one"))
    await append(log, "board", said("kept"))
    assert await log.erase("standup")
    assert not await log.erase("standup")
    assert (await log.read("standup", 0)).epoch == ""
    assert [each.meeting for each in await log.meetings()] == ["board"]
    usage = await log.usage()
    assert (usage.publications, texts((await log.read("board", 0)).publications)) == (1, ["kept"])
    # Neither what was promised, nor that it was said.
    assert await log.conclude("standup", translated("eins")) is None
    again = await append(log, "standup", said("another text"))
    assert again.offset == 1


async def test_readers_are_told_of_an_erasure(open_store: OpenStore) -> None:
    async with open_store() as store:
        here, there = await store.gateway(), await store.gateway()
        told: list[str] = []
        async with (
            here.subscribe("standup", nothing, begun_again=lambda: told.append("here")),
            there.subscribe("standup", nothing, begun_again=lambda: told.append("there")) as reading,
        ):
            await reading.reads(["ja"])
            await append(here, "standup", said("one"))
            await here.entitle("standup", Title("Weekly", "Ana"))
            epoch = (await here.read("standup", 0)).epoch
            assert await here.erase("standup")
            await until(lambda: sorted(told) == ["here", "there"])
            page = await there.read("standup", 0)
            assert (page.epoch != epoch, page.last, page.publications, page.title) == (True, 0, (), NO_TITLE)
            # What is said next is promised in what is read.
            accepted = await here.accept("standup", utterance("two", id="2"))
            assert accepted.unfinished == ("ja",)
