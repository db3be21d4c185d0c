"""The result of the evaluation as tables for people, a plot, and JSON; written to a folder.

Knows: how a result looks. Must not know: how it was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from loadtest.json_lines import as_json
from loadtest.partials.result import Bar, Display, PairScores, PartialsResult, Spending
from loadtest.report_folder import write_report

__all__ = ["as_json", "plot", "table", "write"]

# Told apart in grey too.
_NAIVE, _LIVE, _STABLE, _FINAL = "#9aa5b1", "#1f5fa8", "#2f855a", "#dfe3e8"

_SHOWN_PROBLEMS = 20


def write(result: PartialsResult, folder: Path) -> None:
    """`result.json`, `table.md` and `plot.png` in `folder`, which is made when it is missing."""
    write_report(folder, result=as_json(result), table=table(result), plot=partial(plot, result))


def table(result: PartialsResult) -> str:
    """Markdown: the bars, what readers saw, what it cost, how good it is, and what it was measured on."""
    return "\n\n".join(_parts(result)) + "\n"


# ---------------------------------------------------------------- the tables


def _parts(result: PartialsResult) -> Iterator[str]:
    failures = list(result.failures())
    if result.plan.engine == "simulated":
        yield "Words behind a tag are no translations: the bars do not count with the simulated engine."
    if not failures:
        yield "**Every bar was cleared and every promise kept.**"
    else:
        yield f"**{len(failures)} failed:** " + "; ".join(failures[:_SHOWN_PROBLEMS]) + "."
    yield from _bars(result.bars)
    yield _erasure(result.pairs)
    yield _lag(result.pairs)
    yield _first(result.pairs)
    yield _cost(result.pairs)
    yield _outcomes(result.pairs)
    yield _quality(result.pairs)
    yield _phases(result)
    yield from _notes(result)


def _bars(bars: Sequence[Bar]) -> Iterator[str]:
    pairs = list(dict.fromkeys(bar.pair for bar in bars))
    if not pairs:
        return
    rows: list[list[str]] = []
    for name, limit in dict.fromkeys((bar.name, bar.limit) for bar in bars):
        own = {bar.pair: bar for bar in bars if bar.name == name}
        rows.append([name, limit, *(_judged(own.get(pair)) for pair in pairs)])
    yield _rows(("has to be", "", *pairs), rows)


def _judged(bar: Bar | None) -> str:
    if bar is None:
        return ""
    return f"{_number(bar.value, '.3g')} {'pass' if bar.passed else '**FAIL**'}"


def _erasure(pairs: Sequence[PairScores]) -> str:
    head = (
        "normalised erasure, the final included (without it)",
        "naive",
        "live",
        "stable",
        "naive / live",
        "streams",
        "revisions",
    )
    return _rows(
        head,
        [
            [
                _pair(each),
                *(_both(display) for display in (each.naive, each.live, each.stable)),
                _number(each.naive.erasure / each.live.erasure if each.live.erasure else None, ".1f"),
                f"{each.streams:,}",
                f"{each.revisions:,}",
            ]
            for each in pairs
        ],
    )


def _both(display: Display) -> str:
    return f"{display.erasure:.3f} ({display.erasure_before:.3f})"


def _lag(pairs: Sequence[PairScores]) -> str:
    head = (
        "behind the speaker",
        "stable: source units, median (mean)",
        "live",
        "naive",
        "LAAL, source units: stable / live / naive",
        "LAAL, s",
    )
    return _rows(
        head,
        [
            [
                _pair(each),
                *(
                    f"{_number(display.lag_median, '.1f')} ({_number(display.lag_mean, '.1f')})"
                    for display in (each.stable, each.live, each.naive)
                ),
                _three(each, lambda display: display.laal, ".1f"),
                _three(each, lambda display: _seconds(display.laal_ms), ".1f"),
            ]
            for each in pairs
        ],
    )


def _first(pairs: Sequence[PairScores]) -> str:
    head = (
        "first word after the first revision, s: median (p90)",
        "live",
        "stable",
        "naive",
        "whole sentences only",
    )
    return _rows(
        head,
        [
            [
                _pair(each),
                *(
                    f"{_in_seconds(display.first_ms)} ({_in_seconds(display.first_p90_ms)})"
                    for display in (each.live, each.stable, each.naive, each.final_only)
                ),
            ]
            for each in pairs
        ],
    )


def _cost(pairs: Sequence[PairScores]) -> str:
    head = (
        "cost of an utterance",
        "generated / final tokens: ours",
        "naive",
        "alone",
        "engine time, s: ours / naive / alone",
        "finished requests: ours / naive / alone",
    )
    return _rows(
        head,
        [
            [
                _pair(each),
                *(f"{spending.ratio:.2f}" for spending in _spendings(each)),
                " / ".join(f"{spending.engine_s:.2f}" for spending in _spendings(each)),
                " / ".join(f"{spending.requests:.1f}" for spending in _spendings(each)),
            ]
            for each in pairs
        ],
    )


def _outcomes(pairs: Sequence[PairScores]) -> str:
    counts: Counter[str] = Counter()
    for each in pairs:
        counts.update(each.outcomes)
    names = [name for name, _ in counts.most_common()]
    return _rows(
        ("revisions, by what became of them", *names),
        [[_pair(each), *(f"{each.outcomes.get(name, 0):,}" for name in names)] for each in pairs],
    )


def _quality(pairs: Sequence[PairScores]) -> str:
    head = (
        "finals",
        "chrF against alone",
        "the same letter by letter",
        "committed text kept",
        "chrF against the corpus: ours",
        "alone",
    )
    return _rows(
        head,
        [
            [
                _pair(each),
                _number(each.chrf_alone, ".2f"),
                f"{each.same:.1%}",
                f"{each.kept:.1%}",
                _number(each.chrf_reference, ".2f"),
                _number(each.alone_reference, ".2f"),
            ]
            for each in pairs
        ],
    )


def _phases(result: PartialsResult) -> str:
    head = (
        "spoken",
        "arm",
        "speakers",
        "streams",
        "s",
        "in the engine on average",
        "cores: engine / gateway and clients / others",
        "prompt tokens in the prefix cache",
        "tokens reused",
        "sent late at most, ms",
    )
    return _rows(
        head,
        [
            [
                phase.source,
                phase.arm.value,
                str(phase.speakers),
                str(phase.streams),
                f"{phase.elapsed_s:.0f}",
                f"{phase.in_engine:.1f}",
                f"{phase.engine_cores:.2f} / {phase.serving_cores:.2f} / {phase.other_cores:.2f}",
                "–" if phase.cached_share is None else f"{phase.cached_share:.0%}",
                f"{phase.reused_tokens:,.0f}",
                f"{phase.late_ms:.0f}",
            ]
            for phase in result.phases
        ],
    )


def _notes(result: PartialsResult) -> Iterator[str]:
    machine, plan = result.machine, result.plan
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    on = f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib:g} GiB"
    if machine.gpus:
        on += f", {len(machine.gpus)} × {machine.gpus[0]}"
    origins = Counter(stream.origin.value for stream in result.streams)
    said = " and ".join(f"{count} {origin}" for origin, count in origins.items())
    policy = ", ".join(f"`{name} = {value}`" for name, value in result.policy.items())
    yield (
        f"`{result.command}`, {result.began}, revision {machine.revision or 'unknown'}; "
        f"{result.elapsed_s:.0f} s in all."
    )
    yield f"On {on}; {machine.system}, Python {machine.python}; {versions}."
    yield (
        f"Engine {plan.engine}, model {result.model}, dtype {result.dtype}, `max_num_seqs` {plan.max_num_seqs}, "
        f"prefix cache on; commit policy {policy}. Load average before: "
        f"{' '.join(f'{load:g}' for load in machine.load_average)}."
    )
    pace = "at the pace of speech" if plan.speed == 1 else f"{plan.speed:g} times as fast as people speak"
    yield (
        f"{said} streams, seed {plan.seed}, spoken {pace}. Naive: each revision is a final utterance of its own, "
        "whose translation takes the place of the one before. Alone: the finals only. Units are words, in ja and "
        "zh characters; text that only grew took nothing back. Lag is sampled before each next revision: source "
        "units heard, less target units shown, counted in source units. Tokens are counted with "
        f"{result.tokenizer}; chrF is that of {result.chrf} with its defaults."
    )
    if result.broken:
        yield "Promises that were broken, the first of them:"
        yield "\n".join(f"- {problem}" for problem in result.broken[:_SHOWN_PROBLEMS])


def _pair(pair: PairScores) -> str:
    return f"{pair.source}→{pair.target}"


def _spendings(pair: PairScores) -> tuple[Spending, Spending, Spending]:
    return pair.ours, pair.naively, pair.alone


def _three(pair: PairScores, value: Callable[[Display], float | None], form: str) -> str:
    return " / ".join(_number(value(display), form) for display in (pair.stable, pair.live, pair.naive))


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _in_seconds(milliseconds: float | None) -> str:
    return _number(_seconds(milliseconds), ".2f")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


# ---------------------------------------------------------------- the plot


def plot(result: PartialsResult, file: Path) -> None:
    """Erasure of each pair, erasure against lag, tokens, and time to the first word."""
    # Imported here: a second that a wrong option need not wait.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, ((flicker, trade), (tokens, first)) = pyplot.subplots(2, 2, figsize=(13, 9), layout="constrained")
    pairs = result.pairs
    _bars_of(
        flicker,
        pairs,
        [
            ("naive", _NAIVE, [each.naive.erasure for each in pairs]),
            ("live", _LIVE, [each.live.erasure for each in pairs]),
            ("stable", _STABLE, [each.stable.erasure for each in pairs]),
        ],
        "{:.2f}",
    )
    flicker.set(title="Normalised erasure, the final included", ylabel="units taken back / final units")
    _trade(trade, pairs)
    _bars_of(
        tokens,
        pairs,
        [
            ("naive", _NAIVE, [each.naively.ratio for each in pairs]),
            ("ours", _LIVE, [each.ours.ratio for each in pairs]),
        ],
        "{:.1f}",
    )
    tokens.set(title="Tokens generated for one that stays", ylabel="generated / final tokens")
    _bars_of(
        first,
        pairs,
        [
            ("naive", _NAIVE, [_seconds(each.naive.first_ms) or 0 for each in pairs]),
            ("live", _LIVE, [_seconds(each.live.first_ms) or 0 for each in pairs]),
            ("stable", _STABLE, [_seconds(each.stable.first_ms) or 0 for each in pairs]),
            ("whole sentences only", _FINAL, [_seconds(each.final_only.first_ms) or 0 for each in pairs]),
        ],
        "{:.1f}",
    )
    first.set(title="First word after the first revision, median", ylabel="seconds")
    figure.suptitle(
        f"{result.model} on {result.machine.cpu}, {result.machine.cores} cores: translations of speech that is "
        "still going on",
        fontsize=12,
    )
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def _bars_of(
    axes: Any, pairs: Sequence[PairScores], series: Sequence[tuple[str, str, Sequence[float]]], form: str
) -> None:
    width = 0.84 / len(series)
    for index, (label, colour, heights) in enumerate(series):
        places = [number + (index - (len(series) - 1) / 2) * width for number in range(len(pairs))]
        axes.bar(places, heights, width, color=colour, label=label)
        for place, height in zip(places, heights, strict=True):
            axes.annotate(
                form.format(height),
                (place, height),
                (0, 3),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=6.5,
                rotation=90,
            )
    axes.set_xticks(range(len(pairs)), [_pair(each) for each in pairs])
    axes.margins(y=0.18)
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _trade(axes: Any, pairs: Sequence[PairScores]) -> None:
    for label, colour, marker, displays in (
        ("naive", _NAIVE, "s", [each.naive for each in pairs]),
        ("live", _LIVE, "o", [each.live for each in pairs]),
        ("stable", _STABLE, "^", [each.stable for each in pairs]),
    ):
        every = zip(pairs, displays, strict=True)
        shown = [(pair, display) for pair, display in every if display.lag_mean is not None]
        axes.scatter(
            [display.lag_mean for _, display in shown],
            [display.erasure for _, display in shown],
            color=colour,
            marker=marker,
            label=label,
        )
        for pair, display in shown:
            axes.annotate(
                _pair(pair),
                (display.lag_mean, display.erasure),
                (4, 3),
                textcoords="offset points",
                fontsize=7,
            )
    axes.set(title="Erasure against lag", xlabel="mean lag, source units", ylabel="normalised erasure")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
