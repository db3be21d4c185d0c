"""What the members of a meeting are shown, over real sockets, with the simulated engine."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.config import EventLogSettings, Settings
from gateway.domain.log import Page, Publication, Recent, Said, Translated
from gateway.domain.ports import EventLog
from gateway.meeting.feed import Feed
from gateway.meeting.history import History
from gateway.meeting.members import Member
from gateway.meeting.outbox import Outbox
from gateway.meeting.room import Room, Rooms
from gateway.protocol.codec import JSON, MSGPACK
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Caption,
    Error,
    Resume,
    SessionUpdate,
    SessionUpdated,
    TranslationDelta,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceCancel,
    UtteranceCancelled,
    UtterancePartial,
)
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.clocks import swiftly
from tests.contract.stores import STORES, OpenStore
from tests.gateways import SCRIPT, running
from tests.logs import translated, untranslated, utterance
from tests.meetings import captions, finals, joined, logged, say
from tests.patience import until
from tests.usual import usual

# ---------------------------------------------------------------- sharing


async def test_a_language_is_translated_once_however_many_read_it() -> None:
    async with running() as gateway, contextlib.AsyncExitStack() as stack:
        ana = await stack.enter_async_context(joined(gateway, speaks="en", name="Ana"))
        bo = await stack.enter_async_context(joined(gateway, speaks="de", name="Bo", reads=["en"]))
        readers = [
            await stack.enter_async_context(joined(gateway, codec, reads=["ja"]))
            for codec in (JSON, MSGPACK, JSON, MSGPACK)
        ]
        await ana.peer.send(say("1", "hello"))
        await bo.peer.send(say("1", "hallo"))
        for reader in readers:
            got = await reader.until(TranslationFinal, 2)
            assert {(m.speaker, m.text) for m in got} == {("Ana", "[ja] hello"), ("Bo", "[ja] hallo")}
            assert not [m for m in reader.received if isinstance(m, Caption)]
        assert (await bo.until(TranslationFinal))[0].text == "[en] hallo"
        assert {(c.speaker, c.text) for c in await bo.until(Caption, 2)} == {("Ana", "hello"), ("Bo", "hallo")}
        translations = [(e.speaker, e.lang) for e in await logged(gateway) if isinstance(e, Translated)]
        assert sorted(translations) == [("Ana", "ja"), ("Bo", "en"), ("Bo", "ja")]


# ---------------------------------------------------------------- coming late


async def test_late_joiner_gets_snapshot_and_stream_seamlessly() -> None:
    settings = Settings(snapshot_utterances=5, limits=Limits(utterances_in_flight=100, messages_burst=1_000))
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        for n in range(20):
            await ana.peer.send(say(str(n), f"text {n}"))
        await ana.until(TranslationFinal, 20)
        for n in range(20, 40):
            await ana.peer.send(say(str(n), f"text {n}"))
        await ana.until(UtteranceAccepted, 25)
        async with joined(gateway, reads=["ja", "en"]) as late:
            await ana.until(TranslationFinal, 40)
            got = await late.everything()
        offsets = [m.offset or 0 for m in got if isinstance(m, Caption | TranslationFinal)]
        assert offsets == sorted(set(offsets)), "in order, each once"
        assert offsets[0] == late.started.offset + 1
        assert offsets[-1] == 80
        captions = [int(m.utterance) for m in got if isinstance(m, Caption)]
        assert captions == list(range(captions[0], 40))
        assert captions[0] >= 20
        assert {u for _, u, _ in finals(got)} >= set(map(str, captions))


# ---------------------------------------------------------------- changing languages


async def test_new_reader_gets_the_translations_beginning() -> None:
    async with running() as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana, joined(gateway) as bo:
        await ana.peer.send(say("1", "LONG text"))
        await ana.until(TranslationDelta, 3)
        await bo.peer.send(SessionUpdate(reads=["ja"]))
        final = (await bo.until(TranslationFinal))[0]
        deltas = "".join(m.committed for m in bo.received if isinstance(m, TranslationDelta))
        assert deltas.startswith("[ja]")
        assert final.text.startswith(deltas)


# ---------------------------------------------------------------- giving up


async def test_withdrawn_utterance_leaves_screens_and_engine() -> None:
    async with (
        running() as gateway,
        joined(gateway, speaks="en") as ana,
        joined(gateway, reads=["ja"]) as bo,
    ):
        await ana.peer.send(UtterancePartial("1", 1, "LONG one two three four five six"))
        while not gateway.gateway.scheduler.running:
            await asyncio.sleep(0.005)
        await ana.peer.send(UtteranceCancel("1"))
        for somebody in (ana, bo):
            assert await somebody.until(UtteranceCancelled) == [UtteranceCancelled(ana.started.participant, "1")]
        while gateway.gateway.scheduler.running:
            await asyncio.sleep(0.005)
        async with joined(gateway, reads=["ja", "en"]) as late:
            assert [m for m in await late.everything() if isinstance(m, Caption | TranslationDelta)] == []
        # The id is free again.
        await ana.peer.send(UtterancePartial("1", 1, "two"), say("1", "two three", rev=2))
        assert [final.text for final in await bo.until(TranslationFinal)] == ["[ja] two three"]
        await ana.peer.send(UtteranceCancel("1"))
        [error] = await ana.until(Error)
        assert error.code == "unknown_utterance"


# ---------------------------------------------------------------- captions of every language


async def test_originals_bring_captions_of_unread_languages() -> None:
    async with (
        running() as gateway,
        joined(gateway, speaks="en", name="Ana") as ana,
        joined(gateway, reads=["ja"], originals=True) as bo,
        joined(gateway, reads=["ja"]) as cy,
    ):
        await ana.peer.send(UtterancePartial("1", 1, "good"), say("1", rev=2))
        for reader in (bo, cy):
            await reader.until(TranslationFinal)
        assert captions(await bo.everything()) == [("1", "good", False), ("1", "good morning", True)]
        assert captions(await cy.everything()) == []
        assert [e.languages for e in await logged(gateway) if isinstance(e, Said)] == [("ja",)]
        async with joined(gateway, reads=["ja"], originals=True) as late:
            assert captions(await late.everything()) == [("1", "good morning", True)]


async def test_originals_can_be_toggled_mid_utterance() -> None:
    async with running() as gateway, joined(gateway, speaks="en") as ana, joined(gateway) as bo:
        await ana.peer.send(UtterancePartial("1", 1, "one"))
        await ana.until(Caption)
        await bo.peer.send(SessionUpdate(originals=True))
        await bo.until(Caption)
        await bo.peer.send(SessionUpdate(stability="final"))
        assert [m.originals for m in await bo.until(SessionUpdated, 2)] == [True, True]
        await ana.peer.send(UtterancePartial("1", 2, "one two"))
        await bo.until(Caption, 2)
        await bo.peer.send(SessionUpdate(originals=False))
        await bo.until(SessionUpdated, 3)
        await ana.peer.send(say("1", "one two three", rev=3))
        await ana.until(UtteranceAccepted)
        assert captions(await bo.everything()) == [("1", "one", False), ("1", "one two", False)]


# ---------------------------------------------------------------- trimmed, given up, not shown


@swiftly
async def test_newcomers_come_to_a_meeting_whose_log_was_trimmed() -> None:
    settings = Settings(event_log=EventLogSettings(keep_s=60))
    async with running(settings) as gateway, joined(gateway, speaks="en", reads=["ja"]) as ana:
        await ana.peer.send(*(say(str(n)) for n in range(5)))
        await ana.until(TranslationFinal, 5)
        # The log goes by the time of day, which waiting here does not make later.
        cast(Any, gateway.gateway.log)._store.logs._wall_clock = lambda: time.time() + 100
        assert not (await gateway.gateway.log.read("m", 0)).publications
        async with joined(gateway, reads=["ja"]) as late:
            assert late.started.offset == 10
            assert await late.everything() == []
            await ana.peer.send(say("5"))
            await late.until(TranslationFinal)
        resume = Resume(ana.started.session, ana.started.epoch, 0)
        async with joined(gateway, speaks="en", reads=["ja"], resume=resume) as again:
            assert again.started.recovered is False
            await again.everything()


async def test_newcomer_is_shown_nothing_without_a_snapshot() -> None:
    async with running(Settings(snapshot_utterances=0)) as gateway, joined(gateway, speaks="en") as ana:
        await ana.peer.send(say("1"), say("2"))
        await ana.until(Caption, 2)
        async with joined(gateway, reads=["en", "de"]) as late:
            assert await late.everything() == []


def test_the_script_has_what_is_used_here() -> None:
    assert {rule.match for rule in SCRIPT.rules} >= {"LONG", "SLOW", "STALL"}


# ---------------------------------------------------------------- opened while people speak

STEPS = st.lists(
    st.tuples(st.sampled_from(("said", "translated", "failed")), st.integers(0, 5), st.sampled_from(("de", "ja"))),
    max_size=30,
)


async def speak(log: EventLog, steps: list[tuple[str, int, str]], said: dict[int, int]) -> None:
    """said: utterance → its offset."""
    for what, number, lang in steps:
        await asyncio.sleep(0)
        if number not in said:
            said[number] = (await log.accept("m", utterance(str(number)))).offset
        elif what != "said":
            outcome = translated if what == "translated" else untranslated
            await log.conclude("m", outcome("…", said=said[number], lang=lang, utterance=str(number)))


def known(history: History, first: int) -> list[list[tuple[Any, ...]]]:
    """What a history knows of the newest utterances that the log holds, and of what is unfinished."""
    history.trim(first)
    unfinished = sorted(history._unfinished.values(), key=lambda record: record.said)
    return [
        [(each.utterance.id, each.said, each.missing(), each.outcomes, each.failed) for each in records]
        for records in (history.newest(), unfinished)
    ]


@pytest.mark.parametrize("opened", STORES.values(), ids=list(STORES))
@settings(deadline=None, max_examples=20)
@given(
    before=STEPS,
    meanwhile=STEPS,
    keep=st.integers(0, 3),
    bound=st.sampled_from((4, 100)),
    yields=st.integers(0, 20),
)
@example(before=[("said", 0, "")], meanwhile=[("failed", 0, "de")], keep=2, bound=4, yields=1)
def test_room_opened_mid_speech_knows_everything(
    opened: OpenStore,
    before: list[tuple[str, int, str]],
    meanwhile: list[tuple[str, int, str]],
    keep: int,
    bound: int,
    yields: int,
) -> None:
    async def meeting() -> None:
        async with opened(max_publications=bound) as store:
            here, there = await store.gateway(), await store.gateway()
            everything: list[Publication] = []
            async with there.subscribe("m", everything.append) as subscription:
                await subscription.reads(["de", "ja"])
                said: dict[int, int] = {}
                await speak(there, before, said)
                room = Room("m", here, private=False, snapshot=keep)
                speaking = asyncio.create_task(speak(there, meanwhile, said))
                for _ in range(yields):
                    await asyncio.sleep(0)
                await room.open()
                await speaking
                page = await there.read("m", 0)
                await until(lambda: len(everything) == page.last == room.offset)
            expected = History(keep)
            for publication in everything:
                expected.note(publication)
            assert known(room.history, page.first) == known(expected, page.first)
            await room.close()

    asyncio.run(meeting())


async def test_a_room_is_opened_without_reading_what_is_older() -> None:
    class Counted(MemoryEventLog):
        read_so_far = 0

        async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
            page = await super().read(meeting, after, limit)
            self.read_so_far += len(page.publications)
            return page

        async def recent(self, meeting: str, utterances: int, limit: int = 200) -> Recent:
            recent = await super().recent(meeting, utterances, limit)
            self.read_so_far += len(recent.page.publications)
            return recent

    log = Counted(usual(MemoryStore))
    await speak(log, [("said", number, "") for number in range(1_000)], {})
    room = Room("m", log, private=False, snapshot=300)
    await room.open()
    assert [int(record.utterance.id) for record in room.history.newest()] == [*range(700, 1_000)]
    assert log.read_so_far == 300
    assert await room.latecomers_position() == 700
    await room.close()


async def test_others_have_their_turn_while_much_is_replayed() -> None:
    log = MemoryEventLog(usual(MemoryStore))
    await speak(log, [("said", number, "") for number in range(1_000)], {})
    room = Room("m", log, private=False, snapshot=300)
    await room.open()
    # A connection that takes everything at once.
    feed = Feed(Outbox(10_000_000, write_now=lambda _: True), 0, participant="p", wants=lambda _: True)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    meanwhile = asyncio.create_task(others())
    await room.stream_to(cast(Member, SimpleNamespace(feed=None)), feed)
    meanwhile.cancel()
    assert feed.live
    assert turns >= 1_000 / 200
    await room.close()


# ---------------------------------------------------------------- what the log tells


def quiet(_room: Room) -> bool:
    return False


def member(name: str) -> Member:
    return Member(participant=name, name=name, speaks=None, reads=("ja",), stability="live")


async def test_room_stays_while_anything_needs_it() -> None:
    rooms = Rooms(partial(Room, log=MemoryEventLog(usual(MemoryStore)), snapshot=10))
    ana = member("ana")
    async with rooms.enter("m", private=False) as room:
        await rooms.sweep(quiet)
        async with rooms.enter("m", private=False) as same:
            assert same is room
        await rooms.sweep(quiet)
        room.join(ana)
    await rooms.sweep(quiet)
    assert list(rooms) == [room]
    room.leave(ana)
    await rooms.sweep(lambda busy: busy is room)
    assert list(rooms) == [room]
    await rooms.sweep(quiet)
    assert len(rooms) == 0
    async with rooms.enter("m", private=False) as another:
        assert another is not room
