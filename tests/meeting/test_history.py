"""What a meeting remembers of its newest utterances: enough for newcomers, and never less than what is owed."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.log import (
    LoggedEvent,
    Owed,
    Page,
    Publication,
    Recent,
    Said,
    Timings,
    Translated,
    Untranslated,
    Utterance,
)
from gateway.meeting.history import History, Record


def spoken(name: str) -> Utterance:
    return Utterance(name, 1, "text", "en", "p", "Ana", final=True)


class Log:
    """Publications with offsets, noted as they are made."""

    def __init__(self, keep: int) -> None:
        self.history = History(keep)
        self.finished: list[Record] = []
        self._offsets = itertools.count(1)

    def publish(self, event: LoggedEvent) -> Publication:
        publication = Publication(next(self._offsets), 0, event)
        if (finished := self.history.note(publication)) is not None:
            self.finished.append(finished)
        return publication

    def said(self, utterance: str, *languages: str) -> Publication:
        return self.publish(Said(spoken(utterance), languages))

    def translated(self, utterance: str, lang: str = "ja") -> Publication:
        return self.publish(Translated("p", utterance, "Ana", lang, 1, "text", Timings(0, 0, 0), 1))

    def failed(self, utterance: str, lang: str = "ja") -> Publication:
        return self.publish(Untranslated("p", utterance, "Ana", lang, 1, "code", "message"))

    @property
    def unfinished(self) -> list[Record]:
        return list(self.history._unfinished.values())

    @property
    def newest(self) -> list[str]:
        return [record.utterance.id for record in self.history.newest()]


def test_the_newest_are_kept() -> None:
    log = Log(2)
    for name in "abc":
        log.said(name)
    assert log.newest == ["b", "c"]
    assert log.history.get(("p", "a")) is None


def test_unfinished_records_are_kept() -> None:
    log = Log(1)
    log.said("owed", "ja", "de")
    log.said("next")
    log.said("newest")
    log.translated("owed", "ja")
    assert log.newest == ["newest"]
    assert [(record.utterance.id, record.missing()) for record in log.unfinished] == [("owed", ["de"])]
    log.failed("owed", "de")
    assert log.unfinished == []
    log.said("after")
    assert log.history.get(("p", "owed")) is None


def test_repaired_failure_counts_as_translated() -> None:
    log = Log(1)
    log.said("u", "ja", "de")
    log.failed("u", "ja")
    log.translated("u", "ja")
    log.translated("u", "de")
    log.failed("u", "de")
    record = log.history.get(("p", "u"))
    assert record is not None
    assert record.outcomes == {"ja": True, "de": True}


def test_last_outcome_finishes_an_utterance_once() -> None:
    log = Log(2)
    log.said("u", "ja", "de")
    log.translated("u", "ja")
    assert log.finished == []
    log.failed("u", "de")
    log.said("nobody reads it")
    log.failed("u", "fr")
    assert [(record.utterance.id, record.failed) for record in log.finished] == [
        ("u", True),
        ("nobody reads it", False),
    ]


def test_only_promised_languages_count_as_failed() -> None:
    log = Log(2)
    log.said("u", "ja")
    log.translated("u", "ja")
    log.failed("u", "fr")
    record = log.history.get(("p", "u"))
    assert record is not None
    assert not record.failed


def test_unfinished_record_outlives_trimming() -> None:
    log = Log(2)
    log.said("u", "ja")
    log.history.trim(2)
    assert log.newest == []
    log.translated("u", "ja")
    assert [record.utterance.id for record in log.finished] == ["u"]
    assert log.history.get(("p", "u")) is None


def test_renewed_promise_is_unfinished_until_its_outcome() -> None:
    log = Log(0)
    log.said("u", "ja")
    log.failed("u", "ja")
    record = Record(spoken("u"), 1, {"ja"}, {"ja": False})
    log.history.promise(record, ["ja", "de"])
    assert record.missing() == ["de", "ja"]
    log.translated("u", "ja")
    assert log.unfinished == [record]
    log.translated("u", "de")
    assert (log.unfinished, record.failed) == ([], False)


def test_noting_an_entry_twice_changes_nothing() -> None:
    log = Log(2)
    said = log.said("u", "ja")
    log.translated("u")
    log.history.note(said)
    assert log.unfinished == []


def test_what_the_log_has_trimmed_is_forgotten() -> None:
    log = Log(3)
    for name in "abc":
        log.said(name, "ja")
    log.history.trim(3)
    assert log.newest == ["c"]
    log.history.trim(9)
    assert log.newest == []


def test_nothing_is_kept_where_nothing_is_shown() -> None:
    log = Log(0)
    log.said("a")
    assert log.newest == []


def test_newer_record_is_not_dropped_for_older() -> None:
    log = Log(2)
    log.said("a", "ja")
    log.said("b", "ja")
    log.translated("b")
    log.said("c", "ja")
    log.translated("a")
    assert log.newest == ["b", "c"]


# What the log tells to begin with


def recent(log: Log, *publications: Publication, unfinished: tuple[Owed, ...] = ()) -> int:
    last = publications[-1].offset if publications else 0
    return log.history.recall(Recent(Page("e1", 1, last, publications), unfinished))


def test_history_begins_with_recent_and_continues() -> None:
    log, before = Log(2), Log(2)
    publications = [before.said("a", "ja"), before.translated("a"), before.said("b", "ja")]
    assert log.history.recall(Recent(Page("e1", 1, 9, tuple(publications)))) == 3, "the rest is read on"
    assert log.newest == ["a", "b"]
    assert [record.utterance.id for record in log.unfinished] == ["b"]
    assert Log(2).history.recall(Recent(Page("e1", 10, 9))) == 9


def test_what_is_owed_of_older_ones_is_waited_for() -> None:
    log, before = Log(1), Log(1)
    owed = Owed(spoken("old"), 1, ("ja", "de"), {"fr": False})
    recent(log, before.said("new"), unfinished=(owed,))
    assert log.newest == ["new"]
    record = log.history.get(("p", "old"))
    assert record is not None
    assert (record.said, record.missing()) == (1, ["de", "ja"])
    log.publish(Said(spoken("newer")))
    log.translated("old", "ja")
    log.translated("old", "de")
    assert [(each.utterance.id, each.failed) for each in log.finished[1:]] == [("old", True)]
    assert log.history.get(("p", "old")) is None


def test_stale_outcome_does_not_finish_a_renewed_promise() -> None:
    log, before = Log(1), Log(1)
    before.said("old", "ja")
    publications = [before.said("new"), before.failed("old")]
    recent(log, *publications, unfinished=(Owed(spoken("old"), 1, ("ja",)),))
    assert [record.missing() for record in log.unfinished] == [["ja"]]
    log.history.note(before.translated("old"))
    assert log.unfinished == []


def test_noted_record_is_unchanged_by_later_owed() -> None:
    log, before = Log(1), Log(1)
    for publication in (before.said("a", "ja"), before.said("b", "ja"), before.translated("b")):
        log.history.note(publication)
    kept = [log.history.get(("p", name)) for name in "ab"]
    recent(log, unfinished=(Owed(spoken("a"), 1, ("ja",)), Owed(spoken("b"), 2, ("ja",))))
    assert [log.history.get(("p", name)) for name in "ab"] == kept
    assert [record.utterance.id for record in log.unfinished] == ["a"]


def test_late_older_records_do_not_displace_newer() -> None:
    # While a room opens, newer ones are delivered before it has read the older ones.
    log, before = Log(2), Log(2)
    publications = [before.said(name) for name in "abcd"]
    log.history.note(publications[3])
    recent(log, *publications[:3])
    assert log.newest == ["c", "d"]


@given(st.integers(0, 4), st.lists(st.tuples(st.sampled_from("stf"), st.integers(0, 9)), max_size=60))
def test_whatever_happens_what_is_owed_is_known(keep: int, steps: list[tuple[str, int]]) -> None:
    log = Log(keep)
    owed: set[str] = set()
    said: list[str] = []
    for kind, number in steps:
        if kind == "s":
            said.append(f"u{len(said)}")
            log.said(said[-1], "ja")
            owed.add(said[-1])
        elif said:
            name = said[number % len(said)]
            (log.translated if kind == "t" else log.failed)(name)
            owed.discard(name)
        assert {record.utterance.id for record in log.unfinished} == owed
        assert len(log.newest) <= keep
        assert log.newest == said[len(said) - len(log.newest) :] or owed


def test_keeping_nothing_drops_finished_records() -> None:
    log = Log(keep=0)
    log.said("1", "ja")
    log.said("2")
    assert [record.utterance.id for record in log.history.said_by("p")] == ["1"]
    log.translated("1")
    assert [record.utterance.id for record in log.finished] == ["2", "1"]
    assert (log.history.said_by("p"), log.newest) == ([], [])


def test_corrections_of_what_is_not_held_any_more_replace_each_other() -> None:
    log = Log(keep=2)
    for name in ("u1", "u2", "u3"):
        log.said(name)
    first, second = (replace(spoken(name), replaces=("u1",)) for name in ("c1", "c2"))
    published = log.publish(Said(first, ()))
    assert not log.history.is_replaced(published)
    log.publish(Said(second, ()))
    assert log.history.is_replaced(published)
    assert [record.utterance for record in log.history.replaced(second)] == [first]


def test_what_is_replaced_or_taken_back_takes_no_place() -> None:
    log = Log(keep=3)
    for name in "abc":
        log.said(name)
    for number in range(7):
        log.publish(Said(replace(spoken(f"c{number}"), replaces=("c",)), ()))
    assert log.newest == ["a", "b", "c6"]
    log.publish(Said(replace(spoken("back"), text="", replaces=("b",)), ()))
    assert log.newest == ["a", "c6"]
    log.said("d")
    assert log.newest == ["a", "c6", "d"]
    log.said("e")
    assert log.newest == ["c6", "d", "e"]
    assert log.history.get(("p", "a")) is None


def test_latecomers_begin_where_what_was_corrected_stands_if_that_is_held() -> None:
    log = Log(keep=4)
    assert log.history.begins() is None
    for name in "abc":
        log.said(name)
    log.publish(Said(replace(spoken("a2"), replaces=("a",), place=1), ()))
    assert (log.newest, log.history.begins()) == (["b", "c", "a2"], 1)
    log.said("d")
    assert (log.newest, log.history.begins()) == (["b", "c", "a2", "d"], 2)


def test_corrections_without_end_are_not_all_held() -> None:
    log = Log(keep=3)
    for name in "abc":
        log.said(name)
    for number in range(90):
        log.publish(Said(replace(spoken(f"c{number}"), replaces=("c",)), ()))
    assert log.newest == ["c89"]
    assert len(log.history._records) == 12
