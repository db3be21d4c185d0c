"""What neighbouring rounds say of the gateway beside each other system.

Knows: trials, ratios, the bars. Must not know: how anything was measured or looks.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from loadtest.peers.peer import DIRECT, GATEWAY, SERVE, SERVE_TUNED
from loadtest.peers.run import Outcome
from loadtest.results import Spread, nearest_rank
from loadtest.trial.measure import DRIVER_WAS_THE_LIMIT
from loadtest.trial.values import Closed, Finding, Trial

__all__ = ["Comparison", "comparisons", "findings", "in_words"]

# What the gateway has to reach where there are bars.
_OF_DIRECT, _OF_SERVE = 0.97, 2.0
_ADDED_MS, _ADDED_AT = 3.0, 25
_BUSY = 95.0

# NVML tells of up to a second before; at the end of a round fewer and fewer are in flight.
_UNTIL_BUSY_S, _ENDS_S = 1.0, 0.5


class Comparison(Struct, frozen=True, kw_only=True):
    """The gateway beside one other system at one level: of each repetition, over the repetitions.

    requests, tokens: the gateway's, a second, divided by the other's. first_p50_added_ms, first_p99_added_ms: the
    gateway's minus the other's. same_text: part of the translations of the first repetition; null where that is
    not known. limits: where a driver was the limit, whose and how.
    """

    in_flight: int
    peer: str
    repetitions: int
    requests: Spread
    tokens: Spread
    first_p50_added_ms: Spread | None
    first_p99_added_ms: Spread | None
    same_text: float | None
    limits: dict[str, str]


def comparisons(outcome: Outcome) -> list[Comparison]:
    """By level, then by system, both in order of appearance. Only repetitions that both have are compared."""
    rounds: dict[tuple[int, str], dict[int, Trial]] = {}
    for trial in outcome.trials:
        rounds.setdefault((_in_flight(trial), trial.system), {})[trial.repetition] = trial
    made: list[Comparison] = []
    for (in_flight, peer), theirs in rounds.items():
        own = rounds.get((in_flight, GATEWAY), {})
        pairs = [(own[repetition], theirs[repetition]) for repetition in own.keys() & theirs.keys()]
        if peer != GATEWAY and pairs:
            made.append(_comparison(in_flight, peer, pairs, outcome.same_text.get((in_flight, peer))))
    return made


def _comparison(
    in_flight: int, peer: str, pairs: Sequence[tuple[Trial, Trial]], same_text: float | None
) -> Comparison:
    limits = {
        trial.system: str(trial.settings[DRIVER_WAS_THE_LIMIT])
        for pair in pairs
        for trial in pair
        if DRIVER_WAS_THE_LIMIT in trial.settings
    }
    return Comparison(
        in_flight=in_flight,
        peer=peer,
        repetitions=len(pairs),
        requests=_ratio(pairs, _requests_per_s),
        tokens=_ratio(pairs, _tokens_per_s),
        first_p50_added_ms=_added(pairs, 0.5),
        first_p99_added_ms=_added(pairs, 0.99),
        same_text=same_text,
        limits=limits,
    )


# ---------------------------------------------------------------- findings


def findings(outcome: Outcome, compared: Sequence[Comparison], *, bars: bool) -> list[Finding]:
    """What people look for first. bars: whether the gateway has to reach anything."""
    found = [
        Finding(f"{name} took no part, or not in everything", "failed", note=why)
        for name, why in outcome.failures.items()
    ]
    if not outcome.complete:
        found.append(Finding("the rounds", "incomplete", note="There was no time for all (--time-limit-s)."))
    levels = sorted({_in_flight(trial) for trial in outcome.trials})
    highest = levels[-1] if levels else 0
    found += [_ratio_found(each, highest, bars) for each in compared]
    found += [
        _added_found(each, bars)
        for each in compared
        if each.peer == DIRECT and each.first_p99_added_ms is not None
    ]
    found += _same_text_found(compared)
    found += _gpu_found([each for each in outcome.trials if _in_flight(each) == highest], highest, bars)
    if bars:
        found += _missing(compared, levels)
    return found


def _ratio_found(compared: Comparison, highest: int, bars: bool) -> Finding:
    least = _least(compared.peer, compared.in_flight, highest) if bars else None
    reached = least is not None and compared.requests.median >= least
    notes = [f"Tokens/s {in_words(compared.tokens)}."]
    # What its driver held back is faster than it looks.
    flattered = compared.peer in compared.limits
    if flattered:
        notes.append(f"Not to be counted on: {compared.limits[compared.peer]}")
    if GATEWAY in compared.limits:
        notes.append(f"The gateway is faster than this: {compared.limits[GATEWAY]}")
    return Finding(
        f"gateway ÷ {compared.peer}, requests/s, {compared.in_flight} in flight",
        in_words(compared.requests),
        bar=f"≥ {least:g}" if least is not None else "",
        passed=None if least is None or (reached and flattered) else reached,
        note=" ".join(notes),
    )


def _least(peer: str, in_flight: int, highest: int) -> float | None:
    if peer == DIRECT:
        return _OF_DIRECT
    return _OF_SERVE if peer in (SERVE, SERVE_TUNED) and in_flight == highest else None


def _added_found(compared: Comparison, bars: bool) -> Finding:
    assert compared.first_p99_added_ms is not None  # noqa: S101 -- chosen so
    barred = bars and compared.in_flight == _ADDED_AT
    return Finding(
        f"first token p99 added by the gateway, {compared.in_flight} in flight",
        f"{in_words(compared.first_p99_added_ms, '{:+.1f}')} ms",
        bar=f"≤ {_ADDED_MS:g} ms" if barred else "",
        passed=compared.first_p99_added_ms.median <= _ADDED_MS if barred else None,
        note=f"Over {compared.peer} in the neighbouring round"
        + (
            f"; p50 {in_words(compared.first_p50_added_ms, '{:+.1f}')} ms." if compared.first_p50_added_ms else "."
        ),
    )


def _same_text_found(compared: Sequence[Comparison]) -> list[Finding]:
    by_peer: dict[str, list[str]] = {}
    for each in compared:
        if each.same_text is not None:
            by_peer.setdefault(each.peer, []).append(f"{each.same_text:.1%} at {each.in_flight}")
    return [Finding(f"same text as {peer}", ", ".join(shares)) for peer, shares in by_peer.items()]


def _gpu_found(trials: Sequence[Trial], in_flight: int, bars: bool) -> list[Finding]:
    """Of the gateway under the most load."""
    own = [trial for trial in trials if trial.system == GATEWAY]
    found: list[Finding] = []
    if busy := [
        sample.gpu
        for trial in own
        for sample in trial.samples
        if sample.gpu is not None and _UNTIL_BUSY_S <= sample.at_s <= trial.elapsed_s - _ENDS_S
    ]:
        mean = statistics.fmean(busy)
        found.append(
            Finding(
                f"GPU busy under the gateway, {in_flight} in flight",
                f"{mean:.0f} %",
                bar=f"≥ {_BUSY:g} %" if bars else "",
                passed=mean >= _BUSY if bars else None,
                note="Mean of NVML's samples, without a round's first second and last half.",
            )
        )
    if steps := sum(int(trial.settings.get("engine_steps", 0)) for trial in own):
        gaps = sum(int(trial.settings.get("engine_gaps_over_100_ms", 0)) for trial in own)
        found.append(
            Finding(
                f"steps of the engine over 100 ms, {in_flight} in flight",
                f"{gaps} of {steps:,}",
                bar="0" if bars else "",
                passed=gaps == 0 if bars else None,
                note="Time between two outputs of the gateway's engine while it has something to generate.",
            )
        )
    return found


def _missing(compared: Sequence[Comparison], levels: Sequence[int]) -> list[Finding]:
    """What should have been measured for the bars, and was not."""
    there = {(each.in_flight, each.peer) for each in compared}
    wanted = [(level, DIRECT) for level in levels] + [(level, SERVE) for level in levels[-1:]]
    wanted += [(level, SERVE_TUNED) for level in levels[-1:]]
    return [
        Finding(
            f"gateway ÷ {peer}, requests/s, {level} in flight",
            "not measured",
            bar=f"≥ {_least(peer, level, levels[-1]):g}",
            passed=False,
        )
        for level, peer in wanted
        if (level, peer) not in there
    ]


# ---------------------------------------------------------------- arithmetic


def _in_flight(trial: Trial) -> int:
    assert isinstance(trial.load, Closed)  # noqa: S101 -- there is no other load here
    return trial.load.in_flight


def _requests_per_s(trial: Trial) -> float:
    return sum(each.failed is None for each in trial.records) / trial.elapsed_s


def _tokens_per_s(trial: Trial) -> float:
    return sum(each.tokens for each in trial.records) / trial.elapsed_s


def _ratio(pairs: Iterable[tuple[Trial, Trial]], per_s: Callable[[Trial], float]) -> Spread:
    return _over([per_s(own) / max(per_s(theirs), 1e-9) for own, theirs in pairs])


def _added(pairs: Iterable[tuple[Trial, Trial]], quantile: float) -> Spread | None:
    added = [
        own_ms - their_ms
        for own, theirs in pairs
        if (own_ms := _first_ms(own, quantile)) is not None
        and (their_ms := _first_ms(theirs, quantile)) is not None
    ]
    return _over(added) if added else None


def _first_ms(trial: Trial, quantile: float) -> float | None:
    first_ms = [(each.first_s - each.sent_s) * 1000 for each in trial.records if each.first_s is not None]
    return nearest_rank(first_ms, quantile) if first_ms else None


def _over(values: Sequence[float]) -> Spread:
    return Spread(round(statistics.median(values), 4), round(min(values), 4), round(max(values), 4))


def in_words(spread: Spread, form: str = "{:.2f}") -> str:
    """Median, lowest and highest."""
    return f"{form.format(spread.median)} ({form.format(spread.low)} to {form.format(spread.high)})"
