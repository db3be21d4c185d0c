"""`gateway engines`: how each engine of a running gateway is.

Knows: what `/readyz` answers. Must not know: how flags are spelled (`cli.flags`), sessions.
"""

from __future__ import annotations

from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request

import msgspec
from msgspec import Struct

from gateway.cli.notes import EXIT_FAILED
from gateway.cli.terminal.drawing import printable
from gateway.client import GatewayUnreachable
from gateway.client.over_http import fetch, http_address

_ANSWER_S = 10.0


class _Engine(Struct):
    name: str
    status: str
    reason: str


class _Readiness(Struct):
    """The fields that are used of the answer."""

    status: str
    reason: str
    engines: list[_Engine] = []


def print_engines(url: str) -> int:
    """Print a line for each engine: its name, its status and, if it is not ready, why, with tabs between.

    Returns the exit status, which says whether all are ready. Raises `ClientError`.
    """
    answer = _ask(http_address(url))
    for engine in answer.engines or [_Engine("default", answer.status, answer.reason)]:
        print("\t".join(printable(part) for part in (engine.name, engine.status, engine.reason) if part))
    all_ready = all(engine.status == "ready" for engine in answer.engines)
    return 0 if answer.status == "ready" and all_ready else EXIT_FAILED


def _ask(address: str) -> _Readiness:
    try:
        try:
            body = fetch(Request(f"{address}/readyz"), _ANSWER_S)  # noqa: S310 -- its scheme is http or https
        except HTTPError as not_ready:
            with not_ready:
                body = not_ready.read()
        return msgspec.json.decode(body, type=_Readiness)
    except (HTTPException, OSError, msgspec.DecodeError, UnicodeError) as error:
        raise GatewayUnreachable(f"Nothing usable answers at {address}: {error}.") from None
