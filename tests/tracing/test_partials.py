"""What is kept of partials until their utterance is final, and what is told of them then."""

from __future__ import annotations

from gateway.tracing import partials
from gateway.tracing.partials import PartialsTrace
from tests.tracing.recorder import recording

PARENT = f"00-{7:032x}-{7:016x}-01"


def test_one_span_tells_what_became_of_each() -> None:
    with recording() as spans:
        trace = PartialsTrace()
        for outcome in ("translated", "superseded", "translated"):
            trace.ended(outcome, 0.25, rev=1)
        assert spans == []
        trace.tell(PARENT, target="ja")
        [span] = spans
    assert (span.name, span.parent, span.is_over) == ("partials", PARENT, True)
    assert span.fields == {"target": "ja", "translated": 2, "superseded": 1}
    assert span.events == ["translated", "superseded", "translated"]


def test_one_that_is_said_without_end_keeps_its_newest() -> None:
    with recording() as spans:
        trace = PartialsTrace()
        for n in range(2 * partials._MOST_EVENTS):
            trace.ended("translated" if n else "refused", 0.1)
        trace.tell(PARENT)
        [span] = spans
    assert span.events == ["translated"] * partials._MOST_EVENTS
    assert span.fields == {"refused": 1, "translated": 2 * partials._MOST_EVENTS - 1}


def test_what_is_not_traced_and_what_was_never_translated_is_not_told() -> None:
    with recording() as spans:
        PartialsTrace().tell(PARENT)
        trace = PartialsTrace()
        trace.ended("translated", 0.1)
        trace.tell("")
        assert spans == []
    trace.tell(PARENT)
