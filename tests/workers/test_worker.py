"""What a worker does in its own process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.config import Settings
from gateway.domain.engine import EngineHealth, EngineState
from gateway.engines.host.channel import Channel
from gateway.engines.host.messages import GetMetrics, Metrics
from gateway.engines.simulated import Script, SimulatedEngine
from gateway.server.http.readiness import Whole
from gateway.server.uvicorn_server import reserve
from gateway.workers.messages import (
    PROTOCOLS,
    Drain,
    EngineIs,
    Refused,
    Report,
    Serves,
    ToParent,
)
from gateway.workers.worker import _Worker
from tests.engines.host.workers import shared_engine
from tests.patience import until
from tests.processes import alive, descendants, gateway_process
from tests.redis_server import shared_server
from tests.workers.gateways import settings, taken_port


class FarEnd:
    """What a parent hears from a worker in the test's own event loop."""

    def __init__(self, given: Settings, protocols: tuple[int, ...] = PROTOCOLS) -> None:
        self.heard: list[ToParent] = []
        self._some = asyncio.Event()
        self.channel: Channel[Any, ToParent] = Channel(ToParent, self._hear, self._some.set)
        ours, theirs = socket.socketpair()
        self._ours = ours
        self._sockets, listening = socket.socketpair()
        self.serving = asyncio.create_task(_Worker(given, protocols, listening).serve(theirs))
        self.serving.add_done_callback(lambda _: self._sockets.close())

    def _hear(self, message: ToParent) -> None:
        self.heard.append(message)
        self._some.set()

    async def open(self) -> None:
        await self.channel.open(self._ours)

    async def serves(self) -> socket.socket:
        """Once it serves: the socket at which it listens, which this process has, too."""
        await self.next(Serves)
        _, (descriptor,), _, _ = socket.recv_fds(self._sockets, 1, 1)
        return socket.socket(fileno=descriptor)

    async def next(self, kind: type[ToParent]) -> ToParent:
        """The first message of a kind that was not taken yet."""
        while not (found := [message for message in self.heard if isinstance(message, kind)]):
            self._some.clear()
            await self._some.wait()
        self.heard.remove(found[0])
        return found[0]


@contextlib.asynccontextmanager
async def with_an_engine() -> AsyncIterator[tuple[FarEnd, int]]:
    """A worker whose engine is ready, and its port."""
    with reserve("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        async with shared_engine(SimulatedEngine(Script())) as shared:
            end = FarEnd(replace(settings(), port=port))
            await end.open()
            end.channel.say(EngineIs(EngineHealth(EngineState.READY), str(shared.path)))
            yield end, port
            end.channel.close()


async def test_worker_serves_once_its_engine_is_ready() -> None:
    async with with_an_engine() as (end, port):
        listening = await end.serves()
        end.channel.say(Whole(3, 4, absent="Worker 2 does not serve now."))
        assert await end.next(Report) == Report(0, 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = (await reader.readuntil(b"}")).decode()
        assert '"status":"ready","reason":"Worker 2 does not serve now.","running":3,"waiting":4' in answer
        # Those of all are the parent's to give.
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        question = await end.next(GetMetrics)
        assert isinstance(question, GetMetrics)
        end.channel.say(Metrics(question.number, b"of all"))
        assert (await reader.read()).endswith(b"of all")
        writer.close()
        await writer.wait_closed()
        end.channel.say(GetMetrics(7, ["gateway_sessions"]))
        own = await end.next(Metrics)
        assert isinstance(own, Metrics)
        assert own.number == 7
        assert b"\ngateway_sessions " in own.page
        end.channel.say(Drain())
        await end.serving
        # Whoever comes now comes to another worker.
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        listening.close()


async def test_worker_whose_socket_was_shut_listens_again() -> None:
    async with with_an_engine() as (end, port):
        first = await end.serves()
        first.shutdown(socket.SHUT_RDWR)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        end.channel.say(Whole(0, 0))
        second = await end.serves()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b" 200 " in await reader.read()
        writer.close()
        end.channel.say(Whole(0, 0))
        end.channel.say(Drain())
        await end.serving
        assert Serves() not in end.heard
        for each in (first, second):
            each.close()


async def test_worker_that_drains_answers_its_parent(caplog: pytest.LogCaptureFixture) -> None:
    async with with_an_engine() as (end, port):
        listening = await end.serves()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        question = await end.next(GetMetrics)
        assert isinstance(question, GetMetrics)
        end.channel.say(Drain())
        await until(lambda: not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
        end.channel.say(Whole(0, 0, draining=True))
        assert await end.next(Report) == Report(0, 0)
        assert "had no effect" not in caplog.text
        end.channel.say(Metrics(question.number, b"of all"))
        assert (await reader.read()).endswith(b"of all")
        writer.close()
        await writer.wait_closed()
        await end.serving
        listening.close()


async def test_drain_before_serving_leaves_the_store() -> None:
    before = shared_server().connections()
    end = FarEnd(settings())
    await end.open()
    # For commands and for pushes; of others that end there may be some.
    await until(lambda: len(shared_server().connections() - before) == 2)
    end.channel.say(Drain())
    end.channel.say(Drain())
    await end.serving
    assert Serves() not in end.heard
    await until(lambda: shared_server().connections() <= before)
    end.channel.close()


async def test_one_that_loses_its_parent_ends() -> None:
    async with with_an_engine() as (end, _):
        await end.next(Serves)
        end.channel.close()
        await end.serving


async def test_one_that_cannot_listen_says_so() -> None:
    before = shared_server().connections()
    with taken_port() as taken:
        end = FarEnd(replace(settings(), port=taken.getsockname()[1]))
        await end.open()
        end.channel.say(EngineIs(EngineHealth(EngineState.STARTING)))
        refused = await end.next(Refused)
        assert isinstance(refused, Refused)
        assert "is taken" in refused.sentence
        # It does not hang up before that is heard.
        assert not (await asyncio.wait([end.serving], timeout=0.1))[0]
        end.channel.say(Drain())
        await end.serving
        await until(lambda: shared_server().connections() <= before)
        end.channel.close()


async def test_worker_refuses_a_parent_of_another_protocol() -> None:
    end = FarEnd(settings(), protocols=(1, 2))
    await end.open()
    # As version 1 of the protocol says where the engine is.
    end.channel.say(["engine_is", {"state": "ready", "reason": ""}, "/run/engine-1.sock", "", None])
    refused = await end.next(Refused)
    assert isinstance(refused, Refused)
    assert "speaks to its parent in another way" in refused.sentence
    end.channel.say(["engine_is", {"state": "ready", "reason": ""}, "/run/engine-1.sock", "", None])
    assert not (await asyncio.wait([end.serving], timeout=0.1))[0]
    end.channel.say(Drain())
    await end.serving
    end.channel.close()


@pytest.mark.slow
async def test_everything_ends_with_a_killed_parent(tmp_path: Path) -> None:
    arguments = ("--engine", "simulated", "--workers", "2", "--state-dir", str(tmp_path))
    with gateway_process(*arguments) as gateway:
        gateway.ready()
        started = descendants(gateway.process.pid)
        assert len(started) >= 4
        assert await asyncio.to_thread(gateway.end, signal.SIGKILL) == -9
        assert not any(map(alive, started))
