"""Reads lines, or bytes, from a file or pipe as they arrive.

Knows: file descriptors, encodings. Must not know: what is in them.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import AsyncGenerator


async def lines_of(fd: int) -> AsyncGenerator[str, None]:
    """The lines of a file or pipe as they arrive, without line ends. Bytes that are not UTF-8 are replaced."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    async for chunk in chunks_of(fd):
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        for line in lines:
            yield line
    if rest := rest + decoder.decode(b"", True):
        yield rest


async def chunks_of(fd: int) -> AsyncGenerator[bytes, None]:
    """The bytes of a file or pipe as they arrive."""
    while chunk := await _read(fd):
        yield chunk


async def _read(fd: int) -> bytes:
    # Not in a thread: Ctrl-C cannot interrupt a thread that is blocked in a read.
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(fd, readable.set)
    except PermissionError:  # a regular file, whose reads do not block
        return os.read(fd, 65_536)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 65_536)
