"""Sends one event over HTTP: its body, headers that prove who sent it (Standard Webhooks 1), and what came of it.

Knows: JSON, HMAC-SHA256, the file with the secrets; HTTP, TLS, proxies, timeouts.
Must not know: when it is tried again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import msgspec

from gateway import __version__
from gateway.domain.errors import StartupError
from gateway.domain.grants import meeting_name, tenant_of
from gateway.domain.webhooks import Event
from gateway.runtime import proxy_of

# The type of an event that only tests whether others arrive.
PING = "ping"

_SECRET = "whsec_"  # noqa: S105 -- what one begins with
# Bytes of a secret.
_LEAST, _MOST = 24, 64


def body(event: Event) -> bytes:
    """The same for each try."""
    data = {}
    if event.type != PING:
        data = {
            "tenant": tenant_of(event.meeting),
            "meeting": meeting_name(event.meeting),
            "started_at": _time(event.started_ms),
        }
    if event.ended_ms:
        data["ended_at"] = _time(event.ended_ms)
    return msgspec.json.encode({"id": event.id, "type": event.type, "timestamp": _time(event.at_ms), "data": data})


def headers(secrets: Sequence[bytes], id: str, at_s: int, body: bytes) -> dict[str, str]:
    """at_s: seconds since 1970, now. Each secret signs; one of the signatures has to be right."""
    signed = b"%b.%d.%b" % (id.encode(), at_s, body)
    signatures = (base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode() for secret in secrets)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def read_secrets(file: str) -> tuple[bytes, ...]:
    """One or two secrets, each a word `whsec_…`. Raises `StartupError`."""
    try:
        words = Path(file).expanduser().read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise StartupError(f"The secret_file {file} of a webhook cannot be read: {why}.") from None
    secrets = tuple(_secret(word) for word in words)
    if not 1 <= len(secrets) <= 2 or not all(_LEAST <= len(secret) <= _MOST for secret in secrets):
        raise StartupError(
            f"The secret_file {file} of a webhook must have one secret, or two while one replaces the other: "
            f"{_SECRET} and {_LEAST} to {_MOST} random bytes in Base64, made by "
            f'`echo "{_SECRET}$(openssl rand -base64 32)"`.'
        )
    return secrets


def _secret(word: str) -> bytes:
    """Its bytes; none if it is not one."""
    try:
        return base64.b64decode(word.removeprefix(_SECRET), validate=True) if word.startswith(_SECRET) else b""
    except binascii.Error:
        return b""


def _time(ms: int) -> str:
    at = datetime.fromtimestamp(ms / 1_000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Longest time for a connection, and for everything. Shorter than the lease of a delivery.
_CONNECT_S, _TOTAL_S = 5.0, 10.0

# With these, `Retry-After` says when the next request is welcome (RFC 9110, RFC 6585).
_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


class Answer(NamedTuple):
    """status: of HTTP; 0: there was no answer. said: one sentence. retry_after_s: how long it wants nothing."""

    status: int
    said: str
    retry_after_s: float | None = None


class Sender:
    """Posts events. total_s: longest time for one, in seconds."""

    def __init__(self, total_s: float = _TOTAL_S) -> None:
        self._total_s = total_s

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Never raises. Follows no redirects, and reads nothing of the answer but its head."""
        import aiohttp as http

        about = {"Content-Type": "application/json", "User-Agent": f"translation-gateway/{__version__}", **headers}
        timeout = http.ClientTimeout(total=self._total_s, sock_connect=_CONNECT_S)
        proxy = proxy_of(url)
        try:
            async with (
                http.ClientSession(timeout=timeout, cookie_jar=http.DummyCookieJar()) as session,
                # Not `trust_env`, which would send passwords of ~/.netrc, too.
                session.post(url, data=body, headers=about, allow_redirects=False, proxy=proxy) as response,
            ):
                return _answer(response.status, response.headers.get("Retry-After", ""))
        except TimeoutError:
            return Answer(0, f"It did not answer within {self._total_s:g} s.")
        except http.ClientConnectorCertificateError as error:
            return Answer(0, f"Its certificate is not accepted: {error.certificate_error}.")
        except http.ClientHttpProxyError as error:
            return Answer(0, f"The proxy answered with status {error.status}.")
        except (http.ClientError, OSError, ValueError) as error:
            # Not the error's own text, which may quote the address.
            reason = getattr(getattr(error, "os_error", error), "strerror", None) or type(error).__name__
            # Connections are made to the proxy alone, and its address is not checked before; TLS is with the host.
            at_proxy = proxy and isinstance(error, http.ClientConnectorError | http.InvalidURL)
            what = "The proxy" if at_proxy and not isinstance(error, http.ClientSSLError) else "It"
            return Answer(0, f"{what} cannot be reached: {reason}.")


def _answer(status: int, retry_after: str) -> Answer:
    said = f"It answered with status {status}"
    if status not in _BUSY or (after_s := _seconds(retry_after)) is None:
        return Answer(status, f"{said}.")
    return Answer(status, f"{said} and wants nothing for {after_s:.0f} s.", after_s)


def _seconds(retry_after: str) -> float | None:
    """From now; None if it says nothing that can be understood. It is seconds, or a date of HTTP."""
    if retry_after.isascii() and retry_after.isdecimal():
        return float(retry_after)
    try:
        at = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
