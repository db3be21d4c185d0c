"""Corrections: what speaker, readers, latecomers and the transcript have of them, at one and at two gateways."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from gateway.client.lines import Line, Lines
from gateway.client.received import Received
from gateway.domain.errors import InvalidValue, LimitExceeded, UnknownUtterance
from gateway.domain.log import LoggedEvent, Page, Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.meeting.feed import Feed
from gateway.meeting.outbox import Outbox
from gateway.meeting.transcript import Transcript, transcript
from gateway.protocol.messages import (
    Caption,
    Error,
    ServerMessage,
    SessionStart,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
    UtteranceFinal,
    UtterancePartial,
    UtteranceReplaced,
)
from gateway.sessions.entrance import Entry
from gateway.sessions.machine import Accept, Acknowledge, Reply
from gateway.stores.memory_log import MemoryStore
from tests.scripted_gateway import STARTED
from tests.sessions.desk import Connection, Desk, desk, joined, resume_of
from tests.sessions.talk import only
from tests.sessions.two_gateways import two
from tests.translation.stage import Log, until
from tests.usual import usual


async def says(d: Desk, by: tuple[Entry, Connection], id: str, text: str, replaces: str | None = None) -> bool:
    entry, connection = by
    accept = only(Accept, connection.send(UtteranceFinal(id, 1, text, replaces=replaces)))
    return await d.sessions.accept(entry.session, accept)


async def translate(d: Desk, text: str) -> None:
    await until(d.core.engine.pending)
    d.core.engine.says(text)
    await d.core.finals.quiet()


async def read(d: Desk) -> Transcript:
    return transcript((await d.core.log.read("m", 0)).publications)


def texts(made: Transcript, lang: str = "en") -> list[str | None]:
    return [spoken.text_in(lang) for spoken in made.utterances]


def brief(messages: list[Any]) -> list[tuple[Any, ...]]:
    """What of them matters here."""
    shown: list[tuple[Any, ...]] = []
    for message in messages:
        match message:
            case UtteranceAccepted(id=id):
                shown.append(("accepted", id))
            case UtteranceReplaced(utterances=utterances, by=by):
                shown.append(("replaced", utterances, by))
            case Caption(utterance=id, text=text) | TranslationFinal(utterance=id, text=text):
                shown.append((type(message).__name__.lower(), id, text))
            case TranslationFailed(utterance=id, code=code):
                shown.append(("failed", id, code))
    return shown


@contextlib.asynccontextmanager
async def talk() -> AsyncIterator[tuple[Desk, tuple[Entry, Connection], tuple[Entry, Connection]]]:
    """Ana speaks English, Bo reads German alone."""
    async with desk() as d:
        ana = await joined(d, name="Ana", speaks="en")
        bo = await joined(d, name="Bo", reads=["de"], stability="final")
        yield d, ana, bo


# ---------------------------------------------------------------- correcting and taking back


async def test_a_correction_is_told_to_who_reads_only_translations() -> None:
    async with talk() as (d, ana, bo):
        await says(d, ana, "1", "On Tuesday.")
        await translate(d, "Am Dienstag.")
        await ana[1].received()
        await bo[1].received()
        await says(d, ana, "2", "On Thursday.", "1")
        await translate(d, "Am Donnerstag.")
        replaced = ("replaced", ["1"], "2")
        assert brief(await ana[1].received()) == [
            ("accepted", "2"),
            replaced,
            ("caption", "2", "On Thursday."),
        ]
        assert brief(await bo[1].received()) == [replaced, ("translationfinal", "2", "Am Donnerstag.")]
        assert (texts(await read(d)), texts(await read(d), "de")) == (["On Thursday."], ["Am Donnerstag."])
        assert ana[1].state.in_flight == 0


async def test_what_is_taken_back_is_not_translated_and_not_in_the_transcript() -> None:
    async with talk() as (d, ana, bo):
        await says(d, ana, "1", "On Tuesday.")
        await translate(d, "Am Dienstag.")
        await says(d, ana, "2", "Yes.")
        await translate(d, "Ja.")
        await bo[1].received()
        await says(d, ana, "3", " ", "1")
        assert not d.core.engine.pending()
        assert ana[1].state.in_flight == 0
        assert brief(await bo[1].received()) == [("replaced", ["1"], None)]
        assert texts(await read(d)) == ["Yes."]
        late = await joined(d, name="Cy", reads=["en", "fr"])
        await until(d.core.engine.pending)
        assert [request.text for request in d.core.engine.pending()] == ["Yes."]
        assert brief(await late[1].received()) == [("caption", "2", "Yes."), ("replaced", ["1"], None)]


async def test_the_translation_of_what_was_corrected_stops() -> None:
    async with talk() as (d, ana, bo):
        await says(d, ana, "1", "On Tuesday.")
        await until(d.core.engine.pending)
        await says(d, ana, "2", "On Thursday.", "1")
        await until(lambda: [request.text for request in d.core.engine.pending()] == ["On Thursday."])
        await translate(d, "Am Donnerstag.")
        assert brief(await bo[1].received()) == [
            ("replaced", ["1"], "2"),
            ("failed", "1", "cancelled"),
            ("translationfinal", "2", "Am Donnerstag."),
        ]
        (spoken,) = (await read(d)).utterances
        assert (spoken.translations, spoken.failures) == ({"de": "Am Donnerstag."}, {})


@pytest.mark.parametrize("named", ["1", "2"])
async def test_a_correction_is_corrected_by_its_own_id_or_the_first(named: str) -> None:
    async with talk() as (d, ana, _bo):
        await says(d, ana, "1", "On Tuesday.")
        await says(d, ana, "2", "On Wednesday.", "1")
        await says(d, ana, "x", "And so on.")
        await says(d, ana, "3", "On Thursday.", named)
        assert texts(await read(d)) == ["On Thursday.", "And so on."]
        await until(
            lambda: {request.text for request in d.core.engine.pending()} == {"On Thursday.", "And so on."}
        )


async def test_what_corrects_something_taken_back_stands_beside_later_corrections_of_it() -> None:
    async with talk() as (d, ana, _bo):
        await says(d, ana, "1", "On Tuesday.")
        await says(d, ana, "2", "", "1")
        await says(d, ana, "3", "On Thursday.", "1")
        await says(d, ana, "4", "Bring the slides.", "1")
        lines = ["On Thursday.", "Bring the slides."]
        late = await joined(d, name="Cy", reads=["en"])
        assert [shown[2] for shown in brief(await late[1].received()) if shown[0] == "caption"] == lines
        assert texts(await read(d)) == lines
        await until(lambda: {request.text for request in d.core.engine.pending()} == set(lines))


async def test_an_utterance_in_segments_is_corrected_as_a_whole_or_one_by_one() -> None:
    sentence = "This is a sentence of quite some length, which goes on until it ends {} words later, so to say. "
    async with desk() as d:
        ana = await joined(d, speaks="en")
        await says(d, ana, "u", "".join(sentence.format(n) for n in ("two", "three", "four")))
        first, _, third = texts(await read(d))
        await says(d, ana, "c", "The middle.", "u~2")
        assert texts(await read(d)) == [first, "The middle.", third]
        await says(d, ana, "d", "The first.", "u~1")
        assert texts(await read(d)) == ["The first.", "The middle.", third]
        await says(d, ana, "e", "Short.", "u")
        (spoken,) = (await read(d)).utterances
        assert (spoken.utterance.text, set(spoken.replaces)) == ("Short.", {"u", "u~2", "u~3", "c", "d"})


# ---------------------------------------------------------------- where a correction stands


def places(messages: list[Any]) -> list[tuple[Any, ...]]:
    return [(each.by, each.place, each.at_ms) for each in messages if isinstance(each, UtteranceReplaced)]


@pytest.mark.parametrize("named", ["1", "2"])
async def test_everybody_is_told_where_and_when_what_was_corrected_was_said(named: str) -> None:
    async with talk() as (d, ana, bo):
        await says(d, ana, "1", "On Tuesday.")
        await says(d, ana, "x", "At ten.")
        at_ms = (await d.core.log.read("m", 0)).publications[0].at_ms
        d.core.log.store.logs._wall_clock = lambda: at_ms / 1_000 + 60
        await says(d, ana, "2", "On Wednesday.", "1")
        await says(d, ana, "3", "On Thursday.", named)
        expected = [("2", 1, at_ms), ("3", 1, at_ms)]
        assert places(await bo[1].received()) == expected
        late = await joined(d, reads=["en"])
        assert places(await late[1].received()) == expected
        first = (await read(d)).utterances[0]
        assert (first.utterance.id, first.offset, first.at_ms) == ("3", 1, at_ms)


async def test_a_new_line_in_place_of_what_was_taken_back_has_no_other_place() -> None:
    async with talk() as (d, ana, bo):
        for id, text, replaces in (("1", "On Tuesday.", None), ("2", "", "1"), ("3", "On Thursday.", "1")):
            await says(d, ana, id, text, replaces)
        assert places(await bo[1].received()) == [(None, UNSET, UNSET), ("3", UNSET, UNSET)]


async def test_what_corrects_something_that_was_trimmed_since_stands_where_it_is() -> None:
    said = Utterance("2", 1, "Thursday.", "en", "ana", "Ana", final=True, replaces=("1",), place=4, placed_ms=7)
    for first, expected in ((4, ("2", 4, 7)), (5, ("2", UNSET, UNSET))):
        outbox = Outbox(10**7)
        feed = Feed(outbox, 8, participant="bo", wants=_wants)
        await feed.replay(Page("e", first, 9, (Publication(9, 9, Said(said)),)))
        assert places([payload.message for payload in await outbox.get()]) == [expected]


# ---------------------------------------------------------------- what an earlier session said


async def corrects_as(
    d: Desk, by: tuple[Entry, Connection], id: str, text: str, replaces: str, participant: str
) -> bool:
    final = UtteranceFinal(id, 1, text, replaces=replaces, participant=participant)
    return await d.sessions.accept(by[0].session, only(Accept, by[1].send(final)))


async def test_the_same_person_corrects_what_an_earlier_session_said() -> None:
    async with two() as g:
        ana = await joined(g.here, name="Ana", speaks="en", guest="ana's")
        before = ana[0].session.member.participant
        bo = await joined(g.here, reads=["en", "de"], stability="final")
        await says(g.here, ana, "1", "On Tuesday.")
        await translate(g.here, "Am Dienstag.")
        g.here.sessions.local.end(ana[0].session)
        again = await joined(g.there, name="Ana", speaks="en", guest="ana's")
        await bo[1].received()
        await again[1].received()
        assert not await corrects_as(g.there, again, "2", "On Thursday.", "1", before)
        await translate(g.there, "Am Donnerstag.")
        assert again[1].state.in_flight == 0
        shown = ("replaced", ["1"], "2"), ("caption", "2", "On Thursday.")
        assert brief(await again[1].received()) == [("accepted", "2"), *shown]
        heard = await bo[1].received()
        assert brief(heard) == [*shown, ("translationfinal", "2", "Am Donnerstag.")]
        assert {each.participant for each in heard if isinstance(each, Caption | UtteranceReplaced)} == {before}
        again[1].state._known.forget("2")  # the answer was lost
        assert await corrects_as(g.there, again, "2", "On Thursday.", "1", before)
        await corrects_as(g.there, again, "3", "", "2", before)
        assert texts(await read(g.here)) == []


@pytest.mark.parametrize(("own", "other"), [("ana's", "eve's"), ("ana's", None), (None, None)])
async def test_nobody_corrects_what_somebody_else_said(own: str | None, other: str | None) -> None:
    async with desk() as d:
        ana = await joined(d, name="Ana", speaks="en", guest=own)
        eve = await joined(d, name="Eve", speaks="en", guest=other)
        await says(d, ana, "1", "On Tuesday.")
        await says(d, ana, "2", "On Thursday.", "1")
        participant = ana[0].session.member.participant
        for id, text, replaces in (("9", "Never.", "1"), ("9", "", "2"), ("2", "On Thursday.", "1")):
            with pytest.raises(UnknownUtterance) as refused:
                await corrects_as(d, eve, id, text, replaces, participant)
            assert refused.value.field == "replaces"
        assert texts(await read(d)) == ["On Thursday."]


async def test_where_nothing_is_kept_nobody_corrects_an_earlier_session() -> None:
    async with desk(log=Log(store=usual(MemoryStore, record=False))) as d:
        ana = await joined(d, speaks="en", guest="ana's")
        await says(d, ana, "1", "On Tuesday.")
        d.core.log.store.meeting("m").by_key.clear()  # some seconds later
        again = await joined(d, speaks="en", guest="ana's")
        with pytest.raises(UnknownUtterance):
            await corrects_as(d, again, "2", "On Thursday.", "1", ana[0].session.member.participant)


async def test_the_translation_of_a_correction_is_cancelled_by_who_sent_it() -> None:
    async with talk() as (d, _ana, bo):
        ana = await joined(d, name="Ana", speaks="en", guest="ana's")
        again = await joined(d, name="Ana", speaks="en", guest="ana's")
        await says(d, ana, "1", "On Tuesday.")
        await translate(d, "Am Dienstag.")
        await corrects_as(d, again, "2", "On Thursday.", "1", ana[0].session.member.participant)
        await until(d.core.engine.pending)
        d.sessions.cancel(again[0].session, "2")
        await d.core.finals.quiet()
        assert ("failed", "2", "cancelled") in brief(await bo[1].received())


# ---------------------------------------------------------------- what is refused


async def test_only_who_said_it_corrects_it() -> None:
    async with talk() as (d, ana, _bo):
        eve = await joined(d, name="Eve", speaks="en")
        await says(d, ana, "1", "On Tuesday.")
        with pytest.raises(UnknownUtterance) as refused:
            await says(d, eve, "2", "Never.", "1")
        assert refused.value.field == "replaces"
        assert texts(await read(d)) == ["On Tuesday."]
        assert eve[1].state.in_flight == 0
        await says(d, ana, "3", "", "1")
        with pytest.raises(UnknownUtterance):
            await says(d, ana, "4", "Nothing stands there.", "3")


@pytest.mark.parametrize(
    ("replaces", "text", "code", "field"),
    [
        ("2", "x", InvalidValue.code, "replaces"),
        ("2~3", "x", InvalidValue.code, "replaces"),
        ("", "x", InvalidValue.code, "replaces"),
        ("i" * 65, "x", LimitExceeded.code, "replaces"),
        ("1", "x" * 2_001, LimitExceeded.code, "text"),
        ("begun", "x", InvalidValue.code, "replaces"),
    ],
)
async def test_what_no_correction_can_be(replaces: str, text: str, code: str, field: str) -> None:
    async with talk() as (d, ana, _bo):
        await says(d, ana, "1", "On Tuesday.")
        if replaces == "begun":
            ana[1].send(UtterancePartial("2", 1, "On"))
        effects = ana[1].send(UtteranceFinal("2", 2, text, replaces=replaces))
        error = only(Reply, effects[:1]).message
        assert isinstance(error, Error)
        assert (error.code, error.field, error.utterance) == (code, field, "2")


async def test_where_nothing_is_kept_a_correction_is_taken_for_right() -> None:
    async with desk(log=Log(store=usual(MemoryStore, record=False))) as d:
        ana = await joined(d, speaks="en")
        await says(d, ana, "2", "On Thursday.", "1")
        assert brief(await ana[1].received())[1] == ("replaced", ["1"], "2")


async def test_a_sentence_that_was_taken_back_is_no_context_of_the_next() -> None:
    async with talk() as (_d, ana, _bo):
        ana[1].send(UtteranceFinal("1", 1, "One."))
        ana[1].send(UtteranceFinal("2", 1, "Two."))
        ana[1].send(UtteranceFinal("3", 1, "", replaces="1"))
        assert ana[1].state._options.preceding() == ("Two.",)


# ---------------------------------------------------------------- connections, and two gateways


async def test_a_correction_that_is_sent_again_is_taken_once() -> None:
    async with two() as g:
        ana = await joined(g.here, speaks="en")
        await says(g.here, ana, "1", "On Tuesday.")
        await says(g.here, ana, "2", "On Thursday.", "1")
        assert ana[1].send(UtteranceFinal("2", 1, "On Thursday.", replaces="1")) == [Acknowledge("2", 1)]
        moved = await joined(g.there, speaks="en", resume=resume_of(ana[0], 2))
        sent = moved[1].send(UtteranceFinal("2", 1, "On Thursday.", replaces="1"))
        assert sent == [Acknowledge("2", 1)]
        # Also where the session does not know it any more, and the log has only the correction.
        moved[1].state._known.forget("2")
        g.there.core.log.store.meeting("m").by_key.pop((moved[1].state.participant, "1"))
        assert await says(g.there, moved, "2", "On Thursday.", "1")
        assert texts(await read(g.there)) == ["On Thursday."]


async def test_each_gateway_stops_what_it_translates_of_what_was_corrected() -> None:
    async with two(live=True) as g:
        ana = await joined(g.here, speaks="en")
        bo = await joined(g.there, reads=["de"])
        await says(g.here, ana, "1", "On Tuesday.")
        await until(g.here.core.engine.pending)
        moved = await joined(g.there, speaks="en", resume=resume_of(ana[0], 1))
        await says(g.there, moved, "2", "On Thursday.", "1")
        await until(lambda: not g.here.core.engine.pending())
        await translate(g.there, "Am Donnerstag.")
        await g.here.core.finals.quiet()
        assert ("replaced", ["1"], "2") in brief(await bo[1].received())
        (spoken,) = (await read(g.here)).utterances
        assert spoken.translations == {"de": "Am Donnerstag."}


async def test_who_was_away_gets_the_correction() -> None:
    async with talk() as (d, ana, bo):
        await says(d, ana, "1", "On Tuesday.")
        await translate(d, "Am Dienstag.")
        seen = bo[0].session.room.offset
        d.sessions.local.away(bo[0].session, bo[0].feed)
        await says(d, ana, "2", "On Thursday.", "1")
        await translate(d, "Am Donnerstag.")
        again = await joined(d, reads=["de"], stability="final", resume=resume_of(bo[0], seen))
        assert brief(await again[1].received()) == [
            ("replaced", ["1"], "2"),
            ("translationfinal", "2", "Am Donnerstag."),
        ]


async def test_latecomer_sees_the_lines_that_were_not_corrected_too() -> None:
    async with two() as g:
        ana = await joined(g.here, speaks="en")
        keep = ana[0].session.room.history.keep
        for number in range(keep):
            await says(g.here, ana, str(number), f"Line {number}.")
        for number in range(keep + 10):
            await says(g.here, ana, f"c{number}", f"Correction {number}.", "5")
        standing = [f"Line {number}." for number in range(keep) if number != 5]
        for d in (g.here, g.there):  # the second one has the meeting from the log alone
            late = await joined(d, reads=["en"])
            captions = [each.text for each in await late[1].received() if isinstance(each, Caption)]
            assert captions == [*standing, f"Correction {keep + 9}."]


# ---------------------------------------------------------------- any order

_LANGS = ("de", "ja")


@st.composite
def logs(draw: st.DrawFn) -> list[Publication]:
    """Finals of two people, corrections of what each said, and outcomes of all that, in any order."""
    events: list[LoggedEvent] = []
    ids: dict[str, list[str]] = {"ana": [], "bo": []}
    corrections, taking_back = set[str](), set[str]()
    for number in range(draw(st.integers(1, 14))):
        who = draw(st.sampled_from(["ana", "bo"]))
        kind = draw(st.sampled_from(["final", "correction", "back", "outcome", "outcome"]))
        if kind == "outcome":
            known = [(name, id) for name, own in ids.items() for id in own]
            if not known:
                continue
            name, id = draw(st.sampled_from(known))
            lang = draw(st.sampled_from(_LANGS))
            ended = any(
                not isinstance(each, Said) and (each.participant, each.utterance, each.lang) == (name, id, lang)
                for each in events
            )
            if not ended:
                done: LoggedEvent = Translated(name, id, name, lang, 1, f"{lang} {id}", Timings(0, 1, 2), tokens=1)
                failed: LoggedEvent = Untranslated(name, id, name, lang, 1, "cancelled", "It was cancelled.")
                events.append(draw(st.sampled_from([done, failed])))
            continue
        id, replaces = str(number), tuple[str, ...]()
        if kind != "final" and ids[who]:
            replaces = (draw(st.sampled_from(ids[who])),)
            plain = [each for each in ids[who] if each not in corrections]
            if draw(st.booleans()) and len(plain) > 1:  # as segments of one utterance
                at = draw(st.integers(0, len(plain) - 2))
                replaces = (plain[at], plain[at + 1])
            corrections.add(id)
        text = f"en {number}"
        if kind == "back" and replaces:
            text = ""
            taking_back.add(id)
        events.append(Said(Utterance(id, 1, text, "en", who, who, final=True, replaces=replaces), _LANGS))
        if id not in taking_back:
            ids[who].append(id)
    return [Publication(offset, offset, event) for offset, event in enumerate(events, 1)]


async def _messages(publications: list[Publication], after: int) -> list[ServerMessage]:
    """What a reader gets who resumes behind an offset."""
    outbox = Outbox(10**7)
    feed = Feed(outbox, after, participant="bo", wants=_wants)
    for part in (tuple(each for each in publications if each.offset > after), ()):
        await feed.replay(Page("e", 1, len(publications), part))
    return [payload.message for payload in await outbox.get()] if outbox.bytes else []


def _wants(publication: Publication) -> bool:
    event = publication.event
    return not (isinstance(event, Said) and event.utterance.is_taking_back)


@given(publications=logs(), cuts=st.lists(st.integers(0, 12), max_size=4))
async def test_every_reader_ends_with_the_transcript_wherever_connections_break(
    publications: list[Publication], cuts: list[int]
) -> None:
    started = replace(STARTED, epoch="e", offset=0)
    received = Received(started)
    lines, screen = Lines(SessionStart(["en", *_LANGS]), started), dict[str, Line]()
    for cut in [*cuts, None]:
        for message in (await _messages(publications, received.position.offset))[:cut]:
            event: ServerMessage | None = message
            if isinstance(message, UtteranceReplaced):
                event = received.replace(message)
            elif not received.is_new(message):
                event = None
            for line in lines.apply(event) if event is not None else ():
                screen[line.key] = line
                if line.gone:
                    del screen[line.key]
        received.restarted(replace(started, recovered=True))
    made = transcript(publications)
    shown = {(line.participant, line.utterance, line.lang): line.text for line in screen.values() if line.text}
    expected = {
        (spoken.utterance.participant, spoken.utterance.id, lang): text
        for spoken in made.utterances
        for lang in ("en", *_LANGS)
        if (text := spoken.text_in(lang))
    }
    assert shown == expected
    english = [line.utterance for line in screen.values() if line.lang == "en"]
    assert english == [spoken.utterance.id for spoken in made.utterances]
    offsets = [spoken.offset for spoken in made.utterances]
    assert offsets == sorted(offsets)
