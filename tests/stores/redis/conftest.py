"""A real Redis, whole, behind a network that fails, or one that may be killed."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.stores.redis import log, meter, session_store
from gateway.stores.redis.store import RedisStore
from tests.redis_server import RedisServer, server_to_kill, shared_server
from tests.stores.redis.proxy import Proxy, proxy


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests whose store never goes away wait for it, however slow it is."""
    if not {"network", "server"} & set(request.fixturenames):
        for module in (log, meter, session_store):
            monkeypatch.setattr(module, "_SHORT_PATIENCE_S", 3_600.0)
        defaults = RedisStore.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "patience_s", 3_600.0)


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
    with server_to_kill() as running:
        yield running
