"""The duties of every adapter of the EventLog port: what is accepted, promised, concluded and taken over.

Ana's gateway and Ben's share a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.errors import SessionReplaced, UtteranceFinished
from gateway.domain.grants import OPEN
from gateway.domain.log import (
    Accepted,
    Owed,
    Page,
    Recent,
    Said,
    Translated,
    Unfinished,
    Untranslated,
)
from gateway.domain.ports import EventLog, SessionStore
from gateway.domain.session_store import Fence
from gateway.domain.sessions import SessionRecord
from tests.contract.stores import STORES, OpenStore, Store
from tests.logs import nothing, offsets, texts, translated, untranslated, utterance

HELLO = utterance("hello", id="1")


class Two:
    """A store with two gateways."""

    def __init__(self, store: Store, ana: EventLog, ben: EventLog) -> None:
        self.store, self.ana, self.ben = store, ana, ben


@asynccontextmanager
async def two_gateways(open_store: OpenStore, **bounds: Any) -> AsyncIterator[Two]:
    async with open_store(**bounds) as store:
        yield Two(store, await store.gateway(), await store.gateway())


@pytest.fixture(params=list(STORES))
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return STORES[request.param]


@pytest.fixture
async def two(open_store: OpenStore) -> AsyncIterator[Two]:
    async with two_gateways(open_store) as opened:
        yield opened


@asynccontextmanager
async def read(log: EventLog, *languages: str, meeting: str = "standup") -> AsyncIterator[int]:
    """Somebody at this gateway reads these languages."""
    async with log.subscribe(meeting, nothing) as subscription:
        yield await subscription.reads(languages)


# Accepting


async def test_utterances_are_promised_in_languages_read_anywhere(two: Two) -> None:
    """It does not matter to which gateway the readers are connected."""
    async with read(two.ana, "ja", "en"), read(two.ben, "de", "ja"):
        accepted = await two.ana.accept("standup", HELLO)
        assert accepted == Accepted(1, unfinished=("de", "ja"), owned=("de", "ja"), last=1)
        [publication] = (await two.ben.read("standup", 0)).publications
        assert publication.event == Said(HELLO, ("de", "ja"))


async def a_session(two: Two) -> tuple[SessionStore, Fence, Callable[[], Awaitable[Fence]]]:
    """The session store of Ben's gateway, the session's fence at Ana's, and what moves it to Ben's."""
    here, there = await two.store.session_store(), await two.store.session_store()
    for session_store in (here, there):
        await session_store.open(lambda _session, _elsewhere: None, lambda _: None)
    session = b"s" * 32
    record = SessionRecord(
        participant="p", meeting="standup", private=False, name="Ana", speaks="en", reads=(), grant=OPEN
    )
    at_ana = Fence(session, await here.begin(session, record))

    async def take() -> Fence:
        taken = await there.take(session, at_ana.number, record)
        assert taken is not None
        return Fence(session, taken)

    return there, at_ana, take


async def test_moved_session_is_not_heard_at_old_gateway(two: Two) -> None:
    """Its client goes on at Ben's gateway, and may not have noticed that Ana's still listens."""
    there, at_ana, take = await a_session(two)
    async with read(two.ana, "ja"):
        first = await two.ana.accept("standup", HELLO, at_ana)
        at_ben = await take()
        with pytest.raises(SessionReplaced):
            await two.ana.accept("standup", utterance("late", id="2"), at_ana)
        # What it was told before is still true.
        again = await two.ana.accept("standup", HELLO, at_ana)
        assert (again.offset, again.known) == (first.offset, True)
        assert (await two.ben.accept("standup", utterance("late", id="2"), at_ben)).offset == first.offset + 1
        # What was said before a session ended is not lost with it.
        await there.end(at_ben.session, at_ben.number)
        assert not (await two.ben.accept("standup", utterance("goodbye", id="3"), at_ben)).known
    assert texts((await two.ana.read("standup", 0)).publications) == ["hello", "late", "goodbye"]


async def test_languages_no_longer_read_are_not_promised(two: Two) -> None:
    async with two.ben.subscribe("standup", nothing) as ben, read(two.ana, "fr"):
        await ben.reads(["ja", "de"])
        await ben.reads(["de"])
        assert (await two.ana.accept("standup", HELLO)).owned == ("de", "fr")
    assert (await two.ana.accept("standup", utterance("all have left"))).owned == ()


async def test_what_takes_something_back_is_promised_in_no_language(two: Two) -> None:
    back = utterance("", id="2", replaces=("1",))
    async with read(two.ana, "ja", "en"):
        await two.ana.accept("standup", HELLO)
        assert await two.ben.accept("standup", back) == Accepted(2, last=2)
        assert await two.ana.accept("standup", back) == Accepted(2, known=True, last=2)
        logged = await two.ana.find_utterance("standup", back.key)
        assert logged is not None
        assert logged.utterance == back
        assert (await two.ben.read("standup", 1)).publications[0].event == Said(back)
        correction = utterance("hallo", id="3", replaces=("1",))
        assert (await two.ana.accept("standup", correction)).owned == ("ja",)


async def test_new_readers_learn_how_much_was_said(two: Two) -> None:
    await two.ana.accept("standup", HELLO)
    async with read(two.ben, "ja") as before:
        assert before == 1
        assert (await two.ana.accept("standup", utterance("more"))).owned == ("ja",)


async def test_other_meetings_promise_nothing_here(two: Two) -> None:
    async with read(two.ben, "ja", meeting="retro"):
        assert await two.ana.accept("standup", HELLO) == Accepted(1, last=1)


async def test_an_utterance_is_accepted_once(two: Two) -> None:
    async with read(two.ben, "ja"):
        first = await two.ana.accept("standup", HELLO)
        assert await two.ana.accept("standup", HELLO) == replace(first, known=True)
        assert await two.ben.accept("standup", HELLO) == replace(first, known=True, owned=())
    assert len((await two.ana.read("standup", 0)).publications) == 1


async def test_one_id_is_one_utterance_of_each_participant(two: Two) -> None:
    assert (await two.ana.accept("standup", HELLO)).offset == 1
    assert (await two.ana.accept("standup", utterance("hi", id="1", participant="ffff0000"))).offset == 2


async def test_another_text_for_an_id_is_refused(two: Two) -> None:
    await two.ana.accept("standup", HELLO)
    for other in (utterance("something else", id="1"), utterance("hello", id="1", lang="de")):
        with pytest.raises(UtteranceFinished):
            await two.ben.accept("standup", other)
    assert texts((await two.ana.read("standup", 0)).publications) == ["hello"]


# Concluding


async def test_each_promise_is_concluded_once(two: Two) -> None:
    async with read(two.ben, "de", "ja"):
        await two.ana.accept("standup", HELLO)
        publication = await two.ana.conclude("standup", translated("やあ"))
        assert publication is not None
        assert (publication.offset, publication.event) == (2, translated("やあ"))
        assert await two.ana.conclude("standup", translated("やあ")) is None
        assert await two.ben.conclude("standup", translated("もしもし")) is None
        assert (await two.ana.accept("standup", HELLO)).unfinished == ("de",)
    assert [p.offset for p in (await two.ben.read("standup", 0)).publications] == [1, 2]


async def test_a_promise_that_has_failed_fails_no_second_time(two: Two) -> None:
    async with read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        assert await two.ana.conclude("standup", untranslated("no luck")) is not None
        assert await two.ana.conclude("standup", untranslated("no luck")) is None
        assert await two.ana.conclude("standup", translated("やあ")) is None, "nobody has asked for it again"
    assert [p.offset for p in (await two.ben.read("standup", 0)).publications] == [1, 2]


async def test_what_was_not_promised_cannot_be_concluded(two: Two) -> None:
    assert await two.ana.conclude("standup", translated("やあ")) is None
    async with read(two.ben, "de"):
        await two.ana.accept("standup", HELLO)
        assert await two.ana.conclude("standup", translated("やあ")) is None
        assert await two.ana.conclude("standup", translated("hallo", lang="de", said=7)) is None
    assert len((await two.ben.read("standup", 0)).publications) == 1


async def test_an_outcome_of_another_utterance_concludes_nothing(two: Two) -> None:
    """A log was begun again while it was translated, and its offsets are used again."""
    async with read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        assert await two.ana.conclude("standup", translated("…", utterance="2")) is None
        assert await two.ana.conclude("standup", translated("やあ")) is not None


async def test_failures_count_from_owners_and_translations_from_anyone(two: Two) -> None:
    async with read(two.ben, "de", "ja"):
        await two.ana.accept("standup", HELLO)
        assert await two.ben.conclude("standup", untranslated("no luck")) is None
        assert await two.ben.conclude("standup", translated("やあ")) is not None
        assert await two.ana.conclude("standup", untranslated("no luck", lang="de")) is not None


async def test_failed_utterances_sent_again_are_promised_again(two: Two) -> None:
    async with read(two.ben, "de", "ja"):
        await two.ana.accept("standup", HELLO)
        await two.ana.conclude("standup", untranslated("no luck"))
        await two.ana.conclude("standup", translated("hallo", lang="de"))
        again = await two.ben.accept("standup", HELLO)
        assert again == Accepted(1, unfinished=("ja",), owned=("ja",), known=True, last=3)
        assert await two.ben.conclude("standup", translated("やあ")) is not None
        assert await two.ana.accept("standup", HELLO) == Accepted(1, known=True, last=4)


async def test_failures_of_absent_sessions_are_not_promised_again(two: Two) -> None:
    """Ana's gateway was frozen; meanwhile the client has sent it again at Ben's, and taken it back."""
    _, at_ana, take = await a_session(two)
    async with read(two.ben, "ja", "de"):
        at_ben = await take()
        await two.ben.accept("standup", HELLO, at_ben)
        await two.ben.conclude("standup", untranslated("no luck"))
        late = await two.ana.accept("standup", HELLO, at_ana)
        assert (late.unfinished, late.owned) == (("de",), ())
        assert (await two.ben.accept("standup", HELLO, at_ben)).owned == ("de", "ja")


async def test_trimmed_utterances_are_still_concluded(open_store: OpenStore) -> None:
    async with two_gateways(open_store, max_publications=2) as two, read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        for n in range(3):
            accepted = await two.ana.accept("standup", utterance(f"more {n}"))
            await two.ana.conclude("standup", translated("もっと", said=accepted.offset, utterance=f"more {n}"))
        assert (await two.ana.read("standup", 0)).first > 1
        assert await two.ben.accept("standup", HELLO) == Accepted(1, unfinished=("ja",), known=True, last=7)
        publication = await two.ana.conclude("standup", translated("やあ"))
        assert publication is not None
        assert publication.offset == 8
        assert await two.ana.conclude("standup", translated("やあ")) is None


# Segments of an utterance that goes on

FIRST = utterance("hello", id="1", continues=True)
LAST = utterance("goodbye", id="1~2", part_of="1")


async def test_trimmed_segments_with_others_behind_stay_known(open_store: OpenStore) -> None:
    """Of their words nothing is left, and nothing is promised: nobody could translate it."""
    async with two_gateways(open_store, max_publications=1) as two, read(two.ana, "en"):
        for spoken in (FIRST, LAST, utterance("next")):
            assert not (await two.ana.accept("standup", spoken)).known
        async with read(two.ben, "ja"):
            assert await two.ben.accept("standup", FIRST) == Accepted(1, known=True, last=3)
            for other in ({"text": "hullo"}, {"lang": "de"}):
                with pytest.raises(UtteranceFinished):
                    await two.ben.accept("standup", replace(FIRST, **other))
            assert await two.ben.find_utterance("standup", FIRST.key) is None
            assert await two.ben.claim("standup", {1: ["ja"]}) == {}
            recent = await two.ben.recent("standup", 5)
            assert (texts(recent.page.publications), recent.unfinished) == (["next"], ())
            assert await two.ana.take_over() == await two.ben.take_over() == ()
            assert await two.ben.accept("standup", LAST) == Accepted(4, ("ja",), ("ja",), last=4)
        assert await two.ana.erase("standup")
        assert await two.ana.accept("standup", FIRST) == Accepted(1, last=1)


@pytest.mark.parametrize("outcome", [translated("やあ"), untranslated("no luck")])
async def test_segments_trimmed_before_they_are_finished_stay_known(
    open_store: OpenStore, outcome: Translated | Untranslated
) -> None:
    async with two_gateways(open_store, max_publications=1) as two, read(two.ana, "ja"):
        await two.ana.accept("standup", FIRST)
        await two.ana.accept("standup", LAST)
        assert await two.ben.accept("standup", FIRST) == Accepted(1, ("ja",), known=True, last=2)
        assert await two.ana.conclude("standup", outcome) is not None
        assert await two.ben.accept("standup", FIRST) == Accepted(1, known=True, last=3)
        await two.ana.conclude("standup", replace(outcome, utterance="1~2", said=2))
        assert not (await two.ben.accept("standup", LAST)).known


async def test_segments_are_known_as_long_as_the_log(open_store: OpenStore) -> None:
    async with two_gateways(open_store, keep_s=0.3) as two:
        async with read(two.ana, "en"):
            await two.ana.accept("standup", FIRST)
            await two.ana.accept("standup", LAST)
            await two.store.pass_time(0.4)
            assert (await two.ben.read("standup", 0)).first == 3
            assert await two.ben.accept("standup", FIRST) == Accepted(1, known=True, last=2)
            assert not (await two.ben.accept("standup", LAST)).known
        await two.store.pass_time(0.4)
        assert await two.ben.accept("standup", FIRST) == Accepted(1, last=1)


async def test_a_thousand_trimmed_segments_of_a_meeting_are_known(open_store: OpenStore) -> None:
    segments = [utterance("so", id=f"1~{n}", part_of="1", continues=True) for n in range(1, 1_004)]
    async with two_gateways(open_store, max_publications=1) as two:
        accepted = await asyncio.gather(*(two.ana.accept("standup", each) for each in segments))
        assert [each.offset for each in accepted] == [*range(1, 1_004)]
        for n in (1, 2):
            again = await two.ana.accept("standup", segments[n + 1])
            assert (again.offset, again.known) == (n + 2, True)
        assert not (await two.ana.accept("standup", segments[0])).known


# Promising more, and taking over


async def test_a_latecomers_language_is_promised_by_one_gateway(two: Two) -> None:
    await two.ana.accept("standup", HELLO)
    await two.ana.accept("standup", utterance("more"))
    assert await two.ben.claim("standup", {1: ["ja", "en"], 2: ["ja", "de"], 9: ["ja"]}) == {
        1: ("ja",),
        2: ("ja", "de"),
    }
    assert await two.ana.claim("standup", {1: ["ja", "de"]}) == {1: ("de",)}
    assert await two.ben.claim("standup", {1: ["ja"]}) == {1: ("ja",)}, "the answer may have been lost"
    await two.ben.conclude("standup", untranslated("no luck"))
    assert await two.ben.claim("standup", {1: ["ja"]}) == {}, "it has an outcome"
    assert await two.ben.claim("retro", {1: ["ja"]}) == {}


async def test_a_present_gateway_keeps_what_it_owns(two: Two) -> None:
    async with read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        await two.store.pass_time(0.1)
        assert await two.ben.take_over() == ()
        assert await two.ben.claim("standup", {1: ["ja"]}) == {}


async def test_work_of_a_lost_gateway_is_taken_once(two: Two) -> None:
    clara = await two.store.gateway()
    async with read(two.ben, "de", "ja"):
        await two.ana.accept("standup", HELLO)
        await two.ana.conclude("standup", translated("hallo", lang="de"))
        await two.store.lose(two.ana)
        assert await clara.claim("standup", {1: ["ja"]}) == {}, "what was left is taken over, not claimed"
        taken = [*await two.ben.take_over(), *await clara.take_over()]
        assert taken == [Unfinished("standup", HELLO, 1, ("ja",), tries=2)]
        assert await two.ana.conclude("standup", untranslated("no luck")) is None, "it comes back too late"
        assert await two.ben.conclude("standup", translated("やあ")) is not None
        assert await two.ana.conclude("standup", translated("やあ")) is None


async def test_work_of_a_leaving_gateway_is_taken_immediately(two: Two) -> None:
    async with read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        await two.ana.close()
        assert await two.ben.take_over() == (Unfinished("standup", HELLO, 1, ("ja",), tries=1),)
        assert await two.ben.take_over() == ()


async def test_leaving_gateways_are_no_tries(two: Two) -> None:
    async with read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        await two.ana.close()
        for _ in range(4):
            gateway = await two.store.gateway()
            assert await gateway.take_over() == (Unfinished("standup", HELLO, 1, ("ja",), tries=1),)
            assert await gateway.claim("standup", {1: ["ja"]}) == {1: ("ja",)}
            await gateway.close()


async def test_what_only_waited_at_a_lost_gateway_is_no_try(two: Two) -> None:
    async with read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        await two.store.lose(two.ana)
        for begins, tries in ((False, 2), (False, 2), (True, 2), (True, 3), (False, 4)):
            gateway = await two.store.gateway()
            assert await gateway.take_over() == (Unfinished("standup", HELLO, 1, ("ja",), tries=tries),)
            if begins:
                assert await gateway.claim("standup", {1: ["ja"]}) == {1: ("ja",)}
            await two.store.lose(gateway)


async def test_what_was_trimmed_is_taken_over_with_its_text(open_store: OpenStore) -> None:
    async with two_gateways(open_store, max_publications=2) as two, read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        for n in range(3):
            accepted = await two.ana.accept("standup", utterance(f"more {n}"))
            await two.ana.conclude("standup", translated("もっと", said=accepted.offset, utterance=f"more {n}"))
        await two.ana.close()
        assert await two.ben.take_over() == (Unfinished("standup", HELLO, 1, ("ja",), tries=1),)


async def test_a_reader_whose_gateway_is_gone_reads_no_more(two: Two) -> None:
    async with read(two.ben, "ja"), read(two.ana, "de"):
        await two.store.lose(two.ben)
        assert (await two.ana.accept("standup", HELLO)).owned == ("de",)


# What is recent


async def say(log: EventLog, *names: str) -> None:
    """Utterances that are translated into Japanese, if anybody reads it."""
    for name in names:
        accepted = await log.accept("standup", utterance(name))
        await log.conclude("standup", translated("はい", said=accepted.offset, utterance=name))


async def test_the_newest_utterances_and_all_that_came_since(two: Two) -> None:
    async with read(two.ben, "ja"):
        await say(two.ana, "one", "two", "three")
        log = await two.ben.read("standup", 0)
        assert await two.ben.recent("standup", 2) == Recent(replace(log, publications=log.publications[2:]))
        assert await two.ben.recent("standup", 3) == await two.ana.recent("standup", 9) == Recent(log)
        assert await two.ben.recent("standup", 0) == Recent(replace(log, publications=()))


async def test_more_than_a_page_of_them_is_read_on(two: Two) -> None:
    async with read(two.ben, "ja"):
        await say(two.ana, *"abcde")
        log = await two.ben.read("standup", 0)
        page = (await two.ben.recent("standup", 4, limit=3)).page
        assert page == replace(log, publications=log.publications[2:5])
        assert (await two.ben.read("standup", 5)).publications == log.publications[5:]


async def test_a_meeting_without_a_log_has_nothing_recent(two: Two) -> None:
    for _ in range(2):
        assert await two.ben.recent("standup", 5) == Recent(Page("", first=1, last=0))


async def test_older_unfinished_utterances_are_told_with_outcomes(two: Two) -> None:
    async with read(two.ben, "de", "fr", "ja"):
        await two.ana.accept("standup", HELLO)
        await two.ana.conclude("standup", translated("hallo", lang="de"))
        await two.ana.conclude("standup", untranslated("no luck", lang="fr"))
    await say(two.ana, "more", "newest")
    owed = Owed(HELLO, 1, ("ja",), {"de": True, "fr": False})
    assert (await two.ben.recent("standup", 2)).unfinished == (owed,)
    assert (await two.ben.recent("standup", 3)).unfinished == (), "its publications tell that"
    # Somebody claims it for a latecomer, and its speaker sends it again.
    await two.ben.claim("standup", {1: ["it"]})
    async with read(two.ben, "fr"):
        await two.ana.accept("standup", HELLO)
    owed = Owed(HELLO, 1, ("fr", "it", "ja"), {"de": True})
    assert (await two.ben.recent("standup", 0)).unfinished == (owed,)
    for lang in owed.languages:
        await two.ana.conclude("standup", translated("…", lang=lang))
    assert (await two.ben.recent("standup", 0)).unfinished == ()


async def test_trimmed_unfinished_utterances_are_told_too(open_store: OpenStore) -> None:
    async with two_gateways(open_store, max_publications=3) as two, read(two.ben, "de", "ja"):
        for name in ("first", "second"):
            await two.ana.accept("standup", utterance(name))
        await two.ana.conclude("standup", untranslated("no luck", utterance="first"))
        await say(two.ana, "more", "newest")
        log = await two.ben.read("standup", 0)
        assert offsets(log.publications) == [5, 6, 7]
        unfinished = (
            Owed(utterance("first"), 1, ("de",), {"ja": False}),
            Owed(utterance("second"), 2, ("de", "ja")),
            Owed(utterance("more"), 4, ("de",), {"ja": True}),
        )
        for utterances in (1, 9):
            recent = await two.ben.recent("standup", utterances)
            assert recent == Recent(replace(log, publications=log.publications[1:]), unfinished)


async def test_what_has_expired_is_not_recent_and_still_owed(open_store: OpenStore) -> None:
    async with two_gateways(open_store, keep_s=1) as two, read(two.ben, "ja"):
        await two.ana.accept("standup", HELLO)
        epoch = (await two.ben.read("standup", 0)).epoch
        await two.store.pass_time(1.1)
        assert await two.ben.recent("standup", 5) == Recent(Page(epoch, 2, 1), (Owed(HELLO, 1, ("ja",)),))


# In any order


@pytest.mark.parametrize("opened", STORES.values(), ids=list(STORES))
@settings(deadline=None, max_examples=30)
@given(
    tries=st.lists(
        st.tuples(st.sampled_from(("accept", "translated", "failed")), st.integers(0, 1), st.integers(1, 3)),
        max_size=25,
    )
)
def test_promises_have_one_outcome_in_any_order(opened: OpenStore, tries: list[tuple[str, int, int]]) -> None:
    """Two gateways accept and conclude the same three utterances at once, and again."""

    async def meeting() -> None:
        async with two_gateways(opened) as two, read(two.ben, "ja"):
            gateways = (two.ana, two.ben)

            async def step(what: str, gateway: EventLog, number: int) -> None:
                accepted = await gateway.accept("standup", utterance(str(number), id=str(number)))
                said = accepted.offset
                if what == "translated":
                    await gateway.conclude("standup", translated("はい", said=said, utterance=str(number)))
                elif what == "failed":
                    await gateway.conclude("standup", untranslated("no luck", said=said, utterance=str(number)))

            await asyncio.gather(*(step(what, gateways[which], number) for what, which, number in tries))
            log = [each.event for each in (await two.ana.read("standup", 0)).publications]
            said = [event.utterance.id for event in log if isinstance(event, Said)]
            assert sorted(said) == sorted({str(number) for _, _, number in tries})
            for number in said:
                outcomes = [
                    type(event)
                    for event in log
                    if isinstance(event, Translated | Untranslated) and event.utterance == number
                ]
                # Whatever failed may be tried again; what is translated is the end.
                assert all(kind is Untranslated for kind in outcomes[:-1]), outcomes

    asyncio.run(meeting())
