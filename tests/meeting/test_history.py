"""What a meeting remembers of its newest utterances: enough for newcomers, and never less than what is owed."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.log import LoggedEvent, Publication, Said, Timings, Translated, Untranslated, Utterance
from gateway.meeting.history import History, Record


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
        return self.publish(Said(Utterance(utterance, 1, "text", "en", "p", "Ana", final=True), languages))

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


def test_what_is_not_finished_is_kept_as_long_as_it_takes() -> None:
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


def test_a_failure_that_was_made_good_counts_as_translated_and_not_the_other_way_round() -> None:
    log = Log(1)
    log.said("u", "ja", "de")
    log.failed("u", "ja")
    log.translated("u", "ja")
    log.translated("u", "de")
    log.failed("u", "de")
    record = log.history.get(("p", "u"))
    assert record is not None
    assert record.outcomes == {"ja": True, "de": True}


def test_the_outcome_of_the_last_promised_language_finishes_an_utterance_once() -> None:
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


def test_what_is_not_finished_is_waited_for_although_the_log_has_trimmed_it() -> None:
    log = Log(2)
    log.said("u", "ja")
    log.history.trim(2)
    assert log.newest == []
    log.translated("u", "ja")
    assert [record.utterance.id for record in log.finished] == ["u"]
    assert log.history.get(("p", "u")) is None


def test_what_is_promised_again_is_unfinished_until_it_has_another_outcome() -> None:
    log = Log(0)
    log.said("u", "ja")
    log.failed("u", "ja")
    record = Record(Utterance("u", 1, "text", "en", "p", "Ana", final=True), 1, {"ja"}, {"ja": False})
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


def test_a_newer_one_is_not_forgotten_for_an_older_one_that_is_unfinished() -> None:
    log = Log(2)
    log.said("a", "ja")
    log.said("b", "ja")
    log.translated("b")
    log.said("c", "ja")
    log.translated("a")
    assert log.newest == ["b", "c"]


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
