"""Public keys from an address of the operator's identity provider: a JSON Web Key Set (RFC 7517).

Knows: when the address is asked, and which keys of a set can be used. Must not know: tokens.

The keys are kept while the address fails. A key that is not known makes it be asked again, but rarely: anybody can
invent names of keys.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import jwt

from gateway.identity.tokens import Key

_log = logging.getLogger(__name__)

_FRESH_S = 300.0
# Between two requests, also failing ones.
_PAUSE_S = 15.0
_ANSWER_S = 5.0
_SET_BYTES = 262_144
_RSA_BITS = 2_048

# (`kty`, `crv`) → the one algorithm that its keys are used with.
_ALGORITHMS: dict[tuple[object, object], str] = {
    ("RSA", None): "RS256",
    ("EC", "P-256"): "ES256",
    ("OKP", "Ed25519"): "EdDSA",
}


class PublicKeys:
    """The keys of one address. fetch: gets the set's bytes; blocks, and may raise anything."""

    def __init__(
        self, issuer: str, fetch: Callable[[], bytes], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: Mapping[str, Key] = {}
        self._asked_s = float("-inf")
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
        if self._asking is None and now_s - self._asked_s >= _PAUSE_S:
            self._asking = asyncio.create_task(self._ask())
        if self._asking is not None and kid not in self._keys:
            # A caller that leaves meanwhile does not take the answer away from the others.
            with suppress(TimeoutError):
                async with asyncio.timeout(_ANSWER_S):
                    await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        self._asked_s = self._clock()
        try:
            self._keys = parse(await asyncio.to_thread(self._fetch), self._issuer)
        except Exception as error:
            _log.warning("the address of the public keys does not answer with keys (%s)", type(error).__name__)
        else:
            self._fetched_s = self._clock()
        finally:
            self._asking = None


class _Nowhere(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: one could lead from https to http."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_Nowhere)


def fetch(url: str) -> bytes:
    """The bytes at an address, which must not redirect. Raises `OSError` or `ValueError`."""
    with _OPENER.open(url, timeout=_ANSWER_S) as response:
        content = cast(bytes, response.read(_SET_BYTES + 1))
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
