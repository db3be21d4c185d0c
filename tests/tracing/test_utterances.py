"""When the span of an utterance ends: with the last byte of its last translation, and never later than it may."""

from __future__ import annotations

import pytest

from gateway.tracing import utterances
from gateway.tracing.utterances import PartialsTrace
from tests.tracing.recorder import recording

PARENT = f"00-{7:032x}-{7:016x}-01"


def test_delivery_ends_with_the_last_byte() -> None:
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


def test_gone_reader_does_not_keep_a_delivery_open() -> None:
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


def test_other_gateways_utterance_has_only_deliveries() -> None:
    with recording() as spans:
        theirs = f"00-{7:032x}-{7:016x}-01"
        delivery = utterances.delivery(theirs)
        assert delivery is not None
        delivery.all_queued()
        [span] = spans
        assert (span.parent, span.is_over) == (theirs, True)
        assert utterances.delivery("") is None


# ---------------------------------------------------------------- partials


def test_one_span_tells_what_became_of_each() -> None:
    with recording() as spans:
        trace = PartialsTrace()
        for outcome in ("translated", "superseded", "translated"):
            trace.ended(outcome, 0.25, rev=1)
        assert spans == []
        trace.record_span(PARENT, target="ja")
        [span] = spans
    assert (span.name, span.parent, span.is_over) == ("partials", PARENT, True)
    assert span.fields == {"target": "ja", "translated": 2, "superseded": 1}
    assert span.events == ["translated", "superseded", "translated"]


def test_one_that_is_said_without_end_keeps_its_newest() -> None:
    with recording() as spans:
        trace = PartialsTrace()
        for n in range(2 * utterances._MOST_PARTIALS):
            trace.ended("translated" if n else "refused", 0.1)
        trace.record_span(PARENT)
        [span] = spans
    assert span.events == ["translated"] * utterances._MOST_PARTIALS
    assert span.fields == {"refused": 1, "translated": 2 * utterances._MOST_PARTIALS - 1}


def test_nothing_is_told_without_trace_or_translation() -> None:
    with recording() as spans:
        PartialsTrace().record_span(PARENT)
        trace = PartialsTrace()
        trace.ended("translated", 0.1)
        trace.record_span("")
        assert spans == []
    trace.record_span(PARENT)
