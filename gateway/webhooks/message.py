"""An event as it is sent: its body, and headers that prove who sent it (Standard Webhooks, version 1).

Knows: JSON, HMAC-SHA256, the file with the secrets. Must not know: HTTP, when anything is sent.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gateway.domain.errors import StartupError
from gateway.domain.grants import meeting_name, tenant_of
from gateway.domain.webhooks import Event

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
