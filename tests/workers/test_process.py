"""One worker's process, as its parent sees it."""

from __future__ import annotations

import asyncio
import os
from multiprocessing import resource_tracker

import pytest
from msgspec.structs import replace

from gateway import __version__
from gateway.config import AuthSettings, Settings
from gateway.domain.engine import EngineHealth, EngineState
from gateway.engines.host.main import SIGNALS
from gateway.engines.host.messages import GetMetrics
from gateway.server.http.readiness import Whole
from gateway.server.uvicorn_server import reserve
from gateway.workers import process
from gateway.workers.messages import EngineIs
from gateway.workers.process import WorkerProcess
from tests.patience import until
from tests.processes import alive
from tests.workers.gateways import get, settings

pytestmark = pytest.mark.slow

LOADING = EngineIs(EngineHealth(EngineState.STARTING, "loading the weights"))


async def started(given: Settings, changes: list[bool] | None = None) -> WorkerProcess:
    changed = [] if changes is None else changes

    def ask(_worker: WorkerProcess, _question: GetMetrics) -> None:
        pytest.fail("nobody asks")

    worker = WorkerProcess(3, given, changed=lambda: changed.append(True), asked=ask)
    await worker.open()
    worker.say(LOADING)
    return worker


async def test_from_its_start_to_its_end() -> None:
    changes: list[bool] = []
    with reserve("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        worker = await started(replace(settings(), port=port), changes)
        assert not worker.available
        await worker.serves.wait()
        assert worker.available
        assert changes == [True]
        worker.unanswered = 5
        worker.say(Whole(0, 0))
        await until(lambda: worker.unanswered == 0)
        # It may be late, which is as if it had none.
        while not (page := await worker.metrics(["gateway_sessions"])):
            pass
        assert b"gateway_sessions 0.0" in page
        # A terminal's signals do not reach it, and if they or a supervisor's did, nothing would happen.
        assert os.getsid(worker.pid) == worker.pid
        for number in SIGNALS:
            os.kill(worker.pid, number)

        assert (await asyncio.to_thread(get, f"http://127.0.0.1:{port}/readyz"))[0] == 503
        worker.drain()
        assert not worker.available
        await worker.ended.wait()
        assert worker.ending == "with status 0"
        assert await worker.metrics([]) == b""


async def test_one_that_cannot_start_says_why_before_it_ends() -> None:
    worker = await started(replace(settings(), auth=AuthSettings(keys_file="/nowhere/keys.json")))
    await worker.ended.wait()
    assert worker.refused is not None
    assert "/nowhere/keys.json" in worker.refused
    assert not worker.serves.is_set()


async def test_worker_of_another_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PROTOCOLS", (0, 0))
    worker = await started(settings())
    await worker.ended.wait()
    assert worker.refused == f"version {__version__} speaks to its parent in another way: restart the gateway"
    assert not worker.serves.is_set()


async def test_one_that_has_ended_keeps_no_file_open() -> None:
    resource_tracker.ensure_running()
    before = set(os.listdir("/proc/self/fd"))
    worker = await started(settings())
    worker.kill()
    await worker.ended.wait()
    await until(lambda: set(os.listdir("/proc/self/fd")) <= before)
    assert worker.pid > 0


async def test_one_that_is_killed() -> None:
    worker = await started(settings())
    worker.kill()
    await worker.ended.wait()
    assert worker.ending == "by signal 9"
    assert worker.refused is None
    assert not alive(worker.pid)
    # The pid may be another's by now.
    worker.drain()
