"""`gateway engines`, `admin` and `read --transcript`: ask a gateway over HTTP, and print what it answers.

Knows: the addresses of the administration, what it and `/readyz` answer, how a transcript is printed.
Must not know: how flags are spelled (`cli.flags`), how a session runs, the formats of transcripts (the gateway
writes them).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request

import msgspec
from msgspec import Struct

from gateway.cli.sessions import EXIT_FAILED, MeetingOptions, note
from gateway.cli.terminal.drawing import escaped, printable
from gateway.cli.tokens import token_now
from gateway.client import GatewayUnreachable, TranscriptRefused
from gateway.client.over_http import fetch, http_address
from gateway.client.transcript import read_transcript, transcript_url
from gateway.domain.errors import UnknownMeeting
from gateway.domain.roles import DEFAULT_TENANT

# Longest wait for an answer.
_READINESS_S, _TRANSCRIPT_S = 10.0, 30.0
# Everybody's sessions are read for some answers of the administration.
_ADMIN_S = 60.0


# ---------------------------------------------------------------- administration


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
        answer = fetch(request, _ADMIN_S)
    except HTTPError as refused:
        with refused:
            note(_detail(refused.read()) or f"It answers with status {refused.code}.")
        return EXIT_FAILED
    if as_json:
        print(answer.decode())
        return 0
    try:
        content = msgspec.json.decode(answer)
        for line in _LINES[action](content):
            print(line)
        if action == "end" and not content["sessions"]:
            note(f"Nobody was in the meeting {names[0]!r} of tenant {tenant or DEFAULT_TENANT}.")
            return EXIT_FAILED
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
    """A line with the names of the fields and one for each item, with tabs between; a note if there is none."""

    def lines(answer: Mapping[str, Any]) -> list[str]:
        if not answer[list_name]:
            note(f"There are no {list_name}.")
            return []
        return [
            "\t".join(fields),
            *("\t".join(_shown(each[field]) for field in fields) for each in answer[list_name]),
        ]

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


# ---------------------------------------------------------------- engines


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
    answer = _ask_readiness(http_address(url))
    for engine in answer.engines or [_Engine("default", answer.status, answer.reason)]:
        print("\t".join(printable(part) for part in (engine.name, engine.status, engine.reason) if part))
    all_ready = all(engine.status == "ready" for engine in answer.engines)
    return 0 if answer.status == "ready" and all_ready else EXIT_FAILED


def _ask_readiness(address: str) -> _Readiness:
    try:
        try:
            body = fetch(Request(f"{address}/readyz"), _READINESS_S)  # noqa: S310 -- its scheme is http or https
        except HTTPError as not_ready:
            with not_ready:
                body = not_ready.read()
        return msgspec.json.decode(body, type=_Readiness)
    except (HTTPException, OSError, msgspec.DecodeError, UnicodeError) as error:
        raise GatewayUnreachable(f"Nothing usable answers at {address}: {error}.") from None


# ---------------------------------------------------------------- transcripts


def print_transcript(options: MeetingOptions, langs: Sequence[str], format: str) -> int:
    """Print the transcript. Returns the exit status. Raises `ClientError`."""
    url = transcript_url(options.url, options.meeting, format, langs)
    try:
        answer = read_transcript(url, token_now(options.token), _TRANSCRIPT_S)
    except TranscriptRefused as refused:
        if refused.code != UnknownMeeting.code:
            raise
        sentence = f"There is no transcript of {options.meeting}: nothing was said there, or it has expired."
        raise TranscriptRefused(refused.status, refused.code, sentence) from None
    lines = answer.decode("utf-8", "replace").removesuffix("\n").split("\n")
    clean = escaped if format == "json" else printable
    sys.stdout.write("".join(f"{clean(line.rstrip())}\n" for line in lines))
    return 0
