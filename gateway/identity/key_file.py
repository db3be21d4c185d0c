"""The key file: signing keys, hashes of API keys, and quotas of tenants, as JSON that only its owner reads.

Knows: the file's format. Must not know: tokens, when it is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.domain.errors import StartupError
from gateway.domain.quotas import NO_QUOTA, Quota
from gateway.domain.roles import NAME

_log = logging.getLogger(__name__)

DEFAULT_ISSUER = "translation-gateway"
# Tells an API key from a token.
API_KEY_PREFIX = "gk_"
# Tells an operator's key, which opens only the administration.
ADMIN_KEY_PREFIX = "ga_"

_SECRET_BYTES = 32
_ID_BYTES = 4

_Tenant = Annotated[str, Meta(pattern=NAME)]
# Or every tenant that is not named.
_TenantOrOthers = Annotated[str, Meta(pattern=rf"^(?:\*\Z|{NAME.removeprefix('^')})")]


class SigningKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A secret that the gateway and a customer's backend share; tokens are signed with it (HS256)."""

    kid: Annotated[str, Meta(min_length=1, max_length=128)]
    # At least 32 characters.
    secret: Annotated[str, Meta(min_length=32)]
    # The only tenant whose tokens it signs; None: any.
    tenant: _Tenant | None = None
    # The `iss` of its tokens.
    issuer: str = DEFAULT_ISSUER

    def __repr__(self) -> str:
        return f"SigningKey({self.kid!r}, …)"  # the secret must not be logged


class ApiKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the gateway keeps of the API key of a tenant's backend."""

    id: str
    tenant: _Tenant
    # SHA-256 of the whole key in hexadecimal: it is random and long, so that a slow hash would add nothing.
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class AdminKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the gateway keeps of an operator's key."""

    id: str
    # As of an API key.
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class KeyFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file's contents. Raises `ValueError` (`msgspec.ValidationError` while decoding) for a double id."""

    # The first one that a tenant may use signs its tokens; all of them verify. A new one is added in front.
    signing: tuple[SigningKey, ...] = ()
    api: tuple[ApiKey, ...] = ()
    # For the address of the administration.
    admin: tuple[AdminKey, ...] = ()
    # Tenant, or `*` for those that are not named → what it may use.
    quotas: dict[_TenantOrOthers, Quota] = {}
    # Tenants whose meetings are never recorded, or `*` for all.
    unrecorded: tuple[_TenantOrOthers, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        ids = [*(key.id for key in self.api), *(key.id for key in self.admin)]
        for what, names in (("kid", [key.kid for key in self.signing]), ("id", ids)):
            if len(set(names)) != len(names):
                raise ValueError(f"two keys have the same {what}")

    def quota(self, tenant: str) -> Quota:
        return self.quotas.get(tenant) or self.quotas.get("*") or NO_QUOTA

    def records(self, tenant: str) -> bool:
        return self.unrecorded is UNSET or not {tenant, "*"}.intersection(self.unrecorded)

    def api_key(self, presented: str) -> ApiKey | None:
        return _matching(self.api, presented)

    def admin_key(self, presented: str) -> AdminKey | None:
        return _matching(self.admin, presented)


_HashedKey = TypeVar("_HashedKey", ApiKey, AdminKey)


def _matching(keys: Iterable[_HashedKey], presented: str) -> _HashedKey | None:
    digest = hash_of(presented)
    return next((key for key in keys if hmac.compare_digest(key.sha256, digest)), None)


def hash_of(api_key: str) -> str:
    """What is kept of an API key."""
    return hashlib.sha256(api_key.encode("utf-8", "surrogatepass")).hexdigest()


def new_signing_key(tenant: str | None = None) -> SigningKey:
    """A key with a random secret."""
    return SigningKey(kid=secrets.token_hex(_ID_BYTES), secret=secrets.token_urlsafe(_SECRET_BYTES), tenant=tenant)


def new_api_key(tenant: str) -> tuple[ApiKey, str]:
    """What the gateway keeps, and the key itself, which is shown once."""
    id, key = _new_key(API_KEY_PREFIX)
    return ApiKey(id=id, tenant=tenant, sha256=hash_of(key)), key


def new_admin_key() -> tuple[AdminKey, str]:
    """As `new_api_key`, for an operator."""
    id, key = _new_key(ADMIN_KEY_PREFIX)
    return AdminKey(id=id, sha256=hash_of(key)), key


def _new_key(prefix: str) -> tuple[str, str]:
    """An id, and a key that begins with the prefix and that."""
    id = secrets.token_hex(_ID_BYTES)
    return id, f"{prefix}{id}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def load(path: Path) -> KeyFile:
    """Raises `StartupError` for a file that is missing, not a key file, or for everybody to write."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except OSError as error:
        raise StartupError(f"The key file {path} cannot be read ({error.strerror or error}).") from None
    if mode & 0o002:
        raise StartupError(f"Everybody on this machine may change the key file {path}: chmod o-w {path}")
    if mode & 0o004:
        # Not refused: secrets that are mounted into a container mostly are.
        _log.warning("everybody on this machine may read the key file %s: chmod o= %s", path, path)
    try:
        return msgspec.json.decode(content, type=KeyFile)
    except msgspec.ValidationError as error:
        raise StartupError(f"The key file {path} is not valid: {error}.") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # not shown: it may quote a secret
        raise StartupError(f"The key file {path} is not valid JSON.") from None


def save(path: Path, keys: KeyFile) -> None:
    """Replace the file atomically, readable by its owner only. Raises `OSError`."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(keys), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            _open_to_the_same(name, path.stat())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _open_to_the_same(name: str, found: os.stat_result) -> None:
    """Give the new file the owner and the group of the old one, and let no others read it."""
    with contextlib.suppress(PermissionError):
        os.chown(name, -1, found.st_gid)
        # Not before it is the same group.
        os.chmod(name, found.st_mode & 0o770)
        os.chown(name, found.st_uid, -1)
