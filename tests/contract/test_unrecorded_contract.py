"""The duties of every adapter of the EventLog port towards meetings that are not recorded.

Ana's gateway and Ben's share a store. What is looked for is looked for in all that the store holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.log import Accepted, Publication
from gateway.domain.ports import EventLog
from tests.contract.stores import STORES, OpenStore, Store
from tests.logs import nothing, texts, translated, utterance
from tests.patience import until

# Words that no other test says, and shorter than what a store would keep in another form.
SAID, IN_GERMAN = "quokka-marmalade", "quokka-marmelade"
NAME = "Ana-Quokka"
HELLO = utterance(SAID, id="1", speaker=NAME, context=(), glossary=())
HALLO = translated(IN_GERMAN, lang="de")

KEPT_S = 0.2


@pytest.fixture(params=list(STORES))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return STORES[request.param]


@asynccontextmanager
async def reading(log: EventLog, meeting: str = "board", **options: Any) -> AsyncIterator[list[Publication]]:
    """Somebody at this gateway reads German. Yields what is delivered to them."""
    got: list[Publication] = []
    async with log.subscribe(meeting, got.append, **options) as subscription:
        await subscription.reads(["de"])
        yield got


async def holds_words(store: Store) -> list[str]:
    return [words for words in (SAID, IN_GERMAN, NAME) if await store.holds(words)]


async def test_unrecorded_words_are_delivered_and_soon_gone(open_store: OpenStore) -> None:
    """They leave the whole store, not only the log."""
    async with open_store(unrecorded_s=KEPT_S) as store:
        ana, ben = await store.gateway(), await store.gateway()
        async with reading(ana, record=False) as at_anas, reading(ben) as at_bens:
            await ana.accept("board", HELLO)
            assert await holds_words(store) == [SAID, NAME], "it would be gone if a gateway died now"
            assert await ana.conclude("board", HALLO)
            await until(lambda: len(at_anas) == len(at_bens) == 2)
            assert texts(at_bens) == [SAID]
            await store.pass_time(2 * KEPT_S)
            assert await holds_words(store) == []
            page = await ben.read("board", 0)
            assert (page.recorded, page.publications, page.first, page.last) == (False, (), 3, 2)
            # The meeting goes on.
            assert (await ben.accept("board", utterance("and", id="2"))).offset == 3


async def test_segments_with_others_behind_stay_known_without_words(open_store: OpenStore) -> None:
    segment = replace(HELLO, continues=True)
    async with open_store(unrecorded_s=KEPT_S) as store:
        ana, ben = await store.gateway(), await store.gateway()
        async with reading(ana, record=False), reading(ben):
            await ana.accept("board", segment)
            await ana.conclude("board", HALLO)
            await store.pass_time(2 * KEPT_S)
            assert await holds_words(store) == []
            assert await ben.accept("board", segment) == Accepted(1, known=True, last=2)
            assert await holds_words(store) == []


async def test_of_a_recorded_meeting_it_stays(open_store: OpenStore) -> None:
    async with open_store(unrecorded_s=KEPT_S) as store:
        ana = await store.gateway()
        async with reading(ana):
            await ana.accept("board", HELLO)
            await ana.conclude("board", HALLO)
            await store.pass_time(2 * KEPT_S)
            page = await ana.read("board", 0)
            assert (page.recorded, texts(page.publications)) == (True, [SAID])
            assert await holds_words(store) == [SAID, IN_GERMAN, NAME]


async def test_untranslated_utterances_stay_until_translated(open_store: OpenStore) -> None:
    async with open_store(unrecorded_s=KEPT_S) as store:
        ana, ben = await store.gateway(), await store.gateway()
        async with reading(ana, record=False), reading(ben) as got:
            await ana.accept("board", HELLO)
            await store.pass_time(2 * KEPT_S)
            assert (await ben.read("board", 0)).publications == (), "no latecomer reads it"
            assert await holds_words(store) == [SAID, NAME]
            await store.lose(ana)
            [taken] = await ben.take_over()
            assert (taken.utterance.text, taken.languages) == (SAID, ("de",))
            assert await ben.conclude("board", HALLO)
            await until(lambda: len(got) == 2)
            # Also what was told to the gateway that has taken it over.
            await ben.take_over()
            await store.pass_time(2 * KEPT_S)
            assert await holds_words(store) == []


async def test_whoever_begins_the_meeting_decides_until_it_is_over(open_store: OpenStore) -> None:
    async with open_store(unrecorded_s=KEPT_S, keep_s=60.0) as store:
        ana, ben = await store.gateway(), await store.gateway()
        async with ana.subscribe("board", nothing, record=False) as first:
            async with ben.subscribe("board", nothing, record=True) as second:
                assert (first.start.recorded, second.start.recorded) == (False, False)
            assert await ana.erase("board")
            assert not (await ben.read("board", 0)).recorded, "what begins again is the same meeting"
        await store.pass_time(2 * KEPT_S)
        async with ben.subscribe("board", nothing) as another:
            assert another.start.recorded
            await ben.accept("board", HELLO)
        async with ana.subscribe("board", nothing, record=False) as late:
            assert late.start.recorded, "what is kept of it stays kept"


@pytest.mark.parametrize("record", [True, False])
async def test_where_nobody_says_it_the_gateway_decides(open_store: OpenStore, record: bool) -> None:
    async with open_store(record=record) as store:
        log = await store.gateway()
        async with log.subscribe("board", nothing) as subscription:
            assert subscription.start.recorded is record
        async with log.subscribe("other", nothing, record=not record) as subscription:
            assert subscription.start.recorded is not record
