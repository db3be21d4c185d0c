"""Public keys from an address of the operator's identity provider: a JSON Web Key Set (RFC 7517).

Knows: when the address is asked, and which keys of a set can be used. Must not know: tokens.

The keys are kept while the address fails. A key that is not known makes it be asked again, but rarely: anybody can
invent names of keys. A request has a bound in all, however slowly its answer comes; one that fails is tried again
after a pause that doubles.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, cast

import jwt

from gateway import metrics
from gateway.identity.tokens import Key
from gateway.runtime import proxy_of, within

_log = logging.getLogger(__name__)

_FRESH_S = 300.0
# Between two requests; after one that failed, doubled with each failure in a row up to that.
_PAUSE_S, _FIRST_PAUSE_S = 15.0, 1.0
# For a client to wait; for one wait of a request; and for all of it.
_ANSWER_S, _REQUEST_S = 5.0, 10.0
_SET_BYTES = 262_144
_RSA_BITS = 2_048

# (`kty`, `crv`) → the one algorithm that its keys are used with.
_ALGORITHMS: dict[tuple[object, object], str] = {
    ("RSA", None): "RS256",
    ("EC", "P-256"): "ES256",
    ("OKP", "Ed25519"): "EdDSA",
}


class PublicKeys:
    """The keys of one address.

    fetch: gets the set's bytes, in bounded time; may raise anything.
    """

    def __init__(
        self,
        issuer: str,
        fetch: Callable[[], Awaitable[bytes]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: Mapping[str, Key] = {}
        # When it may be asked again, and requests that have failed since one has not.
        self._next_s = float("-inf")
        self._failures = 0
        self._fetched_s = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    def find(self, kid: str) -> Key | None:
        """The key with this `kid`, as far as it is known; never waits."""
        return self._keys.get(kid)

    async def look_for(self, kid: str) -> None:
        """Ask the address if it may be worth it; waits only for a key that is not known. Never raises."""
        now_s = self._clock()
        if kid in self._keys and now_s - self._fetched_s < _FRESH_S:
            return
        if self._asking is None and now_s >= self._next_s:
            self._asking = asyncio.create_task(self._ask())
        if self._asking is not None and kid not in self._keys:
            # A caller that leaves meanwhile does not take the answer away from the others.
            await within(_ANSWER_S, asyncio.shield(self._asking))

    async def _ask(self) -> None:
        try:
            self._keys = parse(await self._fetch(), self._issuer)
        except Exception as error:
            metrics.PUBLIC_KEYS_REQUESTS.labels("failed").inc()
            pause_s = min(_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._failures, 10))
            self._failures += 1
            _log.warning(
                "the address of the public keys does not answer with keys (%s); failures in a row: %d; it may be "
                "asked again in %g s",
                type(error).__name__,
                self._failures,
                pause_s,
            )
        else:
            metrics.PUBLIC_KEYS_REQUESTS.labels("answered").inc()
            self._failures, pause_s = 0, _PAUSE_S
            self._fetched_s = self._clock()
        finally:
            self._asking = None
        self._next_s = self._clock() + pause_s


async def fetch(url: str, request_s: float = _REQUEST_S) -> bytes:
    """The bytes at an address, which must not redirect: one could lead from https to http.

    request_s: seconds for all of it, else a byte now and then would keep it. Raises `OSError`, `ValueError` or
    `aiohttp.ClientError`.
    """
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=request_s, sock_connect=_ANSWER_S, sock_read=_ANSWER_S)
    content = b""
    async with (
        aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, allow_redirects=False, proxy=proxy_of(url)) as response,
    ):
        if response.status != HTTPStatus.OK:
            raise ValueError(f"status {response.status}")
        async for chunk in response.content.iter_chunked(_SET_BYTES):
            content += chunk
            if len(content) > _SET_BYTES:
                raise ValueError(f"more than {_SET_BYTES} bytes")
    return content


def parse(content: bytes, issuer: str) -> dict[str, Key]:
    """`kid` → key, of those that can be used. Raises `ValueError` where there are none."""
    found = json.loads(content)
    listed = found.get("keys") if isinstance(found, dict) else None
    keys = [key for each in listed if (key := _key(each, issuer))] if isinstance(listed, list) else []
    if not keys:
        raise ValueError("no usable key")
    return {key.kid: key for key in keys}


def _key(jwk: Any, issuer: str) -> Key | None:
    if not isinstance(jwk, dict) or not isinstance(kid := jwk.get("kid"), str):
        return None
    kind = (jwk.get("kty"), jwk.get("crv"))
    algorithm = next((name for known, name in _ALGORITHMS.items() if known == kind), None)
    if algorithm is None or jwk.get("alg", algorithm) != algorithm or jwk.get("use", "sig") != "sig":
        return None
    try:
        # Private parts of a key are not wanted here.
        public = {
            name: value for name, value in jwk.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "oth")
        }
        material = jwt.PyJWK(public, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if algorithm == "RS256" and material.key_size < _RSA_BITS:
        return None
    return Key(kid, cast(Any, algorithm), material, issuer)
