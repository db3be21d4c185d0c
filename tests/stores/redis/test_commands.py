"""Commands in pipelines, on a connection that the test answers for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.domain.errors import LogUnavailable
from gateway.stores.redis import commands as redis_commands
from gateway.stores.redis.commands import Commands
from gateway.stores.redis.connection import Command, Full, Lost, NotLoaded, Refused
from tests.patience import until


class Wire:
    """A connection to a store that answers when the test says so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._answers: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = False

    async def connect(self) -> None:
        if self._store.down:
            raise Lost("no such file")

    async def send(self, commands: Sequence[Command]) -> None:
        self._store.pipelines.append([str(command[0]) for command in commands])
        for command in commands:
            self._answers.put_nowait(self._store.does(str(command[0])))

    async def receive(self) -> Any:
        await self._store.answering.wait()
        answer = await self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        self.closed = True


class Store:
    def __init__(self) -> None:
        self.pipelines: list[list[str]] = []
        self.answering = asyncio.Event()
        self.answering.set()
        self.down = False
        self.wires: list[Wire] = []
        self.does: Callable[[str], Any] = str.upper

    def connect(self) -> Wire:
        self.wires.append(Wire(self))
        return self.wires[-1]


@asynccontextmanager
async def commands(store: Store, prepare: Sequence[Command] = (), **options: Any) -> AsyncIterator[Commands]:
    running = Commands(store.connect, prepare, **options)
    running.start()
    try:
        yield running
    finally:
        await running.close()
    assert all(wire.closed for wire in store.wires)


async def test_a_command_has_its_own_answer() -> None:
    store = Store()
    async with commands(store) as running:
        assert await asyncio.gather(*(running.run(name) for name in "abc")) == ["A", "B", "C"]


async def test_commands_during_a_pipeline_go_with_the_next() -> None:
    store = Store()
    store.answering.clear()
    async with commands(store, most=3) as running, asyncio.TaskGroup() as tasks:
        tasks.create_task(running.run("a"))
        while not store.pipelines:
            await asyncio.sleep(0)
        for name in "bcdef":
            tasks.create_task(running.run(name))
        await asyncio.sleep(0)
        assert store.pipelines == [["a"]]
        store.answering.set()
    assert store.pipelines == [["a"], ["b", "c", "d"], ["e", "f"]]


async def test_unanswered_commands_are_sent_again_in_order() -> None:
    store = Store()
    lost = iter([Lost("the connection ended")])
    store.does = lambda name: next(lost, "B") if name == "b" else name.upper()
    async with commands(store) as running:
        assert await asyncio.gather(*(running.run(name) for name in "abc")) == ["A", "B", "C"]
    assert store.pipelines == [["a", "b", "c"], ["b", "c"]]
    assert len(store.wires) == 2


async def test_a_connection_without_answers_is_given_up() -> None:
    store = Store()
    store.answering.clear()
    async with commands(store, answer_s=0.02) as running, asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(running.run("a"))
        while len(store.pipelines) < 2:
            await asyncio.sleep(0.001)
        assert store.wires[0].closed
        store.answering.set()
    assert answer.result() == "A"


async def test_patience_has_an_end() -> None:
    store = Store()
    store.down = True
    async with commands(store, patience_s=0.05) as running:
        with pytest.raises(LogUnavailable) as error:
            await running.run("a")
        assert error.value.retry_after_ms
        store.down = False
        assert await running.run("b", patience_s=60) == "B"
    assert store.pipelines == [["b"]], "what was given up before it was sent is not sent"


async def test_what_a_cancelled_caller_wanted_is_sent_once() -> None:
    store = Store()
    async with commands(store) as running:
        task = asyncio.create_task(running.run("a"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert await running.run("b") == "B"
    assert [name for pipeline in store.pipelines for name in pipeline] == ["a", "b"]


async def test_scripts_are_loaded_first_and_after_a_loss() -> None:
    store = Store()
    lost = iter([NotLoaded("NOSCRIPT")])
    store.does = lambda name: next(lost, "A") if name == "a" else name.upper()
    async with commands(store, prepare=[("load",)]) as running:
        assert await asyncio.gather(*map(running.run, "ab")) == ["A", "B"]
    assert store.pipelines == [["load"], ["a", "b"], ["load"], ["a"]]


async def test_full_store_refuses_and_others_go_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store()
    store.does = lambda name: name.upper() if name == "b" else Full(f"OOM command not allowed. script: {name}")

    async def refused(*names: str) -> None:
        for name in names:
            with pytest.raises(LogUnavailable, match="full"):
                await running.run(name)

    async with commands(store, address="redis://one") as running:
        await refused("a", "c")
        assert await running.run("b") == "B"
        # What the runbook sends an operator to look for, once; and again when it is full some other day.
        said = "the store redis://one refuses a command: OOM"
        assert caplog.messages == [said]
        monkeypatch.setattr(redis_commands, "_TELL_AGAIN_S", 0.0)
        await refused("a")
        assert caplog.messages == [said, said]


async def test_a_command_that_is_wrong_is_not_tried_again() -> None:
    store = Store()
    store.does = lambda name: Refused("ERR unknown command")
    async with commands(store) as running:
        with pytest.raises(LogUnavailable, match="refuses"):
            await running.run("a")
    assert store.pipelines == [["a"]]


async def test_too_much_that_waits_is_refused() -> None:
    store = Store()
    store.down = True
    async with commands(store, most_waiting=1) as running:
        waiting = asyncio.create_task(running.run("a"))
        await asyncio.sleep(0)
        with pytest.raises(LogUnavailable):
            await running.run("b")
    with pytest.raises(LogUnavailable):
        await waiting


async def test_after_the_end_there_is_no_store() -> None:
    async with commands(Store()) as running:
        pass
    with pytest.raises(LogUnavailable):
        await running.run("a")


async def test_operators_see_whether_the_store_answers() -> None:
    store = Store()
    async with commands(store) as running:
        await running.run("ONE")
        assert running.is_answered
        assert running.answered_s > 0
        store.down = True
        store.does = lambda _: Lost("gone")
        with pytest.raises(LogUnavailable):
            await running.run("TWO", patience_s=0.05)
        assert not running.is_answered
        store.down, store.does = False, str.upper
        assert await running.run("THREE") == "THREE"
        await until(lambda: running.is_answered)
