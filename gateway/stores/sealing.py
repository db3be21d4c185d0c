"""Encrypts what people said before it goes to the store, with keys that the store never sees.

Knows: keys, the format of what is sealed. Must not know: what is in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path

from gateway.domain.errors import StartupError

_KEY_BYTES = 32
_ID_BYTES = 4
_NONCE_BYTES = 12
# What is not sealed is MessagePack of an object or an array, which begins with none of these.
_SEALED = b"\x01"


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

    def close(self, text: bytes) -> bytes:
        """Sealed, if there is a key."""
        if not self._first:
            return text
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return _SEALED + self._first + nonce + self._ciphers[self._first].encrypt(nonce, text, None)

    def open(self, sealed: bytes) -> bytes:
        """What was sealed. Raises `ValueError` if that was with another key, or it was changed."""
        from cryptography.exceptions import InvalidTag

        if not sealed.startswith(_SEALED):
            return sealed
        id, rest = sealed[1 : 1 + _ID_BYTES], sealed[1 + _ID_BYTES :]
        if (cipher := self._ciphers.get(id)) is None:
            raise ValueError("sealed with another key")
        try:
            return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], None)
        except InvalidTag:
            raise ValueError("changed since it was sealed") from None


def read_keys(file: Path) -> tuple[bytes, ...]:
    """One key a line, in Base64. Raises `StartupError`."""
    try:
        lines = [line.strip() for line in file.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"The key of the store cannot be read from {file}: {error}.") from None
    keys = tuple(map(_key, lines))
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
