"""The comparison as a table.

Knows: what people read from it. Must not know: how anything was measured.
"""

from __future__ import annotations

import msgspec

from loadtest.peers.comparison import Comparison, in_words
from loadtest.peers.peer import SERVE_TUNED, SERVE_WORKERS
from loadtest.report.content import Table
from loadtest.results import Spread
from loadtest.systems.vllm_serve import STREAM_INTERVAL
from loadtest.trial.report import Extras
from loadtest.trial.values import Report

__all__ = ["extras", "tables"]

_HEAD = (
    "in flight",
    "gateway beside",
    "requests/s",
    "tokens/s",
    "first token p50 added, ms",
    "first token p99 added, ms",
    "same text",
    "driver was the limit of",
)
_CAPTION = (
    "Each round of the gateway beside the other's round of the same lines, in the same repetition: its requests "
    "and tokens a second divided by the other's, its first token minus the other's; medians over the repetitions, "
    "with the lowest and the highest in brackets."
)
_TUNED_CAPTION = (
    f" {SERVE_TUNED} and {SERVE_WORKERS} run with the gateway's engine settings and --stream-interval "
    f"{STREAM_INTERVAL}, since the gateway gathers tokens, too; {SERVE_WORKERS} with several front-end processes."
)


def extras(report: Report) -> Extras:
    """For the report of such a folder, written again."""
    return Extras(tables=tables(report))


def tables(report: Report) -> list[Table]:
    """Of `details`; none where nothing could be compared."""
    compared = msgspec.convert(report.details.get("comparisons", []), list[Comparison])
    if not compared:
        return []
    rows = [
        (
            str(each.in_flight),
            each.peer,
            _spread(each.requests, "{:.2f}"),
            _spread(each.tokens, "{:.2f}"),
            _spread(each.first_p50_added_ms, "{:+.1f}"),
            _spread(each.first_p99_added_ms, "{:+.1f}"),
            "–" if each.same_text is None else f"{each.same_text:.1%}",
            ", ".join(each.limits) or "–",
        )
        for each in compared
    ]
    tuned = any(each.peer in (SERVE_TUNED, SERVE_WORKERS) for each in compared)
    caption = _CAPTION + _TUNED_CAPTION if tuned else _CAPTION
    return [Table("The gateway beside the others", _HEAD, rows, caption)]


def _spread(spread: Spread | None, form: str) -> str:
    return "–" if spread is None else in_words(spread, form)
