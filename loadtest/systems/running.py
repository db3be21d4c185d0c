"""Systems that take requests, and several of them at once.

Knows: where a system is and what it runs with, context managers. Must not know: how one is started, or what is
measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from loadtest.results import LoadtestError, first_error
from loadtest.trial.values import Address

_Started = TypeVar("_Started")


@dataclass(frozen=True)
class Running:
    """A system that takes requests."""

    # For tables.
    name: str
    address: Address
    # What matters of its configuration.
    settings: dict[str, Any]
    # The process that answers; None where that is a client process itself, or belongs to another user.
    pid: int | None = None
    # Where it shows Prometheus' text.
    metrics_url: str | None = None
    # The process in which a gateway's engine runs, where that is not below the gateway's.
    host: int | None = None


@asynccontextmanager
async def together(*systems: AbstractAsyncContextManager[_Started]) -> AsyncIterator[list[_Started]]:
    """All of them, ready, in the order given; gone when the block ends, or when one of them cannot start.

    They start at the same time; on a GPU their memory has to be shared out (`share`).
    """
    loop = asyncio.get_running_loop()
    ready: list[asyncio.Future[_Started]] = [loop.create_future() for _ in systems]
    leave = asyncio.Event()

    async def hold(system: AbstractAsyncContextManager[_Started], known: asyncio.Future[_Started]) -> None:
        # Entered and left in one task, as task groups and time limits inside ask for.
        async with system as started:
            known.set_result(started)
            await leave.wait()

    try:
        async with asyncio.TaskGroup() as tasks:
            for system, known in zip(systems, ready, strict=True):
                tasks.create_task(hold(system, known))
            yield [await known for known in ready]
            leave.set()
    except BaseExceptionGroup as errors:
        # The group wraps what its block raises too.
        raise first_error(errors) from None


@asynccontextmanager
async def attempted(system: AbstractAsyncContextManager[_Started]) -> AsyncIterator[_Started | LoadtestError]:
    """The system, or why it could not start."""
    async with AsyncExitStack() as stack:
        outcome: _Started | LoadtestError
        try:
            outcome = await stack.enter_async_context(system)
        except LoadtestError as error:
            outcome = error
        yield outcome


def standing(
    names: Iterable[str], started: Iterable[_Started | LoadtestError], fails: Callable[[str, str], None]
) -> dict[str, _Started]:
    """Those that could start, by name; `fails` is told the names of the others, and why."""
    found: dict[str, _Started] = {}
    for name, each in zip(names, started, strict=True):
        if isinstance(each, LoadtestError):
            fails(name, str(each))
        else:
            found[name] = each
    return found
