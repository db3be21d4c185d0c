"""The gateway under test with workers: what is broken of it comes back, and all of it is watched."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from loadtest.soak.gateway import ServedGateway
from loadtest.soak.report import SoakPlan
from loadtest.soak.run import _settings_for
from tests.patience import PATIENCE_MS

pytestmark = pytest.mark.slow

# One that takes longer to start hangs.
_START_S = PATIENCE_MS / 1_000


async def until(so: Callable[[], Awaitable[bool]]) -> None:
    while not await so():
        await asyncio.sleep(0.02)


async def test_one_of_several_engines_is_killed(tmp_path: Path) -> None:
    settings = _settings_for(SoakPlan(engine="simulated", engines=2, workers=1), tmp_path)
    gateway = ServedGateway(settings, tmp_path, workers=1)

    async def restarts() -> list[float]:
        names = ("engine-1", "engine-2")
        return sorted([await gateway.metric("gateway_engine_restarts_total", engine=name) or 0 for name in names])

    async def restarted() -> bool:
        return await restarts() != [0, 0]

    async def none_lost() -> bool:
        return await gateway.engines_lost() == 0

    try:
        await gateway.start(_START_S)
        await until(none_lost)
        assert gateway.signal_engine(signal.SIGKILL)
        # It may be back before anybody looks.
        await until(restarted)
        await until(none_lost)
        assert await restarts() == [0, 1]
    finally:
        await gateway.end()


async def test_workers_store_and_engine_come_back(tmp_path: Path) -> None:
    gateway = ServedGateway({"engine": {"kind": "simulated"}}, tmp_path, workers=2)
    serving: dict[str, int] = {}

    async def all_serve() -> bool:
        serving["now"] = await gateway.serving()
        return serving["now"] == 2

    async def idle() -> bool:
        return await gateway.work() == 0

    try:
        await gateway.start(_START_S)
        await until(all_serve)
        assert all(mib > 0 for mib in gateway.memory_mib())
        # Again, if there is another one before anybody looks.
        while await all_serve():
            gateway.signal_worker(1, signal.SIGKILL)
        await until(all_serve)
        for break_it in (gateway.signal_store, gateway.signal_engine):
            assert break_it(signal.SIGKILL)
            while not break_it(signal.SIGCONT):  # there is another one
                await asyncio.sleep(0.02)
        # It does not answer while its store or its engine is being started again.
        await until(idle)
        assert await gateway.transcript("standup") is None
        assert not gateway.signal_worker(3, signal.SIGKILL)
        gateway.check()
        assert await gateway.stop() == 0
        assert gateway.memory_mib() == (0.0, 0.0, 0.0)
    finally:
        await gateway.end()
