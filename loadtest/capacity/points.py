"""What is offered at a load, lines and when they are due; and one point of a curve: what a load made of a gateway.

Knows: scenarios, the two units in which a load is counted, trials, summaries, when an objective counts as kept.
Must not know: how a trial is run, what is tried next.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from loadtest.capacity.search import Run
from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario, arrivals, check, meetings_lines, request_lines, translations_per_s
from loadtest.trial.content import Table, number, tabulated
from loadtest.trial.summary import Summary, summarise
from loadtest.trial.values import Finding, InMeetings, Line, Load, Objective, Open, Sample, Trial

# No two runs on a gateway say the same: the engine keeps the prompts that it knows, and answers sooner.
_SEEDS_APART = 1_000

# Part of a step that is not counted: until as many sequences run as will from then on.
_BEGINNING = 0.15
_CONFIRMS = 2.0


class Unit(Enum):
    """In what a load is counted. REQUESTS: final translations a second, each on its own. MEETINGS: with people who
    speak in turn, as the scenario has them."""

    REQUESTS = "requests/s"
    MEETINGS = "meetings"

    def words(self, load: float) -> str:
        """For people: `5/s`, `12 meetings`."""
        if self is Unit.REQUESTS:
            return f"{load:g}/s"
        return f"{load:g} meeting{'s' * (load != 1)}"


class Offer(Struct, frozen=True, kw_only=True):
    """What every run of a search has in common."""

    scenario: Scenario
    unit: Unit
    objective: Objective = Objective()
    # How long a run is, without its beginning; a confirmation takes twice as long.
    step_s: float = 20.0
    # Whether single requests that are refused are sent again, as clients do.
    retries: bool = False
    # Lines of a file, instead of the scenario's.
    replayed: tuple[Line, ...] = ()

    @property
    def beginning_s(self) -> float:
        """From then on, a run counts."""
        return self.step_s * _BEGINNING

    def seconds(self, long: bool = False) -> float:
        """How long lines are due in one run."""
        return self.step_s * ((_CONFIRMS if long else 1.0) + _BEGINNING)

    def check(self) -> None:
        """Raises `LoadtestError` for what can be offered under no load."""
        if not self.replayed:
            check(self.scenario, meetings=self.unit is Unit.MEETINGS)
        elif self.unit is Unit.MEETINGS:
            raise LoadtestError("Lines of a file can be offered at rates (--unit requests), not in meetings.")

    def seed(self, number: int) -> int:
        """The seed of a run; each says something else. number: of the run, from 0."""
        return self.scenario.seed + number * _SEEDS_APART

    def at(self, load: float, number: int = 0, long: bool = False) -> tuple[list[Line], Load]:
        """The lines of one run, some of which are due after its beginning, and what they amount to. Raises
        `LoadtestError`."""
        seconds, seed = self.seconds(long), self.seed(number)
        scenario = replace(self.scenario, seed=seed)
        amount: Load
        if self.unit is Unit.MEETINGS:
            lines = meetings_lines(replace(scenario, meetings=round(load)), seconds)
            speakers = len({(line.meeting, line.speaker) for line in lines})
            amount = InMeetings(meetings=round(load), speakers=speakers, per_s=translations_per_s(lines))
        else:
            # More than will be due, whatever the chance.
            count = math.ceil(load * seconds + 6 * math.sqrt(load * seconds) + 10)
            said = self._again(count, seed) if self.replayed else request_lines(scenario, count)
            lines = [line for line in arrivals(said, load, seed) if line.due_s < seconds]
            amount = Open(load, self.retries)
        if not any(line.due_s >= self.beginning_s for line in lines):
            raise LoadtestError(
                f"Nothing is said within {seconds:g} s at {self.unit.words(load)}; use longer steps (--step-s)."
            )
        return lines, amount

    @property
    def workload(self) -> str:
        """For people."""
        said = self.scenario
        if self.replayed:
            return f"{len(self.replayed)} lines of a file, over and over if need be, at random times"
        texts = f"{said.shape} talk, seed {said.seed}, {said.source} to {', '.join(said.targets)}"
        if self.unit is Unit.REQUESTS:
            again = ", sent again when it was refused" if self.retries else ""
            return f"{texts}, one request a translation, at random times{again}"
        partials = f"a revision every {said.partial_every_s:g} s" if said.partial_every_s else "without partials"
        return f"{texts}, meetings of {said.people} people, {partials}"

    def _again(self, count: int, seed: int) -> list[Line]:
        """The file's lines, over and over, from anywhere: a long file has something new for each run."""
        lines = self.replayed
        first = random.Random(f"replayed/{seed}").randrange(len(lines))
        rounds = [divmod(number, len(lines)) for number in range(first, first + count)]
        return [replace(lines[index], id=f"{turn}-{lines[index].id}", partials=()) for turn, index in rounds]


