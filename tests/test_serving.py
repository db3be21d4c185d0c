"""What a gateway that starts says of itself."""

from __future__ import annotations

import socket

import pytest

from gateway.server.uvicorn_server import listen
from gateway.serving import page_address
from tests.processes import gateway_process


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
    ],
)
def test_the_address_that_is_shown_can_be_opened(host: str, shown: str) -> None:
    if ":" in host and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with listen(host, 0) as sock:
        port = sock.getsockname()[1]
        assert page_address(sock) == f"http://{shown}:{port}"
        with socket.create_connection((shown.strip("[]"), port), timeout=5):
            pass


def test_a_gateway_on_every_address_names_one_to_open() -> None:
    with gateway_process("--engine", "simulated", "--host", "0.0.0.0") as gateway:
        gateway.ready()
        first, second, *_ = gateway.said.splitlines()
        port = gateway.port
        assert gateway.end() == 0
    assert first == (f"Loading the engine; the page is at http://127.0.0.1:{port} already and says how far it is.")
    assert second == "Others reach it too, at every address of this machine."
    assert f"Ready: http://127.0.0.1:{port}" in gateway.said


def test_a_gateway_on_loopback_says_nothing_of_others() -> None:
    with gateway_process("--engine", "simulated") as gateway:
        gateway.ready()
        assert gateway.end() == 0
    assert "Others" not in gateway.said
