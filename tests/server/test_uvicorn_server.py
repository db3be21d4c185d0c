"""How the server is set up beneath the connections."""

from __future__ import annotations

import socket

import pytest

from gateway.domain.errors import StartupError
from gateway.server.uvicorn_server import listen, reserve
from tests.gateways import running


async def test_tokens_do_not_wait_for_acknowledgements_of_earlier_ones() -> None:
    async with running() as gateway, gateway.peer():
        (connection,) = gateway.server.server_state.connections
        served: socket.socket = connection.transport.get_extra_info("socket")
        assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_reserved_port_is_for_those_sharing_it() -> None:
    with reserve("127.0.0.1", 0) as reserved:
        port = reserved.getsockname()[1]
        # Nobody listens yet, and still nobody else gets it.
        for taking in (reserve, listen):
            with pytest.raises(StartupError, match=f"Port {port} on 127.0.0.1 is taken"):
                taking("127.0.0.1", port)
        with listen("127.0.0.1", port, shared=True), listen("127.0.0.1", port, shared=True):
            with pytest.raises(StartupError, match="is taken"):
                reserve("127.0.0.1", port)
            with socket.create_connection(("127.0.0.1", port)):
                pass
