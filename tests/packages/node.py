"""Runs JavaScript in Node, where the npm package is installed."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from scripts.npm_package import NODE


@asynccontextmanager
async def node(folder: Path, program: str, *arguments: str) -> AsyncIterator[Process]:
    """A program that runs in a folder until it ends, or the block does."""
    with NamedTemporaryFile("w", suffix=".mjs", dir=folder) as file:
        file.write(program)
        file.flush()
        process = await asyncio.create_subprocess_exec(
            NODE, file.name, *arguments, cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def output_of(folder: Path, program: str, *arguments: str) -> list[str]:
    """What a program prints until it ends, which has to be without an error."""
    async with node(folder, program, *arguments) as process:
        out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (0, ""), out.decode()
    return out.decode().splitlines()
