"""Who of the members is shown what is not in the log."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gateway.domain.log import Utterance
from gateway.domain.sessions import Stability
from gateway.meeting.feed import Feed
from gateway.meeting.live_view import LiveView
from gateway.meeting.members import Member, Members
from gateway.protocol.messages import TranslationDelta
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


def test_a_partial_is_shown_by_stability_and_only_what_is_new() -> None:
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


def test_a_growing_final_is_shown_to_those_for_whom_it_was_said() -> None:
    room = Room()
    before, after = room.reader("de", since=7), room.reader("de", since=8)
    shown = room.view.text.final(SAID, "de", 7, "Wir")
    room.view.show_final(shown, " treffen")
    assert (texts(before), texts(after)) == ([(" treffen", "")], [])
    assert texts(room.reader("de", since=7)) == [("Wir treffen", "")]


def test_captions_go_to_readers_of_what_is_said_and_are_withdrawn_from_everybody() -> None:
    room = Room()
    english, german = room.reader("en"), room.reader("de")
    room.view.show_caption(SAID)
    assert (texts(english), texts(german)) == (["we will"], [])
    room.view.withdraw(SAID.key)
    assert len(english.put_so_far) == 2
    assert len(german.put_so_far) == 1
    assert texts(room.reader("en")) == []


def test_a_caption_in_another_language_than_before_is_told_once_to_those_who_saw_it() -> None:
    room = Room()
    german, english, french, both = (room.reader(lang) for lang in ("de", "en", "fr", "de,en"))
    room.view.show_caption(replace(SAID, text="so", lang="de"))
    room.view.show_caption(SAID)
    room.view.show_caption(replace(SAID, text="we will do"))
    assert texts(german) == ["so", "we will"]
    assert texts(english) == ["we will", "we will do"]
    assert texts(french) == []
    assert texts(both) == ["so", "we will", "we will do"]
