"""Ctrl-C in the middle of a command."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from gateway.cli.terminal.interrupts import Interruptible, run


@pytest.fixture(autouse=True)
def _ctrl_c() -> Iterator[None]:
    """A shell that started the tests in its background had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_running_callbacks() -> None:
    seen: list[bool] = []

    async def work() -> None:
        waiting = asyncio.get_running_loop().create_future()

        def answer() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            seen.append(waiting.done())

        asyncio.get_running_loop().call_soon(answer)
        await waiting

    with pytest.raises(KeyboardInterrupt):
        run(work())
    assert seen == [False]


def test_second_ctrl_c_does_not_wait() -> None:
    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run(work())


def test_what_was_not_interrupted_returns() -> None:
    assert run(asyncio.sleep(0, "done")) == "done"


async def test_ctrl_c_ends_the_block_and_nothing_else() -> None:
    with Interruptible() as ctrl_c:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
    assert ctrl_c.interrupted
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_other_cancellation_is_not_swallowed() -> None:
    inside = asyncio.Event()

    async def work() -> None:
        with Interruptible():
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_ignored_ctrl_c_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interruptible():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