def described(plan: Struct) -> dict[str, Any]:
    """A plan that has an `offer`, for a report: without the lines of a file."""
    told: dict[str, Any] = to_builtins(plan)
    told["offer"]["replayed"] = len(told["offer"]["replayed"])
    return told


# ---------------------------------------------------------------- one point of a curve

# From here on a part counts as full.
_FULL = 0.85
_NOTED_CORES = 0.1


class Point(Struct, frozen=True, kw_only=True):
    """One run."""

    load: float
    # Seed of the talk that was said.
    seed: int
    # Whether the run was a confirmation.
    long: bool
    # Summary of its trial; `met` says whether the objective was kept.
    summary: Summary
    # What was full.
    limit: str
    # Tokens a second of everything, partials too, as the engine counts them; None where it does not say.
    generated_per_s: float | None = None
    # Why the driver was the limit, where the objective was lost by that alone; None otherwise.
    driver: str | None = None

    @property
    def kept(self) -> bool:
        return self.summary.met

    @property
    def partial_tokens(self) -> float | None:
        """Tokens generated for what was still being said, for each of a final; None where none are told."""
        finals_per_s = self.summary.tokens_per_s.median
        if self.generated_per_s is None or not finals_per_s:
            return None
        # The two are not counted over quite the same time.
        return max(0.0, self.generated_per_s / finals_per_s - 1)


class Cores(Struct, frozen=True):
    """How many there are."""

    # Cores that the load test may use, with all that it starts.
    own: int
    machine: int


class Measured(Struct, frozen=True):
    """A point and the trial behind it."""

    point: Point
    trial: Trial


def judge(trial: Trial, run: Run, offer: Offer, *, seed: int, slots: int | None, cores: Cores) -> Point:
    """What a trial amounts to. seed: of what was said. slots: sequences in all batches, where known."""
    summary = summarise([trial], offer.objective)
    driver = trial.limited
    if driver is not None and (summary.met or not _excused(trial, offer)):
        # Kept is kept; and lost is lost where the driver's own lateness explains it no more than in part.
        driver = None
    told = [(each.at_s, each.tokens) for each in trial.samples if each.tokens is not None]
    generated_per_s = None
    if told and told[-1][0] > told[0][0]:
        generated_per_s = round((told[-1][1] - told[0][1]) / (told[-1][0] - told[0][0]), 1)
    return Point(
        load=run.load,
        seed=seed,
        long=run.long,
        summary=summary,
        limit=limit(trial, slots, cores) if driver is None else "the driver",
        generated_per_s=generated_per_s,
        driver=driver,
    )


def _excused(trial: Trial, offer: Offer) -> bool:
    """Whether the objective was kept, had the driver neither sent late nor received late."""
    late_s = max((each.lag_p99_ms for each in trial.clients), default=0.0) / 1000
    in_time = [
        replace(
            each, due_s=each.sent_s + late_s, began_s=each.began_s + late_s if each.began_s is not None else None
        )
        for each in trial.records
    ]
    return summarise([replace(trial, records=in_time)], offer.objective).met


