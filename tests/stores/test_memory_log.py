"""What the memory adapter does beyond the contract: what an earlier process left, and what it forgets."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.log import LoggedEvent, Publication, Unfinished
from gateway.domain.sessions import KeptMeeting
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.logs import append, nothing, said, translated, untranslated, utterance
from tests.usual import usual


def kept(*events: LoggedEvent, first: int = 1, **more: Any) -> KeptMeeting:
    """The publications that are held, from `first` on."""
    publications = tuple(Publication(n, 1_700_000_000_000 + n, event) for n, event in enumerate(events, first))
    return KeptMeeting("m", "e1", first, first + len(events) - 1, publications, account="ana", **more)


def after(meeting: KeptMeeting, **bounds: Any) -> MemoryEventLog:
    """The log of the next process."""
    return MemoryEventLog(usual(MemoryStore, earlier=(meeting,), wall_clock=lambda: 1_700_000_001.0, **bounds))


def hello(*languages: str) -> LoggedEvent:
    return said("hello", languages, id="1")


@pytest.mark.parametrize(
    ("events", "unfinished"),
    [
        ([], ()),
        ([hello()], ()),
        ([hello("de")], ("de",)),
        ([hello("de"), translated("hallo", lang="de")], ()),
        ([hello("de"), untranslated("no luck", lang="de")], ()),
        ([hello("de", "ja"), translated("hallo", lang="de")], ("ja",)),
        # Its beginning is not held any more, and nothing says that it is unfinished.
        ([translated("hallo", lang="de")], ()),
    ],
)
async def test_the_publications_tell_what_an_earlier_process_left(
    events: list[LoggedEvent], unfinished: tuple[str, ...]
) -> None:
    left = [work.languages for work in await after(kept(*events)).take_over()]
    assert left == ([unfinished] if unfinished else [])


async def test_promises_without_a_held_utterance_are_handed_over() -> None:
    trimmed, again = utterance("trimmed", id="0"), utterance("hello", id="1")
    unfinished = (Unfinished("m", trimmed, 1, ("fr",), tries=3), Unfinished("m", again, 2, ("de", "ja")))
    log = after(kept(hello("de"), untranslated("no luck", said=2, lang="de"), first=2, unfinished=unfinished))
    assert await log.take_over() == (
        Unfinished("m", trimmed, 1, ("fr",), tries=1, account="ana"),
        Unfinished("m", again, 2, ("de", "ja"), tries=1, account="ana"),
    ), "a restart is not a try"
    assert await log.conclude("m", untranslated("no luck", said=1, lang="fr", utterance="0")) is not None


async def test_what_one_process_keeps_the_next_one_knows() -> None:
    log = MemoryEventLog(usual(MemoryStore, max_publications=2))
    async with log.subscribe("m", nothing) as subscription:
        await subscription.reads(["ja", "de"])
        for name in ("one", "two", "three"):
            await log.accept("m", utterance(name))
        await log.conclude("m", translated("二", said=2, utterance="two"))
    [left] = log.kept_meetings()
    assert [work.utterance.id for work in left.unfinished] == ["one", "two", "three"]
    next_log = MemoryEventLog(usual(MemoryStore, earlier=(left,), max_publications=2))
    assert (await next_log.accept("m", utterance("one"))).known
    assert [(work.said, work.languages) for work in await next_log.take_over()] == [
        (1, ("de", "ja")),
        (2, ("de",)),
        (3, ("de", "ja")),
    ]


async def test_unkept_publications_still_hand_over_their_promises() -> None:
    log = after(kept(hello("de"), said("two", ()), said("three", ())), max_publications=1)
    assert (await log.read("m", 0)).first == 3
    assert [work.said for work in await log.take_over()] == [1]
    assert await log.conclude("m", translated("hallo", lang="de")) is not None


async def test_meeting_is_kept_while_something_is_unfinished() -> None:
    now = 1_700_000_000.0
    store = usual(MemoryStore, keep_s=60, wall_clock=lambda: now)
    log = MemoryEventLog(store)
    async with log.subscribe("m", nothing) as subscription:
        await subscription.reads(["ja"])
        await log.accept("m", utterance("hello", id="1"))
    now += 61
    await log.sweep()
    assert (await log.read("m", 0)).last == 1, "its offsets go on"
    publication = await log.conclude("m", translated("やあ"))
    assert publication is not None
    assert publication.offset == 2
    now += 61
    await log.sweep()
    assert (store.meetings, (await log.read("m", 0)).epoch) == ({}, "")


async def test_nothing_is_remembered_of_what_is_trimmed() -> None:
    store = usual(MemoryStore, max_publications=3)
    log = MemoryEventLog(store)
    for n in range(50):
        await append(log, "m", said(str(n), ()))
    assert set(store.meetings["m"].by_offset) == {48, 49, 50}
    assert len(store.meetings["m"].by_key) == 3


async def test_dropped_meeting_is_forgotten_entirely() -> None:
    """A restart with a smaller bound: the log is begun again, and with it its offsets."""
    earlier = kept(said("one", ()), said("two", ()), translated("二", said=2, utterance="two"))
    young = KeptMeeting("young", "e2", 1, 1, (Publication(1, 1_700_000_000_999, said("three", ())),))
    store = usual(MemoryStore, earlier=(earlier, young), max_bytes=1, wall_clock=lambda: 1_700_000_001.0)
    log = MemoryEventLog(store)
    await log.sweep()
    assert "m" not in store.meetings
    accepted = await log.accept("m", utterance("one"))
    assert (accepted.offset, accepted.known) == (1, False)
