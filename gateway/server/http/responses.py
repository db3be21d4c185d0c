"""The common part of all HTTP addresses: methods, JSON answers, and errors as problems.

Knows: endpoints by method, and the headers of answers. Must not know: what an endpoint does.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway import metrics
from gateway.domain.errors import GatewayError
from gateway.server.guard.identity import challenge, note_why
from gateway.server.http import bodies
from gateway.server.http.bodies import Problem

_log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[ASGIApp]]


class StatusError(Exception):
    """A refusal that only HTTP has, by its status; `bodies.HTTP_STATUSES` says what it means."""

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


class Resource:
    """One address: an endpoint per method; other methods get a problem. GET also serves HEAD.

    A `GatewayError` or `StatusError` raised by an endpoint or by its answer becomes a problem, or what a subclass
    makes of it.
    """

    def __init__(self, **endpoints: Endpoint) -> None:
        self._endpoints = endpoints
        if "GET" in endpoints:
            self._endpoints["HEAD"] = endpoints["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
            await answer(scope, receive, send)
        except ClientDisconnect:
            return
        except (GatewayError, StatusError) as error:
            note_why(scope, error)
            await self.refusal(error)(scope, receive, send)

    def refusal(self, error: GatewayError | StatusError) -> Response:
        """How an error is answered."""
        if isinstance(error, StatusError):
            return problem_response(bodies.status_problem(error.status, error.detail), error.headers)
        headers = challenge(error.http_status) | retry_after(error)
        return problem_response(bodies.problem(error), headers)

    async def _answer(self, request: Request) -> ASGIApp:
        if not self._endpoints:
            raise StatusError(HTTPStatus.NOT_FOUND, "There is nothing at this address; see /openapi.json.")
        endpoint = self._endpoints.get(request.method)
        if endpoint is None:
            allowed = ", ".join(sorted(self._endpoints))
            detail = f"{request.method} is not allowed here; {allowed} is."
            raise StatusError(HTTPStatus.METHOD_NOT_ALLOWED, detail, {"Allow": allowed})
        try:
            return await endpoint(request)
        except (GatewayError, StatusError, ClientDisconnect):
            raise
        except Exception:
            # Without its address, which may have the id of a meeting.
            _log.exception("a request failed (%s)", request.method)
            raise GatewayError("The gateway failed; this is a bug of the gateway.") from None


def json_response(value: Any, status: int = 200) -> Response:
    """A JSON answer from a struct, or from any value that msgspec can encode."""
    return Response(
        msgspec.json.encode(value), status, {"Cache-Control": "no-store"}, media_type="application/json"
    )


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """A problem as an answer. It is counted in the error metrics."""
    metrics.ERRORS.labels(problem.code).inc()
    return Response(
        msgspec.json.encode(problem),
        problem.status,
        {"Cache-Control": "no-store", **(headers or {})},
        media_type="application/problem+json",
    )


def retry_after(error: GatewayError) -> dict[str, str]:
    """The header that says when to try again, where that may help."""
    if not error.retryable:
        return {}
    return {"Retry-After": str(max(1, math.ceil((error.retry_after_ms or 0) / 1000)))}
