"""Makes the planned faults, one after the other or at the same time, and notes how long each took to mend.

Knows: processes to signal and clients to break. Must not know: when what is planned (`faults`), what is lost.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence

from loadtest.results import LoadtestError
from loadtest.soak.clients import Break
from loadtest.soak.crowd import CrowdProcess
from loadtest.soak.faults import FaultKind, Planned, Suffered
from loadtest.soak.gateway import ServedGateway
from loadtest.soak.records import Record, Stopped
from loadtest.soak.watch import Watch

__all__ = ["Injection"]

_LOOK_S = 0.25

# An engine that dies is noticed at once; one that is stopped after `engine.stall_s`, once something is to be done.
_NOTICED_S = {FaultKind.ENGINE_KILL: 15.0, FaultKind.ENGINE_STOP: 60.0}
_MENDED_S = 240.0

# A client that reads nothing overflows its outbox, or answers no ping.
_CLOSED_S = 130.0
_MORE_S = 20.0
_FIND_OUT_S = 5.0

# An engine is killed while it has something to do, if that is to be had.
_BUSY, _BUSY_S = 3, 10.0


class Injection:
    """made: every fault so far. say: takes the records of those that no client can tell of."""

    def __init__(
        self,
        gateway: ServedGateway,
        crowds: Sequence[CrowdProcess],
        watch: Watch,
        began_s: float,
        say: Callable[[Record], None],
    ) -> None:
        self._say = say
        self.made: list[Suffered] = []
        self._gateway = gateway
        self._crowds = {crowd.number: crowd for crowd in crowds}
        self._watch = watch
        self._began_s = began_s
        # What happens to everybody happens one at a time.
        self._everybody = asyncio.Lock()

    async def carry_out(self, planned: Sequence[Planned]) -> None:
        """Until all are made and mended. Raises `LoadtestError` when something cannot be mended."""
        async with asyncio.TaskGroup() as tasks:
            for fault in planned:
                await asyncio.sleep(max(fault.at_s - self._now_s(), 0.0))
                match fault.kind:
                    case FaultKind.ENGINE_KILL | FaultKind.ENGINE_STOP:
                        tasks.create_task(self._break_engine(fault.kind))
                    case FaultKind.RESTART:
                        tasks.create_task(self._restart())
                    case FaultKind.CLIENT_STOP:
                        tasks.create_task(self._stop_clients(fault))
                    case _:
                        # Who suffers is in process 0, which is never stopped.
                        self._crowds[0].tell(Break(fault.target, fault.kind, fault.pause_s))
                        self.made.append(Suffered(fault.kind, self._now_s(), fault.target, fault.pause_s))

    def _now_s(self) -> float:
        return round(time.monotonic() - self._began_s, 2)

    async def _break_engine(self, kind: FaultKind) -> None:
        async with self._everybody:
            under_way = await self._busy()
            began_s = self._now_s()
            number = signal.SIGKILL if kind is FaultKind.ENGINE_KILL else signal.SIGSTOP
            if not self._gateway.signal_engine(number):
                raise LoadtestError("There is no engine process below the gateway.")
            noticed_s = await self._readiness(False, _NOTICED_S[kind])
            mended_s = await self._readiness(True, _MENDED_S) if noticed_s is not None else None
            note = f"{under_way:.0f} translations under way"
            if noticed_s is None:
                note += "; the gateway did not notice"
            elif mended_s is None:
                raise LoadtestError(f"The engine was not ready within {_MENDED_S:g} s after it was lost.")
            self.made.append(Suffered(kind, began_s, 0, 0.0, self._since(began_s, mended_s), note))

    async def _restart(self) -> None:
        async with self._everybody:
            began_s = self._now_s()
            await self._watch.before_restart()
            status = await self._gateway.stop()
            left_s = self._now_s()
            await self._gateway.start()
            ready_s = await self._gateway.ready(_MENDED_S)
            mended_s = await self._until_settled(list(self._crowds.values()))
            note = f"left after {left_s - began_s:.1f} s with status {status}, ready {ready_s:.1f} s later"
            self.made.append(Suffered(FaultKind.RESTART, began_s, 0, 0.0, self._since(began_s, mended_s), note))

    async def _stop_clients(self, fault: Planned) -> None:
        async with self._everybody:
            crowd = self._crowds[fault.target]
            clients = crowd.status.clients if crowd.status is not None else 0
            closed_before = await self._watch.slow_readers()
            began_s = self._now_s()
            self._say(Stopped(time.monotonic(), f"process {crowd.number}", crowd.seats))
            crowd.stop()
            # Slow readers are closed one after the other as their outboxes overflow; whose pipe is wider is found
            # dead by a ping.
            closed, grew_s = 0.0, began_s
            while self._now_s() < began_s + _CLOSED_S and (not closed or self._now_s() < grew_s + _MORE_S):
                await asyncio.sleep(_LOOK_S)
                more = await self._watch.slow_readers() - closed_before
                if more > closed:
                    closed, grew_s = more, self._now_s()
            await asyncio.sleep(fault.pause_s)
            stopped_s = self._now_s() - began_s
            crowd.go_on()
            # They find out one after the other that their connections are gone.
            await asyncio.sleep(_FIND_OUT_S)
            await self._until_settled([crowd])
            note = f"{closed:.0f} of {clients} closed as slow readers"
            self.made.append(Suffered(fault.kind, began_s, fault.target, round(stopped_s, 2), None, note))

    async def _busy(self) -> float:
        """Wait for work, but not for long; how much there is."""
        until_s = self._now_s() + _BUSY_S
        while True:
            work = await self._watch.work() or 0.0
            if work >= _BUSY or self._now_s() > until_s:
                return work
            await asyncio.sleep(_LOOK_S / 5)

    async def _readiness(self, ready: bool, patience_s: float) -> float | None:
        until_s = self._now_s() + patience_s
        while self._now_s() < until_s:
            self._gateway.check()
            if await self._watch.engine_ready() is ready:
                return self._now_s()
            await asyncio.sleep(_LOOK_S)
        return None

    async def _until_settled(self, crowds: Sequence[CrowdProcess]) -> float | None:
        """When nearly all clients are connected again: some are away for reasons of their own."""
        until_s = self._now_s() + _MENDED_S
        while self._now_s() < until_s:
            statuses = [crowd.status for crowd in crowds if crowd.status is not None]
            clients = sum(status.clients for status in statuses)
            connected = sum(status.connected for status in statuses)
            if len(statuses) == len(crowds) and connected >= clients * 0.95:
                return self._now_s()
            await asyncio.sleep(_LOOK_S)
        return None

    @staticmethod
    def _since(began_s: float, mended_s: float | None) -> float | None:
        return None if mended_s is None else round(mended_s - began_s, 2)
