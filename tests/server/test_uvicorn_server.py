"""How the server is set up beneath the connections."""

from __future__ import annotations

import socket

from tests.gateways import running


async def test_tokens_do_not_wait_for_acknowledgements_of_earlier_ones() -> None:
    async with running() as gateway, gateway.peer():
        (connection,) = gateway.server.server_state.connections
        served: socket.socket = connection.transport.get_extra_info("socket")
        assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
