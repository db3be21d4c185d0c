"""What `run` is to do, as values.

Knows: scenarios, files, how many sessions a plan amounts to. Must not know: processes, clocks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from loadtest.options import merged
from loadtest.results import LoadtestError
from loadtest.talk import replay
from loadtest.talk.scenario import Scenario, meetings_lines, translations_per_s
from loadtest.trial.values import InMeetings, Line, Objective

# With a simulated engine the gateway is measured: nothing but the gateway may make anybody wait.
_NO_QUEUE = {"max_waiting": 100_000, "max_queue_s": 3_600.0, "engine": {"script": {"max_running": 100_000}}}

# Besides those that are asked for.
_SPARE_SESSIONS = 100
_LEAST_SESSIONS = 10_000


class RunPlan(Struct, frozen=True, kw_only=True):
    """What is held, on which gateway."""

    # Of the gateway that is started.
    settings: dict[str, Any]
    objective: Objective
    # Its processes, which share a store; None: one, without a store.
    workers: int | None = None
    # Of a gateway that runs already; then the settings are not read.
    url: str | None = None
    # What is said, or a recording of it.
    scenario: Scenario = Scenario()
    file: Path | None = None
    # How long; None: 30, or all of the file.
    seconds: float | None = None
    # More in each meeting, who only read.
    readers: int = 0
    # Sessions in which nothing is said.
    idle: int = 0
    # Of all that is said.
    repetitions: int = 1
    # Of clients.
    processes: int = 1
    time_limit_s: float = 3_600.0
    allow_bottleneck: bool = False

    @property
    def simulated(self) -> bool:
        """Whether an engine that plays a script is started."""
        return self.url is None and self.settings.get("engine", {}).get("kind") == "simulated"

    def gateway_settings(self, load: InMeetings) -> dict[str, Any]:
        """Of the gateway that is started: room for all sessions; no queue before an engine that is a script."""
        own = {"max_sessions": max(_LEAST_SESSIONS, sessions(load) + _SPARE_SESSIONS)}
        return merged(merged(own, _NO_QUEUE if self.simulated else {}), self.settings)


class Said(Struct, frozen=True):
    """What is said. workload: in words. greetings: one short line of everybody, before."""

    lines: list[Line]
    greetings: list[Line]
    load: InMeetings
    workload: str


def said(plan: RunPlan) -> Said:
    """The lines of a plan. Raises `LoadtestError` for a file or a scenario that cannot be, for meetings in which
    nothing is said, and for talk that would not be over in time."""
    scenario, seconds = plan.scenario, plan.seconds
    if plan.file is not None:
        lines = [line for line in replay.read(plan.file) if seconds is None or line.due_s < seconds]
        people = sorted({(line.meeting, line.speaker) for line in lines})
        workload = f"{plan.file.name}, {_counted(len(lines), 'line')} in {_last_s(lines):,.0f} s"
    else:
        seconds = 30.0 if seconds is None else seconds
        lines = meetings_lines(scenario, seconds) if scenario.meetings else []
        people = [
            (f"meeting-{meeting}", f"speaker-{person}")
            for meeting in range(1, scenario.meetings + 1)
            for person in range(1, scenario.people + 1)
        ]
        workload = (
            f"{scenario.shape}, {_counted(scenario.meetings, 'meeting')} of {scenario.people} for {seconds:g} s, "
            f"{scenario.source} to {', '.join(scenario.targets)}, seed {scenario.seed}"
        )
    if not lines and (plan.file is not None or scenario.meetings):
        raise LoadtestError(f"Nothing is said in the first {seconds:g} s: take longer (--seconds).")
    if _last_s(lines) > plan.time_limit_s:
        raise LoadtestError(
            f"What is said takes {_last_s(lines):,.0f} s, and everything may take {plan.time_limit_s:,.0f} s: "
            "allow more (--time-limit-s) or say less (--seconds)."
        )
    every = any(line.partials for line in lines)
    return Said(
        lines=lines,
        greetings=_greetings(lines, people),
        load=InMeetings(
            meetings=len({meeting for meeting, _ in people}),
            speakers=len(people),
            per_s=round(translations_per_s(lines), 2),
            readers=plan.readers,
            idle=plan.idle,
        ),
        workload=f"{workload}, {'partials and finals' if every else 'finals alone'}",
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def _last_s(lines: list[Line]) -> float:
    """When the last one is due, of lines in order of time."""
    return lines[-1].due_s if lines else 0.0


def sessions(load: InMeetings) -> int:
    """All that are open at the same time."""
    return load.speakers + load.meetings * load.readers + load.idle


# One after another, but nobody waits for thousands.
_GREETING_EVERY_S = 0.01
_GREETINGS_S = 20.0


def _greetings(lines: list[Line], people: list[tuple[str, str]]) -> list[Line]:
    """Everybody has a session, and has used it once, before anything is measured; all languages are read."""
    first = {(line.meeting, line.speaker): line for line in reversed(lines)}
    targets: dict[str, tuple[str, ...]] = {}
    for line in lines:
        targets[line.meeting] = tuple(sorted({*targets.get(line.meeting, ()), *line.targets}))
    example = lines[0] if lines else None
    every_s = min(_GREETING_EVERY_S, _GREETINGS_S / max(len(people), 1))
    greetings: list[Line] = []
    for number, (meeting, speaker) in enumerate(people):
        like = first.get((meeting, speaker), example)
        if like is not None:
            greetings.append(
                Line(
                    id=f"greeting {number}",
                    text=like.text[:20],
                    source=like.source,
                    targets=tuple(t for t in targets.get(meeting, like.targets) if t != like.source),
                    due_s=round(number * every_s, 4),
                    meeting=meeting,
                    speaker=speaker,
                )
            )
    return greetings
