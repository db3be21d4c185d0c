"""Sends one event over HTTP, and says what came of it.

Knows: HTTP, TLS, timeouts. Must not know: what is in the event, when it is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gateway import __version__
from gateway.domain.errors import StartupError

__all__ = ["Answer", "Sender"]

# Longest time for a connection, and for everything. Shorter than the lease of a delivery.
_CONNECT_S, _TOTAL_S = 5.0, 10.0


class Answer(NamedTuple):
    """status: of HTTP; 0: there was no answer. said: one sentence."""

    status: int
    said: str


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
        """Never raises. Follows no redirects, and reads nothing of the answer but its status."""
        http = self._http
        about = {"Content-Type": "application/json", "User-Agent": f"translation-gateway/{__version__}", **headers}
        timeout = http.ClientTimeout(total=self._total_s, sock_connect=_CONNECT_S)
        try:
            async with (
                http.ClientSession(timeout=timeout, cookie_jar=http.DummyCookieJar()) as session,
                session.post(url, data=body, headers=about, allow_redirects=False) as response,
            ):
                return Answer(response.status, f"It answered with status {response.status}.")
        except TimeoutError:
            return Answer(0, f"It did not answer within {self._total_s:g} s.")
        except http.ClientConnectorCertificateError as error:
            return Answer(0, f"Its certificate is not accepted: {error.certificate_error}.")
        except (http.ClientError, OSError, ValueError) as error:
            # Not the error's own text, which may quote the address.
            reason = getattr(getattr(error, "os_error", error), "strerror", None) or type(error).__name__
            return Answer(0, f"It cannot be reached: {reason}.")
