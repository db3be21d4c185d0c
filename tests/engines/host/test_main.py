"""The far end: what the process that hosts an engine does when it is spoken to, and when nobody is there."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from functools import partial

import pytest

from gateway.domain.errors import EngineFailed
from gateway.engines.host import processes
from gateway.engines.host.channel import Channel
from gateway.engines.host.main import Role, _Host
from gateway.engines.host.messages import Aborted, Generate, Stop, ToGateway, ToHost
from gateway.engines.host.proxy import HostedEngine, start_host
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from tests.engines.host.pairs import Faulty, Pair, hosted_engine, prompt_of, request, text_of
from tests.generations import events_of


async def test_unknown_error_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with hosted_engine(Faulty()) as pair:
        await pair.near.start()
        with pytest.raises(EngineFailed, match="ZeroDivisionError"):
            await text_of(pair.near, "a text", "odd")
        assert "a generation failed" in caplog.text


async def test_end_of_gateway_ends_its_generations() -> None:
    rules = (Rule(match="endless", repeat=100_000),)
    pair = Pair(SimulatedEngine(Script(first_token_s=0, rules=rules)))
    serving = asyncio.create_task(pair.serve())
    await pair.near.start()
    await anext(events_of(pair.near, request("endless")))
    assert pair.far.capacity().running == 1
    assert pair.near._channel is not None
    pair.near._channel.close()
    await serving
    assert pair.far.capacity().running == 0
    await pair.near.stop()


async def test_late_host_says_so() -> None:
    async with hosted_engine(SimulatedEngine()) as pair:
        await pair.near.start()
        # Both are in this process.
        time.sleep(1.0)  # noqa: ASYNC251 -- a host that has too much to do
        while pair.near.capacity().lag_s < 0.3:
            await asyncio.sleep(0.01)
        while pair.near.capacity().lag_s > 0.3:
            await asyncio.sleep(0.01)


async def test_abort_before_start_leaves_nothing() -> None:
    async with hosted_engine(SimulatedEngine()) as pair:
        await pair.near.start()
        ours, theirs = socket.socketpair()
        host = _Host(pair.far, asyncio.get_running_loop().create_future(), Role())
        serving = asyncio.create_task(host.serve(theirs))
        speaker: Channel[ToHost, ToGateway] = Channel(ToGateway, lambda _: None, lambda: None)
        await speaker.open(ours)
        for number in range(10):
            # They arrive together.
            speaker.say(Generate(number, prompt_of("a text", Script())))
            speaker.say(Aborted(number))
        speaker.say(Stop())
        await serving
        await asyncio.sleep(0)
        assert host.gateway is not None
        assert host.gateway.generations == {}
        assert host.gateway._tasks == set()
        await host.sharing.close()
        speaker.close()
        assert pair.far.capacity().running == 0


async def test_host_survives_signals_to_the_group() -> None:
    engine = HostedEngine(partial(start_host, partial(SimulatedEngine, Script())))
    before = processes.children()
    starting = asyncio.create_task(engine.start())
    while not (host := processes.children() - before):
        await asyncio.sleep(0)
    (process,) = host
    # From the first moment on; the group is this test's own only once the host has left it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(process.pid, number)
    await starting
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(process.pid, number)
    assert os.getpgid(process.pid) == process.pid
    assert await text_of(engine, "still there") == "[de] still there"
    await engine.stop()
    assert processes.children() == before
