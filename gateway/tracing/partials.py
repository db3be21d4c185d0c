"""What became of the translations of an utterance while it was being said, told once it is final.

Knows: how much is kept of them until then. Must not know: revisions, tickets, who records spans.

Until the final comes nobody knows its trace, or whether it is recorded. So little is kept, and one span for each
language has all of it, with an event for each translation: a span for each would be most of all spans.
"""

from __future__ import annotations

import time
from collections import Counter, deque

from gateway.tracing import spans
from gateway.tracing.spans import Value

# Of one utterance and language; the newest. OpenTelemetry's SDK keeps as many of a span.
_MOST_EVENTS = 128


class PartialsTrace:
    """The translations of one utterance into one language, from the first on."""

    __slots__ = ("_began_ns", "_events", "_outcomes")

    def __init__(self) -> None:
        self._began_ns = 0
        self._outcomes: Counter[str] = Counter()
        self._events: deque[tuple[str, int, dict[str, Value]]] = deque(maxlen=_MOST_EVENTS)

    def ended(self, outcome: str, took_s: float, **fields: Value) -> None:
        """One has ended just now, as `gateway_partials_total` counts it. took_s: since it was asked for."""
        now_ns = time.time_ns()
        if not self._events:
            self._began_ns = now_ns - round(took_s * 1e9)
        self._outcomes[outcome] += 1
        self._events.append((outcome, now_ns, {"total_ms": round(took_s * 1_000, 1), **fields}))

    def tell(self, parent: str, **about: Value) -> None:
        """The utterance is final. parent: the `traceparent` of its span."""
        if self._events:
            ended_ns = self._events[-1][1]
            spans.past("partials", {**about, **self._outcomes}, self._events, parent, self._began_ns, ended_ns)
