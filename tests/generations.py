"""Generations of an engine, read event by event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import partial
from typing import Any

from gateway.domain.engine import OnEvent, TokenEvent, TranslationRequest
from gateway.domain.ports import Engine


def events_of(engine: Engine, request: TranslationRequest) -> AsyncGenerator[TokenEvent, None]:
    """What an engine makes of a request; closing it ends the generation."""
    return reading(partial(engine.generate, request))


async def reading(generate: Callable[[OnEvent], Coroutine[Any, Any, None]]) -> AsyncGenerator[TokenEvent, None]:
    """The events of a generation, which begins when the first is asked for; then its error, if there is one."""
    events: asyncio.Queue[TokenEvent | None] = asyncio.Queue()
    task = asyncio.ensure_future(generate(events.put_nowait))
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])
