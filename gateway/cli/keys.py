"""`gateway key` and `gateway token`: makes keys, tokens and invites without a gateway.

Knows: the key file, what is printed. Must not know: flags, sessions.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from msgspec.structs import replace

from gateway.cli.sessions import EXIT_FAILED, note
from gateway.domain.errors import GatewayError, StartupError
from gateway.domain.grants import Grant
from gateway.domain.roles import DEFAULT_TENANT
from gateway.identity import key_file
from gateway.identity.authenticator import issue
from gateway.identity.key_file import KeyFile


def new_signing_key(path: Path, tenant: str | None) -> int:
    """Add a signing key, in front of the others. Returns the exit status, as all commands do."""
    keys = _loaded(path)
    key = key_file.new_signing_key(tenant)
    _save(path, replace(keys, signing=(key, *keys.signing)))
    note(f"A new key signs {_tokens_of(tenant)}: {key.kid}, in {path}. Keep this file secret.")
    return 0


def new_api_key(path: Path, tenant: str | None) -> int:
    """Add an API key, and print it."""
    keys = _loaded(path)
    kept, key = key_file.new_api_key(tenant or DEFAULT_TENANT)
    _save(path, replace(keys, api=(*keys.api, kept)))
    note(f"An API key of tenant {kept.tenant}: {kept.id}. It is shown only now.")
    print(key)
    return 0


def new_admin_key(path: Path) -> int:
    """Add an operator's key, and print it."""
    keys = _loaded(path)
    kept, key = key_file.new_admin_key()
    _save(path, replace(keys, admin=(*keys.admin, kept)))
    note(f"A key for operators: {kept.id}. It is shown only now.")
    print(key)
    return 0


def list_keys(path: Path) -> int:
    """Print a line for each key: its id, what it is, whose; never a secret."""
    keys = key_file.load(path)
    if keys == KeyFile():
        note(f"There are no keys in {path}.")
    for signing in keys.signing:
        print(f"{signing.kid}\tsigning\t{signing.tenant or 'every tenant'}")
    for api in keys.api:
        print(f"{api.id}\tapi\t{api.tenant}")
    for admin in keys.admin:
        print(f"{admin.id}\tadmin\tthe whole gateway")
    return 0


def remove_key(path: Path, id: str) -> int:
    """Remove a key."""
    keys = key_file.load(path)
    left = replace(
        keys,
        signing=tuple(key for key in keys.signing if key.kid != id),
        api=tuple(key for key in keys.api if key.id != id),
        admin=tuple(key for key in keys.admin if key.id != id),
    )
    if left == keys:
        note(f"There is no key {id} in {path}.")
        return EXIT_FAILED
    _save(path, left)
    note(f"The key {id} is removed from {path}.")
    return 0


def print_token(path: Path, grant: Grant, *, for_s: float, invite: bool, url: str | None, audience: str) -> int:
    """Print a token, an invite, or with `url` the link of an invite."""
    try:
        issued = issue(
            key_file.load(path), grant, for_s=for_s, now_s=time.time(), invite=invite, audience=audience
        )
    except StartupError:
        raise
    except GatewayError as error:
        note(error.message)
        return EXIT_FAILED
    print(issued.token if url is None else f"{url.rstrip('/')}/#invite={issued.token}")
    if sys.stdout.isatty():
        note(f"It is valid for {for_s:g} s.")
    return 0


def _loaded(path: Path) -> KeyFile:
    return key_file.load(path) if os.path.exists(path) else KeyFile()


def _save(path: Path, keys: KeyFile) -> None:
    try:
        key_file.save(path, keys)
    except OSError as error:
        raise StartupError(f"The key file {path} cannot be written ({error.strerror or error}).") from None


def _tokens_of(tenant: str | None) -> str:
    return "tokens of every tenant" if tenant is None else f"tokens of tenant {tenant}"
