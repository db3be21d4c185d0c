"""Speaks HTTP to one vLLM server, or to what stands in front of several.

Knows: connections, TLS, the API key, and what a failed request means: refused, not taken, or lost.
Must not know: what is in a request, translations, when a server counts as dead.

    ServerError
    ├── Refused     it said no, and would say so again
    ├── NotTaken    it took no request: it cannot be reached, or has no room
    └── Lost        it had taken the request, and gives no answer to it any more
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from gateway.domain.errors import StartupError
from gateway.engines.remote.events import Error, error_of

if TYPE_CHECKING:
    import aiohttp

# Longest time to make a connection, and to answer what needs no generation, in seconds.
_CONNECT_S, _ANSWER_S = 5.0, 5.0

# For how long an idle connection is kept. vLLM closes them after 5 s; a request that crosses it would be lost.
_KEEP_S = 3.0

# Statuses of servers and routers without room or without a healthy server behind them. They have run nothing. With
# 502 and 504 a router does not say whether the server behind it had begun.
_NO_ROOM = {429, 503}


class ServerError(Exception):
    """A request that has no answer. Its text says why, in words that go on after a colon."""


class Refused(ServerError):
    """The server refuses the request. status: of HTTP; 0 if TLS fails, as without trust in its certificate."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotTaken(ServerError):
    """No server has run any of it."""


class Lost(ServerError):
    """The server had taken the request, and may have died of it."""


class Answer(NamedTuple):
    """An answer with any status."""

    status: int
    body: bytes


class Server:
    """Connections to one server.

    url: without the path of a route. key: its API key. ca_file: PEM file of the authorities that may sign its
    certificate; None: those of this machine. silence_s: a request without news for so long is lost.
    Raises `StartupError` if the file cannot be read.
    """

    def __init__(self, url: str, key: str | None, ca_file: str | None, silence_s: float) -> None:
        import aiohttp

        self._http = aiohttp
        self._url = url.rstrip("/")
        try:
            trusted = ssl.create_default_context(cafile=ca_file) if ca_file is not None else True
        except OSError as error:
            raise StartupError(f"engine.ca_file {ca_file} cannot be used: {error.strerror or error}.") from None
        self._session = aiohttp.ClientSession(
            # The scheduler decides how many requests there are.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_S, ssl=trusted),
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=silence_s),
        )

    async def close(self) -> None:
        """Close all connections, which ends what runs in the server."""
        await self._session.close()

    async def get(self, path: str, timeout_s: float = _ANSWER_S) -> Answer:
        """Ask for a page. Raises `NotTaken` if there is no answer in time, and `Refused` without trust."""
        timeout = self._http.ClientTimeout(total=timeout_s)
        with self._failures(taken=False):
            async with self._session.get(self._url + path, timeout=timeout, allow_redirects=False) as response:
                return Answer(response.status, await response.read())

    async def post(self, path: str, body: bytes) -> bytes:
        """Send a request; the body of its answer. Raises `ServerError`."""
        answer = await self.open(path, body)
        try:
            return await answer.rest()
        finally:
            answer.close()

    async def open(self, path: str, body: bytes, traceparent: str = "") -> Streamed:
        """Send a request; its answer, to be read as it comes, and to be closed. Raises `ServerError`.

        traceparent: of the span that it belongs to; empty if it is not traced.
        """
        headers = {**_JSON, "traceparent": traceparent} if traceparent else _JSON
        with self._failures(taken=True):
            response = await self._session.post(
                self._url + path, data=body, headers=headers, allow_redirects=False
            )
        answer = Streamed(response, self)
        if response.status == 200:
            return answer
        try:
            raise failure(error_of(response.status, await answer.rest()))
        finally:
            answer.close()

    @contextmanager
    def _failures(self, *, taken: bool) -> Iterator[None]:
        """Raise aiohttp's errors as ours. taken: whether the server may have taken the request."""
        http = self._http
        try:
            yield
        except http.ClientConnectorCertificateError as error:
            raise Refused(0, f"its certificate is not accepted ({error.certificate_error})") from error
        except http.ClientSSLError as error:
            raise Refused(0, f"no TLS connection to it is possible ({error.os_error})") from error
        except (http.ClientConnectorError, http.ConnectionTimeoutError) as error:
            raise NotTaken(_why(error)) from error
        except (http.ClientError, OSError, TimeoutError) as error:
            raise (Lost if taken else NotTaken)(_why(error)) from error


class Streamed:
    def __init__(self, response: aiohttp.ClientResponse, server: Server) -> None:
        self._response = response
        self._server = server
        self._is_whole = False

    async def read(self) -> bytes:
        """What has come since; empty at the end of the answer. Raises `Lost`."""
        with self._server._failures(taken=True):
            data: bytes = await self._response.content.readany()
        self._is_whole = not data
        return data

    async def rest(self) -> bytes:
        """All that comes. Raises `Lost`."""
        whole = b""
        while data := await self.read():
            whole += data
        return whole

    def close(self) -> None:
        """Aborts the request if its answer is not whole: the connection is closed, and the server sees that."""
        if self._is_whole:
            self._response.release()
        else:
            self._response.close()


_JSON = {"Content-Type": "application/json"}


def failure(error: Error) -> ServerError:
    message = f"{error.message.rstrip('.')} (status {error.code})"
    if error.code in _NO_ROOM:
        return NotTaken(message)
    # With 500, an engine may have died of it.
    return Lost(message) if error.code >= 500 else Refused(error.code, message)


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
