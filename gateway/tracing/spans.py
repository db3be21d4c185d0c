"""Spans, with whatever recorder, and how their ids are passed on (W3C Trace Context).

Knows: what a span is told. Must not know: where spans are sent, OpenTelemetry (`otlp` alone imports it).
Nothing of what was said and no names of people may be in a name or a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

Value = str | int | float | bool

# Its name, when it happened (Unix time in nanoseconds), its fields.
Event = tuple[str, int, dict[str, Value]]

# `server`: it answers a client.
Kind = Literal["server", "internal"]

# Version, trace, span and flags.
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?", re.ASCII)


class Span:
    """A span that is not recorded: while tracing is off, or where it was not sampled."""

    __slots__ = ()

    traceparent: str = ""
    """Its ids, for its children; empty if it is not recorded."""

    def event(self, name: str, **fields: Value) -> None:
        """Something happened just now."""

    def set(self, **fields: Value) -> None:
        """It is about this."""

    def rename(self, name: str) -> None:
        """What it is, where that was not known before."""

    def fail(self, code: str) -> None:
        """It did not do what it was to do. code: of the error."""

    def end(self) -> None:
        """Nothing more is to be said of it. The second time nothing happens."""


NOT_TRACED = Span()


class _Remote(Span):
    """A span that another process records."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent


class Tracer(Protocol):
    """Who records spans."""

    def begin(self, name: str, kind: Kind, parent: str, fields: dict[str, Value], /) -> Span:
        """parent: of the span that it belongs to, valid; empty for the first of a trace."""

    def past(
        self,
        name: str,
        parent: str,
        fields: dict[str, Value],
        events: Iterable[Event],
        began_ns: int,
        ended_ns: int,
        /,
    ) -> None:
        """One that is over. Times are Unix times in nanoseconds."""


_tracer: Tracer | None = None
_current: ContextVar[Span] = ContextVar("gateway_span", default=NOT_TRACED)


def trace_with(tracer: Tracer | None) -> None:
    """Record spans from now on, or none any more."""
    global _tracer  # one for the process, as with its metrics
    _tracer = tracer


def tracer() -> Tracer | None:
    return _tracer


def is_on() -> bool:
    return _tracer is not None


def begin(name: str, about: dict[str, Value] | None = None, *, parent: str = "", kind: Kind = "internal") -> Span:
    """about: its first fields. parent: a `traceparent`; one that is not valid, or empty, begins a new trace."""
    if _tracer is None:
        return NOT_TRACED
    return _tracer.begin(name, kind, parent if ids(parent) else "", about or {})


def past(
    name: str, about: dict[str, Value], events: Iterable[Event], parent: str, began_ns: int, ended_ns: int
) -> None:
    """A span that is over, below one that is recorded. Times are Unix times in nanoseconds."""
    if _tracer is not None and ids(parent):
        _tracer.past(name, parent, about, events, began_ns, ended_ns)


def remote(traceparent: str) -> Span:
    """The span of another process, which passed this on."""
    return _Remote(traceparent) if ids(traceparent) else NOT_TRACED


def current() -> Span:
    """What this task works for."""
    return _current.get()


@contextmanager
def within(span: Span) -> Iterator[None]:
    """The block, and the tasks that it begins, work for a span."""
    token = _current.set(span)
    try:
        yield
    finally:
        _current.reset(token)


def ids(traceparent: str) -> tuple[str, str] | None:
    """The ids of a trace and of a span in it; None if it is not valid."""
    found = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    if found is None or found[1] == "ff" or not int(found[2], 16) or not int(found[3], 16):
        return None
    if found[1] == "00" and len(traceparent) != 55:
        return None
    return found[2], found[3]


def exemplar(span: Span) -> dict[str, str] | None:
    """What a metric says of an example of it; None if that is not recorded."""
    found = ids(span.traceparent)
    return None if found is None else {"trace_id": found[0], "span_id": found[1]}
