"""Which Host headers are this gateway's: names it was given, addresses, and nothing else."""

from __future__ import annotations

import httpx
import pytest
from starlette.responses import PlainTextResponse

from gateway.server.guard.hosts import AllowedHosts, host_name, is_loopback


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost.:8000", "localhost"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]:8000", "::1"),
        ("[::1]", "::1"),
        ("::1", None),
        ("", None),
        (":8000", None),
        ("a:b", None),
        ("a b", None),
        ("a@b", None),
        ("a,b", None),
        ("a/b", None),
        ("[::1", None),
        ("bücher.example", None),
    ],
)
def test_host_header_is_a_name_with_optional_port(header: str, name: str | None) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("a", False),
    ],
)
def test_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) == local


async def status(host: str | list[str], *names: str, addresses: bool = False, path: str = "/") -> int:
    app = AllowedHosts(PlainTextResponse("in"), names=names, addresses=addresses)
    hosts = [host] if isinstance(host, str) else host
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        request = client.build_request("GET", path, headers=[("Host", each) for each in hosts])
        return (await client.send(request)).status_code


async def test_on_loopback_only_its_names_and_addresses_lead_here() -> None:
    for own in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000", "127.0.0.1"):
        assert await status(own) == 200
    for foreign in ("evil.com", "evil.com:8000", "localhost.evil.com", "192.168.1.5:8000", "127.0.0.1.evil.com"):
        assert await status(foreign) == 421


async def test_elsewhere_every_address_does_and_names_that_were_given() -> None:
    for own in ("192.168.1.5:8000", "[fe80::1]", "localhost", "Meet.example.com", "a.b.example.org"):
        assert await status(own, "meet.example.com", "*.example.org", addresses=True) == 200
    for foreign in ("evil.com", "example.org", "xmeet.example.com", "evil-example.org"):
        assert await status(foreign, "meet.example.com", "*.example.org", addresses=True) == 421
    assert await status("evil.com", "*") == 200


async def test_a_request_has_one_valid_host() -> None:
    assert await status(["localhost", "evil.com"]) == 400
    assert await status(["localhost", "localhost"]) == 400
    assert await status("a b", "*") == 400


async def test_a_health_check_comes_under_any_name() -> None:
    for path in ("/healthz", "/readyz"):
        assert await status("gateway.internal:8000", path=path) == 200
    assert await status("gateway.internal:8000", path="/healthz/x") == 421
