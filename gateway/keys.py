"""What tokens and operators' keys are verified with, by the settings."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gateway.config import Settings
from gateway.domain.errors import StartupError
from gateway.identity.authenticator import Keys
from gateway.identity.jwks import PublicKeys, fetch
from gateway.server.administration.operators import Operators
from gateway.server.guard.hosts import is_loopback


def keys_of(settings: Settings) -> Keys | None:
    """None where tokens are not needed. Raises `StartupError` where everybody would be let in unasked."""
    auth = settings.auth
    if auth.keys_file is None and auth.jwks_url is None:
        if not is_loopback(settings.host) and not auth.insecure_open:
            raise StartupError(
                f"Everybody who reaches {settings.host} could read and write every meeting: make a key with "
                "`gateway key new --keys keys.json` and start with --keys keys.json, or serve everybody with "
                "--insecure-open."
            )
        return None
    public = None
    if auth.jwks_url is not None and auth.jwks_issuer is not None:
        public = PublicKeys(auth.jwks_issuer, partial(fetch, auth.jwks_url))
    return Keys(None if auth.keys_file is None else Path(auth.keys_file), public, audience=auth.audience)


def operators_of(settings: Settings) -> Operators | None:
    """Who may use the administration; None where there is none. Raises `StartupError`."""
    if settings.admin_keys_file is None:
        return None
    keys = Keys(Path(settings.admin_keys_file), audience=settings.auth.audience)
    if not keys.has_operators:
        raise StartupError(
            f"{settings.admin_keys_file} has no operator's key: make one with `gateway key admin --keys "
            f"{settings.admin_keys_file}`."
        )
    return Operators(keys.operator)
