"""What every address over HTTP has in common: methods, problems, HEAD."""

from __future__ import annotations

import pytest

from gateway import metrics
from tests.over_http import check_problem, serving


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "header"),
    [
        ("GET", "/v1/nothing", 404, "not_found", None),
        ("POST", "/v1/translate/", 404, "not_found", None),
        ("GET", "/v1/", 404, "not_found", None),
        ("GET", "/errors/nothing", 404, "not_found", None),
        ("GET", "/v1/translate", 405, "method_not_allowed", ("allow", "POST")),
        ("DELETE", "/v1/languages", 405, "method_not_allowed", ("allow", "GET, HEAD")),
        ("POST", "/readyz", 405, "method_not_allowed", ("allow", "GET, HEAD")),
        ("GET", "/v1/stream", 426, "upgrade_required", ("upgrade", "websocket")),
    ],
)
async def test_addresses_and_methods(
    method: str, path: str, status: int, code: str, header: tuple[str, str] | None
) -> None:
    async with serving() as (_, client):
        response = await client.request(method, path)
    check_problem(response, status, code)
    if header is not None:
        assert response.headers[header[0]] == header[1]


async def test_a_bug_in_the_gateway_is_a_problem_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(names: list[str]) -> bytes:
        raise ZeroDivisionError("secret")

    async with serving() as (_, client):
        monkeypatch.setattr(metrics, "exposition", broken)
        response = await client.get("/metrics")
    check_problem(response, 500, "internal")
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/healthz", "application/json"),
        ("/readyz", "application/json"),
        ("/v1/languages", "application/json"),
        ("/metrics", "text/plain"),
        ("/openapi.json", "application/json"),
        ("/asyncapi.json", "application/json"),
        ("/errors/overloaded", "application/json"),
    ],
)
async def test_head_goes_with_get(path: str, media_type: str) -> None:
    async with serving() as (_, client):
        got = await client.get(path)
        head = await client.head(path)
    assert (got.status_code, head.status_code) == (200, 200)
    assert got.headers["content-type"].startswith(media_type)
    assert got.content
    assert head.content == b""
    assert head.headers["content-type"] == got.headers["content-type"]
