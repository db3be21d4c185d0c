"""Encrypts what people said before it goes to the store, with keys that the store never sees.

What is sealed is bound to its place: copied to another one, it cannot be opened.
Knows: keys, the format of what is sealed, places. Must not know: what is in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from gateway import metrics
from gateway.domain.errors import StartupError

_KEY_BYTES = 32
_ID_BYTES = 4
_NONCE_BYTES = 12
# Begins what is sealed. What is not is MessagePack of an object or an array, which begins otherwise.
_SEALED = b"\x02"


class Place(NamedTuple):
    """Where sealed text belongs. Nowhere else can it be opened."""

    kind: str
    # The meeting's key, or the tenant.
    owner: str
    # Epoch of the log, id of the glossary, gateway that sends the event. At opening, None: it may be any.
    part: str | None


class SealError(ValueError):
    """What is sealed cannot be opened here; the message says why, without what is in it."""


class Seal:
    """AES-256-GCM-SIV (RFC 8452): also with random nonces, no number of entries is too many.

    keys: of 32 bytes each. The first seals, all of them open. Without any, nothing is sealed. What was not sealed
    before there were keys can still be read.
    """

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

        self._ciphers = {_id(key): AESGCMSIV(key) for key in keys}
        self._first = _id(keys[0]) if keys else b""
        # Makes digests of texts, which could be guessed otherwise.
        self.digest_key = hashlib.blake2b(keys[-1], person=b"digests").digest() if keys else b""

    def close(self, text: bytes, place: Place) -> bytes:
        """Sealed, if there is a key."""
        if not self._first:
            return text
        nonce, part = secrets.token_bytes(_NONCE_BYTES), (place.part or "").encode()
        sealed = self._ciphers[self._first].encrypt(nonce, text, _bound_to(place, part))
        return _SEALED + self._first + nonce + len(part).to_bytes(2) + part + sealed

    def open(self, sealed: bytes, place: Place) -> bytes:
        """What was sealed. Raises `SealError`, which is counted, if that was with another key or place."""
        if not sealed.startswith(_SEALED):
            return sealed
        from cryptography.exceptions import InvalidTag

        id, rest = sealed[1 : 1 + _ID_BYTES], sealed[1 + _ID_BYTES :]
        if (cipher := self._ciphers.get(id)) is None:
            raise _refused("key", "it is sealed with another key")
        nonce, rest = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
        size = int.from_bytes(rest[:2])
        part, rest = rest[2 : 2 + size], rest[2 + size :]
        try:
            text = cipher.decrypt(nonce, rest, _bound_to(place, part))
        except (InvalidTag, ValueError):  # ValueError: it is too short
            raise _refused("changed", "it was changed, or copied from another place") from None
        if place.part is not None and part != place.part.encode():
            raise _refused("part", "it belongs to another epoch of the log, or another glossary or gateway")
        return text


def _bound_to(place: Place, part: bytes) -> bytes:
    return msgspec.msgpack.encode((place.kind, place.owner, part))


def _refused(reason: str, why: str) -> SealError:
    metrics.STORE_ENTRIES_REFUSED.labels(reason).inc()
    return SealError(why)


def read_keys(file: Path) -> tuple[bytes, ...]:
    """One key a line, in Base64. Raises `StartupError`."""
    try:
        keys = [_key(line.strip()) for line in file.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"The key of the store cannot be read from {file}: {error}.") from None
    if not keys or None in keys:
        raise StartupError(
            f"{file} must hold keys of the store, 32 bytes in Base64 each, one a line (openssl rand -base64 32)."
        )
    return tuple(key for key in keys if key is not None)


def _key(line: str) -> bytes | None:
    try:
        key = base64.b64decode(line, validate=True)
    except binascii.Error:
        return None
    return key if len(key) == _KEY_BYTES else None


def _id(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=_ID_BYTES, person=b"key id").digest()
