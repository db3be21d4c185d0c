"""`gateway admin`: asks a running gateway at its admin address, and prints what it answers.

Knows: the addresses of the administration. Must not know: how flags are spelled (`cli.flags`), sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request

import msgspec

from gateway.cli.notes import EXIT_FAILED, note
from gateway.cli.terminal.drawing import printable
from gateway.client import GatewayUnreachable
from gateway.client.over_http import fetch, http_address
from gateway.domain.roles import DEFAULT_TENANT

# Everybody's sessions are read for some of it.
_ANSWER_S = 60.0


def administer(
    action: str, names: Sequence[str], *, tenant: str | None, url: str, key: str, as_json: bool = False
) -> int:
    """Do it and print the answer. tenant: None: of lists every tenant. Returns the exit status.

    Raises `ClientError` if no gateway answers.
    """
    method, path, body = _request(action, [quote(name, safe="") for name in names], tenant)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = Request(  # noqa: S310 -- its scheme is http or https
        f"{http_address(url)}/admin/{path}",
        method=method,
        headers=headers,
        data=None if body is None else msgspec.json.encode(body),
    )
    try:
        answer = fetch(request, _ANSWER_S)
    except HTTPError as refused:
        with refused:
            note(_detail(refused.read()) or f"It answers with status {refused.code}.")
        return EXIT_FAILED
    if as_json:
        print(answer.decode())
        return 0
    try:
        for line in _LINES[action](msgspec.json.decode(answer)):
            print(line)
    except (msgspec.DecodeError, LookupError, TypeError, UnicodeError) as error:
        raise GatewayUnreachable(f"Nothing usable answers at {url}: {error!r}.") from None
    return 0


def _request(action: str, names: Sequence[str], tenant: str | None) -> tuple[str, str, Any]:
    """Method, path and body. names: as parts of a path."""
    only = "" if tenant is None else f"?tenant={quote(tenant, safe='')}"
    meeting = "/".join(["meetings", quote(tenant or DEFAULT_TENANT, safe=""), *names[:1]])
    match action, names:
        case "end", _:
            return "DELETE", meeting, None
        case "disconnect", [_, participant]:
            return "DELETE", f"{meeting}/participants/{participant}", None
        case "erase", _:
            return "DELETE", f"{meeting}/transcript", None
        case "sessions", [_]:
            return "GET", meeting, None
        case "drain-lane", [name]:
            return "POST", f"lanes/{name}/drain", None
        case "drain-worker", [number]:
            return "POST", f"workers/{number}/drain", None
        case "test-webhook", [name]:
            return "POST", f"webhooks/{name}/test", None
        case "log-level", [level]:
            return "PUT", action, {"level": level}
        case _:
            return "GET", f"{action}{only if action in ('meetings', 'sessions') else ''}", None


def _detail(body: bytes) -> str:
    """The sentence of a problem; empty if it is none."""
    try:
        return printable(str(msgspec.json.decode(body)["detail"]))
    except (msgspec.DecodeError, LookupError, TypeError, UnicodeError):
        return ""


def _table(list_name: str, *fields: str) -> Callable[[Mapping[str, Any]], list[str]]:
    def lines(answer: Mapping[str, Any]) -> list[str]:
        return ["\t".join(_shown(each[field]) for field in fields) for each in answer[list_name]]

    return lines


def _shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            return ",".join(map(_shown, value)) or "-"
        case _:
            return printable(str(value)) or "-"


_LANES = _table("lanes", "name", "status", "running", "waiting", "seats", "reason")
_WORKERS = _table("workers", "number", "pid", "status", "running", "waiting")

# Action → the lines that its answer is printed as.
_LINES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "meetings": _table("meetings", "tenant", "meeting", "connected", "away", "publications", "bytes", "newest_at"),
    "sessions": _table("sessions", "tenant", "meeting", "participant", "name", "speaks", "reads", "away", "sub"),
    "lanes": _LANES,
    "workers": _WORKERS,
    "end": lambda answer: [f"{answer['sessions']} sessions ended"],
    "disconnect": lambda answer: [f"{answer['sessions']} sessions ended"],
    "erase": lambda answer: ["erased" if answer["erased"] else "nothing was kept"],
    "drain-lane": _LANES,
    "drain-worker": _WORKERS,
    "webhooks": _table("webhooks", "name", "host", "waiting", "oldest_at", "tried_at", "said", "gone"),
    "test-webhook": lambda answer: [printable(answer["said"])],
    "log-level": lambda answer: [str(answer["level"])],
}
