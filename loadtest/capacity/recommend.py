"""Settings for a workload and an objective, by trying them.

Knows: which gateways are started, what is concluded from their capacities. Must not know: how a run is made, how a
report looks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from loadtest.capacity.advice import advise
from loadtest.capacity.bench import Bench, Deadline, follow
from loadtest.capacity.candidates import Candidate, Tried, candidates_search, choose
from loadtest.capacity.curve import Plan, at_capacity
from loadtest.capacity.offer import described
from loadtest.capacity.points import Measured
from loadtest.capacity.search import Stop, capacity_search
from loadtest.commands import Say
from loadtest.machine import describe
from loadtest.options import merged, shown, with_batch
from loadtest.results import LoadtestError, go_on
from loadtest.systems.running import Running
from loadtest.systems.share import with_share
from loadtest.systems.start import together
from loadtest.trial.values import Report, Trial

__all__ = ["RecommendPlan", "candidate_settings", "recommend"]

# Once it is known to carry less than this part of the best, a candidate is left.
_WORTH = 0.9

# Before a gateway is started there has to be time for so many runs with it.
_LEAST_RUNS = 3

_Start = Callable[[Mapping[str, Any], str], AbstractAsyncContextManager[Running]]
"""A gateway with these settings and a name for people, ready."""


class RecommendPlan(Plan, frozen=True, kw_only=True):
    # Of every gateway, but for what a candidate changes.
    settings: dict[str, Any]
    # What is tried of `max_num_seqs` and `max_num_batched_tokens`.
    seqs: tuple[int, ...]
    budgets: tuple[int, ...] = ()
    # So many gateways are started at a time; they are measured in turn.
    group: int = 1
    # The GPU's memory; None without one.
    gpu_mib: float | None = None


class _Attempt(Struct, frozen=True):
    tried: Tried
    measured: list[Measured]


async def recommend(plan: RecommendPlan, start: _Start, command: str, say: Say) -> Report:
    """Try them. Raises `LoadtestError`, or `CancelledError`, when nothing could be measured; what was measured
    before an error or an interruption is reported."""
    began, machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), describe()
    tour = _Tour(plan, start, say)
    attempts = await tour.all()
    if not attempts:
        raise LoadtestError("There was no time for a single gateway: allow more (--time-limit-s).")
    failed = next((each.tried.failed for each in attempts if each.tried.failed), None)
    if failed is not None and not any(each.measured for each in attempts):
        raise LoadtestError(failed)
    chosen = choose([each.tried for each in attempts])
    best = next((each for each in attempts if chosen is not None and each.tried is chosen.tried), None)
    confirmed = _confirmation(best)
    advice = advise(
        chosen,
        [each.tried for each in attempts],
        offer=plan.offer,
        points=[] if best is None else [each.point for each in best.measured],
        at=None if confirmed is None else confirmed.point,
        device="machine" if plan.gpu_mib is None else "GPU",
        left_out=_left_out(plan, attempts),
        interrupted=tour.interrupted,
    )
    own = shown(plan.settings)
    return Report(
        kind="recommend",
        command=command,
        began=began,
        model=plan.model,
        machine=machine,
        settings={"gateway": own, "recommend": described(replace(plan, settings=own))},
        objective=plan.offer.objective,
        findings=advice.findings,
        trials=[trial for each in attempts for trial in _trials(each, all_of_them=each is best)],
        details={
            "unit": plan.offer.unit.value,
            "toml": advice.toml,
            "tried": [
                {
                    "candidate": to_builtins(each.tried.candidate),
                    "name": str(each.tried.candidate),
                    "found": to_builtins(each.tried.found),
                    "failed": each.tried.failed,
                    "chosen": each is best,
                    "points": to_builtins([one.point for one in each.measured]),
                }
                for each in attempts
            ],
        },
    )


def candidate_settings(
    settings: Mapping[str, Any], candidate: Candidate, *, engines: int = 1, gpu_mib: float | None = None
) -> dict[str, Any]:
    """A gateway's settings with a candidate's in force. engines: so many share the GPU's memory."""
    own = with_batch(settings, candidate.max_num_seqs)
    if candidate.max_num_batched_tokens is not None:
        own = merged(own, {"engine": {"max_num_batched_tokens": candidate.max_num_batched_tokens}})
    return with_share(own, engines, gpu_mib)


