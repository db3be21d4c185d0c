"""Settings for a workload and an objective, by trying them, and what an operator is told of them; and the options
of `python -m loadtest sweep` and `recommend`.

Knows: the options, which gateways are started, what is concluded from their capacities. Must not know: how a run
is made, how a table or chart is drawn.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from gateway.engines.vllm import hardware
from loadtest import options as common
from loadtest.capacity.curve import Bench, Plan, at_capacity, curve, follow
from loadtest.capacity.points import (
    Measured,
    Offer,
    Point,
    Unit,
    described,
    points_table,
    too_few,
)
from loadtest.capacity.search import Bounds, Ended, Found, capacity_search
from loadtest.options import Command, Say, between, listed, numbers, shown, with_batch
from loadtest.results import LoadtestError, go_on
from loadtest.systems.gateway import existing, gateway
from loadtest.systems.server import Running
from loadtest.talk.scenario import read_talk
from loadtest.trial.content import NONE, Table, formatted, number, tabulated
from loadtest.trial.values import Finding, Results

# What is kept free of a capacity: for a busier hour, a gateway that is being restarted, talk that differs.
_HEADROOM = 0.3

# Closer to the best than this counts as equally good: so much lies between two runs of the same settings.
_NEAR = 0.03


class Tried(Struct, frozen=True):
    """A size of the batch, and what came of it."""

    max_num_seqs: int
    found: Found | None
    # Why a gateway with these settings could not be measured, or no further than `found` says.
    failed: str | None = None
    # Runs with this size.
    points: list[Point] = []
    # Whether it is recommended.
    chosen: bool = False

    @property
    def name(self) -> str:
        return _name(self.max_num_seqs)

    @property
    def capacity(self) -> float:
        return (self.found.capacity or 0.0) if self.found is not None else 0.0

    @property
    def at(self) -> Point | None:
        """The run that says most of its capacity."""
        return at_capacity(self.points, self.found)


def _name(max_num_seqs: int) -> str:
    return f"{max_num_seqs} sequences"


def choose(tried: Sequence[Tried]) -> tuple[Tried, str] | None:
    """The smallest batch that carries nearly as much as the best, with a sentence why; None when nothing carried
    anything."""
    able = [each for each in tried if each.capacity > 0]
    if not able:
        return None
    most = max(able, key=lambda each: each.capacity)
    good = [each for each in able if each.capacity >= most.capacity * (1 - _NEAR)]
    chosen = min(good, key=lambda each: each.max_num_seqs)
    if chosen is most:
        why = "It carries the most of those that were tried."
        if len(able) > 1 and chosen is max(able, key=lambda each: each.max_num_seqs):
            why += " It is the largest of them, too: a larger one may carry more (--max-num-seqs)."
    else:
        why = (
            f"It carries {chosen.capacity:g}, within {_NEAR:.0%} of the most, {most.capacity:g} with "
            f"{most.max_num_seqs}; of two batches that carry the same, in the smaller one every token "
            "comes sooner."
        )
    return chosen, why


def advise(
    tried: Sequence[Tried], *, offer: Offer, device: str, left_out: Sequence[str] = (), interrupted: bool = False
) -> list[Finding]:
    """Everything that is said.

    device: what one gateway has, for people. left_out: settings that were not tried, for want of time or after an
    interruption.
    """
    notes = _notes(tried, offer.unit, left_out, interrupted)
    chosen, why = choose(tried) or (None, "")
    if chosen is None or chosen.found is None or chosen.at is None:
        words_ms = offer.objective.first_words_ms
        words = "" if words_ms is None else f", and {words_ms:g} ms for first words,"
        note = (
            f"None of the settings that were tried kept {offer.objective.first_token_ms:g} ms{words} even under "
            "the smallest load."
        )
        return [Finding("a recommendation", "none", passed=False, note=note), *notes]
    return [
        Finding("max_num_seqs", str(chosen.max_num_seqs), note=why),
        *_carries(f"a {device} carries", chosen.found, chosen.at, offer),
        *notes,
    ]


def _carries(name: str, found: Found, best: Point, offer: Offer) -> list[Finding]:
    """A capacity that was not confirmed is nothing to plan with, and fails. best: the run that says most of it."""
    unit, confirmed = offer.unit, found.ended.confirmed
    note = f"{found.ended.value.capitalize()}. {too_few(best, offer)}".strip()
    bar, passed = ("", None) if confirmed else ("confirmed", False)
    planned = unit.words(_with_headroom(best.load, unit))
    return [
        Finding(name, unit.words(best.load), bar, passed, note),
        Finding(f"with {_HEADROOM:.0%} kept free", planned, note="What to plan with."),
    ]


def _with_headroom(load: float, unit: Unit) -> float:
    """What to plan with: whole meetings, or two digits of a rate."""
    left = load * (1 - _HEADROOM)
    return float(math.floor(left + 1e-9)) if unit is Unit.MEETINGS else float(f"{left:.2g}")


def recommended_toml(tried: Sequence[Tried], offer: Offer, device: str) -> str:
    """To be pasted, with settings that were run; empty when nothing can be recommended."""
    chosen, _ = choose(tried) or (None, "")
    if chosen is None or chosen.found is None:
        return ""
    unit, objective = offer.unit, offer.objective
    planned = unit.words(_with_headroom(chosen.capacity, unit))
    translated = chosen.at.summary.partials_translated if chosen.at is not None else None
    partials: list[str] = []
    if objective.first_words_ms is not None and translated is not None:
        partials = [
            f"# as many of the first words within {objective.first_words_ms:g} ms of when an utterance began;",
            f"# {translated:.0%} of the partials translated;",
        ]
    lines = [
        f"# {unit.words(chosen.capacity)} a {device}; plan with {planned} ({_HEADROOM:.0%} kept free):",
        f"# {objective.quantile * 100:g} % of the first tokens within {objective.first_token_ms:g} ms;",
        *partials,
        f"# {offer.workload}.",
        *([] if chosen.found.ended.confirmed else [f"# NOT CONFIRMED: {chosen.found.ended.value}."]),
        "[engine]",
        f"max_num_seqs = {chosen.max_num_seqs}",
    ]
    return "\n".join(lines) + "\n"


def _notes(tried: Sequence[Tried], unit: Unit, left_out: Sequence[str], interrupted: bool) -> list[Finding]:
    """What might have been recommended, had it been tried, or tried to the end."""
    told: list[Finding] = []
    for each in tried:
        if each.found is None:
            told.append(Finding(f"not measured: {each.name}", "failed", note=each.failed or ""))
        elif each.found.ended.cut_short:
            value = unit.words(each.found.capacity) if each.found.capacity is not None else "nothing"
            why = " ".join(filter(None, [f"{each.found.ended.value.capitalize()}.", each.failed]))
            told.append(Finding(f"cut short: {each.name}", value, note=f"{why} It may carry more, or less."))
    missing = ", ".join(left_out)
    if interrupted:
        note = f"Not tried: {missing}." if missing else ""
        told.append(Finding("the search", "interrupted", passed=False, note=note))
    elif missing:
        note = f"There was no time for {missing} (--time-limit-s)."
        told.append(Finding("the search", "incomplete", note=note))
    return told


def tried_table(tried: Sequence[Tried], unit: Unit) -> Table:
    def there(cell: Callable[[Point], str]) -> Callable[[Tried], str]:
        return lambda each: NONE if each.at is None else cell(each.at)

    def found(cell: Callable[[Found], str]) -> Callable[[Tried], str]:
        return lambda each: NONE if each.found is None else cell(each.found)

    partials = [
        ("first words p99 there, ms", there(lambda each: number(each.summary.first_words.p99_ms))),
        ("partials translated there", there(lambda each: formatted(each.summary.partials_translated, ".0%"))),
    ]
    columns = [
        ("settings", lambda each: each.name + " (recommended)" * each.chosen),
        (f"carries, {unit.value}", found(lambda each: number(each.capacity))),
        ("not", found(lambda each: number(each.at_most))),
        ("first token p99 there, ms", there(lambda each: number(each.summary.first_token.p99_ms))),
        *(partials if unit is Unit.MEETINGS else ()),
        ("tokens/s of finals there", there(lambda each: number(each.summary.tokens_per_s.median))),
        ("runs", found(lambda each: str(each.runs))),
        ("", lambda each: each.found.ended.value if each.found is not None else each.failed or ""),
    ]
    return tabulated("What was tried", tried, columns)


# ---------------------------------------------------------------- trying them

# Once it is known to carry less than this part of the best, a candidate is left.
_WORTH = 0.9

# Before a gateway is started there has to be time for so many runs with it.
_LEAST_RUNS = 3

# A gateway with these settings and a name for people, ready.
_Start = Callable[[Mapping[str, Any], str], AbstractAsyncContextManager[Running]]


class RecommendPlan(Plan, frozen=True, kw_only=True):
    """Settings to try."""

    # The settings of every gateway, but for what a candidate changes.
    settings: dict[str, Any]
    # Values of `max_num_seqs` to try.
    seqs: tuple[int, ...]
    # The device of one gateway, for people.
    device: str = "machine"


async def recommend(plan: RecommendPlan, start: _Start, say: Say) -> Results:
    """Try them. Raises `LoadtestError`, or `CancelledError`, when nothing could be measured; what was measured
    before an error or an interruption is reported."""
    tour = _Tour(plan, start, say)
    await tour.all()
    if not tour.tried:
        raise LoadtestError("There was no time for a single gateway: allow more (--time-limit-s).")
    failed = next((each.failed for each in tour.tried if each.failed), None)
    if failed is not None and not any(each.points for each in tour.tried):
        raise LoadtestError(failed)
    chosen, _ = choose(tour.tried) or (None, "")
    tried = [replace(each, chosen=each is chosen) for each in tour.tried]
    own, unit = shown(plan.settings), plan.offer.unit
    toml = recommended_toml(tried, plan.offer, plan.device)
    return Results(
        model=plan.model,
        settings={"gateway": own, "recommend": described(replace(plan, settings=own))},
        objective=plan.offer.objective,
        findings=advise(
            tried,
            offer=plan.offer,
            device=plan.device,
            left_out=[_name(size) for size in plan.seqs if size not in tour.measured],
            interrupted=tour.interrupted,
        ),
        # All of the recommended settings, and of the others the best one: all together would be large.
        trials=[
            one.trial
            for each in tried
            for one in sorted(tour.measured[each.max_num_seqs], key=lambda one: one.point.load)
            if each.chosen or one.point is each.at
        ],
        parts=[
            *([f"```toml\n{toml}```"] if toml else []),
            tried_table(tried, unit),
            *(points_table(each.points, unit) for each in tried if each.chosen),
        ],
        details={"unit": unit.value, "tried": to_builtins(tried)},
        files={"recommended.toml": toml} if toml else {},
    )


class _Tour:
    """All candidates, one after the other."""

    def __init__(self, plan: RecommendPlan, start: _Start, say: Say) -> None:
        self.tried: list[Tried] = []
        self.measured: dict[int, list[Measured]] = {}
        self.interrupted = False
        self._plan = plan
        self._start = start
        self._say = say
        self._until_s = time.monotonic() + plan.time_limit_s

    async def all(self) -> None:
        """As far as there is time. Raises `CancelledError` when it is interrupted before anything was measured."""
        try:
            for size in self._plan.seqs:
                await self._try(size)
        except asyncio.CancelledError:
            if not self.tried:
                raise
            go_on()
            self.interrupted = True

    async def _try(self, size: int) -> None:
        if self._until_s - time.monotonic() <= _LEAST_RUNS * self._plan.offer.seconds():
            return
        try:
            async with self._start(with_batch(self._plan.settings, size), _name(size)) as running:
                await self._measure(size, running)
        except LoadtestError as error:
            self._enter(Tried(size, None, str(error)), [])

    def _enter(self, tried: Tried, measured: list[Measured]) -> None:
        self.tried.append(replace(tried, points=[each.point for each in measured]))
        self.measured[tried.max_num_seqs] = measured

    async def _measure(self, size: int, running: Running) -> None:
        """Raises `CancelledError` when it is interrupted; what was measured until then is entered."""
        plan = self._plan
        best = max((each.capacity for each in self.tried), default=0.0)
        bench = Bench(running, plan.offer, self._say, processes=plan.processes, label=f"{_name(size)}, ")
        # Each gets its part of the time that is left, so that one alone does not use it up.
        left, now_s = max(1, len(plan.seqs) - len(self.tried)), time.monotonic()
        until_s = now_s + (self._until_s - now_s) / left
        search = capacity_search(best or plan.start, plan.bounds, worth=_WORTH * best)
        followed = await follow(search, bench, until_s)
        failed = followed.why if followed.stopped is Ended.FAILED else None
        if followed.measured or followed.stopped is not Ended.INTERRUPTED:
            found = None if failed is not None and not followed.measured else followed.found
            self._enter(Tried(size, found, failed), followed.measured)
        if followed.stopped is Ended.INTERRUPTED:
            raise asyncio.CancelledError


# ---------------------------------------------------------------- the commands

_UNITS = {"meetings": Unit.MEETINGS, "requests": Unit.REQUESTS}


def _add(parser: argparse.ArgumentParser, *options: str, time_limit_s: int, unit: str, runs: int) -> None:
    """What both have in common."""
    common.add_options(parser, *common.TALK, "--workers", *options, time_limit_s=time_limit_s)
    add = parser.add_argument
    add("--quantile", type=between(0.5, 1.0), default=0.99, metavar="SHARE", help="that has to keep the objective")
    add(
        "--first-words-ms",
        type=between(0.0, 60_000.0),
        default=3_000.0,
        metavar="MS",
        help="of meetings with partials: first translated words of as many utterances, from when each began, "
        "while half of the partials are translated; 0: finals alone count",
    )
    add("--step-s", type=between(0.5, 3_600.0), default=20.0, metavar="S", help="measured of each run")
    add("--unit", choices=tuple(_UNITS), default=unit, help="what is counted")
    add("--start", type=between(0.1, 1e6), default=4.0, metavar="LOAD", help="the first load that is tried")
    add("--most", type=between(1.0, 1e6), default=20_000.0, metavar="LOAD", help="no larger load is tried")
    add("--runs", type=between(2, 200), default=runs, metavar="N", help="no more runs than this for one gateway")


def offer(options: argparse.Namespace) -> Offer:
    """What is said. Raises `LoadtestError` for what cannot be said, a file that cannot be read, and options that
    would do nothing."""
    named, unit = common.file(options), _UNITS[options.unit]
    if named is None and unit is Unit.REQUESTS:
        why = "single requests have no speaker and no revisions; leave it out."
        common.refuse(options, ["people", "partial_every_s"], why)
    if unit is Unit.REQUESTS or not options.partial_every_s:
        common.refuse(options, ["first_words_ms"], "it is for meetings with partials; leave it out.")
    offered = Offer(
        scenario=common.scenario(options),
        unit=unit,
        objective=replace(
            common.objective(options),
            quantile=options.quantile,
            first_words_ms=options.first_words_ms if _counts_partials(options) else None,
        ),
        step_s=options.step_s,
        # Only `sweep` has it.
        retries=getattr(options, "retries", False),
        replayed=() if named is None else tuple(read_talk(named)),
    )
    offered.check()
    return offered


def _plan(options: argparse.Namespace, model: str, **bounds: Any) -> Plan:
    """bounds: what of `Bounds` the options do not say."""
    meetings = _UNITS[options.unit] is Unit.MEETINGS
    low = 1.0 if meetings else 0.1
    own = {
        "offer": offer(options),
        "model": model,
        "bounds": Bounds(low=low, high=options.most, whole=meetings, runs=options.runs, **bounds),
    }
    return Plan(**(common.fields_of(options, Plan) | own))


def _counts_partials(options: argparse.Namespace) -> bool:
    """Whether the objective asks for translations of what is still being said."""
    meetings = _UNITS[options.unit] is Unit.MEETINGS
    return bool(meetings and options.partial_every_s and options.first_words_ms)


def check_partials(options: argparse.Namespace, settings: Mapping[str, Any]) -> None:
    """Raises `LoadtestError` where partials count and the model has no weights: every load would miss the
    objective."""
    engines = [settings.get("engine", {}), *settings.get("engines", [])]
    dummy = any(engine.get("extra", {}).get("load_format") == "dummy" for engine in engines)
    if dummy and _counts_partials(options):
        # The gateway takes what runs into the limit of an answer for repetition, and shows it to no reader.
        raise LoadtestError(
            "A model without weights ends no answer by itself, so none of its partials is shown and no load would "
            "keep the objective: let finals alone count (--first-words-ms 0), or leave partials out "
            "(--partial-every-s 0)."
        )


def _system(options: argparse.Namespace, say: Say) -> tuple[str, AbstractAsyncContextManager[Running]]:
    """The gateway under test, and its model for people. Raises `LoadtestError` for settings with which none would
    start, and for any of a gateway that runs already."""
    if options.url is None:
        settings = common.settings(options, several=True)
        check_partials(options, settings)
        return common.model_name(settings), gateway(settings, say, workers=options.workers)
    why = "a gateway that runs already has its settings; --url leaves no room for others."
    common.refuse(options, common.ENGINE_OPTIONS, why)
    return f"whatever {options.url} runs", existing(options.url)


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    _add(parser, "--max-num-seqs", "--url", time_limit_s=1_800, unit="requests", runs=24)
    parser.add_argument(
        "--loads",
        type=listed(between(0.001, 1e6)),
        metavar="N,N",
        help="translations a second, or meetings, as --unit says; without it they are found",
    )
    parser.add_argument(
        "--retries",
        action="store_true",
        help="what is refused is sent again when the gateway says, as clients do; of single requests",
    )


async def _sweep(options: argparse.Namespace, say: Say) -> Results:
    model, system = _system(options, say)
    if _UNITS[options.unit] is Unit.MEETINGS:
        common.refuse(options, ["retries"], "it is for single requests (--unit requests); leave it out.")
    plan = _plan(options, model, resolution=0.1, confirms=False, past=(1.5, 2.0))
    return await curve(plan, system, say)


def _add_recommend(parser: argparse.ArgumentParser) -> None:
    _add(parser, time_limit_s=3_600, unit="meetings", runs=14)
    parser.add_argument(
        "--max-num-seqs",
        dest="seqs",
        type=numbers,
        default="8,16,32,64",
        metavar="N,N",
        help="sizes of the batch to try",
    )


async def _recommend(options: argparse.Namespace, say: Say) -> Results:
    settings = common.settings(options)
    check_partials(options, settings)
    on_gpu = settings.get("engine", {}).get("kind") != "simulated" and hardware.memory_mib() is not None
    plan = _plan(options, common.model_name(settings), resolution=0.03)
    own: dict[str, Any] = {
        "settings": settings,
        "seqs": tuple(sorted(options.seqs)),
        "device": "GPU" if on_gpu else "machine",
    }

    def start(tree: Mapping[str, Any], name: str) -> AbstractAsyncContextManager[Running]:
        return gateway(tree, say, name=name, workers=options.workers)

    return await recommend(RecommendPlan(**asdict(plan), **own), start, say)


SWEEP = Command(
    "sweep",
    "latency and goodput under rising load, past the knee",
    "One gateway under rising load, open loop, until it is plainly overloaded: where it begins to break the "
    "objective, what comes out there, what is full then. Exit status 1 when the driver was the limit.",
    _add_sweep,
    _sweep,
)

RECOMMEND = Command(
    "recommend",
    "settings for a workload and an objective, with the curve",
    "From a scenario to max_num_seqs and meetings per GPU: each size of the batch is tried for real. Writes "
    "recommended.toml too. Exit status 1 where what is recommended could not be confirmed.",
    _add_recommend,
    _recommend,
)
