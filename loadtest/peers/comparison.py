"""What rounds of the same lines say of the gateway beside each other system.

Knows: trials, ratios, the bars, what people read from them. Must not know: how anything was measured.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from gateway.sessions.rules import CONTEXT_UTTERANCES
from loadtest.measuring.measure import DRIVER_WAS_THE_LIMIT
from loadtest.peers.run import DIRECT, GATEWAY, SERVE, SERVE_TUNED, SERVE_WORKERS, Outcome
from loadtest.results import Spread, nearest_rank, spread
from loadtest.systems.vllm_serve import STREAM_INTERVAL
from loadtest.trial.content import NONE, Table, formatted, tabulated
from loadtest.trial.summary import requests_per_s, tokens_per_s
from loadtest.trial.values import Closed, Finding, Trial

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
    """What people look for first; how the systems compare is in the table.

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
    if bars:
        highest = max(levels)
        own = [each for each in outcome.trials if each.system == GATEWAY and _in_flight(each) == highest]
        found += _ratios_found(compared, levels)
        found += [_added_found(compared), _gpu_found(own, highest), _steps_found(own, highest)]
    return found


def _left_out(name: str, why: str, trials: Sequence[Trial]) -> Finding:
    """A system that was to be compared: whatever the others reached, the comparison that was asked for failed."""
    begun = any(trial.system == name for trial in trials)
    return Finding(name, "left out from some round on" if begun else "missing", "in every round", False, why)


def _failed_found(trials: Sequence[Trial]) -> Finding:
    """A system that refuses half of what it is asked is quick with the rest."""
    failures: dict[str, Counter[str]] = {}
    for trial in trials:
        why = Counter(record.failed for record in trial.records if record.failed is not None)
        failures.setdefault(trial.name, Counter()).update(why)
    notes = [
        f"{name}: {why.total():,} ({', '.join(reason for reason, _ in why.most_common(_SHOWN_REASONS))})"
        for name, why in failures.items()
        if why
    ]
    failed, asked = sum(why.total() for why in failures.values()), sum(len(trial.records) for trial in trials)
    note = "; ".join(notes) + "." if notes else ""
    return Finding("failed of asked", f"{failed:,} of {asked:,}", bar="0", passed=not failed, note=note)


# ---------------------------------------------------------------- bars


def _barred(name: str, value: str | None, bar: str, passed: bool, note: str = "") -> Finding:
    """A bar of which it is not known whether it is reached is missed."""
    if value is None:
        return Finding(name, "not measured", bar=bar, passed=False, note=note)
    return Finding(name, value, bar=bar, passed=passed, note=note)


def _ratios_found(compared: Sequence[Comparison], levels: Sequence[int]) -> Iterator[Finding]:
    """Beside the engine itself at every level; at the highest beside vLLM's server as it is, and beside the best
    of those with our settings."""
    highest = max(levels)
    ours = [each for each in compared if each.in_flight == highest and each.peer in (SERVE_TUNED, SERVE_WORKERS)]
    best = min(ours, key=lambda each: each.requests.median).peer if ours else SERVE_TUNED
    least = {(level, DIRECT): _OF_DIRECT for level in sorted(levels)}
    least |= {(highest, SERVE): _OF_SERVE, (highest, best): _OF_SERVE}
    known = {(each.in_flight, each.peer): each for each in compared}
    for (in_flight, peer), bar in least.items():
        own, value, reached, note = known.get((in_flight, peer)), None, False, ""
        if own is not None:
            value, reached = _in_words(own.requests, "{:.4f}"), own.requests.median >= bar
            note = own.limits.get(peer, "")
            if note and reached:
                # What its driver held back is faster than it looks: that a bar is reached is not shown by that.
                note, value = f"It would be {value}. Not to be counted on: {note}", None
        yield _barred(f"gateway ÷ {peer}, requests/s, {in_flight} in flight", value, f"≥ {bar:g}", reached, note)


def _added_found(compared: Sequence[Comparison]) -> Finding:
    added = next((e.first_p99_added_ms for e in compared if (e.peer, e.in_flight) == (DIRECT, _ADDED_AT)), None)
    return _barred(
        f"first token p99 added by the gateway, {_ADDED_AT} in flight",
        None if added is None else f"{_in_words(added, '{:+.2f}')} ms",
        f"≤ {_ADDED_MS:g} ms",
        added is not None and round(added.median, 2) <= _ADDED_MS,
        f"Over {DIRECT} in the same repetition.",
    )


