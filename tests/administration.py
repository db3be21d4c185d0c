"""A gateway with its administration, on real sockets, and an operator."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from gateway.administration import admin_app
from gateway.config import Settings
from gateway.identity import key_file
from gateway.identity.key_file import KeyFile
from gateway.server.uvicorn_server import SideServer, listen
from gateway.serving import admin_config
from tests.gateways import Running, running
from tests.over_http import NO_TLS


class Operator:
    """Somebody with a key of the administration: `client` asks with it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "admin.json"
        kept, self.key = key_file.new_admin_key()
        self.id = kept.id
        key_file.save(self.path, KeyFile(admin=(kept,)))

    def settings(self, settings: Settings | None = None) -> Settings:
        return replace(settings or Settings(), admin_port=0, admin_keys_file=str(self.path))

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@contextlib.asynccontextmanager
async def administered(
    operator: Operator, settings: Settings | None = None, **options: Any
) -> AsyncIterator[tuple[Running, httpx.AsyncClient]]:
    """A gateway, and the operator's client of its admin address."""
    async with running(operator.settings(settings), **options) as gateway:
        sock = listen("127.0.0.1", 0)
        server = SideServer(admin_config(admin_app(gateway.gateway)))
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        try:
            async with httpx.AsyncClient(
                base_url=url,
                timeout=None,  # noqa: S113
                verify=NO_TLS,
                headers=operator.bearer,
            ) as client:
                yield gateway, client
        finally:
            server.stop()
            await serving
            sock.close()
