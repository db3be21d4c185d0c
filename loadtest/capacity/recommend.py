"""Settings for a workload and an objective, by trying them.

Knows: which gateways are started, what is concluded from their capacities. Must not know: how a run is made, how a
report looks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from loadtest.capacity.advice import (
    Candidate,
    Tried,
    advise,
    capacity_charts,
    choose,
    recommended_toml,
    tried_table,
)
from loadtest.capacity.bench import Bench, follow
from loadtest.capacity.curve import Plan
from loadtest.capacity.offer import described
from loadtest.capacity.points import Measured, points_table
from loadtest.capacity.search import Ended, capacity_search
from loadtest.commands import Say
from loadtest.options import shown, with_batch
from loadtest.results import LoadtestError, go_on
from loadtest.systems.running import Running
from loadtest.trial.values import Results, Trial

# Once it is known to carry less than this part of the best, a candidate is left.
_WORTH = 0.9

# Before a gateway is started there has to be time for so many runs with it.
_LEAST_RUNS = 3

_Start = Callable[[Mapping[str, Any], str], AbstractAsyncContextManager[Running]]
"""A gateway with these settings and a name for people, ready."""


class RecommendPlan(Plan, frozen=True, kw_only=True):
    """Settings to try."""

    # Of every gateway, but for what a candidate changes.
    settings: dict[str, Any]
    # What is tried of `max_num_seqs`.
    seqs: tuple[int, ...]
    # What one gateway has, for people.
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
            left_out=[str(each) for each in map(Candidate, plan.seqs) if each not in tour.measured],
            interrupted=tour.interrupted,
        ),
        trials=[trial for each in tried for trial in _trials(each, tour.measured[each.candidate])],
        parts=[
            *([f"```toml\n{toml}```"] if toml else []),
            tried_table(tried, unit),
            *(points_table(each.points, unit) for each in tried if each.chosen),
        ],
        charts=capacity_charts(tried, unit),
        details={"unit": unit.value, "tried": to_builtins(tried)},
        files={"recommended.toml": toml} if toml else {},
    )


class _Tour:
    """All candidates, one after the other."""

    def __init__(self, plan: RecommendPlan, start: _Start, say: Say) -> None:
        self.tried: list[Tried] = []
        self.measured: dict[Candidate, list[Measured]] = {}
        self.interrupted = False
        self._plan = plan
        self._start = start
        self._say = say
        self._until_s = time.monotonic() + plan.time_limit_s

    async def all(self) -> None:
        """As far as there is time. Raises `CancelledError` when it is interrupted before anything was measured."""
        try:
            for size in self._plan.seqs:
                await self._try(Candidate(size))
        except asyncio.CancelledError:
            if not self.tried:
                raise
            go_on()
            self.interrupted = True

    async def _try(self, candidate: Candidate) -> None:
        if self._until_s - time.monotonic() <= _LEAST_RUNS * self._plan.offer.seconds(long=False):
            return
        settings = with_batch(self._plan.settings, candidate.max_num_seqs)
        try:
            async with self._start(settings, str(candidate)) as running:
                await self._measure(candidate, running)
        except LoadtestError as error:
            self._enter(Tried(candidate, None, str(error)), [])

    def _enter(self, tried: Tried, measured: list[Measured]) -> None:
        self.tried.append(replace(tried, points=[each.point for each in measured]))
        self.measured[tried.candidate] = measured

    async def _measure(self, candidate: Candidate, running: Running) -> None:
        """Raises `CancelledError` when it is interrupted; what was measured until then is entered."""
        plan = self._plan
        best = max((each.capacity for each in self.tried), default=0.0)
        bench = Bench(running, plan.offer, self._say, processes=plan.processes, label=f"{candidate}, ")
        # Each gets its part of the time that is left, so that one alone does not use it up.
        left, now_s = max(1, len(plan.seqs) - len(self.tried)), time.monotonic()
        until_s = now_s + (self._until_s - now_s) / left
        search = capacity_search(best or plan.start, plan.bounds, worth=_WORTH * best)
        followed = await follow(search, bench.measure, bench.takes_s, until_s)
        by = followed.stopped.by if followed.stopped is not None else None
        failed = followed.stopped.why if followed.stopped is not None and by is Ended.FAILED else None
        if followed.measured or by is not Ended.INTERRUPTED:
            found = None if failed is not None and not followed.measured else followed.found
            self._enter(Tried(candidate, found, failed), followed.measured)
        if by is Ended.INTERRUPTED:
            raise asyncio.CancelledError


def _trials(tried: Tried, measured: list[Measured]) -> list[Trial]:
    """All of the recommended settings, and of the others the best one: all together would be large."""
    ordered = sorted(measured, key=lambda each: each.point.load)
    return [each.trial for each in ordered if tried.chosen or each.point is tried.at]
