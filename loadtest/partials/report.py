"""What the evaluation shows: what readers saw, what it cost and how good it is, as tables and charts.

Knows: what a result means to people. Must not know: how it was found, how a table or a chart is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from loadtest.partials.result import Bar, Display, PairScores, PartialsResult, Phase, Spending
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


def _table(head: str, pairs: Sequence[PairScores], columns: dict[str, Callable[[PairScores], str]]) -> Table:
    """A row for each pair. columns: their heads, and what is in them."""
    rows = [[_pair(each), *(cell(each) for cell in columns.values())] for each in pairs]
    return Table("", (head, *columns), rows)


def _both(display: Display) -> str:
    return f"{display.erasure:.3f} ({display.erasure_before:.3f})"


def _erasure(pairs: Sequence[PairScores]) -> Table:
    columns: dict[str, Callable[[PairScores], str]] = {
        "naive": lambda each: _both(each.naive),
        "live": lambda each: _both(each.live),
        "stable": lambda each: _both(each.stable),
        "naive / live": lambda each: _number(
            each.naive.erasure / each.live.erasure if each.live.erasure else None, ".1f"
        ),
        "streams": lambda each: f"{each.streams:,}",
        "revisions": lambda each: f"{each.revisions:,}",
    }
    return _table("normalised erasure, the final included (without it)", pairs, columns)


def _lag(pairs: Sequence[PairScores]) -> Table:
    def behind(display: Display) -> str:
        return f"{_number(display.lag_median, '.1f')} ({_number(display.lag_mean, '.1f')})"

    columns: dict[str, Callable[[PairScores], str]] = {
        "stable: source units, median (mean)": lambda each: behind(each.stable),
        "live": lambda each: behind(each.live),
        "naive": lambda each: behind(each.naive),
        "LAAL, source units: stable / live / naive": lambda each: _three(each, lambda of: of.laal),
        "LAAL, s": lambda each: _three(each, lambda of: _seconds(of.laal_ms)),
    }
    return _table("behind the speaker", pairs, columns)


def _first(pairs: Sequence[PairScores]) -> Table:
    def first(display: Display) -> str:
        return f"{_number(_seconds(display.first_ms), '.2f')} ({_number(_seconds(display.first_p90_ms), '.2f')})"

    columns: dict[str, Callable[[PairScores], str]] = {
        "live": lambda each: first(each.live),
        "stable": lambda each: first(each.stable),
        "naive": lambda each: first(each.naive),
        "whole sentences only": lambda each: first(each.final_only),
    }
    return _table("first word after the first revision, s: median (p90)", pairs, columns)


def _cost(pairs: Sequence[PairScores]) -> Table:
    def all_three(pair: PairScores, value: Callable[[Spending], str]) -> str:
        return " / ".join(map(value, (pair.ours, pair.naively, pair.alone)))

    columns: dict[str, Callable[[PairScores], str]] = {
        "generated / final tokens: ours": lambda each: f"{each.ours.ratio:.2f}",
        "naive": lambda each: f"{each.naively.ratio:.2f}",
        "alone": lambda each: f"{each.alone.ratio:.2f}",
        "engine time, s: ours / naive / alone": lambda each: all_three(each, lambda of: f"{of.engine_s:.2f}"),
        "finished requests: ours / naive / alone": lambda each: all_three(each, lambda of: f"{of.requests:.1f}"),
    }
    return _table("cost of an utterance", pairs, columns)


def _outcomes(pairs: Sequence[PairScores]) -> Table:
    counts: Counter[str] = Counter()
    for each in pairs:
        counts.update(each.outcomes)
    rows = [
        [_pair(each), *(f"{each.outcomes.get(name, 0):,}" for name, _ in counts.most_common())] for each in pairs
    ]
    return Table("", ("revisions, by what became of them", *(name for name, _ in counts.most_common())), rows)


def _quality(pairs: Sequence[PairScores]) -> Table:
    columns: dict[str, Callable[[PairScores], str]] = {
        "chrF against alone": lambda each: _number(each.chrf_alone, ".2f"),
        "the same letter by letter": lambda each: f"{each.same:.1%}",
        "committed text kept": lambda each: f"{each.kept:.1%}",
        "chrF against the corpus: ours": lambda each: _number(each.chrf_reference, ".2f"),
        "alone": lambda each: _number(each.alone_reference, ".2f"),
    }
    return _table("finals", pairs, columns)


def _phases(result: PartialsResult) -> Table:
    columns: dict[str, Callable[[Phase], str]] = {
        "spoken": lambda each: each.source,
        "arm": lambda each: each.arm.value,
        "speakers": lambda each: str(each.speakers),
        "streams": lambda each: str(each.streams),
        "s": lambda each: f"{each.elapsed_s:.0f}",
        "in the engine on average": lambda each: f"{each.in_engine:.1f}",
        "cores: engine / gateway and clients / others": lambda each: (
            f"{each.engine_cores:.2f} / {each.serving_cores:.2f} / {each.other_cores:.2f}"
        ),
        "prompt tokens in the prefix cache": lambda each: _number(each.cached_share, ".0%"),
        "tokens reused": lambda each: f"{each.reused_tokens:,.0f}",
        "sent late at most, ms": lambda each: f"{each.late_ms:.0f}",
    }
    return Table("", list(columns), [[cell(each) for cell in columns.values()] for each in result.phases])


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


def _three(pair: PairScores, value: Callable[[Display], float | None]) -> str:
    return " / ".join(_number(value(display), ".1f") for display in (pair.stable, pair.live, pair.naive))


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


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
