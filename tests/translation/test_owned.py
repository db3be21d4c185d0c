"""What is owed: in which meetings, and in which order."""

from __future__ import annotations

from gateway.meeting.room import Room
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from gateway.translation.owned import Owned
from tests.logs import utterance
from tests.usual import usual


def room(name: str) -> Room:
    return Room(name, MemoryEventLog(usual(MemoryStore)), private=False, snapshot=1)


def test_what_is_missing_comes_in_the_order_in_which_it_was_said() -> None:
    owned, here, there = Owned(), room("here"), room("there")
    one, two = utterance("one"), utterance("two")
    owned.add(here, two, 7, ["de", "ja"])
    owned.add(here, one, 3, ["de"])
    owned.add(there, one, 1, ["fr"])
    assert owned.where(here, lambda _, lang: lang == "de") == [(one, 3, ["de"]), (two, 7, ["de"])]
    assert owned.where(here, lambda _utterance, _lang: True) == [(one, 3, ["de"]), (two, 7, ["de", "ja"])]


def test_a_meeting_without_promises_is_forgotten() -> None:
    owned, here = Owned(), room("here")
    owned.add(here, utterance("one"), 1, [])
    assert here not in owned
    owned.add(here, utterance("one"), 1, ["de", "ja"])
    owned.remove(here, 1, "de")
    owned.remove(here, 1, "de")
    assert list(owned) == [here]
    owned.remove(here, 1, "ja")
    owned.remove(here, 2, "ja")
    assert (here in owned, list(owned)) == (False, [])
