"""The spans of an utterance: accepted, refused, sent again, left by another gateway; and of a session."""

from __future__ import annotations

import pytest

from gateway.domain.errors import Overloaded, TooManySessions
from gateway.domain.grants import hash_of_meeting, meeting_key
from gateway.domain.log import (
    Accepted,
    LoggedEvent,
    Publication,
    Said,
    Timings,
    Translated,
    Unfinished,
    Untranslated,
    Utterance,
)
from gateway.meeting import traces
from gateway.meeting.history import History
from tests.tracing.recorder import recording

MEETING = meeting_key("acme", "standup")
THEIRS = f"00-{7:032x}-{7:016x}-01"
SAID = Utterance("1", 1, "Good morning.", "en", "p-1", "Ana", True, traceparent=THEIRS)


def test_untraced_utterance_has_no_traceparent() -> None:
    accepting = traces.Accepting(MEETING, SAID, "s", again=False)
    assert accepting.utterance.traceparent == ""
    with traces.joining(resumes=False):
        pass
    assert traces.delivery(Publication(1, 0, Said(SAID)), History(10)) is None


def test_accepted_span_ends_with_its_translations() -> None:
    with recording() as spans:
        accepting = traces.Accepting(MEETING, SAID, "s", again=False)
        accepting.ended(Accepted(1))
        [span] = spans
        assert (span.parent, span.is_over) == (THEIRS, False)
        assert accepting.utterance.traceparent == span.traceparent
        assert (span.fields["tenant"], span.fields["meeting"]) == ("acme", hash_of_meeting("acme", "standup"))
        assert not {"Ana", "Good morning.", "standup"} & set(map(str, span.fields.values()))


def test_refused_or_known_span_ends_at_once() -> None:
    with recording() as spans:
        traces.Accepting(MEETING, SAID, "s", again=False).ended(Overloaded("Full."))
        traces.Accepting(MEETING, SAID, "s", again=True).ended(Accepted(1, known=True))
        refused, known = spans
        assert (refused.code, refused.is_over) == ("overloaded", True)
        assert (known.code, known.is_over, known.fields["known"]) == ("", True, True)


def test_outcomes_are_delivered_within_their_trace() -> None:
    history = History(10)
    with recording() as spans:
        own = traces.Accepting(MEETING, SAID, "s", again=False).utterance
        outcomes = (
            Translated("p-1", "1", "Ana", "de", 1, "Guten Morgen.", Timings(0, 0, 0), 2, said=1),
            Untranslated("p-1", "1", "Ana", "ja", 1, "engine_failed", "It failed.", said=1),
        )
        events: list[LoggedEvent] = [Said(own, ("de", "ja")), *outcomes]
        for offset, event in enumerate(events, 1):
            publication = Publication(offset, 0, event)
            delivery = traces.delivery(publication, history)
            assert delivery is not None
            history.note(publication)
            delivery.all_queued()
        utterance, *delivered = spans
        assert [span.parent for span in delivered] == [own.traceparent] * 3
        assert [span.fields["what"] for span in delivered] == ["said", "translated", "untranslated"]
        assert utterance.code == "engine_failed"


def test_takeover_continues_the_trace() -> None:
    with recording() as spans:
        traces.taken_over(Unfinished(MEETING, SAID, 1, ("de", "ja"), tries=2))
        [span] = spans
        assert (span.name, span.parent, span.is_over) == ("take over", THEIRS, True)
        assert (span.fields["tries"], span.fields["languages"]) == (2, 2)


def test_a_session_tells_what_became_of_resuming_it() -> None:
    with recording() as spans:
        with traces.joining(resumes=True) as joined:
            joined.meeting, joined.session, joined.recovered = MEETING, "s", False
        with pytest.raises(TooManySessions), traces.joining(resumes=False):
            raise TooManySessions("Full.")
        lost, refused = spans
        assert (lost.fields["resumes"], lost.fields["recovered"], lost.is_over) == (True, False, True)
        assert (refused.code, refused.is_over) == ("too_many_sessions", True)
