"""What becomes of a request to a gateway over HTTP; answers are tested with the commands that ask for them."""

from __future__ import annotations

from urllib.request import Request

import pytest

from gateway.client import GatewayUnreachable
from gateway.client.over_http import fetch, http_address


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://localhost:8000", "http://localhost:8000"),
        ("https://meet.example.com", "https://meet.example.com"),
        ("ws://localhost:8000", "http://localhost:8000"),
        ("wss://meet.example.com/v1/stream", "https://meet.example.com"),
    ],
)
def test_the_address_is_that_of_the_stream_over_http(given: str, address: str) -> None:
    assert http_address(given) == address


def test_closed_port_is_explained(closed_port: int) -> None:
    address = f"http://127.0.0.1:{closed_port}"
    with pytest.raises(GatewayUnreachable, match=f"^No gateway answers at {address}: none runs there"):
        fetch(Request(f"{address}/readyz"), 10.0)  # noqa: S310 -- its scheme is http
