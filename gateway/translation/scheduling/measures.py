"""What metrics and traces tell of translations.

Knows: tickets, which metric is of what, the events of a span. Must not know: the queue, the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gateway import metrics
from gateway.domain.engine import EngineProfile, TokenEvent, TranslationRequest
from gateway.tracing import spans
from gateway.tracing.spans import NOT_TRACED, Value
from gateway.translation.scheduling.ticket import Ticket

# By their labels. Looking them up takes longer than counting.
_final_tokens, _partial_tokens = cache(metrics.FINAL_TOKENS.labels), cache(metrics.PARTIAL_TOKENS.labels)
_generation_s = cache(metrics.GENERATION_S.labels)


def admitted(ticket: Ticket) -> None:
    """It waits for its turn."""
    request = ticket.request
    if request.traceparent:
        about: dict[str, Value] = {"source": request.source, "target": request.target}
        ticket.span = spans.begin("translate", about, parent=request.traceparent)


def started(ticket: Ticket, profile_of: Callable[[], EngineProfile | None], *, is_first: bool) -> None:
    """A turn of it has come. profile_of: tells that of the lane."""
    if is_first and ticket.request.final and ticket.started_s is not None:
        metrics.QUEUE_S.observe(ticket.started_s - ticket.admitted_s, spans.exemplar(ticket.span))
    if ticket.span is not NOT_TRACED:
        lane = ticket.lane or metrics.DEFAULT_ENGINE
        ticket.span.event("dispatched", lane=lane)
        profile = profile_of()
        ticket.span.set(lane=lane, model=_short(profile.model) if profile is not None else "")


def first_token(ticket: Ticket) -> None:
    """Its first text has come, of its first attempt that came so far."""
    ticket.span.event("first token")


def ended(ticket: Ticket) -> None:
    """There will be no more of it."""
    if ticket.span is not NOT_TRACED:
        ticket.span.set(tokens=ticket.tokens, crashes=ticket.crashes)
        if ticket.given_up is not None:
            ticket.span.fail(ticket.given_up.code)
        ticket.span.end()


def _short(model: str) -> str:
    """Without the folders that it is in, which are of this machine."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model


def tokens(request: TranslationRequest, generated: int, reused: int) -> None:
    """An attempt has ended, however it did."""
    metrics.TOKENS.inc(generated)
    if reused:
        metrics.TOKENS_REUSED.inc(reused)
    (_final_tokens if request.final else _partial_tokens)(request.target).inc(generated)


def retried(ticket: Ticket) -> None:
    """The engine died while it ran, and it waits again."""
    metrics.TRANSLATIONS_RETRIED.inc()
    ticket.span.event("again", lane=ticket.lane or metrics.DEFAULT_ENGINE, crashes=ticket.crashes)


def finished(ticket: Ticket, last: TokenEvent) -> None:
    """All of it has been generated."""
    metrics.PROMPT_TOKENS.inc(last.prompt_tokens)
    if last.cached_tokens:
        metrics.PROMPT_TOKENS_CACHED.inc(last.cached_tokens)
    if ticket.finished_s is None:
        return
    if not ticket.request.final:
        metrics.PARTIAL_S.observe(ticket.finished_s - ticket.admitted_s)
        return
    example = spans.exemplar(ticket.span)
    metrics.TRANSLATION_S.observe(ticket.finished_s - ticket.admitted_s, example)
    ticket.span.set(prompt_tokens=last.prompt_tokens, cached_tokens=last.cached_tokens, reused_tokens=last.reused)
    if ticket.first_token_s is not None:
        metrics.FIRST_TOKEN_S.observe(ticket.first_token_s - ticket.admitted_s, example)
        # The time of a crash is not that of a token.
        if ticket.tokens > 1 and not ticket.crashes:
            metrics.TOKEN_INTERVAL_S.observe((ticket.finished_s - ticket.first_token_s) / (ticket.tokens - 1))


def stopped(ticket: Ticket, now_s: float) -> None:
    """It does not run any more."""
    if ticket.started_s is not None:
        stage = "final" if ticket.request.final else "partial"
        _generation_s(stage, ticket.request.target).inc(now_s - ticket.started_s)
