"""Drives the Python client in the conformance kit (docs/write-a-client.md).

Reads commands as lines of JSON from stdin, does them with the client, and prints what the client gives it.

    gateway conformance -- python examples/conformance/driver.py
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from gateway.client import ClientError, ClientSession, connect


def show(event: object) -> None:
    print(msgspec.json.encode(event).decode(), flush=True)


async def show_all(session: ClientSession) -> None:
    try:
        async for event in session:
            show(event)
    finally:
        show({"type": "closed"})


def token_source(tokens: list[str]) -> Callable[[], str] | None:
    # Each is asked for once; the last one again and again.
    return (lambda: tokens.pop(0) if len(tokens) > 1 else tokens[0]) if tokens else None


async def carry_out(session: ClientSession) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        command: dict[str, Any] = json.loads(line)
        match command:
            case {"do": "partial", "id": id, "text": text}:
                await session.partial(text, id)
            case {"do": "final", "id": id, "text": text}:
                await session.final(text, id, replaces=command.get("replaces"))
            case {"do": "cancel", "id": id}:
                await session.cancel(id)
            case {"do": "update", "reads": reads}:
                await session.update(reads=reads)
            case {"do": "end"}:
                await session.end()


async def main() -> None:
    first: dict[str, Any] = json.loads(sys.stdin.readline())
    token = token_source(first.get("tokens", []))
    try:
        async with (
            connect(first["address"], token=token, **first["options"]) as session,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(carry_out(session))
            await show_all(session)
    except ClientError:
        show({"type": "closed"})


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except* ClientError:
        pass  # the session is over, which was shown
