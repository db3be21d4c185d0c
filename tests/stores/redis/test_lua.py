"""The scripts: which there are, and what the server calls them by."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gateway.stores.redis import lua
from gateway.stores.redis.connection import Connection
from tests.redis_server import shared_server


def test_every_file_is_loaded() -> None:
    scripts = Path(str(files(lua.__package__) / "scripts"))
    others = [path for path in scripts.rglob("*.lua") if path.name not in ("common.lua", "shared.lua")]
    assert len(lua.load_all()) == len(others)


async def test_the_server_calls_a_script_by_the_same_digest() -> None:
    connection = Connection(shared_server().url)
    await connection.connect()
    await connection.send(lua.load_all())
    digests = [(await connection.receive()).decode() for _ in lua.load_all()]
    await connection.close()
    assert lua.sha("accept") == digests[0]
    assert lua.sha("session_store/close") == digests[-1]
