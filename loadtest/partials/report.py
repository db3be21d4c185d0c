"""What the evaluation shows: what readers saw, what it cost and how good it is, as tables and charts.

Knows: what a result means to people. Must not know: how it was found, how a table or a chart is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from loadtest.partials.result import Bar, Display, PairScores, PartialsResult, Spending
from loadtest.report.content import Chart, Series, Shown, Table

__all__ = ["shown"]

_SHOWN_PROBLEMS = 20


def shown(result: PartialsResult) -> Shown:
    """The whole report."""
    machine = result.machine
    title = f"{result.model} on {machine.cpu}, {machine.cores} cores: translations of unfinished speech"
    return Shown(list(_parts(result)), title, _charts(result.pairs))


# ---------------------------------------------------------------- the tables


def _parts(result: PartialsResult) -> Iterator[str | Table]:
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


def _bars(bars: Sequence[Bar]) -> Iterator[Table]:
    pairs = list(dict.fromkeys(bar.pair for bar in bars))
    if not pairs:
        return
    rows: list[list[str]] = []
    for name, limit in dict.fromkeys((bar.name, bar.limit) for bar in bars):
        own = {bar.pair: bar for bar in bars if bar.name == name}
        rows.append([name, limit, *(_judged(own.get(pair)) for pair in pairs)])
    yield Table("", ("has to be", "", *pairs), rows)


def _judged(bar: Bar | None) -> str:
    if bar is None:
        return ""
    return f"{_number(bar.value, '.3g')} {'pass' if bar.passed else '**FAIL**'}"


def _erasure(pairs: Sequence[PairScores]) -> Table:
    head = (
        "normalised erasure, the final included (without it)",
        "naive",
        "live",
        "stable",
        "naive / live",
        "streams",
        "revisions",
    )
    return Table(
        "",
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


def _lag(pairs: Sequence[PairScores]) -> Table:
    head = (
        "behind the speaker",
        "stable: source units, median (mean)",
        "live",
        "naive",
        "LAAL, source units: stable / live / naive",
        "LAAL, s",
    )
    return Table(
        "",
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


def _first(pairs: Sequence[PairScores]) -> Table:
    head = (
        "first word after the first revision, s: median (p90)",
        "live",
        "stable",
        "naive",
        "whole sentences only",
    )
    return Table(
        "",
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


def _cost(pairs: Sequence[PairScores]) -> Table:
    head = (
        "cost of an utterance",
        "generated / final tokens: ours",
        "naive",
        "alone",
        "engine time, s: ours / naive / alone",
        "finished requests: ours / naive / alone",
    )
    return Table(
        "",
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


def _outcomes(pairs: Sequence[PairScores]) -> Table:
    counts: Counter[str] = Counter()
    for each in pairs:
        counts.update(each.outcomes)
    names = [name for name, _ in counts.most_common()]
    return Table(
        "",
        ("revisions, by what became of them", *names),
        [[_pair(each), *(f"{each.outcomes.get(name, 0):,}" for name in names)] for each in pairs],
    )


def _quality(pairs: Sequence[PairScores]) -> Table:
    head = (
        "finals",
        "chrF against alone",
        "the same letter by letter",
        "committed text kept",
        "chrF against the corpus: ours",
        "alone",
    )
    return Table(
        "",
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


def _phases(result: PartialsResult) -> Table:
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
    return Table(
        "",
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
    origins = Counter(stream.origin.value for stream in result.streams)
    said = " and ".join(f"{count} {origin}" for origin, count in origins.items())
    policy = ", ".join(f"`{name} = {value}`" for name, value in result.policy.items())
    yield (
        f"`{result.command}`, {result.began}, revision {machine.revision or 'unknown'}; "
        f"{result.elapsed_s:.0f} s in all."
    )
    yield f"On {machine.in_words()}."
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


# ---------------------------------------------------------------- the charts


def _charts(pairs: Sequence[PairScores]) -> list[Chart]:
    """Erasure, lag, tokens, and time to the first word; a place on the x axis for each pair."""
    if not pairs:
        return []
    places = [float(place) for place in range(1, len(pairs) + 1)]

    def chart(title: str, y_label: str, **kinds: Callable[[PairScores], float | None]) -> Chart:
        return Chart(
            title=title,
            x_label="",
            y_label=y_label,
            series=[
                Series(name.replace("_", " "), places, list(map(value, pairs)), line=False)
                for name, value in kinds.items()
            ],
            x_ticks=[(place, f"{pair.source}\n→{pair.target}") for place, pair in zip(places, pairs, strict=True)],
        )

    return [
        chart(
            "Normalised erasure, the final included",
            "units taken back / final units",
            naive=lambda each: each.naive.erasure,
            live=lambda each: each.live.erasure,
            stable=lambda each: each.stable.erasure,
        ),
        chart(
            "Behind the speaker, mean",
            "source units",
            naive=lambda each: each.naive.lag_mean,
            live=lambda each: each.live.lag_mean,
            stable=lambda each: each.stable.lag_mean,
        ),
        chart(
            "Tokens generated for one that stays",
            "generated / final tokens",
            naive=lambda each: each.naively.ratio,
            ours=lambda each: each.ours.ratio,
        ),
        chart(
            "First word after the first revision, median",
            "seconds",
            naive=lambda each: _seconds(each.naive.first_ms),
            live=lambda each: _seconds(each.live.first_ms),
            stable=lambda each: _seconds(each.stable.first_ms),
            whole_sentences=lambda each: _seconds(each.final_only.first_ms),
        ),
    ]
