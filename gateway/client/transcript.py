"""What was said in a meeting, from the gateway's log, over HTTP.

Knows: the address of a transcript, its JSON, why there is none. Must not know: sessions, the other formats' text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http.client import HTTPException
from typing import Literal
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request

import msgspec
from msgspec import Struct

from gateway.client.connection import not_authorized
from gateway.client.errors import ClientError, GatewayUnreachable, TranscriptRefused, UnreadableMessage
from gateway.client.over_http import fetch, http_address
from gateway.client.tokens import Secret, Tokens, TokenSource


class Rendering(Struct, frozen=True):
    """An utterance in one language."""

    # `original`: it was said in this language. `missing`: nobody read this language then, or it is not finished.
    status: Literal["original", "translated", "failed", "missing"]
    # None if failed or missing.
    text: str | None
    # The error code, if failed.
    code: str | None
    # Whether the model is unsure of it: a reader should be warned.
    unsure: bool = False


class TranscriptUtterance(Struct, frozen=True):
    """Something that was said. `participant` and `utterance` together identify it."""

    participant: str
    utterance: str
    # Name of who said it.
    speaker: str
    lang: str
    rev: int
    text: str
    # Unix time of its acceptance, in milliseconds.
    at_ms: int
    # Its place in the speaker's audio, where that was given.
    start_ms: int | None
    end_ms: int | None
    # By language.
    translations: dict[str, Rendering]
    # Position in the log.
    offset: int
    # The ids of what a correction stands in place of; it has the time and the position of the oldest of them.
    replaces: list[str] = []


class Transcript(Struct, frozen=True, kw_only=True):
    """What is in the log of a meeting, or a part of it; utterances are in the order of acceptance."""

    meeting: str
    # The log's epoch: offsets of different epochs have nothing to do with each other.
    epoch: str
    # First and last position of the whole log.
    from_offset: int
    to_offset: int
    # What the meeting is called, and the name of who has said so.
    title: str = ""
    held_by: str = ""
    # Whether the log still has the beginning of the meeting.
    complete: bool
    languages: list[str]
    utterances: list[TranscriptUtterance]


class _Problem(Struct):
    """The fields that are used of an error over HTTP."""

    code: str
    detail: str


async def fetch_transcript(
    url: str,
    meeting: str,
    *,
    languages: Sequence[str] = (),
    last: int | None = None,
    before: int | None = None,
    token: TokenSource | None = None,
    timeout_s: float = 30.0,
) -> Transcript:
    """What was said in a meeting, now or before.

    languages: which translations to get; by default all there are.
    last: only the newest so many utterances, at most 200. With `before`: of those before this offset.
    token: as for `connect`; it needs the role `transcript`.
    timeout_s: how long the gateway may send nothing, in seconds.

    Raises `InvalidAddress`, `GatewayUnreachable`, `TokenUnavailable`, `NotAuthorized`, `TranscriptRefused` and
    `UnreadableMessage`; `ValueError` for a token that no header can carry.
    """
    address = transcript_url(url, meeting, "json", languages, last=last, before=before)
    secret = await Tokens(token).ask()
    return transcript_of(await asyncio.to_thread(read_transcript, address, secret, timeout_s))


async def erase_transcript(
    url: str, meeting: str, *, token: TokenSource | None = None, timeout_s: float = 30.0
) -> None:
    """Let the gateway forget what was said in a meeting, now and before; also where nothing is kept of it.

    Its participants are reconnected, and the meeting continues with nothing said.
    token: as for `connect`; an API key, or one with the role `admin` for this meeting.
    timeout_s: how long the gateway may send nothing, in seconds.

    Raises `InvalidAddress`, `GatewayUnreachable`, `TokenUnavailable`, `NotAuthorized` and `TranscriptRefused`;
    `ValueError` for a token that no header can carry.
    """
    address = kept_url(url, meeting)
    secret = await Tokens(token).ask()
    await asyncio.to_thread(read_transcript, address, secret, timeout_s, method="DELETE")


def kept_url(url: str, meeting: str) -> str:
    """The URL of what a meeting keeps; with a format behind it, that of a transcript. Raises `InvalidAddress`."""
    return f"{http_address(url)}/v1/meetings/{quote(meeting, safe='')}/transcript"


def transcript_url(
    url: str,
    meeting: str,
    format: str,
    languages: Sequence[str],
    *,
    last: int | None = None,
    before: int | None = None,
) -> str:
    """The URL of a transcript. Raises `InvalidAddress`."""
    if isinstance(languages, str):
        raise TypeError("languages is a list, as in ['ja']")
    wanted = {"lang": ",".join(languages) or None, "last": last, "before": before}
    query = urlencode({name: value for name, value in wanted.items() if value is not None}, safe=",")
    return f"{kept_url(url, meeting)}.{format}{query and '?'}{query}"


def read_transcript(url: str, token: Secret | None, timeout_s: float, method: str = "GET") -> bytes:
    """What the gateway answers at the URL of a transcript; waits for it. Raises `ClientError`."""
    request = Request(url, method=method)  # noqa: S310 -- its scheme is http or https
    if token is not None:
        # A redirect may lead to another server.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        return fetch(request, timeout_s)
    except HTTPError as refused:
        with refused:
            raise _explained(refused, f"{request.type}://{request.host}", given=token is not None) from None


def transcript_of(answer: bytes) -> Transcript:
    """The transcript in the gateway's answer. Raises `UnreadableMessage`."""
    try:
        return msgspec.json.decode(answer, type=Transcript)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UnreadableMessage(f"The gateway sent a transcript that this client cannot read: {error}.") from None


def _explained(refused: HTTPError, address: str, *, given: bool) -> ClientError:
    try:
        body: bytes = refused.read()
    except (OSError, HTTPException):
        body = b""
    if refused.code in (401, 403):
        return not_authorized(address, refused.code, body, given=given)
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeError):
        return GatewayUnreachable(
            f"The server at {address} refused the transcript with HTTP status {refused.code}; is it a gateway?"
        )
    return TranscriptRefused(refused.code, problem.code, problem.detail)