class _Tour:
    """All candidates, one group after the other."""

    def __init__(self, plan: RecommendPlan, start: _Start, say: Say) -> None:
        self._plan = plan
        self._start = start
        self._say = say
        self._deadline = Deadline(plan.time_limit_s)
        self._attempts: list[_Attempt] = []
        self.interrupted = False

    async def all(self) -> list[_Attempt]:
        plan = self._plan
        search = candidates_search(plan.seqs, plan.budgets, plan.group)
        group = next(search)
        while True:
            tried: list[Tried] | None = None
            if self._deadline.left_s > _LEAST_RUNS * plan.offer.seconds(long=False):
                try:
                    tried = await self._group(group)
                except asyncio.CancelledError:
                    if not self._attempts:
                        raise
                    go_on()
                    self.interrupted = True
            try:
                group = search.send(None if self.interrupted else tried)
            except StopIteration:
                return self._attempts

    async def _group(self, group: Sequence[Candidate]) -> list[Tried]:
        async with AsyncExitStack() as stack:
            systems = [
                self._start(
                    candidate_settings(self._plan.settings, each, engines=len(group), gpu_mib=self._plan.gpu_mib),
                    str(each),
                )
                for each in group
            ]
            try:
                started = await stack.enter_async_context(together(*systems))
            except LoadtestError as error:
                if len(group) == 1:
                    return [self._enter(Tried(group[0], None, str(error)))]
            else:
                return [
                    await self._attempt(candidate, running)
                    for candidate, running in zip(group, started, strict=True)
                ]
        # There is no room for all of them at the same time.
        return [tried for each in group for tried in await self._group([each])]

    def _enter(self, tried: Tried, measured: Sequence[Measured] = ()) -> Tried:
        self._attempts.append(_Attempt(tried, list(measured)))
        return tried

    async def _attempt(self, candidate: Candidate, running: Running) -> Tried:
        """Raises `CancelledError` when it is interrupted; what was measured until then is entered."""
        plan = self._plan
        best = max((each.tried.capacity for each in self._attempts), default=0.0)
        label = f"{candidate}, "
        bench = Bench(running, plan.offer, self._say, processes=plan.processes, label=label)
        # Each gets its part of the time that is left, so that one alone does not use it up.
        left = max(1, len(plan.seqs) + len(plan.budgets) - len(self._attempts))
        deadline = Deadline(self._deadline.left_s / left)
        search = capacity_search(best or plan.start, plan.bounds, worth=_WORTH * best)
        followed = await follow(search, bench.measure, bench.takes_s, deadline)
        stopped = followed.stopped
        failed = stopped.why if stopped is not None and stopped.by is Stop.FAILED else None
        interrupted = stopped is not None and stopped.by is Stop.INTERRUPTED
        found = None if failed is not None and not followed.measured else followed.answer
        tried = Tried(candidate, found, failed)
        if followed.measured or not interrupted:
            self._enter(tried, followed.measured)
        if interrupted:
            raise asyncio.CancelledError
        return tried


def _confirmation(attempt: _Attempt | None) -> Measured | None:
    """The run that says most of its capacity."""
    if attempt is None or attempt.tried.found is None:
        return None
    point = at_capacity([each.point for each in attempt.measured], attempt.tried.found)
    return next((each for each in attempt.measured if each.point is point), None)


def _left_out(plan: RecommendPlan, attempts: Sequence[_Attempt]) -> list[str]:
    """What was not tried."""
    tried = [each.tried.candidate for each in attempts]
    left = [str(Candidate(each)) for each in plan.seqs if Candidate(each) not in tried]
    budgets = {each.max_num_batched_tokens for each in tried}
    return left + [f"{each} tokens a step" for each in plan.budgets if each not in budgets]


def _trials(attempt: _Attempt, *, all_of_them: bool) -> list[Trial]:
    """All of the recommended settings, and of the others the best one: all together would be large."""
    if all_of_them:
        return [each.trial for each in sorted(attempt.measured, key=lambda each: each.point.load)]
    best = _confirmation(attempt)
    return [best.trial] if best is not None else []
