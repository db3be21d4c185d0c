"""What rounds of the same lines say of the gateway beside each other system.

Knows: trials, ratios, the bars. Must not know: how anything was measured or looks.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from gateway.sessions.machine import CONTEXT_UTTERANCES
from loadtest.measuring.measure import DRIVER_WAS_THE_LIMIT
from loadtest.peers.peer import DIRECT, GATEWAY, SERVE, SERVE_TUNED, SERVE_WORKERS
from loadtest.peers.run import Outcome
from loadtest.results import Spread, nearest_rank
from loadtest.trial.summary import requests_per_s, tokens_per_s
from loadtest.trial.values import Closed, Finding, Trial

__all__ = ["Comparison", "comparisons", "findings", "in_words"]

# What the gateway has to reach where there are bars.
_OF_DIRECT, _OF_SERVE = 0.97, 2.0
_ADDED_MS, _ADDED_AT = 3.0, 25
_BUSY = 95.0

_CONTEXT = Finding(
    "prompts",
    "the gateway's are longer",
    note="The model takes what was said before: the gateway's prompts hold up to "
    f"{2 * CONTEXT_UTTERANCES - 1} earlier lines of their session, the others' none. For the same prompts, the "
    "gateway is faster than it looks here; the texts need not be the same.",
)

_SHOWN_REASONS = 3

# A spread is rounded to as many.
_MOST_DECIMALS = 4

# NVML tells of up to a second before.
_UNTIL_BUSY_S = 1.0


class Comparison(Struct, frozen=True, kw_only=True):
    """The gateway beside one other system at one level: of each repetition, over the repetitions."""

    in_flight: int
    peer: str
    repetitions: int
    # The gateway's, a second, divided by the other's.
    requests: Spread
    tokens: Spread
    # The gateway's first token minus the other's.
    first_p50_added_ms: Spread | None
    first_p99_added_ms: Spread | None
    # Part of the translations of the first repetition; None where that is not known.
    same_text: float | None
    # Where a driver was the limit: whose, and how.
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
        requests=_ratio(pairs, requests_per_s),
        tokens=_ratio(pairs, tokens_per_s),
        first_p50_added_ms=_added(pairs, 0.5),
        first_p99_added_ms=_added(pairs, 0.99),
        same_text=same_text,
        limits=limits,
    )


# ---------------------------------------------------------------- findings


def findings(
    outcome: Outcome, compared: Sequence[Comparison], levels: Sequence[int], *, bars: bool, context: bool = False
) -> list[Finding]:
    """What people look for first.

    levels: in flight, those that were to be measured. bars: whether the gateway has to reach anything. context:
    whether its prompts hold what was said before, which those of the other routes do not.
    """
    found = [_left_out(name, why, outcome.trials) for name, why in outcome.failures.items()]
    if outcome.cut_short:
        note = outcome.cut_short
        found.append(Finding("the rounds", "incomplete", bar="complete", passed=False, note=note))
    found.append(_failed_found(outcome.trials))
    if context:
        found.append(_CONTEXT)
    barred = _barred(compared, levels) if bars else {}
    found += [_ratio_found(each, barred.pop((each.in_flight, each.peer), None)) for each in compared]
    found += [
        _not_measured(_ratio_name(peer, in_flight), f"≥ {least:g}") for (in_flight, peer), least in barred.items()
    ]
    found += _added_found(compared, bars)
    found += _same_text_found(compared)
    highest = max(levels)
    own = [each for each in outcome.trials if each.system == GATEWAY and _in_flight(each) == highest]
    return [*found, *_gpu_found(own, highest, bars), *_steps_found(own, highest, bars)]


def _barred(compared: Sequence[Comparison], levels: Sequence[int]) -> dict[tuple[int, str], float]:
    """(in flight, peer) → the least ratio: beside the engine itself at every level; at the highest beside vLLM's
    server as it is, and beside the best of those with our settings."""
    highest = max(levels)
    ours = [each for each in compared if each.in_flight == highest and each.peer in (SERVE_TUNED, SERVE_WORKERS)]
    best = min(ours, key=lambda each: each.requests.median).peer if ours else SERVE_TUNED
    beside_engine = {(level, DIRECT): _OF_DIRECT for level in sorted(levels)}
    return beside_engine | {(highest, SERVE): _OF_SERVE, (highest, best): _OF_SERVE}


def _not_measured(name: str, bar: str, note: str = "") -> Finding:
    """Of a bar nobody knows whether it is reached: it is not."""
    return Finding(name, "not measured", bar=bar, passed=False, note=note)


def _left_out(name: str, why: str, trials: Sequence[Trial]) -> Finding:
    """A system that was to be compared: whatever the others reached, the comparison that was asked for failed."""
    begun = any(trial.system == name for trial in trials)
    return Finding(name, "left out from some round on" if begun else "missing", "in every round", False, why)


def _failed_found(trials: Sequence[Trial]) -> Finding:
    """A system that refuses half of what it is asked is quick with the rest."""
    asked: Counter[tuple[str, int]] = Counter()
    failures: dict[tuple[str, int], Counter[str]] = {}
    for trial in trials:
        place = trial.system, _in_flight(trial)
        asked[place] += len(trial.records)
        why = Counter(record.failed for record in trial.records if record.failed is not None)
        failures.setdefault(place, Counter()).update(why)
    notes = [
        f"{system}, {in_flight} in flight: {why.total():,} of {asked[system, in_flight]:,} "
        f"({', '.join(reason for reason, _ in why.most_common(_SHOWN_REASONS))})"
        for (system, in_flight), why in failures.items()
        if why
    ]
    failed = sum(why.total() for why in failures.values())
    return Finding(
        "failed of asked",
        f"{failed:,} of {asked.total():,}",
        bar="0",
        passed=not failed,
        note="; ".join(notes) + "." if notes else "",
    )


def _ratio_name(peer: str, in_flight: int) -> str:
    return f"gateway ÷ {peer}, requests/s, {in_flight} in flight"


def _ratio_found(compared: Comparison, least: float | None) -> Finding:
    """least: what has to be reached; None: nothing."""
    name, bar = _ratio_name(compared.peer, compared.in_flight), "" if least is None else f"≥ {least:g}"
    value = _beside_bar(compared.requests, least, "", 2)
    notes = [f"Tokens/s {in_words(compared.tokens)}."]
    if GATEWAY in compared.limits:
        notes.append(f"The gateway is faster than this: {compared.limits[GATEWAY]}")
    reached = least is not None and compared.requests.median >= least
    if compared.peer in compared.limits:
        notes.append(f"Not to be counted on: {compared.limits[compared.peer]}")
        # What its driver held back is faster than it looks: that a bar is reached is not shown by that.
        if reached:
            return _not_measured(name, bar, f"It would be {value}. {' '.join(notes)}")
    return Finding(name, value, bar=bar, passed=None if least is None else reached, note=" ".join(notes))


def _added_found(compared: Sequence[Comparison], bars: bool) -> list[Finding]:
    found: list[Finding] = []
    for each in compared:
        added = each.first_p99_added_ms
        if each.peer != DIRECT or added is None:
            continue
        barred = bars and each.in_flight == _ADDED_AT
        p50 = each.first_p50_added_ms
        found.append(
            Finding(
                _added_name(each.in_flight),
                f"{_beside_bar(added, _ADDED_MS if barred else None, '+', 1)} ms",
                bar=f"≤ {_ADDED_MS:g} ms" if barred else "",
                passed=added.median <= _ADDED_MS if barred else None,
                note=f"Over {each.peer} in the same repetition"
                + (f"; p50 {in_words(p50, '{:+.1f}')} ms." if p50 else "."),
            )
        )
    if bars and all(each.name != _added_name(_ADDED_AT) for each in found):
        found.append(_not_measured(_added_name(_ADDED_AT), f"≤ {_ADDED_MS:g} ms"))
    return found


def _added_name(in_flight: int) -> str:
    return f"first token p99 added by the gateway, {in_flight} in flight"


def _same_text_found(compared: Sequence[Comparison]) -> list[Finding]:
    by_peer: dict[str, list[str]] = {}
    for each in compared:
        if each.same_text is not None:
            by_peer.setdefault(each.peer, []).append(f"{each.same_text:.1%} at {each.in_flight}")
    return [Finding(f"same text as {peer}", ", ".join(shares)) for peer, shares in by_peer.items()]


def _gpu_found(own: Sequence[Trial], in_flight: int, bars: bool) -> list[Finding]:
    """own: the gateway's under the most load."""
    name, bar = f"GPU busy under the gateway, {in_flight} in flight", f"≥ {_BUSY:g} %" if bars else ""
    busy = [
        sample.gpu
        for trial in own
        for sample in trial.samples
        if sample.gpu is not None and sample.at_s >= _UNTIL_BUSY_S
    ]
    if not busy:
        return [_not_measured(name, bar, "NVML told nothing.")] if bars else []
    mean = statistics.fmean(busy)
    return [
        Finding(
            name,
            f"{mean:.{_decimals(mean, _BUSY if bars else None, 0)}f} %",
            bar=bar,
            passed=mean >= _BUSY if bars else None,
            note="Mean of NVML's samples, without a round's first second.",
        )
    ]


