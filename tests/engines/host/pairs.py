"""A hosted engine and its host over a real socket, both in one process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gateway.domain.engine import TranslationRequest
from gateway.domain.ports import Engine
from gateway.engines.host.main import Role, serve
from gateway.engines.host.proxy import Host, HostedEngine
from gateway.engines.prompting.completions import News, OnNews, Prompt
from gateway.engines.simulated import Script, SimulatedEngine, Speech
from tests.generations import events_of


def request(text: str, id: str = "1") -> TranslationRequest:
    return TranslationRequest(id=id, text=text, source="en", target="de")


def prompt_of(text: str, script: Script, **more: Any) -> Prompt:
    """What a simulated engine is asked for a text."""
    asked: list[Prompt] = []

    async def complete(prompt: Prompt, _on_news: OnNews) -> None:
        asked.append(replace(prompt, **more))

    with suppress(StopIteration):
        Speech(script).translate(request(text), complete, lambda _: None).send(None)
    return asked[0]


async def text_of(engine: Engine, text: str, id: str = "1") -> str:
    return "".join([event.text async for event in events_of(engine, request(text, id))])


class Pair:
    """near: what the gateway has; far: the engine itself. Closing the socket is the death of the process.

    path: where workers find the engine, if anywhere.
    """

    def __init__(self, far: SimulatedEngine, path: Path | None = None) -> None:
        self.far = far
        self.sock, self._theirs = socket.socketpair()
        self.near = HostedEngine(lambda: Host(self.sock, None))
        self._role = Role(path)

    async def serve(self) -> None:
        starting = asyncio.ensure_future(self.far.start())
        try:
            await serve(self._theirs, self.far, starting, self._role)
        finally:
            starting.cancel()


@asynccontextmanager
async def hosted_engine(far: SimulatedEngine) -> AsyncIterator[Pair]:
    pair = Pair(far)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(pair.serve())
        yield pair
        await pair.near.stop()
        await serving


class Faulty(SimulatedEngine):
    """Fails in ways that no engine should. failing: how it fails to start."""

    failing: Exception | None = None

    async def start(self) -> None:
        if self.failing is not None:
            raise self.failing
        await super().start()

    async def complete(self, prompt: Prompt, on_news: OnNews) -> None:
        if prompt.id == "odd":
            on_news(News([0]))
            raise ZeroDivisionError
        await super().complete(prompt, on_news)

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        if names == ["never"]:
            await asyncio.Event().wait()
        return f"asked for {','.join(names)}".encode()
