"""An engine without a gateway: the client process builds it and calls it straight.

Where a gateway is measured on the same engine, this process is to it what hosts its engine elsewhere.
Knows: vLLM's AsyncLLM as the gateway builds it; of the gateway's own code, only how prompts are encoded is run for
a line. The simulated engine, too, where the settings name it. Must not know: when lines are said.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.app import engine_options
from gateway.config import Settings
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import GatewayError
from gateway.domain.ports import Engine
from gateway.engines.host import main
from gateway.engines.simulated import SimulatedEngine
from gateway.engines.vllm.engine import VllmEngine
from gateway.runtime import settle_interpreter
from loadtest.driving.clients import Client, Share
from loadtest.driving.clients.requests import Answer, Requests
from loadtest.driving.tally import Tally
from loadtest.results import LoadtestError, first_error
from loadtest.systems.gateway import gateway_process
from loadtest.systems.prompting import gateway_settings
from loadtest.trial.values import Closed, EngineInProcess, Line, Open

__all__ = ["client"]

# How long an engine may go on after its last line, and how often it is looked at meanwhile.
_IDLE_S = 10.0
_LOOK_S = 0.02


def _request(line: Line, id: str) -> TranslationRequest:
    return TranslationRequest(id=id, text=line.text, source=line.source, target=line.targets[0])


class _Text:
    """The text of one translation as it grows."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._parts: list[str] = []
        self.tokens = 0

    def add(self, text: str, tokens: int) -> None:
        self._parts.append(text)
        self.tokens += tokens
        # There is something to read.
        if self._answer.first_s is None and text.strip():
            self._answer.first_s = time.monotonic()

    def end(self) -> None:
        self._answer.end("".join(self._parts).strip(), self.tokens)


class _VllmClient(Requests):
    """raw: the engine's own parts, as `VllmEngine.raw` gives them."""

    def __init__(self, raw: Any, load: Closed | Open) -> None:
        super().__init__(load)
        self._raw = raw
        self._ids = itertools.count(1)

    async def reset_prefix_cache(self) -> None:
        until_s = time.monotonic() + _IDLE_S
        # It refuses while anything is generated; what was asked for last leaves the engine after its last token.
        while not await self._reset():
            if time.monotonic() > until_s:
                raise LoadtestError("The engine does not empty its prefix cache: it is still generating.")
            await asyncio.sleep(_LOOK_S)

    async def _reset(self) -> bool:
        try:
            return bool(await self._raw.llm.reset_prefix_cache())
        except Exception as error:
            raise LoadtestError(f"The engine cannot empty its prefix cache ({type(error).__name__}).") from error

    async def open_for(self, lines: Sequence[Line]) -> None:
        pass

    async def translate(self, line: Line, answer: Answer, _tally: Tally) -> None:
        raw, id = self._raw, f"direct-{next(self._ids)}"
        answer.sent_s = time.monotonic()
        try:
            # A gateway, too, writes the prompt once the line has come.
            prompt = raw.encoder.encode(_request(line, id))
            text = _Text(answer)
            sampling = raw.sampling(prompt.max_tokens)
            async with aclosing(raw.llm.generate(raw.tokens_input(prompt.ids), sampling, id)) as outputs:
                async for output in outputs:
                    completion = output.outputs[0]
                    text.add(completion.text, len(completion.token_ids))
            text.end()
        except GatewayError as error:
            answer.failed = error.code
        except Exception as error:
            # vLLM's own errors are of many kinds; a dead engine translates nothing more.
            if raw.llm.errored:
                raise LoadtestError(f"The engine died ({type(error).__name__}).") from error
            answer.failed = f"{type(error).__name__}: {error}"


class _SimulatedClient(Requests):
    def __init__(self, engine: Engine, load: Closed | Open) -> None:
        super().__init__(load)
        self._engine = engine
        self._ids = itertools.count(1)

    async def open_for(self, lines: Sequence[Line]) -> None:
        pass

    async def translate(self, line: Line, answer: Answer, _tally: Tally) -> None:
        answer.sent_s = time.monotonic()
        try:
            text = _Text(answer)
            async with aclosing(self._engine.generate(_request(line, f"direct-{next(self._ids)}"))) as events:
                async for event in events:
                    text.add(event.text, event.tokens)
            text.end()
        except GatewayError as error:
            answer.failed = error.code


@asynccontextmanager
async def client(address: EngineInProcess, load: Closed | Open, _share: Share) -> AsyncIterator[Client]:
    """A client that holds the engine. Raises `LoadtestError` when it cannot be built."""
    settings = gateway_settings(address.settings)
    async with _engine(settings) as engine, _beside(engine, address):
        if isinstance(engine, VllmEngine):
            yield _VllmClient(engine.raw(), load)
        else:
            yield _SimulatedClient(engine, load)


@asynccontextmanager
async def _beside(engine: Engine, address: EngineInProcess) -> AsyncIterator[None]:
    """The gateway that is served on the same engine, where one is asked for; it is gone when the block ends."""
    if address.port is None:
        yield
        return
    settle_interpreter()
    started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    started.set_result(None)
    ours, theirs = socket.socketpair()
    try:
        with theirs, tempfile.TemporaryDirectory(prefix="loadtest-gateway-") as folder:
            # It returns when the other end is closed: with the gateway's process, or because that did not start.
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(main.serve(ours, engine, started), name="engine host")
                server = gateway_process(address.settings, Path(folder), port=address.port, engine=theirs)
                try:
                    await server.start()
                    theirs.close()
                    await server.ready("", lambda _line: None)
                    yield
                finally:
                    theirs.close()
                    await server.end()
    except ExceptionGroup as errors:
        # The group wraps what its block raises.
        raise first_error(errors) from None


@asynccontextmanager
async def _engine(settings: Settings) -> AsyncIterator[Engine]:
    simulated = settings.engine.kind == "simulated"
    engine = SimulatedEngine(settings.engine.script) if simulated else VllmEngine(engine_options(settings))
    try:
        try:
            await engine.start()
        except GatewayError as error:
            raise LoadtestError(error.message) from None
        yield engine
    finally:
        await engine.stop()
