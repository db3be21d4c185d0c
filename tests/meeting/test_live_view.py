"""Who of the members is shown what is not in the log."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gateway.domain.log import Utterance
from gateway.domain.sessions import Stability
from gateway.meeting.feed import Feed
from gateway.meeting.live_view import HERE, LiveCaption, LiveText, LiveTranslation, LiveView
from gateway.meeting.members import Member, Members
from gateway.meeting.outbox import Payload
from gateway.protocol.messages import Pong, TranslationDelta
from tests.translation.stage import Unmerged

SAID = Utterance("u", 1, "we will", "en", "ana", "Ana", final=False)


class Room:
    def __init__(self) -> None:
        self.members = Members()
        self.view = LiveView(self.members)

    def reader(self, lang: str, stability: Stability = "live", *, since: int = 0, live: bool = True) -> Unmerged:
        name = f"{lang}-{stability}-{len(self.members)}"
        member = Member(
            participant=name,
            name=name,
            speaks=None,
            reads=tuple(lang.split(",")),
            stability=stability,
            since=since,
        )
        outbox = Unmerged()
        member.feed = Feed(outbox, 0, participant=name, wants=lambda _: True)
        member.feed._seam.live = live
        self.members.add(member)
        self.view.bring_up_to_date(member)
        return outbox


def texts(outbox: Unmerged) -> list[Any]:
    return [(m.committed, m.tentative) if isinstance(m, TranslationDelta) else m.text for m in outbox.put_so_far]


def test_partial_is_shown_incrementally_by_stability() -> None:
    room = Room()
    live, stable, final = (room.reader("de", stability) for stability in ("live", "stable", "final"))
    other, late = room.reader("fr"), room.reader("de", live=False)
    shown = room.view.text.partial(SAID, "de")
    for committed, tentative, changed in (
        ("", "Wir", True),
        ("Wir", " treffen", True),
        ("Wir", " treffen", False),
    ):
        assert room.view.show_partial(shown, 2, committed, tentative) is changed
    assert texts(live) == [("", "Wir"), ("Wir", " treffen")]
    assert texts(stable) == [("Wir", "")]
    assert texts(final) == texts(other) == texts(late) == []
    assert texts(room.reader("de")) == [("Wir", " treffen")]


def test_growing_final_reaches_those_it_was_said_for() -> None:
    room = Room()
    before, after = room.reader("de", since=7), room.reader("de", since=8)
    shown = room.view.text.final(SAID, "de", 7, "Wir")
    room.view.show_final(shown, " treffen")
    assert (texts(before), texts(after)) == ([(" treffen", "")], [])
    assert texts(room.reader("de", since=7)) == [("Wir treffen", "")]


def test_captions_reach_readers_and_withdrawals_everybody() -> None:
    room = Room()
    english, german = room.reader("en"), room.reader("de")
    room.view.show_caption(SAID)
    assert (texts(english), texts(german)) == (["we will"], [])
    room.view.withdraw(SAID.key)
    assert len(english.put_so_far) == 2
    assert len(german.put_so_far) == 1
    assert texts(room.reader("en")) == []


def test_language_change_is_told_once_to_former_readers() -> None:
    room = Room()
    german, english, french, both = (room.reader(lang) for lang in ("de", "en", "fr", "de,en"))
    room.view.show_caption(replace(SAID, text="so", lang="de"))
    room.view.show_caption(SAID)
    room.view.show_caption(replace(SAID, text="we will do"))
    assert texts(german) == ["so", "we will"]
    assert texts(english) == ["we will", "we will do"]
    assert texts(french) == []
    assert texts(both) == ["so", "we will", "we will do"]


# ---------------------------------------------------------------- captions and translations so far


def said(utterance: str = "u", rev: int = 1) -> Utterance:
    return Utterance(utterance, rev, "text", "en", "ana", "Ana", final=False)


def caption(utterance: str = "u", rev: int = 1) -> LiveCaption:
    return LiveCaption(said(utterance, rev), Payload(Pong(f"{utterance}{rev}")))


U, V = ("ana", "u"), ("ana", "v")


def test_newest_revision_keeps_its_utterances_place() -> None:
    live = LiveText()
    for each in (caption("u"), caption("v"), newest := caption("u", 2)):
        live.caption(each)
    assert [(shown.utterance.id, shown.utterance.rev) for shown in live.captions] == [("u", 2), ("v", 1)]
    assert next(live.captions) is newest


def test_partial_translation_continues_where_it_was() -> None:
    live = LiveText()
    first = live.partial(said(), "de")
    first.committed = "Wir"
    assert live.partial(said(rev=2), "de") is first
    assert live.partial(said(), "fr") is not first
    assert list(live.partials("de")) == [first]
    assert list(live.finals("de")) == []


def test_a_gateway_ends_only_what_it_makes_itself() -> None:
    live = LiveText()
    live.caption(caption())
    shown = live.partial(said(), "de")
    live.end_partial(U, "the gateway that had the session before")
    assert (len(list(live.captions)), list(live.partials("de"))) == (1, [shown])
    live.end_partial(U, HERE)
    assert (list(live.captions), list(live.partials("de"))) == ([], [])


def test_final_translation_begins_with_the_shown_text() -> None:
    live = LiveText()
    begun = live.final(said(), "de", said=7, shown="Wir")
    assert (begun.committed, begun.tentative, begun.said) == ("Wir", "", 7)
    again = live.final(said(), "de", said=7, shown="")
    assert list(live.finals("de")) == [again], "another attempt takes its place"


def test_away_speakers_partial_translation_stays() -> None:
    live = LiveText()
    live.caption(caption())
    shown = live.partial(said(), "de")
    live.end_caption(U)
    assert list(live.captions) == []
    assert list(live.partials("de")) == [shown]


def test_final_utterance_leaves_every_language_of_partials() -> None:
    live = LiveText()
    for utterance in ("u", "v"):
        live.caption(caption(utterance))
        for lang in ("de", "fr"):
            live.partial(said(utterance), lang)
    final = live.final(said(), "de", said=1, shown="")
    live.end_partial(U)
    assert [shown.utterance.id for shown in live.captions] == ["v"]
    assert [[shown.key[1] for shown in live.partials(lang)] for lang in ("de", "fr")] == [["v"], ["v"]]
    assert list(live.finals("de")) == [final]


def test_a_translation_that_has_ended_leaves_the_others() -> None:
    live = LiveText()
    live.final(said("u"), "de", said=1, shown="")
    other = live.final(said("v"), "de", said=2, shown="")
    french = live.final(said("u"), "fr", said=1, shown="")
    live.end_final(U, "de")
    assert (list(live.finals("de")), list(live.finals("fr"))) == ([other], [french])


def test_ending_what_is_not_there_changes_nothing() -> None:
    live = LiveText()
    live.end_caption(U)
    live.end_partial(U)
    live.end_final(U, "de")
    shown = live.final(said("v"), "de", said=1, shown="")
    live.end_final(U, "de")
    live.end_final(V, "fr")
    assert list(live.finals("de")) == [shown]


def test_finished_languages_leave_nothing_behind() -> None:
    live = LiveText()
    live.partial(said(), "de")
    live.final(said(), "de", said=1, shown="")
    live.end_partial(U)
    live.end_final(U, "de")
    assert (live._partials, live._finals, live._captions) == ({}, {}, {})


def test_newcomer_gets_the_shown_text_in_one() -> None:
    shown = LiveTranslation(U, 3, "de", committed="Wir", tentative=" treffen")
    assert shown.delta(tentative=True) == TranslationDelta("ana", "u", "de", 3, "Wir", " treffen")
    assert shown.delta(tentative=False) == TranslationDelta("ana", "u", "de", 3, "Wir", "")


def test_nothing_to_show_makes_no_delta() -> None:
    assert LiveTranslation(U, 1, "de").delta(tentative=True) is None
    assert LiveTranslation(U, 1, "de", tentative="Wir").delta(tentative=False) is None
    assert LiveTranslation(U, 1, "de", tentative="Wir").delta(tentative=True) is not None


def test_accepted_final_continues_another_gateways_text() -> None:
    live = LiveText()
    for lang in ("de", "fr", "ja"):
        live.partial_of(U, 1, lang, "elsewhere").committed = "Wir"
    live.partial(said(), "es")
    live.accepted(said(), 7, ["de", "es", "it"])
    assert [(shown.lang, shown.committed, shown.said) for shown in live.finals()] == [("de", "Wir", 7)]
    assert not list(live.partials())
    live.end_final_elsewhere(U, "de")
    assert not list(live.finals())


def test_what_is_made_here_ends_with_what_makes_it() -> None:
    live = LiveText()
    mine = live.final(said(), "de", said=7, shown="")
    live.end_final_elsewhere(U, "de")
    live.forget(["elsewhere"])
    assert list(live.finals()) == [mine]


def test_nothing_goes_on_of_a_gateway_that_is_gone() -> None:
    live = LiveText()
    for gateway in ("one", "another"):
        utterance = said(gateway)
        live.caption(LiveCaption(utterance, Payload(Pong(gateway)), gateway))
        live.partial_of(utterance.key, 1, "de", gateway)
        live.final_of(utterance.key, 1, "de", 7, gateway)
    live.forget(["one"])
    left = (*(c.utterance.id for c in live.captions), *(s.key[1] for s in (*live.partials(), *live.finals())))
    assert left == ("another",) * 3
