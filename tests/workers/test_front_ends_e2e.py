"""Workers whose engine has several front ends: each is at one of them, and their death is the engine's."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.config import Settings
from gateway.engines.simulated import Script
from tests.processes import alive, descendants
from tests.workers.gateways import Running, settings, stalling, workers

pytestmark = pytest.mark.slow


def divided(count: int, script: Script | None = None, **fields: float) -> Settings:
    given = settings(script, **fields)
    return replace(given, engine=replace(given.engine, front_ends=count))


def front_ends(gateway: Running) -> dict[str, int]:
    """Number → process."""
    names = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in descendants(gateway.host_pid)}
    found = {pid: re.match(r"gateway engine front end (\d+)", name) for pid, name in names.items()}
    return {match[1]: pid for pid, match in found.items() if match is not None}


async def test_each_worker_has_its_front_end_and_goes_on_when_one_dies() -> None:
    # No more than there are workers.
    async with workers(divided(3, stalling())) as gateway:
        # The counters are those of this process, in which other tests may have run.
        crashes = 'gateway_engine_restarts_total{engine="default",reason="crash"}'
        crashed = await gateway.metric(crashes)
        hosted = gateway.parent.engines.hosted[""]
        assert [path.suffix for path in hosted.shared_at] == [".1", ".2"]
        sessions = {number: await gateway.session(number) for number in (1, 2)}
        before = front_ends(gateway)
        assert [*before] == ["1", "2"]
        # Nobody needs the other's.
        os.kill(before["1"], signal.SIGSTOP)
        await sessions[2].say("first")
        await sessions[2].until("translation.final", utterance="first")
        os.kill(before["1"], signal.SIGCONT)

        for number, session in sessions.items():
            await session.say("a", "STALL two")
            await gateway.runs("default", number)

        gateway.next_engine_is_sound()
        os.kill(before["1"], signal.SIGKILL)
        for session in sessions.values():
            final = await session.until("translation.final", utterance="a")
            assert final["text"] == "[ja] STALL two"
        await gateway.ready()
        assert await gateway.metric(crashes) == crashed + 1
        after = front_ends(gateway)
        assert [*after] == ["1", "2"]
        assert not [pid for pid in before.values() if alive(pid)]
    assert not [pid for pid in after.values() if alive(pid)]


async def test_more_workers_than_front_ends_share_them() -> None:
    async with workers(divided(2), count=3) as gateway:
        for number in (1, 2, 3):
            session = await gateway.session(number)
            await session.say("a")
            assert (await session.until("translation.final"))["text"] == "[ja] good morning"


async def test_one_that_hangs_is_noticed_while_the_other_goes_on() -> None:
    async with workers(divided(2, stall_s=5)) as gateway:
        stalls = 'gateway_engine_restarts_total{engine="default",reason="stall"}'
        before, stalled = front_ends(gateway), await gateway.metric(stalls)
        session = await gateway.session(1)
        os.kill(before["2"], signal.SIGSTOP)
        # Something is translated at the other all the time.
        said = 0
        while await gateway.metric(stalls) == stalled:
            said += 1
            await session.say(f"u{said}", "good morning to you all")
            await session.until("translation.final", utterance=f"u{said}")
        await gateway.ready()
        assert not [pid for pid in before.values() if alive(pid)]
