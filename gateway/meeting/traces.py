"""The spans of what happens in a meeting: a session starts, an utterance is accepted, a publication is delivered.

Knows: meetings, what is told of them in traces. Must not know: sessions' rules, who records spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from gateway.domain.errors import GatewayError
from gateway.domain.grants import hash_of_meeting, meeting_name, tenant_of
from gateway.domain.log import Accepted, Publication, Said, Translated, Unfinished, Utterance
from gateway.meeting.history import History
from gateway.tracing import spans, utterances
from gateway.tracing.spans import NOT_TRACED, Span, Value
from gateway.tracing.utterances import Delivery


def _about(meeting: str) -> dict[str, Value]:
    tenant = tenant_of(meeting)
    return {"tenant": tenant, "meeting": hash_of_meeting(tenant, meeting_name(meeting))}


def concern(utterance: Utterance) -> bool:
    """Whether there is something to do for one that was said: else it costs nothing."""
    return spans.is_on() or utterance.traceparent != ""


class Accepting:
    """A final utterance that was said in a meeting, from its frame on. session: what stands for its session."""

    def __init__(self, meeting: str, utterance: Utterance, session: str, *, again: bool) -> None:
        self.utterance = utterance
        """With the `traceparent` of its own span."""
        self._span: Span = NOT_TRACED
        if spans.is_on():
            self._span = utterances.begin(
                utterance.traceparent,
                **_about(meeting),
                session=session,
                lang=utterance.lang,
                rev=utterance.rev,
                characters=len(utterance.text),
                again=again,
            )
        if utterance.traceparent != self._span.traceparent:
            self.utterance = replace(utterance, traceparent=self._span.traceparent)

    @contextmanager
    def working(self) -> Iterator[None]:
        """The block, and the tasks that it begins, work for it."""
        with spans.within(self._span if self._span is not NOT_TRACED else spans.current()):
            yield

    def ended(self, accepted: Accepted | GatewayError | None) -> None:
        """What became of it."""
        if self._span is NOT_TRACED:
            return
        if isinstance(accepted, GatewayError):
            self._span.fail(accepted.code)
        elif accepted is not None and not accepted.known:
            return
        else:
            # What is still to come of it belongs to the span of the first time.
            self._span.set(known=True)
        utterances.finished(self._span.traceparent)


class Joined:
    """What is found out of a session while it starts. recovered: as in `session.started`."""

    def __init__(self) -> None:
        self.meeting = self.session = ""
        self.recovered: bool | None = None


@contextmanager
def joining(*, resumes: bool) -> Iterator[Joined]:
    """A session starts, or goes on with a new connection."""
    joined = Joined()
    if not spans.is_on():
        yield joined
        return
    span = spans.begin("session", {"resumes": resumes}, parent=spans.current().traceparent, kind="server")
    try:
        yield joined
    except GatewayError as error:
        span.fail(error.code)
        raise
    finally:
        if joined.meeting:
            span.set(**_about(joined.meeting), session=joined.session)
        if joined.recovered is not None:
            span.set(recovered=joined.recovered)
        span.end()


def taken_over(work: Unfinished) -> None:
    """This gateway goes on with what another one has left."""
    if spans.is_on() and work.utterance.traceparent:
        about = {**_about(work.meeting), "tries": work.tries, "languages": len(work.languages)}
        spans.begin("take over", about, parent=work.utterance.traceparent).end()


def delivery(publication: Publication, history: History) -> Delivery | None:
    """An entry of the log goes to its readers. history: before it is noted. None: it is not traced."""
    if not spans.is_on():
        return None
    event = publication.event
    if isinstance(event, Said):
        return utterances.delivery(
            event.utterance.traceparent, what="said", lang=event.utterance.lang, offset=publication.offset
        )
    record = history.get((event.participant, event.utterance))
    traceparent = record.utterance.traceparent if record is not None else ""
    if isinstance(event, Translated):
        return utterances.delivery(traceparent, what="translated", lang=event.lang, offset=publication.offset)
    utterances.fail(traceparent, event.code)
    return utterances.delivery(
        traceparent, what="untranslated", lang=event.lang, offset=publication.offset, error=event.code
    )
