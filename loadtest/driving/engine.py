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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.config import Settings
from gateway.domain.engine import TranslationRequest
from gateway.domain.errors import GatewayError
from gateway.engine import engine_options
from gateway.engines.host import main
from gateway.engines.prompting.completions import Completions
from gateway.engines.simulated import SimulatedEngine
from gateway.engines.vllm.engine import VllmEngine
from gateway.runtime import settle_interpreter
from loadtest.driving.exchange import Client, Share
from loadtest.driving.requests import Answer, Requests, Tally
from loadtest.results import LoadtestError, first_error
from loadtest.systems.gateway import gateway_process
from loadtest.systems.prompting import gateway_settings
from loadtest.trial.values import Closed, EngineInProcess, Line, Open

# How long an engine may go on after its last line, and how often it is looked at meanwhile.
_IDLE_S = 10.0
_LOOK_S = 0.02


_Generate = Callable[[TranslationRequest, Callable[[str, int], None]], Awaitable[None]]
"""Takes whom to tell of new text, and how many tokens it has, as they are generated."""


class _EngineClient(Requests):
    """Calls an engine that is in this process."""

    def __init__(self, generate: _Generate, load: Closed | Open) -> None:
        super().__init__(load)
        self._generate = generate
        self._ids = itertools.count(1)

    async def open_for(self, lines: Sequence[Line]) -> None:
        pass

    async def translate(self, line: Line, answer: Answer, _tally: Tally) -> None:
        id, target = f"direct-{next(self._ids)}", line.targets[0]
        request = TranslationRequest(id=id, text=line.text, source=line.source, target=target)
        parts: list[tuple[str, int]] = []

        def on_piece(text: str, tokens: int) -> None:
            parts.append((text, tokens))
            answer.show(text)

        answer.sent_s = time.monotonic()
        try:
            await self._generate(request, on_piece)
            answer.end("".join(text for text, _ in parts).strip(), sum(tokens for _, tokens in parts))
        except GatewayError as error:
            answer.failed = error.code


class _VllmClient(_EngineClient):
    """raw: the engine's own parts, as `VllmEngine.raw` gives them."""

    def __init__(self, raw: Any, load: Closed | Open) -> None:
        super().__init__(self._stream, load)
        self._raw = raw

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

    async def _stream(self, request: TranslationRequest, on_piece: Callable[[str, int], None]) -> None:
        raw = self._raw
        # A gateway, too, writes the prompt once the line has come.
        prompt = await raw.encoder.encode(request)
        tokens = raw.tokens_input(prompt.ids)
        async with aclosing(raw.llm.generate(tokens, raw.sampling(prompt.max_tokens), request.id)) as outputs:
            async for output in outputs:
                completion = output.outputs[0]
                on_piece(completion.text, len(completion.token_ids))

    async def translate(self, line: Line, answer: Answer, tally: Tally) -> None:
        try:
            await super().translate(line, answer, tally)
        except Exception as error:
            # vLLM's own errors are of many kinds; a dead engine translates nothing more.
            if self._raw.llm.errored:
                raise LoadtestError(f"The engine died ({type(error).__name__}).") from error
            answer.failed = f"{type(error).__name__}: {error}"


@asynccontextmanager
async def client(address: EngineInProcess, load: Closed | Open, _share: Share) -> AsyncIterator[Client]:
    """A client that holds the engine. Raises `LoadtestError` when it cannot be built."""
    settings = gateway_settings(address.settings)
    async with _engine(settings) as engine, _beside(engine, address):
        if isinstance(engine, VllmEngine):
            yield _VllmClient(engine.raw(), load)
        else:

            async def generate(request: TranslationRequest, on_piece: Callable[[str, int], None]) -> None:
                await engine.generate(request, lambda event: on_piece(event.text, event.tokens))

            yield _EngineClient(generate, load)


@asynccontextmanager
async def _beside(engine: Completions, address: EngineInProcess) -> AsyncIterator[None]:
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
                tasks.create_task(main.serve(ours, engine, started, main.Role()), name="engine host")
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
async def _engine(settings: Settings) -> AsyncIterator[Completions]:
    simulated = settings.engine.kind == "simulated"
    engine: Completions
    engine = SimulatedEngine(settings.engine.script) if simulated else VllmEngine(engine_options(settings))
    try:
        try:
            await engine.start()
        except GatewayError as error:
            raise LoadtestError(error.message) from None
        yield engine
    finally:
        await engine.stop()
