"""`gateway read --transcript`: what a meeting's log holds, as a file that players and editors read.

Knows: the address of a transcript, and how failures to get it read to people.
Must not know: flags and their spelling (`cli_flags`), formats of transcripts (the gateway writes them).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, build_opener

import msgspec
from msgspec import Struct

from gateway.cli.meeting import Seat
from gateway.cli.terminal import printable
from gateway.client import GatewayUnreachable, SessionRefused, stream_url
from gateway.client.connection import STREAM_PATH
from gateway.protocol.messages import Error

__all__ = ["print_transcript", "transcript_url"]

_ANSWER_S = 30.0
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class _Problem(Struct):
    """What is read of an error that came over HTTP."""

    code: str
    detail: str


def transcript_url(seat: Seat, langs: Sequence[str], format: str) -> str:
    """Where the gateway has the transcript, side by side in these languages. Raises `InvalidAddress`."""
    base = stream_url(seat.url).removesuffix(STREAM_PATH).replace("ws", "http", 1)
    query = f"?{urlencode({'lang': ','.join(langs)}, safe=',')}" if langs else ""
    return f"{base}/v1/meetings/{seat.meeting}/transcript.{format}{query}"


def print_transcript(seat: Seat, langs: Sequence[str], format: str) -> int:
    """Print the transcript; the exit status. Raises `ClientError`."""
    text = _fetch(transcript_url(seat, langs, format), seat)
    if sys.stdout.isatty():
        text = "".join(f"{printable(line.rstrip())}\n" for line in text.rstrip("\n").split("\n"))
    sys.stdout.write(text)
    return 0


def _fetch(url: str, seat: Seat) -> str:
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}"
    # A proxy for the outside world cannot reach this machine's own ports.
    opener = build_opener(ProxyHandler({} if parts.hostname in _LOOPBACK else None))
    try:
        with opener.open(url, timeout=_ANSWER_S) as answer:
            text: str = answer.read().decode("utf-8", "replace")
            return text
    except HTTPError as refused:
        with refused:
            raise _explained(refused, seat, address) from None
    except URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            raise GatewayUnreachable(f"No gateway answers at {address}: start one with `gateway serve`.") from None
        raise GatewayUnreachable(f"Nothing usable answers at {address}: {error.reason}.") from None
    except (HTTPException, OSError) as error:
        raise GatewayUnreachable(f"Nothing usable answers at {address}: {error}.") from None


def _explained(refused: HTTPError, seat: Seat, address: str) -> GatewayUnreachable | SessionRefused:
    try:
        problem = msgspec.json.decode(refused.read(), type=_Problem)
    except (msgspec.DecodeError, UnicodeError, OSError, HTTPException):
        return GatewayUnreachable(
            f"What answers at {address} refused the transcript with HTTP status {refused.code}; is it a gateway?"
        )
    if problem.code == "unknown_meeting":
        sentence = f"There is no transcript of {seat.meeting}: nothing was said there, or it has expired."
        return SessionRefused(Error(problem.code, sentence))
    return SessionRefused(Error(problem.code, problem.detail))
