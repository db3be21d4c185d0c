"""`gateway read --transcript`: prints a meeting's transcript, as text, subtitles or JSON.

Knows: the address of a transcript, and how to explain failures.
Must not know: how flags are spelled (`cli.flags`), the formats of transcripts (the gateway writes them).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request

import msgspec
from msgspec import Struct

from gateway.cli.meeting import MeetingOptions
from gateway.cli.over_http import fetch, http_address
from gateway.cli.terminal.drawing import escaped, printable
from gateway.cli.tokens import token_now
from gateway.client import GatewayUnreachable, SessionRefused
from gateway.client.connection import not_authorized
from gateway.protocol.messages import Error

__all__ = ["print_transcript", "transcript_url"]

_ANSWER_S = 30.0


class _Problem(Struct):
    """The fields that are used of an error over HTTP."""

    code: str
    detail: str


def transcript_url(options: MeetingOptions, langs: Sequence[str], format: str) -> str:
    """The URL of the transcript in these languages. Raises `InvalidAddress`."""
    query = f"?{urlencode({'lang': ','.join(langs)}, safe=',')}" if langs else ""
    return f"{http_address(options.url)}/v1/meetings/{options.meeting}/transcript.{format}{query}"


def print_transcript(options: MeetingOptions, langs: Sequence[str], format: str) -> int:
    """Print the transcript. Returns the exit status. Raises `ClientError`."""
    text = _fetch(transcript_url(options, langs, format), options)
    lines = text.removesuffix("\n").split("\n")
    clean = escaped if format == "json" else printable
    sys.stdout.write("".join(f"{clean(line.rstrip())}\n" for line in lines))
    return 0


def _fetch(url: str, options: MeetingOptions) -> str:
    request = Request(url)  # noqa: S310 -- its scheme is http or https
    if (token := token_now(options.token)) is not None:
        # A redirect may lead to somebody else.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        return fetch(request, _ANSWER_S).decode("utf-8", "replace")
    except HTTPError as refused:
        with refused:
            raise _explained(refused, options, http_address(options.url)) from None


def _explained(refused: HTTPError, options: MeetingOptions, address: str) -> GatewayUnreachable | SessionRefused:
    try:
        body: bytes = refused.read()
    except (OSError, HTTPException):
        body = b""
    if refused.code in (401, 403):
        return not_authorized(address, refused.code, body, given=options.token is not None)
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeError):
        return GatewayUnreachable(
            f"The server at {address} refused the transcript with HTTP status {refused.code}; is it a gateway?"
        )
    if problem.code == "unknown_meeting":
        sentence = f"There is no transcript of {options.meeting}: nothing was said there, or it has expired."
        return SessionRefused(Error(problem.code, sentence))
    return SessionRefused(Error(problem.code, problem.detail))
