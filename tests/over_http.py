"""A gateway and an HTTP client of it; how a problem looks."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx

from tests.gateways import Running, running

# There is no TLS here. Left to itself, each client reads all certificates of the system first.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextlib.asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[tuple[Running, httpx.AsyncClient]]:
    async with (
        running(**options) as gateway,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{gateway.port}",
            timeout=None,  # noqa: S113
            verify=NO_TLS,
        ) as client,
    ):
        yield gateway, client


def check_problem(response: httpx.Response, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    problem: dict[str, Any] = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code), problem
    assert problem["field"] == field
    assert problem["title"]
    assert problem["detail"]
    return problem
