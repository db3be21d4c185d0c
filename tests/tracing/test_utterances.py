"""When the span of an utterance ends: with the last byte of its last translation, and never later than it may."""

from __future__ import annotations

import pytest

from gateway.tracing import utterances
from tests.tracing.recorder import recording


def test_it_ends_with_the_last_byte_to_the_last_reader() -> None:
    with recording() as spans:
        own = utterances.begin("", lang="en").traceparent
        first, last = utterances.delivery(own, what="said"), utterances.delivery(own, what="translated")
        assert first is not None
        assert last is not None
        for delivery in (first, last):
            delivery.queued()
            delivery.queued()
            delivery.all_queued()
        utterances.finished(own)
        for written in (first.written, last.written, first.written):
            written(10)
        utterance, said, translated = spans
        assert [span.is_over for span in spans] == [False, True, False]
        last.written(10)
        assert (utterance.is_over, translated.is_over) == (True, True)
        assert (said.parent, said.fields) == (own, {"what": "said", "readers": 2, "bytes": 20})
        assert utterance.events == ["committed", "committed"]


def test_a_reader_that_is_gone_does_not_keep_it_open() -> None:
    with recording() as spans:
        own = utterances.begin("").traceparent
        delivery = utterances.delivery(own)
        assert delivery is not None
        delivery.queued()
        delivery.all_queued()
        utterances.finished(own)
        assert not spans[0].is_over
        del delivery  # its outbox is gone, and with it what waited there
        assert [span.is_over for span in spans] == [True, True]
        assert spans[1].fields["unread"] == 1


def test_what_nobody_finishes_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utterances, "_MOST_OPEN", 2)
    with recording() as spans:
        for _ in range(3):
            utterances.begin("")
        assert [span.is_over for span in spans] == [True, False, False]
        utterances.close()
        assert all(span.is_over and span.fields["left"] for span in spans)


def test_of_an_utterance_of_another_gateway_there_are_only_deliveries() -> None:
    with recording() as spans:
        theirs = f"00-{7:032x}-{7:016x}-01"
        delivery = utterances.delivery(theirs)
        assert delivery is not None
        delivery.all_queued()
        [span] = spans
        assert (span.parent, span.is_over) == (theirs, True)
        assert utterances.delivery("") is None
