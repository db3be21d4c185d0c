"""What is offered at a load: lines and when they are due.

Knows: scenarios, the two units in which a load is counted. Must not know: what is measured under it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from loadtest.results import LoadtestError
from loadtest.talk.scenario import Scenario, arrivals, meetings_lines, request_lines, translations_per_s
from loadtest.trial.values import InMeetings, Line, Load, Objective, Open

__all__ = ["Offer", "Offered", "Unit", "described"]

# What is said in a confirmation has nothing in common with what was said before.
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
    """Lines, and the load that they amount to. beginning_s: lines due before it are not counted."""

    lines: list[Line]
    load: Load
    beginning_s: float
    seconds: float


class Offer(Struct, frozen=True, kw_only=True):
    """What every run of a search has in common. replayed: lines of a file, instead of the scenario's.

    total_ms: the whole translation, from when its line was due; null where only its beginning matters. step_s: of
    a run, without its beginning; a confirmation takes twice as long.
    """

    scenario: Scenario
    unit: Unit
    objective: Objective = Objective()
    total_ms: float | None = None
    step_s: float = 20.0
    replayed: tuple[Line, ...] = ()

    def seconds(self, long: bool) -> float:
        """How long lines are due in one run."""
        return self.step_s * ((_CONFIRMS if long else 1.0) + _BEGINNING)

    def at(self, load: float, seed: int = 0, long: bool = False) -> Offered:
        """The lines of one run; some of them are due after its beginning. Raises `LoadtestError`."""
        scenario = replace(self.scenario, seed=self.scenario.seed + seed * _SEEDS_APART)
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
            return f"{len(self.replayed)} lines of a file, as often as needed, at random times"
        texts = f"{said.shape} talk, seed {said.seed}, {said.source} to {', '.join(said.targets)}"
        if self.unit is Unit.REQUESTS:
            return f"{texts}, one request a translation, at random times"
        partials = f"a revision every {said.partial_every_s:g} s" if said.partial_every_s else "without partials"
        return f"{texts}, meetings of {said.people} people, {partials}"

    def _in_meetings(self, scenario: Scenario, seconds: float) -> Offered:
        if self.replayed:
            raise LoadtestError("Lines of a file can be offered at rates, not in more or fewer meetings.")
        lines = _meetings(scenario, seconds)
        speakers = len({(line.meeting, line.speaker) for line in lines})
        load = InMeetings(meetings=scenario.meetings, speakers=speakers, per_s=translations_per_s(lines))
        return Offered(lines, load, self.step_s * _BEGINNING, seconds)

    def _requests(self, scenario: Scenario, per_s: float, seconds: float) -> Offered:
        # More than will be due, whatever the chance.
        count = math.ceil(per_s * seconds + 6 * math.sqrt(per_s * seconds) + 10)
        lines = self._again(count) if self.replayed else _requests(scenario, count)
        due = [line for line in arrivals(lines, per_s, scenario.seed) if line.due_s < seconds]
        return Offered(due, Open(per_s), self.step_s * _BEGINNING, seconds)

    def _again(self, count: int) -> list[Line]:
        """The file's lines, over and over."""
        lines = self.replayed
        rounds = [(number // len(lines), lines[number % len(lines)]) for number in range(count)]
        return [replace(line, id=f"{turn}-{line.id}", partials=()) for turn, line in rounds]


# A thousand meetings take a minute to write, and a search comes back to the same ones: kind of lines, scenario and
# seconds → how many were written, and the lines.
_written: dict[tuple[str, Scenario, float], tuple[int, list[Line]]] = {}
_MOST_WRITTEN = 4


def _meetings(scenario: Scenario, seconds: float) -> list[Line]:
    """As `meetings_lines`: each meeting is the same whatever the number of the others."""

    def write() -> list[Line]:
        return meetings_lines(scenario, seconds)

    key = ("meetings", replace(scenario, meetings=1), seconds)
    count, lines = _at_least(key, scenario.meetings, write)
    if count == scenario.meetings:
        return lines
    # Their names end with their numbers.
    return [line for line in lines if int(line.meeting.rpartition("-")[2]) <= scenario.meetings]


def _requests(scenario: Scenario, count: int) -> list[Line]:
    """As `request_lines`: a shorter list is the beginning of a longer one."""
    _, lines = _at_least(("requests", scenario, 0.0), count, lambda: request_lines(scenario, count))
    return lines[:count]


def _at_least(
    key: tuple[str, Scenario, float], count: int, write: Callable[[], list[Line]]
) -> tuple[int, list[Line]]:
    known = _written.pop(key, (0, []))
    _written[key] = known if known[0] >= count else (count, write())
    while len(_written) > _MOST_WRITTEN:
        del _written[next(iter(_written))]
    return _written[key]


def described(plan: Struct) -> dict[str, Any]:
    """A plan that has an `offer`, for a report: without the lines of a file."""
    told: dict[str, Any] = to_builtins(plan)
    told["offer"]["replayed"] = len(told["offer"]["replayed"])
    return told
