"""Spans that a test looks at in its own process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gateway.tracing import spans
from gateway.tracing.spans import Event, Kind, Span, Value


class Recorded(Span):
    """What one was told."""

    def __init__(self, number: int, name: str, parent: str, fields: dict[str, Value]) -> None:
        self.traceparent = f"00-{1:032x}-{number:016x}-01"
        self.name = name
        self.parent = parent
        self.fields = fields
        self.events: list[str] = []
        self.code = ""
        self.is_over = False

    def event(self, name: str, **fields: Value) -> None:
        assert not self.is_over
        self.events.append(name)

    def set(self, **fields: Value) -> None:
        assert not self.is_over
        self.fields |= fields

    def rename(self, name: str) -> None:
        self.name = name

    def fail(self, code: str) -> None:
        self.code = code

    def end(self) -> None:
        self.is_over = True


class _Recorder:
    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def begin(self, name: str, _kind: Kind, parent: str, fields: dict[str, Value]) -> Span:
        self.spans.append(span := Recorded(len(self.spans) + 1, name, parent, fields))
        return span

    def past(
        self,
        name: str,
        parent: str,
        fields: dict[str, Value],
        events: Iterable[Event],
        _began_ns: int,
        _ended_ns: int,
    ) -> None:
        self.spans.append(span := Recorded(len(self.spans) + 1, name, parent, fields))
        span.events = [event for event, _, _ in events]
        span.is_over = True


@contextmanager
def recording() -> Iterator[list[Recorded]]:
    """Every span that begins in the block, in order."""
    recorder = _Recorder()
    spans.trace_with(recorder)
    try:
        yield recorder.spans
    finally:
        spans.trace_with(None)
