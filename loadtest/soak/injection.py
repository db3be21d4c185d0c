"""Makes the planned faults, one after the other or at the same time, and notes how long the repair took.

Knows: processes to signal and clients to break. Must not know: when what is planned (`faults`), what is lost.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from loadtest.results import LoadtestError
from loadtest.soak.crowd import CrowdProcess
from loadtest.soak.faults import Fault, FaultKind
from loadtest.soak.gateway import ServedGateway
from loadtest.soak.records import Record, Stopped

_LOOK_S, _LISTEN_S = 0.25, 0.02

# An engine that dies is noticed at once; one that is stopped after `engine.stall_s`, once something is to be done.
_NOTICED_S = {FaultKind.ENGINE_KILL: 15.0, FaultKind.ENGINE_STOP: 60.0}
_REPAIRED_S = 240.0

_SIGNALS = {
    FaultKind.ENGINE_KILL: signal.SIGKILL,
    FaultKind.ENGINE_STOP: signal.SIGSTOP,
    FaultKind.WORKER_KILL: signal.SIGKILL,
    FaultKind.WORKER_STOP: signal.SIGSTOP,
}

# A client that reads nothing overflows its outbox, or answers no ping.
_CLOSED_S = 130.0
_MORE_S = 20.0
_FIND_OUT_S = 5.0

# A worker is to be there before it is signalled. One that was killed is started again, and its clients come back.
_WORKER_S, _BACK_S = 30.0, 120.0

# An engine is killed while it has something to do, if that is to be had.
_BUSY, _BUSY_S = 3, 10.0


class Silence:
    """The longest time in which no client received anything."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def listen(self, received: Callable[[], int]) -> None:
        """Until cancelled."""
        heard, since_s = received(), time.monotonic()
        while True:
            await asyncio.sleep(_LISTEN_S)
            now, now_s = received(), time.monotonic()
            self.longest_s = max(self.longest_s, now_s - since_s)
            if now != heard:
                heard, since_s = now, now_s


