"""The span of each utterance that was accepted here, from its frame to the last byte of its last translation, and
what became of its translations before it was final.

Knows: which are open, and what they wait for. Must not know: rooms, sockets, who records spans.

An utterance carries the `traceparent` of its span wherever it goes, also into the log. The part that works on it
finds the span by that here, if it is one of this process, and otherwise begins spans below it.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque

from gateway.tracing import spans
from gateway.tracing.spans import NOT_TRACED, Span, Value

# More than these are not open together; the oldest waits for what will not come, such as a log that was lost.
_MOST_OPEN = 10_000

# Translations kept of one utterance and language while it is said; the newest. OpenTelemetry's SDK keeps as many
# events of a span.
_MOST_PARTIALS = 128


class _Open:
    __slots__ = ("deliveries", "finished", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        # Those under way.
        self.deliveries = 0
        # Whether all its translations have ended.
        self.finished = False


_open: OrderedDict[str, _Open] = OrderedDict()


def begin(parent: str, **fields: Value) -> Span:
    """A final utterance has come. parent: the client's `traceparent`, or empty."""
    span = spans.begin("utterance", fields, parent=parent, kind="server")
    if span is not NOT_TRACED:
        _open[span.traceparent] = _Open(span)
        if len(_open) > _MOST_OPEN:
            _, oldest = _open.popitem(last=False)
            _left(oldest)
    return span


def event(traceparent: str, name: str, **fields: Value) -> None:
    if (found := _open.get(traceparent)) is not None:
        found.span.event(name, **fields)


def fail(traceparent: str, code: str) -> None:
    """It was refused, or some translation of it has failed."""
    if (found := _open.get(traceparent)) is not None:
        found.span.fail(code)


def finished(traceparent: str) -> None:
    """Its translations have ended; what is being delivered may still be on its way."""
    if (found := _open.get(traceparent)) is not None:
        found.finished = True
        _end(traceparent, found)


def close() -> None:
    """The gateway ends; another one may go on."""
    while _open:
        _, found = _open.popitem()
        _left(found)


def _end(traceparent: str, found: _Open) -> None:
    if found.finished and not found.deliveries:
        found.span.end()
        _open.pop(traceparent, None)


def _left(found: _Open) -> None:
    found.span.set(left=True)
    found.span.end()


class Delivery:
    """A publication on its way to the readers at this gateway; ends with the last byte to the last of them.

    A reader that is gone before is not waited for longer than its outbox exists.
    """

    __slots__ = ("_is_told", "_left", "_parent", "_readers", "_span", "_written_bytes")

    def __init__(self, parent: str, span: Span) -> None:
        self._parent = parent
        self._span = span
        self._readers = self._left = self._written_bytes = 0
        self._is_told = False
        if (found := _open.get(parent)) is not None:
            found.deliveries += 1

    def __del__(self) -> None:
        if self._span is not NOT_TRACED:
            self._span.set(unread=self._left)
            self._end()

    def queued(self) -> None:
        """It waits to be written to one more connection."""
        self._readers += 1
        self._left += 1

    def all_queued(self) -> None:
        """It waits for no further connection."""
        self._is_told = True
        if not self._left:
            self._end()

    def written(self, size: int) -> None:
        """It was handed to the system for one of them. size: bytes."""
        self._left -= 1
        self._written_bytes += size
        if self._is_told and not self._left:
            self._end()

    def _end(self) -> None:
        span, self._span = self._span, NOT_TRACED
        span.set(readers=self._readers, bytes=self._written_bytes)
        span.end()
        if span is not NOT_TRACED and (found := _open.get(self._parent)) is not None:
            found.deliveries -= 1
            _end(self._parent, found)


def delivery(traceparent: str, **fields: Value) -> Delivery | None:
    """A publication of an utterance goes to its readers. None: it is not traced."""
    if not traceparent or not spans.is_on():
        return None
    event(traceparent, "committed", **fields)
    span = spans.begin("deliver", fields, parent=traceparent)
    return None if span is NOT_TRACED else Delivery(traceparent, span)


class PartialsTrace:
    """The translations of one utterance into one language while it was being said, told once it is final.

    Until the final comes, the trace is not known, nor whether it is recorded. So little is kept, and one span for
    each language has all of it, with an event for each translation: a span for each would be most of all spans.
    """

    __slots__ = ("_began_ns", "_events", "_outcomes")

    def __init__(self) -> None:
        self._began_ns = 0
        self._outcomes: Counter[str] = Counter()
        self._events: deque[tuple[str, int, dict[str, Value]]] = deque(maxlen=_MOST_PARTIALS)

    def ended(self, outcome: str, took_s: float, **fields: Value) -> None:
        """One has ended just now, as `gateway_partials_total` counts it. took_s: since it was asked for."""
        now_ns = time.time_ns()
        if not self._events:
            self._began_ns = now_ns - round(took_s * 1e9)
        self._outcomes[outcome] += 1
        self._events.append((outcome, now_ns, {"total_ms": round(took_s * 1_000, 1), **fields}))

    def record_span(self, parent: str, **about: Value) -> None:
        """The utterance is final. parent: the `traceparent` of its span."""
        if self._events:
            ended_ns = self._events[-1][1]
            spans.past("partials", {**about, **self._outcomes}, self._events, parent, self._began_ns, ended_ns)
