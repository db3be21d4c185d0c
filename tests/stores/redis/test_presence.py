"""Who is present in a meeting, by pushes and by reading, in whichever order they come."""

from __future__ import annotations

import pytest

from gateway.domain.session_store import Present
from gateway.stores.redis.presence import MeetingPresence, encode_present


def present(name: str) -> Present:
    return Present(name, "en", ("de",))


def value(name: str, came: int = 1) -> bytes:
    return b"%d %s" % (came, encode_present(present(name)))


def push(version: int, previous: int, participant: str, name: str | None = None) -> bytes:
    return b"%d %d %s\n%s" % (version, previous, participant.encode(), b"" if name is None else value(name))


class Audience:
    def __init__(self, meeting: MeetingPresence) -> None:
        self.told: list[tuple[str, Present | None]] = []
        meeting.add(self, lambda *change: self.told.append(change))

    def new(self) -> list[tuple[str, Present | None]]:
        told, self.told = self.told, []
        return told


def meeting(version: int | None = 5) -> tuple[MeetingPresence, Audience]:
    made = MeetingPresence("m")
    if version is not None:
        made.read(version, [b"ana", value("Ana")], 0)
    return made, Audience(made)


def test_each_change_is_delivered_once() -> None:
    m, audience = meeting()
    assert audience.new() == [("ana", present("Ana"))]
    assert not m.push(push(6, 5, "bo", "Bo"))
    assert not m.push(push(7, 6, "bo", "Bob"))
    assert not m.push(push(7, 6, "bo", "Bob"))
    assert not m.push(push(8, 7, "bo"))
    assert audience.new() == [("bo", present("Bo")), ("bo", present("Bob")), ("bo", None)]


def test_before_it_was_read_and_after_a_gap_it_is_to_be_read() -> None:
    m, audience = meeting(None)
    assert m.push(push(1, 0, "ana", "Ana"))
    assert audience.new() == []
    m, audience = meeting()
    audience.new()
    assert m.push(push(7, 6, "bo", "Bo"))
    m.read(7, [b"bo", value("Bo")], m.pushed)
    assert audience.new() == [("ana", None), ("bo", present("Bo"))]


def test_the_first_who_comes_after_everybody_had_left_needs_no_reading() -> None:
    m = MeetingPresence("m")
    m.read(0, [], 0)
    assert not m.push(push(900, 0, "ana", "Ana"))
    assert m.version == 900


def test_what_was_read_before_a_push_does_not_undo_it() -> None:
    m, audience = meeting()
    pushed = m.pushed
    m.push(push(6, 5, "ana"))
    audience.new()
    m.read(5, [b"ana", value("Ana")], pushed)
    assert (audience.new(), m.version) == ([], 6)


def test_an_older_copy_of_the_store_counts_when_nothing_newer_was_pushed() -> None:
    m, audience = meeting()
    audience.new()
    m.read(3, [], m.pushed)
    assert (audience.new(), m.version) == ([("ana", None)], 3)


def test_everybody_is_delivered_in_the_order_in_which_they_came() -> None:
    m = MeetingPresence("m")
    m.read(9, [b"cy", value("Cy", 8), b"ana", value("Ana", 2), b"bo", value("Bo", 5)], 0)
    assert [participant for participant, _ in Audience(m).new()] == ["ana", "bo", "cy"]


def test_who_has_gone_is_told_nothing() -> None:
    m, audience = meeting()
    audience.new()
    m.remove(audience)
    m.remove(audience)
    m.push(push(6, 5, "ana"))
    assert audience.new() == []


def test_a_participant_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    m, audience = meeting()
    m.read(6, [b"ana", value("Ana"), b"bo", b"6 nonsense"], m.pushed)
    assert audience.new() == [("ana", present("Ana"))]
    assert "newer gateway" in caplog.text
