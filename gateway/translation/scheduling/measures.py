"""What the metrics tell of translations.

Knows: tickets, which metric is of what. Must not know: the queue, the engine.
"""

from __future__ import annotations

from gateway import metrics
from gateway.domain.engine import TokenEvent, TranslationRequest
from gateway.translation.scheduling.ticket import Ticket

__all__ = ["finished", "retried", "started", "stopped", "tokens"]


def started(ticket: Ticket) -> None:
    """Its first turn has come."""
    if ticket.request.final and ticket.started_s is not None:
        metrics.QUEUE_S.observe(ticket.started_s - ticket.admitted_s)


def tokens(request: TranslationRequest, generated: int, reused: int) -> None:
    """An attempt has ended, however it did."""
    metrics.TOKENS.inc(generated)
    if reused:
        metrics.TOKENS_REUSED.inc(reused)
    (metrics.FINAL_TOKENS if request.final else metrics.PARTIAL_TOKENS).labels(request.target).inc(generated)


def retried() -> None:
    """The engine died while it ran, and it waits again."""
    metrics.TRANSLATIONS_RETRIED.inc()


def finished(ticket: Ticket, last: TokenEvent) -> None:
    """All of it has been generated."""
    metrics.PROMPT_TOKENS.inc(last.prompt_tokens)
    metrics.PROMPT_TOKENS_CACHED.inc(last.cached_tokens)
    if ticket.finished_s is None:
        return
    if not ticket.request.final:
        metrics.PARTIAL_S.observe(ticket.finished_s - ticket.admitted_s)
        return
    metrics.TRANSLATION_S.observe(ticket.finished_s - ticket.admitted_s)
    if ticket.first_token_s is not None:
        metrics.FIRST_TOKEN_S.observe(ticket.first_token_s - ticket.admitted_s)
        # The time of a crash is not that of a token.
        if ticket.tokens > 1 and not ticket.crashes:
            metrics.TOKEN_INTERVAL_S.observe((ticket.finished_s - ticket.first_token_s) / (ticket.tokens - 1))


def stopped(ticket: Ticket, now_s: float) -> None:
    """It does not run any more."""
    if ticket.started_s is not None:
        stage = "final" if ticket.request.final else "partial"
        metrics.GENERATION_S.labels(stage, ticket.request.target).inc(now_s - ticket.started_s)