def limit(trial: Trial, slots: int | None, cores: Cores) -> str:
    """What was full while this ran, for people; where nothing was, the latency alone was too much."""
    elapsed_s = max(trial.elapsed_s, 1e-9)
    running = [each.running for each in trial.samples if each.running is not None]
    waiting = [each.waiting for each in trial.samples if each.waiting is not None]
    # Each of these has one event loop, which is on one core at a time.
    loops = ((name, used_s / elapsed_s) for name, used_s in _serving_s(trial))
    full = [f"{name} ({cores_used:.2f} cores)" for name, cores_used in loops if cores_used >= _FULL]
    if slots and running and (mean := sum(running) / len(running)) >= _FULL * slots:
        behind = f", {sum(waiting) / len(waiting):.0f} waiting" if waiting else ""
        batch = "the engines' batches" if len(trial.settings.get("engines", [])) > 1 else "the engine's batch"
        full.append(f"{batch} ({mean:.1f} of {slots} sequences{behind})")
    if (gpus := _busy(trial.samples)) and (busy := max(gpus)) >= 100 * _FULL:
        full.append(f"{_fullest(len(gpus), 'the GPU', 'GPUs')} ({busy:.0f} % busy)")
    full += _cpu(trial, elapsed_s, cores)
    return ", ".join(full) or "nothing"


def _cpu(trial: Trial, elapsed_s: float, cores: Cores) -> list[str]:
    """The machine where all of it is in use, by any program; else the run's use of the cores that it may use."""
    used = sum(trial.cpu_s.values()) / elapsed_s
    other = trial.cpu_s.get("other", 0.0) / elapsed_s
    if used >= _FULL * cores.machine:
        # The own part of a gateway that runs elsewhere is not known.
        others = f", {other:.1f} by other programs" if other > _NOTED_CORES and "serving" in trial.cpu_s else ""
        return [f"the CPU ({used:.1f} of the machine's {cores.machine} cores{others})"]
    if used - other >= _FULL * cores.own:
        return [f"the cores that the load test may use ({used - other:.1f} of {cores.own})"]
    return []


def _busy(samples: Sequence[Sample]) -> list[float]:
    """How busy each GPU was, percent."""
    told: dict[str, list[float]] = {}
    for sample in samples:
        alone = {} if sample.gpu is None else {"": sample.gpu}
        for name, busy in (sample.gpus or alone).items():
            told.setdefault(name, []).append(busy)
    return [sum(each) / len(each) for each in told.values()]


def _fullest(count: int, one: str, several: str) -> str:
    """What is full is one of them."""
    return one if count < 2 else f"the fullest of {count} {several}"


def _serving_s(trial: Trial) -> list[tuple[str, float]]:
    """CPU time of each process of a gateway that serves, the fullest first. Workers share what comes to them."""
    serving_s, store_s = trial.cpu_s.get("serving", 0.0), trial.store_cpu_s or 0.0
    hosts_s = trial.hosts_cpu_s or [0.0]
    workers = trial.settings.get("workers", 1)
    name = "the gateway's process" if workers == 1 else f"each of the gateway's {workers} processes"
    own_s = (serving_s - sum(hosts_s) - store_s) / workers
    host = _fullest(len(hosts_s), "the engine's host process", "engine host processes")
    each = [(name, own_s), (host, max(hosts_s)), ("the store", store_s)]
    return sorted(each, key=lambda process: -process[1])


def points_table(points: Sequence[Point], unit: Unit) -> Table:
    """All runs, by load: what the tables of their trials do not say."""

    def verdict(each: Point) -> str:
        missed = f" ({', '.join(each.summary.missed)})" if each.summary.missed else ""
        kept = "yes" if each.kept else f"no{missed}"
        return f"{each.summary.within:.1%} of {each.summary.records:,}: {kept}"

    columns: list[tuple[str, Callable[[Point], str]]] = [
        (unit.value, lambda each: f"{each.load:g}" + (" (confirmation)" if each.long else "")),
        ("seed", lambda each: str(each.seed)),
        ("kept the objective", verdict),
    ]
    if unit is Unit.MEETINGS:
        columns.append(("tokens of partials for each of a final", lambda each: number(each.partial_tokens)))
    columns.append(("what was full", lambda each: each.limit))
    return tabulated("All runs", sorted(points, key=lambda each: (each.load, each.long)), columns)


def too_few(point: Point, offer: Offer) -> str:
    """A warning where one translation decides; or nothing."""
    needed = round(1 / max(1 - offer.objective.quantile, 1e-9))
    if point.summary.records >= needed:
        return ""
    return f"Judged by {point.summary.records} translations, of which one decides: use longer steps (--step-s)."


def driver_limit(point: Point) -> Finding:
    """The load test was measuring itself."""
    note = f"{point.driver} Nothing above {point.load:g} was measured."
    return Finding("the driver", "was the limit", "is not the limit", False, note)
