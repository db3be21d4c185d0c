"""What the evaluation shows: what readers saw, what it cost and how good it is, as tables and charts.

Knows: what a result means to people. Must not know: how it was found, how a table or a chart is drawn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import to_builtins

from loadtest.partials.result import Bar, Display, PairScores, PartialsResult, Phase, Spending
from loadtest.trial.content import Chart, Series, Table, formatted, tabulated
from loadtest.trial.values import Finding, Results

_SHOWN_PROBLEMS = 20


def results(result: PartialsResult) -> Results:
    """The whole report."""
    failures = list(result.failures())
    value = f"{len(failures)} failed" if failures else "all held"
    note = "; ".join(failures[:_SHOWN_PROBLEMS])
    parts: list[str | Table] = []
    if result.plan.engine == "simulated":
        parts.append("Words behind a tag are no translations: the bars do not count with the simulated engine.")
    parts += [*_bars(result.bars), *_of_pairs(result.pairs), _phases(result.phases), *_notes(result)]
    return Results(
        model=result.model,
        findings=[Finding("bars and promises", value, "all held", not failures, note)],
        parts=parts,
        charts=_charts(result.pairs),
        details=to_builtins(result),
    )


def _bars(bars: Sequence[Bar]) -> Iterator[Table]:
    pairs = list(dict.fromkeys(bar.pair for bar in bars))
    if not pairs:
        return
    rows: list[list[str]] = []
    for name, limit in dict.fromkeys((bar.name, bar.limit) for bar in bars):
        own = {bar.pair: bar for bar in bars if bar.name == name}
        judged = {
            pair: f"{_number(bar.value, '.3g')} {'pass' if bar.passed else '**FAIL**'}"
            for pair, bar in own.items()
        }
        rows.append([name, limit, *(judged.get(pair, "") for pair in pairs)])
    yield Table("", ("has to be", "", *pairs), rows)


def _by_pair(head: str, pairs: Sequence[PairScores], columns: dict[str, Callable[[PairScores], str]]) -> Table:
    """A row for each pair. columns: their heads, and what is in them."""
    return tabulated("", pairs, [(head, lambda each: each.name), *columns.items()])


def _of_pairs(pairs: Sequence[PairScores]) -> Iterator[Table]:
    def both(display: Display) -> str:
        return f"{display.erasure:.3f} ({display.erasure_before:.3f})"

    yield _by_pair(
        "normalised erasure, the final included (without it)",
        pairs,
        {
            "naive": lambda each: both(each.naive),
            "live": lambda each: both(each.live),
            "stable": lambda each: both(each.stable),
            "naive / live": lambda each: _number(each.times_less, ".1f"),
            "streams": lambda each: f"{each.streams:,}",
            "revisions": lambda each: f"{each.revisions:,}",
        },
    )
    yield _by_pair(
        "behind the speaker: stable / live / naive",
        pairs,
        {
            "source units, median": lambda each: _three(each, lambda of: of.lag_median, ".1f"),
            "first word after the first revision, s": lambda each: _three(each, _first_s, ".2f"),
            "whole sentences only": lambda each: _number(_first_s(each.final_only), ".2f"),
        },
    )
    yield _by_pair(
        "an utterance: ours / naive / alone",
        pairs,
        {
            "generated / final tokens": lambda each: _cost(each, lambda of: of.ratio),
            "engine time, s": lambda each: _cost(each, lambda of: of.engine_s),
            "chrF of finals against alone": lambda each: _number(each.chrf_alone, ".2f"),
            "finals that kept what was committed": lambda each: f"{each.kept:.1%}",
        },
    )
    names = list(dict.fromkeys(name for pair in pairs for name in pair.outcomes))
    rows = [[pair.name, *(f"{pair.outcomes.get(name, 0):,}" for name in names)] for pair in pairs]
    yield Table("", ("revisions, by what became of them", *names), rows)


def _phases(phases: Sequence[Phase]) -> Table:
    columns: dict[str, Callable[[Phase], str]] = {
        "spoken": lambda each: each.source,
        "arm": lambda each: each.arm.value,
        "s": lambda each: f"{each.elapsed_s:.0f}",
        "prompt tokens in the prefix cache": lambda each: _number(each.cached_share, ".0%"),
        "sent late at most, ms": lambda each: f"{each.late_ms:.0f}",
    }
    return tabulated("", phases, columns.items())


def _notes(result: PartialsResult) -> Iterator[str]:
    plan, origins = result.plan, Counter(stream.origin.value for stream in result.streams)
    said = " and ".join(f"{count} {origin}" for origin, count in origins.items())
    yield (
        f"Engine {plan.engine}, `max_num_seqs` {plan.max_num_seqs}, prefix cache on; "
        f"{result.elapsed_s:.0f} s in all."
    )
    pace = "at the pace of speech" if plan.speed == 1 else f"{plan.speed:g} times as fast as people speak"
    yield (
        f"{said} streams, seed {plan.seed}, spoken {pace}. Naive: each revision is a final utterance of its own, "
        "whose translation takes the place of the one before. Alone: the finals only. Units are words, in ja and "
        "zh characters; text that only grew took nothing back. Lag is sampled before each next revision: source "
        "units heard, less target units shown, counted in source units. Tokens are the model's, with one for the "
        f"end; chrF is that of {result.chrf} with its defaults."
    )
    if result.broken:
        yield "Promises that were broken, the first of them:"
        yield "\n".join(f"- {problem}" for problem in result.broken[:_SHOWN_PROBLEMS])


def _three(pair: PairScores, value: Callable[[Display], float | None], form: str) -> str:
    return " / ".join(_number(value(display), form) for display in (pair.stable, pair.live, pair.naive))


def _cost(pair: PairScores, value: Callable[[Spending], float]) -> str:
    return " / ".join(f"{value(spending):.2f}" for spending in (pair.ours, pair.naively, pair.alone))


def _first_s(display: Display) -> float | None:
    return None if display.first_ms is None else display.first_ms / 1000


def _number(value: float | None, form: str) -> str:
    return formatted(None if value is not None and math.isinf(value) else value, form)


def _charts(pairs: Sequence[PairScores]) -> list[Chart]:
    """Erasure, lag, tokens, and time to the first word; a place on the x axis for each pair."""
    places = [float(place) for place in range(1, len(pairs) + 1)]

    def chart(title: str, y_label: str, kinds: dict[str, list[float | None]]) -> Chart:
        return Chart(
            title=title,
            x_label="",
            y_label=y_label,
            series=[Series(name, places, values, line=False) for name, values in kinds.items()],
            x_ticks=[(place, f"{pair.source}\n→{pair.target}") for place, pair in zip(places, pairs, strict=True)],
        )

    def seen(value: Callable[[Display], float | None]) -> dict[str, list[float | None]]:
        return {
            "naive": [value(pair.naive) for pair in pairs],
            "live": [value(pair.live) for pair in pairs],
            "stable": [value(pair.stable) for pair in pairs],
        }

    spent: dict[str, list[float | None]] = {
        "naive": [pair.naively.ratio for pair in pairs],
        "ours": [pair.ours.ratio for pair in pairs],
    }
    whole = {"whole sentences": [_first_s(pair.final_only) for pair in pairs]}
    return [
        chart(
            "Normalised erasure, the final included", "units taken back / final units", seen(lambda of: of.erasure)
        ),
        chart("Behind the speaker, median", "source units", seen(lambda of: of.lag_median)),
        chart("Tokens generated for one that stays", "generated / final tokens", spent),
        chart("First word after the first revision, median", "seconds", seen(_first_s) | whole),
    ]
