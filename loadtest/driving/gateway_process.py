"""A gateway as a process of its own beside a process that holds its engine: started, ready, ended.

Knows: `multiprocessing`, how a gateway uses an engine of another process. Must not know: which engine it is, what
else it is asked for, who the gateway's clients are.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import signal
import socket
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import uvloop
from setproctitle import setproctitle

from gateway.config import Settings
from gateway.domain.errors import GatewayError
from gateway.domain.ports import Engine
from gateway.engines.host import main
from gateway.engines.host.orphans import exit_with_parent
from gateway.engines.host.proxy import Host, HostedEngine
from gateway.runtime import settle_interpreter
from loadtest.results import LoadtestError, first_error
from loadtest.serving import serving
from loadtest.systems.metrics import get
from loadtest.systems.processes import BESIDE_ITS_ENGINE

__all__ = ["gateway_process"]

# Between looks at whether it is ready; for its answer.
_LOOK_S, _ANSWER_S = 0.1, 2.0

# For the gateway to close its connections; then it is killed.
_END_S = 10.0


@contextlib.asynccontextmanager
async def gateway_process(engine: Engine, settings: Settings, port: int) -> AsyncIterator[None]:
    """A gateway on this loopback port, ready, with an engine that has started and that runs on in this process.

    It is gone when the block ends. Raises `LoadtestError` when it cannot be served.
    """
    started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    started.set_result(None)
    ours, theirs = socket.socketpair()
    try:
        # It returns when the other end is closed: with the gateway's process, or because that did not start.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(main.serve(ours, engine, started), name="engine host")
            async with _process(settings, port, theirs):
                yield
    except ExceptionGroup as errors:
        # The group wraps what its block raises.
        raise first_error(errors) from None


@contextlib.asynccontextmanager
async def _process(settings: Settings, port: int, sock: socket.socket) -> AsyncIterator[None]:
    spawn = multiprocessing.get_context("spawn")
    failure, tell = spawn.Pipe(duplex=False)
    with sock, failure, tell:
        process = spawn.Process(target=_run, args=(settings, port, sock, tell), name="gateway", daemon=True)
        process.start()
        sock.close()
        try:
            await _ready(process, failure, port)
            yield
        finally:
            process.terminate()
            try:
                await asyncio.to_thread(process.join, _END_S)
            finally:
                # Nothing happens to one that has ended.
                process.kill()


async def _ready(process: BaseProcess, failure: Connection, port: int) -> None:
    """Wait until `/readyz` says so. Raises `LoadtestError` when the process ends instead."""
    while True:
        status, _ = await asyncio.to_thread(get, f"http://127.0.0.1:{port}/readyz", _ANSWER_S)
        if not process.is_alive():
            why = failure.recv() if failure.poll() else f"Its process ended with status {process.exitcode}."
            raise LoadtestError(f"The gateway cannot be served: {why}")
        if status == 200:
            return
        await asyncio.sleep(_LOOK_S)


# ---------------------------------------------------------------- in the gateway's process


def _run(settings: Settings, port: int, sock: socket.socket, failure: Connection) -> None:
    exit_with_parent()
    setproctitle(BESIDE_ITS_ENGINE)
    settle_interpreter()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, port, sock))
    except* (GatewayError, LoadtestError) as errors:
        failure.send(str(first_error(errors)))
    except* asyncio.CancelledError:
        pass  # whoever started us is leaving


async def _serve(settings: Settings, port: int, sock: socket.socket) -> None:
    """Until SIGTERM."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 -- a coroutine runs in one
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    async with serving(settings, lambda _line: None, port, build=lambda: HostedEngine(lambda: Host(sock, None))):
        await loop.create_future()
