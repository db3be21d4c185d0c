"""What rounds of the same lines say of the gateway beside each other system; and the options of `python -m
loadtest peers`.

Knows: options, trials, ratios, the bars, what people read from them. Must not know: how anything was measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from gateway.domain.log import CONTEXT_TEXTS
from gateway.engines.vllm import hardware
from loadtest import options as common
from loadtest.options import Command, Say, between, listed, merged, numbers
from loadtest.peers.run import (
    DIRECT,
    GATEWAY,
    NAMES,
    SERVE,
    SERVE_TUNED,
    SERVE_WORKERS,
    Outcome,
    Peer,
    PeersPlan,
    named,
    run,
    shared,
    takes_context,
    variants,
)
from loadtest.results import LoadtestError, Spread, nearest_rank, spread
from loadtest.systems.vllm_serve import STREAM_INTERVAL
from loadtest.talk.scenario import read_talk
from loadtest.trial.content import NONE, Table, formatted, tabulated
from loadtest.trial.summary import failed_found, requests_per_s, tokens_per_s
from loadtest.trial.values import Closed, Finding, Results, Trial

# Values that the gateway has to reach where there are bars.
_OF_DIRECT, _OF_SERVE = 0.97, 2.0
_ADDED_MS, _ADDED_AT = 3.0, 25
_BUSY = 95.0

_CONTEXT = Finding(
    "prompts",
    "the gateway's are longer",
    note="The model takes what was said before: the gateway's prompts hold up to "
    f"{2 * CONTEXT_TEXTS - 1} earlier lines of their session, the others' none. For the same prompts, the "
    "gateway is faster than it looks here; the texts need not be the same.",
)

# NVML tells of up to a second before.
_UNTIL_BUSY_S = 1.0


class Comparison(Struct, frozen=True, kw_only=True):
    """The gateway beside one other system at one level, compared in each repetition."""

    in_flight: int
    peer: str
    repetitions: int
    # What the gateway did a second, divided by what the other did.
    requests: Spread
    tokens: Spread
    # The gateway's time to the first token minus the other's.
    first_p50_added_ms: Spread | None
    first_p99_added_ms: Spread | None
    # Share of equal translations in the first repetition; None where that is not known.
    same_text: float | None
    # System whose driver was the limit → how.
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
    limits = {trial.system: trial.limited for pair in pairs for trial in pair if trial.limited is not None}
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


def findings(
    outcome: Outcome, compared: Sequence[Comparison], levels: Sequence[int], *, bars: bool, context: bool = False
) -> list[Finding]:
    """What people look for first; how the systems compare is in the table.

    levels: in flight, those that were to be measured. bars: whether the gateway has to reach anything. context:
    whether its prompts hold what was said before, which those of the other routes do not.
    """
    # Whatever the others reached, without one of them the comparison that was asked for failed.
    measured = {trial.system for trial in outcome.trials}
    found = [
        Finding(name, value, "in every round", False, why)
        for name, why in outcome.failures.items()
        for value in ["left out from some round on" if name in measured else "missing"]
    ]
    if outcome.cut_short:
        found.append(Finding("the rounds", "incomplete", "complete", False, outcome.cut_short))
    found.append(failed_found(outcome.trials))
    if context:
        found.append(_CONTEXT)
    if bars:
        highest = max(levels)
        own = [each for each in outcome.trials if each.system == GATEWAY and _in_flight(each) == highest]
        found += [*_ratios_found(compared, levels), *_others_found(compared, own, highest)]
    return found


# ---------------------------------------------------------------- bars


def _barred(name: str, value: str | None, bar: str, passed: bool, note: str = "") -> Finding:
    """A bar of which it is not known whether it is reached is missed."""
    return Finding(name, value or "not measured", bar, passed and value is not None, note)


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


def _others_found(compared: Sequence[Comparison], own: Sequence[Trial], in_flight: int) -> Iterator[Finding]:
    """own: the gateway's under the most load."""
    added = next((e.first_p99_added_ms for e in compared if (e.peer, e.in_flight) == (DIRECT, _ADDED_AT)), None)
    yield _barred(
        f"first token p99 added by the gateway, {_ADDED_AT} in flight",
        None if added is None else f"{_in_words(added, '{:+.2f}')} ms",
        f"≤ {_ADDED_MS:g} ms",
        added is not None and round(added.median, 2) <= _ADDED_MS,
        f"Over {DIRECT} in the same repetition.",
    )
    samples = [sample for trial in own for sample in trial.samples if sample.at_s >= _UNTIL_BUSY_S]
    busy = [sample.gpu for sample in samples if sample.gpu is not None]
    mean = round(statistics.fmean(busy), 1) if busy else 0.0
    yield _barred(
        f"GPU busy under the gateway, {in_flight} in flight",
        f"{mean:g} %" if busy else None,
        f"≥ {_BUSY:g} %",
        mean >= _BUSY,
        "Mean of NVML's samples, without a round's first second.",
    )
    steps, gaps = sum(trial.steps or 0 for trial in own), sum(trial.long_steps or 0 for trial in own)
    yield _barred(
        f"steps of the engine over 100 ms, {in_flight} in flight",
        f"{gaps} of {steps:,}" if steps else None,
        "0",
        gaps == 0,
        "Time between two outputs of the gateway's engine while it has something to generate.",
    )


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


