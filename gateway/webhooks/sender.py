"""Sends one event over HTTP, and says what came of it.

Knows: HTTP, TLS, proxies, timeouts. Must not know: what is in the event, when it is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from gateway import __version__
from gateway.domain.errors import StartupError

# Longest time for a connection, and for everything. Shorter than the lease of a delivery.
_CONNECT_S, _TOTAL_S = 5.0, 10.0

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

# With these, `Retry-After` says when the next request is welcome (RFC 9110, RFC 6585).
_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


class Answer(NamedTuple):
    """status: of HTTP; 0: there was no answer. said: one sentence. retry_after_s: how long it wants nothing."""

    status: int
    said: str
    retry_after_s: float | None = None


def proxy_of(url: str) -> str | None:
    """The proxy for an address that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), if any."""
    parts = urlsplit(url)
    # A proxy cannot reach the loopback address of this machine.
    if parts.hostname in _LOOPBACK or proxy_bypass(parts.netloc):
        return None
    proxy = getproxies().get(parts.scheme)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


class Sender:
    """Raises `StartupError` if there is no HTTP client."""

    def __init__(self, total_s: float = _TOTAL_S) -> None:
        try:
            import aiohttp
        except ImportError:
            raise StartupError(
                "Webhooks need aiohttp, which is not installed: pip install 'translation-gateway[remote]'."
            ) from None
        self._http = aiohttp
        self._total_s = total_s

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Never raises. Follows no redirects, and reads nothing of the answer but its head."""
        http = self._http
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