@dataclass(eq=False)
class Injection:
    """The faults of one soak, from the plan to the repair."""

    gateway: ServedGateway
    crowds: Sequence[CrowdProcess]
    began_s: float
    # Takes the records of those that no client can tell of.
    say: Callable[[Record], None]
    # When the first final was accepted of those that were said after this time.
    accepted_since: Callable[[float], float | None]
    workers: int
    # How many captions and translations clients have received so far.
    received: Callable[[], int]
    # Every fault so far.
    made: list[Fault] = field(default_factory=list)
    # What happens to everybody happens one at a time.
    _everybody: asyncio.Lock = field(default_factory=asyncio.Lock)
    # So it is with workers and their store, at the same time.
    _processes: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def carry_out(self, planned: Sequence[Fault]) -> None:
        """Until all are made and repaired. Raises `LoadtestError` when something cannot be repaired."""
        of_everybody = {
            FaultKind.ENGINE_KILL: self._break_engine,
            FaultKind.ENGINE_STOP: self._break_engine,
            FaultKind.RESTART: self._restart,
            FaultKind.CLIENT_STOP: self._stop_clients,
            FaultKind.WORKER_KILL: self._break_worker,
            FaultKind.WORKER_STOP: self._break_worker,
            FaultKind.RELOAD: self._reload,
            FaultKind.STORE_KILL: self._kill_store,
        }
        async with asyncio.TaskGroup() as tasks:
            for fault in planned:
                await asyncio.sleep(max(fault.began_s - self._now_s(), 0.0))
                if (make := of_everybody.get(fault.kind)) is not None:
                    tasks.create_task(make(fault))
                else:
                    # The client that suffers is in process 0, which is never stopped.
                    self.crowds[0].tell(fault)
                    self.made.append(replace(fault, began_s=self._now_s()))

    def _now_s(self) -> float:
        return round(time.monotonic() - self.began_s, 2)

    def _made(self, fault: Fault, began_s: float, back: bool, note: str) -> None:
        """back: whether all is well again, now."""
        recovered_s = round(self._now_s() - began_s - fault.pause_s, 2) if back else None
        self.made.append(replace(fault, began_s=began_s, recovered_s=recovered_s, note=note))

    @asynccontextmanager
    async def _silence(self) -> AsyncIterator[Silence]:
        async with asyncio.TaskGroup() as tasks:
            silence = Silence()
            listening = tasks.create_task(silence.listen(self.received))
            yield silence
            listening.cancel()

    async def _break_engine(self, fault: Fault) -> None:
        async with self._everybody:
            await self._until(self._busy, _BUSY_S)
            note = f"{await self.gateway.work() or 0:.0f} translations under way"
            began_s = self._now_s()
            if not self.gateway.signal_engine(_SIGNALS[fault.kind]):
                raise LoadtestError("There is no such process below the gateway.")
            noticed = await self._until(self._engine_gone, _NOTICED_S[fault.kind])
            if not noticed:
                note += "; the gateway did not notice"
            elif not await self._until(self._engine_ready, _REPAIRED_S):
                raise LoadtestError(f"The engine was not ready within {_REPAIRED_S:g} s after it was lost.")
            self._made(fault, began_s, noticed, note)

    async def _restart(self, fault: Fault) -> None:
        async with self._everybody, self._processes, self._silence() as silence:
            began_s = self._now_s()
            status = await self.gateway.stop()
            left_s = self._now_s()
            await self.gateway.start(_REPAIRED_S)
            ready_s = self._now_s()
            back = await self._until(self._connected_since(ready_s), _REPAIRED_S)
            note = (
                f"left after {left_s - began_s:.1f} s with status {status}, ready {ready_s - left_s:.1f} s later"
                f"{', with the same engine' * self.gateway.went_on}; no captions for {silence.longest_s:.1f} s"
            )
            self._made(fault, began_s, back, note)

    async def _reload(self, fault: Fault) -> None:
        async with self._processes:
            await self._all_serve()
            async with self._silence() as silence:
                began_s, before = self._now_s(), self.gateway.reload()

                async def replaced() -> bool:
                    return not self.gateway.left_of(before)

                back = await self._until(replaced, _REPAIRED_S) and await self._until(self._serve, _BACK_S)
                back = back and await self._until(self._connected_since(self._now_s()), _BACK_S)
                self._made(fault, began_s, back, f"no captions for {silence.longest_s:.1f} s")

    async def _break_worker(self, fault: Fault) -> None:
        async with self._processes:
            await self._all_serve()
            began_s = self._now_s()
            if not self.gateway.signal_worker(fault.target, _SIGNALS[fault.kind]):
                raise LoadtestError(f"There is no worker {fault.target} below the gateway.")
            await asyncio.sleep(fault.pause_s)
            if fault.pause_s:
                self.gateway.signal_worker(fault.target, signal.SIGCONT)
            connected = self._connected_since(self._now_s())
            back = await self._until(self._serve, _BACK_S) and await self._until(connected, _BACK_S)
            self._made(fault, began_s, back, f"worker {fault.target}")

    async def _kill_store(self, fault: Fault) -> None:
        async with self._processes:
            began_at, began_s = time.monotonic(), self._now_s()
            if not self.gateway.signal_store(signal.SIGKILL):
                raise LoadtestError("There is no store below the gateway.")

            async def accepted() -> bool:
                return self.accepted_since(began_at) is not None

            await self._until(accepted, _BACK_S)
            accepted_at = self.accepted_since(began_at)
            recovered_s = None if accepted_at is None else round(accepted_at - began_at, 2)
            self.made.append(replace(fault, began_s=began_s, recovered_s=recovered_s))

    async def _all_serve(self) -> None:
        if not await self._until(self._serve, _WORKER_S):
            raise LoadtestError(f"Not all {self.workers} workers serve after {_WORKER_S:g} s.")

    async def _serve(self) -> bool:
        return await self.gateway.serving() == self.workers

    async def _stop_clients(self, fault: Fault) -> None:
        async with self._everybody:
            [crowd] = [each for each in self.crowds if each.number == fault.target]
            clients = crowd.status.clients if crowd.status is not None else 0
            closed_before = await self._slow_readers()
            began_s = self._now_s()
            self.say(Stopped(time.monotonic(), f"process {crowd.number}", crowd.seats))
            crowd.stop()
            # Slow readers are closed one after the other as their outboxes overflow; whose pipe is wider is found
            # dead by a ping.
            closed, grew_s = 0.0, began_s
            while self._now_s() < began_s + _CLOSED_S and (not closed or self._now_s() < grew_s + _MORE_S):
                await asyncio.sleep(_LOOK_S)
                more = await self._slow_readers() - closed_before
                if more > closed:
                    closed, grew_s = more, self._now_s()
            await asyncio.sleep(fault.pause_s)
            stopped_s = round(self._now_s() - began_s, 2)
            crowd.go_on()
            # They find out one after the other that their connections are gone.
            await asyncio.sleep(_FIND_OUT_S)
            note = f"{closed:.0f} of {clients} closed as slow readers"
            self.made.append(replace(fault, began_s=began_s, pause_s=stopped_s, note=note))

    async def _slow_readers(self) -> float:
        return await self.gateway.metric("gateway_errors_total", code="slow_reader") or 0.0

    async def _until(self, so: Callable[[], Awaitable[bool]], patience_s: float) -> bool:
        """Wait until something is so; false when that is not seen."""
        until_s = self._now_s() + patience_s
        while self._now_s() < until_s:
            self.gateway.check()
            if await so():
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    async def _busy(self) -> bool:
        return (await self.gateway.work() or 0) >= _BUSY

    async def _engine_gone(self) -> bool:
        return bool(await self.gateway.engines_lost())

    async def _engine_ready(self) -> bool:
        return await self.gateway.engines_lost() == 0

    def _connected_since(self, since_s: float) -> Callable[[], Awaitable[bool]]:
        """Whether nearly all clients are connected, of those that are never stopped and not away by themselves."""

        async def so() -> bool:
            status = self.crowds[0].status
            if status is None or status.at < self.began_s + since_s:
                return False
            return status.connected >= (status.clients - status.away) * 0.95

        return so