# ---------------------------------------------------------------- the command


# In a closed loop as many wait as are asked to, in front of each peer.
_NO_REFUSAL = {"max_queue_s": 3_600.0}


def _name(text: str) -> str:
    if text not in NAMES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(NAMES)}")
    return text


def _add(parser: argparse.ArgumentParser) -> None:
    shared = ("--out", *common.ENGINE, "--max-num-seqs", "--scenario", *common.LANGUAGES, *common.DRIVER)
    processes = max(1, len(os.sched_getaffinity(0)) // 4)
    common.add_options(parser, *shared, "--objective-ms", "--repetitions", processes=processes, repetitions=3)
    add = parser.add_argument
    add(
        "--peers",
        type=listed(_name),
        metavar="NAME,NAME",
        help=f"of {', '.join(NAMES)}; without it the first four",
    )
    add(
        "--variants",
        type=Path,
        metavar="FILE.json",
        help='further gateways with other settings: {"name": {"engine": {...}, "route": "gateway", "workers": 4}}',
    )
    add("--workers", type=between(1, 64), default=4, metavar="N", help="front-end processes of vllm-serve-workers")
    add(
        "--in-flight",
        type=numbers,
        default="25,64,256" if hardware.gpu_present() else "1,4,16",
        metavar="N,N",
        help="requests in flight, one level each",
    )
    add("--round-s", type=between(0.1, 600.0), default=6.0, metavar="S", help="about how long a round takes")
    add(
        "--bars",
        action="store_true",
        help="the gateway has to reach what it promises on a GPU; a bar not measured is missed",
    )


def _plan(options: argparse.Namespace) -> PeersPlan:
    settings = merged(_NO_REFUSAL, common.settings(options))
    simulated = settings.get("engine", {}).get("kind") == "simulated"
    names = options.peers or ((GATEWAY, DIRECT) if simulated else (GATEWAY, DIRECT, SERVE, SERVE_TUNED))
    peers: list[Peer] = named(names, settings, options.workers)
    if options.variants is not None:
        peers += variants(options.variants, settings)
    if len(peers) == 1:
        raise LoadtestError("The gateway has nothing to be compared with: name more peers, or variants.")
    memory_mib = hardware.memory_mib()
    if memory_mib is None and hardware.gpu_present() and not simulated:
        raise LoadtestError("NVIDIA's management library does not tell how much memory the GPU has.")
    peers = shared(peers, memory_mib)
    named_file = common.file(options)
    own = {
        "peers": tuple(peers),
        "scenario": common.scenario(options),
        "replayed": () if named_file is None else tuple(read_talk(named_file)),
    }
    return PeersPlan(**(common.fields_of(options, PeersPlan) | own))


async def _run(options: argparse.Namespace, say: Say) -> Results:
    plan = _plan(options)
    others = any(peer.route != "gateway" for peer in plan.peers)
    context = others and takes_context(plan.peers[0].settings)
    outcome = await run(plan, say)
    if not outcome.trials:
        why = " ".join(f"{name}: {reason}" for name, reason in outcome.failures.items())
        raise LoadtestError(why or "There was no time for a single round (--time-limit-s).")
    compared = comparisons(outcome)
    shown = [
        structs.replace(peer, settings=common.shown(peer.settings), arguments=common.shown(peer.arguments))
        for peer in plan.peers
    ]
    told = msgspec.to_builtins(structs.replace(plan, peers=tuple(shown), replayed=()))
    return Results(
        model=common.model_name(plan.peers[0].settings),
        settings={**told, "replayed": len(plan.replayed)},
        objective=common.objective(options),
        findings=findings(outcome, compared, plan.in_flight, bars=options.bars, context=context),
        parts=[table(compared)] if compared else [],
        trials=outcome.trials,
        details={"comparisons": msgspec.to_builtins(compared)},
    )


PEERS = Command(
    "peers",
    "the gateway beside vLLM's own server and the engine called directly",
    "The same lines through the gateway's WebSocket, through vLLM's own server and straight into the "
    "engine, which all run at the same time and take turns: ratios of rounds of the same lines in requests/s and "
    "tokens/s, first token, CPU, whether the texts are the same. Closed loop. Exit status 1 when one of them "
    "could not be measured in every round, when a translation failed, and when a bar is missed (--bars).",
    _add,
    _run,
)
