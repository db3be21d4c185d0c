"""A real Redis, whole, behind a network that fails, or one that may be killed."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.redis_server import RedisServer, new_folder, shared_server
from tests.stores.redis.proxy import Proxy, proxy


@pytest.fixture
def prefix() -> str:
    return f"{secrets.token_hex(4)}:"


@pytest.fixture
async def network(tmp_path: Path) -> AsyncIterator[Proxy]:
    """Between Ana's gateway and the store."""
    async with proxy(shared_server().socket, tmp_path) as running:
        yield running


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """One that may be killed."""
    folder = new_folder()
    server = RedisServer(folder)
    try:
        yield server.start()
    finally:
        server.kill()
        shutil.rmtree(folder)