def _steps_found(own: Sequence[Trial], in_flight: int, bars: bool) -> list[Finding]:
    """own: the gateway's under the most load."""
    name, bar = f"steps of the engine over 100 ms, {in_flight} in flight", "0" if bars else ""
    if not (steps := sum(int(trial.settings.get("engine_steps", 0)) for trial in own)):
        return [_not_measured(name, bar, "The gateway told of no steps.")] if bars else []
    gaps = sum(int(trial.settings.get("engine_gaps_over_100_ms", 0)) for trial in own)
    return [
        Finding(
            name,
            f"{gaps} of {steps:,}",
            bar=bar,
            passed=gaps == 0 if bars else None,
            note="Time between two outputs of the gateway's engine while it has something to generate.",
        )
    ]


# ---------------------------------------------------------------- arithmetic


def _in_flight(trial: Trial) -> int:
    assert isinstance(trial.load, Closed)  # noqa: S101 -- there is no other load here
    return trial.load.in_flight


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


def _beside_bar(spread: Spread, bar: float | None, sign: str, decimals: int) -> str:
    """sign: `+` to show that of what is above 0, too."""
    return in_words(spread, f"{{:{sign}.{_decimals(spread.median, bar, decimals)}f}}")


def _decimals(value: float, bar: float | None, least: int) -> int:
    """How many it takes for a value to be read on the side of the bar on which it is."""

    def side(number: float) -> tuple[bool, bool]:
        return bar is not None and number < bar, bar is not None and number > bar

    return next(
        (count for count in range(least, _MOST_DECIMALS) if side(round(value, count)) == side(value)),
        _MOST_DECIMALS,
    )


def in_words(spread: Spread, form: str = "{:.2f}") -> str:
    """Median, lowest and highest."""
    return f"{form.format(spread.median)} ({form.format(spread.low)} to {form.format(spread.high)})"
