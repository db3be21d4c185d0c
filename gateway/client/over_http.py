"""Asks a gateway over HTTP, and explains why there is no answer.

Knows: addresses, proxies, what a failed request means. Must not know: what is asked for.
"""

from __future__ import annotations

from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from gateway.client.connection import LOOPBACK, STREAM_PATH, stream_url
from gateway.client.errors import GatewayUnreachable


def http_address(url: str) -> str:
    """The address over HTTP of the gateway at `url`. Raises `InvalidAddress`."""
    return stream_url(url).removesuffix(STREAM_PATH).replace("ws", "http", 1)


def fetch(request: Request, timeout_s: float) -> bytes:
    """The body of the answer. Raises `HTTPError` for an answer that is an error, else `GatewayUnreachable`."""
    parts = urlsplit(request.full_url)
    address = f"{parts.scheme}://{parts.netloc}"
    # A proxy cannot reach the loopback address of this machine.
    opener = build_opener(ProxyHandler({} if parts.hostname in LOOPBACK else None))
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            body: bytes = answer.read()
            return body
    except HTTPError:
        raise
    except URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            raise GatewayUnreachable(f"No gateway answers at {address}: none runs there.") from None
        raise GatewayUnreachable(f"Nothing usable answers at {address}: {error.reason}.") from None
    except (HTTPException, OSError) as error:
        raise GatewayUnreachable(f"Nothing usable answers at {address}: {error}.") from None