def _gpu_found(own: Sequence[Trial], in_flight: int) -> Finding:
    """own: the gateway's under the most load."""
    busy = [
        sample.gpu
        for trial in own
        for sample in trial.samples
        if sample.gpu is not None and sample.at_s >= _UNTIL_BUSY_S
    ]
    mean = round(statistics.fmean(busy), 1) if busy else 0.0
    return _barred(
        f"GPU busy under the gateway, {in_flight} in flight",
        f"{mean:g} %" if busy else None,
        f"≥ {_BUSY:g} %",
        mean >= _BUSY,
        "Mean of NVML's samples, without a round's first second.",
    )


def _steps_found(own: Sequence[Trial], in_flight: int) -> Finding:
    """own: the gateway's under the most load."""
    steps = sum(int(trial.settings.get("engine_steps", 0)) for trial in own)
    gaps = sum(int(trial.settings.get("engine_gaps_over_100_ms", 0)) for trial in own)
    return _barred(
        f"steps of the engine over 100 ms, {in_flight} in flight",
        f"{gaps} of {steps:,}" if steps else None,
        "0",
        gaps == 0,
        "Time between two outputs of the gateway's engine while it has something to generate.",
    )


# ---------------------------------------------------------------- arithmetic


def _in_flight(trial: Trial) -> int:
    assert isinstance(trial.load, Closed)  # noqa: S101 -- there is no other load here
    return trial.load.in_flight


def _ratio(pairs: Iterable[tuple[Trial, Trial]], per_s: Callable[[Trial], float]) -> Spread:
    return spread([per_s(own) / max(per_s(theirs), 1e-9) for own, theirs in pairs])


def _added(pairs: Iterable[tuple[Trial, Trial]], quantile: float) -> Spread | None:
    added = [
        own_ms - their_ms
        for own, theirs in pairs
        if (own_ms := _first_ms(own, quantile)) is not None
        and (their_ms := _first_ms(theirs, quantile)) is not None
    ]
    return spread(added) if added else None


def _first_ms(trial: Trial, quantile: float) -> float | None:
    first_ms = [(each.first_s - each.sent_s) * 1000 for each in trial.records if each.first_s is not None]
    return nearest_rank(first_ms, quantile) if first_ms else None


def _in_words(spread: Spread | None, form: str) -> str:
    """Median, lowest and highest."""
    if spread is None:
        return NONE
    return f"{form.format(spread.median)} ({form.format(spread.low)} to {form.format(spread.high)})"


# ---------------------------------------------------------------- the table

_CAPTION = (
    "Each round of the gateway beside the other's round of the same lines, in the same repetition: its requests "
    "and tokens a second divided by the other's, its first token minus the other's; medians over the repetitions, "
    "with the lowest and the highest in brackets. A system whose driver was the limit is faster than it looks."
)
_TUNED_CAPTION = (
    f" {SERVE_TUNED} and {SERVE_WORKERS} run with the gateway's engine settings and --stream-interval "
    f"{STREAM_INTERVAL}, since the gateway gathers tokens, too; {SERVE_WORKERS} with several front-end processes."
)


def table(compared: Sequence[Comparison]) -> Table:
    """The gateway beside each other system."""
    columns: list[tuple[str, Callable[[Comparison], str]]] = [
        ("in flight", lambda each: str(each.in_flight)),
        ("gateway beside", lambda each: each.peer),
        ("requests/s", lambda each: _in_words(each.requests, "{:.2f}")),
        ("tokens/s", lambda each: _in_words(each.tokens, "{:.2f}")),
        ("first token p50 added, ms", lambda each: _in_words(each.first_p50_added_ms, "{:+.1f}")),
        ("first token p99 added, ms", lambda each: _in_words(each.first_p99_added_ms, "{:+.1f}")),
        ("same text", lambda each: formatted(each.same_text, ".1%")),
        ("driver was the limit of", lambda each: ", ".join(each.limits) or NONE),
    ]
    tuned = any(each.peer in (SERVE_TUNED, SERVE_WORKERS) for each in compared)
    return tabulated("The gateway beside the others", compared, columns, _CAPTION + _TUNED_CAPTION * tuned)
