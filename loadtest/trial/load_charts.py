"""Charts of what a system gives for what is asked of it: in an open loop and in a closed one.

Knows: groups of trials, what each picture tells. Must not know: how anything is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loadtest.report.content import MOST_SERIES, Chart, Mark, Series
from loadtest.results import Spread
from loadtest.trial.groups import Group
from loadtest.trial.summary import Percentiles, Summary
from loadtest.trial.values import Objective

__all__ = ["against_in_flight", "against_rate"]

_IN_FLIGHT, _OFFERED = "requests in flight", "offered, requests/s"


# ---------------------------------------------------------------- open loop


def against_rate(found: Sequence[Group], objective: Objective) -> Iterator[Chart]:
    """Latency and goodput by how much was offered, for groups of several rates."""
    if not found:
        return
    goal = Mark(f"objective {objective.first_token_ms:g} ms", objective.first_token_ms)
    knees = [
        Mark(f"kept to {knee.offered_per_s:.3g}/s", knee.offered_per_s or 0.0, "x")
        for group in found
        if len(found) == 1 and (knee := group.knee) is not None and knee is not group.summaries[-1]
    ]
    yield Chart(
        title="First token against offered rate",
        caption=f"{_from_due(found)} {_knee_words(found, objective)}",
        x_label=_OFFERED,
        y_label="first token, ms",
        series=_percentile_lines(found),
        marks=(goal, *knees),
        log_y=True,
    )
    yield Chart(
        title="Goodput against offered rate",
        caption="Finished translations a second, of which those count whose first token came within "
        f"{objective.first_token_ms:g} ms of when its line was due. On the thin diagonal everything that was "
        "offered would be of use. Whiskers: lowest and highest of the repetitions.",
        x_label=_OFFERED,
        y_label="translations/s",
        series=[
            _spread_line(
                "goodput" if len(found) == 1 else group.label, group, lambda each: each.goodput_per_s, number
            )
            for number, group in enumerate(found[:MOST_SERIES])
        ]
        + [
            _spread_line("finished", group, lambda each: each.requests_per_s, 1, style=1)
            for group in found
            if len(found) == 1
        ],
        marks=[Mark("offered", axis="both")],
    )


def _from_due(found: Sequence[Group]) -> str:
    lost = sum(each.failed + each.unfinished for group in found for each in group.summaries)
    said = f" {lost:,} translations failed or were not finished and have no latency." if lost else ""
    return f"Latency from when a line was due, over all repetitions.{said}"


def _knee_words(found: Sequence[Group], objective: Objective) -> str:
    kept = f"{objective.quantile * 100:g} % within {objective.first_token_ms:g} ms"
    said: list[str] = []
    for group in found:
        name = f"{group.label}: " if len(found) > 1 else ""
        if group.knee is None:
            said.append(f"{name}the objective ({kept}) was kept at no rate.")
        elif group.knee is group.summaries[-1]:
            said.append(f"{name}the objective ({kept}) was kept at every rate that was tried.")
        else:
            said.append(f"{name}the objective ({kept}) was kept up to {group.knee.offered_per_s:.3g} requests/s.")
    text = " ".join(said)
    return text[0].upper() + text[1:]


def _percentile_lines(found: Sequence[Group]) -> list[Series]:
    """All three for one group, else as many as can be told apart."""
    kinds: list[tuple[str, Callable[[Percentiles], float | None], int]] = [
        ("p50", lambda each: each.p50_ms, 1),
        ("p90", lambda each: each.p90_ms, 2),
        ("p99", lambda each: each.p99_ms, 0),
    ]
    if len(found) > 1:
        kinds = [kinds[0], kinds[2]] if len(found) <= MOST_SERIES // 2 else [kinds[2]]
    return [
        Series(
            f"{group.label} {name}" if len(found) > 1 else name,
            group.loads,
            [value(each.first_token) for each in group.summaries],
            colour=number if len(found) > 1 else kind,
            style=style,
        )
        for number, group in enumerate(found[:MOST_SERIES])
        for kind, (name, value, style) in enumerate(kinds)
    ]


def _spread_line(
    name: str, group: Group, value: Callable[[Summary], Spread], colour: int, style: int = 0
) -> Series:
    spreads = [value(each) for each in group.summaries]
    return Series(
        name,
        group.loads,
        [spread.median for spread in spreads],
        low=[spread.low for spread in spreads],
        high=[spread.high for spread in spreads],
        colour=colour,
        style=style,
    )


# ---------------------------------------------------------------- closed loop


def against_in_flight(found: Sequence[Group]) -> Iterator[Chart]:
    """Requests a second and first token by how many are in flight; bars where that is one number only."""
    found = found[:MOST_SERIES]
    if not found:
        return
    if len({load for group in found for load in group.loads}) == 1:
        yield from _at_one_level(found)
        return
    yield Chart(
        title="Requests a second against requests in flight",
        caption=_CLOSED,
        x_label=_IN_FLIGHT,
        y_label="requests/s",
        series=[
            _spread_line(group.label, group, lambda each: each.requests_per_s, number)
            for number, group in enumerate(found)
        ],
    )
    yield Chart(
        title="First token (p99) against requests in flight",
        caption=_FIRST,
        x_label=_IN_FLIGHT,
        y_label="first token p99, ms",
        series=[
            Series(group.label, group.loads, [each.first_token.p99_ms for each in group.summaries], colour=number)
            for number, group in enumerate(found)
        ],
        log_y=True,
    )


_CLOSED = (
    "Closed loop: the next request is sent when one is done. Medians; whiskers: lowest and highest repetition."
)
_FIRST = (
    "Closed loop: 99 % of the first tokens came within this time after their request was sent, over all "
    "repetitions."
)


def _at_one_level(found: Sequence[Group]) -> Iterator[Chart]:
    load = f"{found[0].loads[0]:g} requests in flight"
    yield Chart(
        title=f"Requests a second with {load}",
        caption=_CLOSED,
        x_label="requests/s",
        series=[
            Series(
                group.label,
                [],
                [spread.median],
                low=[spread.low],
                high=[spread.high],
                colour=number,
            )
            for number, group in enumerate(found)
            for spread in (group.summaries[0].requests_per_s,)
        ],
        bars=True,
    )
    yield Chart(
        title=f"First token (p99) with {load}",
        caption=_FIRST,
        x_label="first token p99, ms",
        series=[
            Series(group.label, [], [group.summaries[0].first_token.p99_ms], colour=number)
            for number, group in enumerate(found)
        ],
        bars=True,
    )
