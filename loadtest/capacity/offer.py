"""What is offered at a load: lines and when they are due.

Knows: scenarios, the two units in which a load is counted. Must not know: what is measured under it.
"""

from __future__ import annotations

import math
import random
from enum import Enum
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario, arrivals, check, meetings_lines, request_lines, translations_per_s
from loadtest.trial.values import InMeetings, Line, Load, Objective, Open

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


class Offered(Struct, frozen=True):
    """The lines of one run."""

    lines: list[Line]
    # What they amount to.
    load: Load
    # Which lines.
    seed: int
    # From then on, it counts.
    beginning_s: float
    # How long lines are due.
    seconds: float


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

    def seconds(self, long: bool) -> float:
        """How long lines are due in one run."""
        return self.step_s * ((_CONFIRMS if long else 1.0) + _BEGINNING)

    def check(self) -> None:
        """Raises `LoadtestError` for what can be offered under no load."""
        if not self.replayed:
            check(self.scenario, meetings=self.unit is Unit.MEETINGS)
        elif self.unit is Unit.MEETINGS:
            raise LoadtestError("Lines of a file can be offered at rates (--unit requests), not in meetings.")

    def at(self, load: float, number: int = 0, long: bool = False) -> Offered:
        """The lines of one run; some of them are due after its beginning. number: of the run; each says something
        else. Raises `LoadtestError`."""
        scenario = replace(self.scenario, seed=self.scenario.seed + number * _SEEDS_APART)
        seconds = self.seconds(long)
        if self.unit is Unit.MEETINGS:
            offered = self._in_meetings(replace(scenario, meetings=round(load)), seconds)
        else:
            offered = self._requests(scenario, load, seconds)
        if not any(line.due_s >= offered.beginning_s for line in offered.lines):
            raise LoadtestError(
                f"Nothing is said within {seconds:g} s at {self.unit.words(load)}; use longer steps (--step-s)."
            )
        return offered

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

    def _in_meetings(self, scenario: Scenario, seconds: float) -> Offered:
        lines = meetings_lines(scenario, seconds)
        speakers = len({(line.meeting, line.speaker) for line in lines})
        load = InMeetings(meetings=scenario.meetings, speakers=speakers, per_s=translations_per_s(lines))
        return Offered(lines, load, scenario.seed, self.step_s * _BEGINNING, seconds)

    def _requests(self, scenario: Scenario, per_s: float, seconds: float) -> Offered:
        # More than will be due, whatever the chance.
        count = math.ceil(per_s * seconds + 6 * math.sqrt(per_s * seconds) + 10)
        lines = self._again(count, scenario.seed) if self.replayed else request_lines(scenario, count)
        due = [line for line in arrivals(lines, per_s, scenario.seed) if line.due_s < seconds]
        return Offered(due, Open(per_s, self.retries), scenario.seed, self.step_s * _BEGINNING, seconds)

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
