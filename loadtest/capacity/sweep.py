"""One gateway under rising load, past what it can carry: the curve around its knee.

Knows: what a sweep finds. Must not know: how a run is made, how a report looks.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager

from loadtest.capacity.bench import follow
from loadtest.capacity.curve import Plan, curve
from loadtest.capacity.offer import Offer
from loadtest.capacity.points import Point, driver_limit, there, too_few
from loadtest.capacity.search import Bounds, Run, Seen, Stop, Swept, SweptUntil, knee, sweep_search
from loadtest.commands import Say
from loadtest.systems.running import Running
from loadtest.trial.values import Finding, Report

__all__ = ["SweepPlan", "findings", "given_loads", "sweep"]


_KNEE = "the knee: all up to it kept the objective"

_INCOMPLETE = {
    SweptUntil.RUNS: "The runs were used up before all of it was measured (--runs).",
    SweptUntil.TIME: "There was no time for all of it (--time-limit-s).",
}


class SweepPlan(Plan, frozen=True, kw_only=True):
    """loads: those to offer, in order; null finds them. start: the first one then."""

    loads: tuple[float, ...] | None = None
    start: float = 1.0
    bounds: Bounds = Bounds(low=0.1, resolution=0.1, runs=24)


async def sweep(plan: SweepPlan, system: AbstractAsyncContextManager[Running], command: str, say: Say) -> Report:
    """Measure the curve. Raises `LoadtestError`, also where there was no time for a single run."""
    search = sweep_search(plan.start, plan.bounds) if plan.loads is None else given_loads(plan.loads)
    return await curve(
        "sweep",
        plan,
        system,
        command,
        say,
        search=lambda bench, deadline: follow(search, bench.measure, bench.takes_s, deadline),
        findings=findings,
    )


def given_loads(loads: Sequence[float]) -> Generator[Run, Seen | Stop, Swept]:
    """These loads, whatever comes of them."""
    seen: dict[float, Seen] = {}
    for load in loads:
        answer = yield Run(load)
        if isinstance(answer, Stop):
            return Swept(knee(seen), SweptUntil[answer.name])
        seen[load] = answer
    return Swept(knee(seen), SweptUntil.COMPLETE)


def findings(points: Sequence[Point], swept: Swept, offer: Offer) -> list[Finding]:
    """The knee, what came out there, what was full. points: at least one."""
    found: list[Finding] = []
    driver = next((each for each in points if each.driver is not None), None)
    lost = [each for each in points if not each.kept and each is not driver]
    best = next((each for each in points if each.load == swept.knee), None)
    within = f"{offer.objective.first_token_ms:g} ms"
    if best is None:
        found.append(
            Finding(
                _KNEE,
                "none",
                note=f"Not even {offer.unit.words(min(each.load for each in points))} kept the objective.",
            )
        )
    else:
        above = min(lost, key=lambda each: each.load, default=None)
        notes = [
            f"The next one, {offer.unit.words(above.load)}, did not keep it: {above.within:.1%} within {within}."
            if above is not None
            else "No larger one failed: the limit is above."
        ]
        notes += filter(None, [_kept_again(points, above, offer), too_few(best, offer)])
        found += [
            Finding(_KNEE, offer.unit.words(best.load), note=" ".join(notes)),
            *there(best, points, offer),
        ]
    if lost:
        first = min(lost, key=lambda each: each.load)
        note = f"At {offer.unit.words(first.load)}."
        found.append(Finding("what was full past the knee", first.limit, note=note))
    if driver is not None:
        found.append(driver_limit(driver))
    elif (why := _INCOMPLETE.get(swept.until)) is not None:
        found.append(Finding("the curve", "incomplete", note=why))
    return found


def _kept_again(points: Sequence[Point], lost: Point | None, offer: Offer) -> str:
    """A warning where a load was lost by bad luck, or a larger one kept by good luck; or nothing."""
    again = [each.load for each in points if lost is not None and each.kept and each.load > lost.load]
    return f"Yet {offer.unit.words(max(again))} kept it again: use longer steps (--step-s)." if again else ""
