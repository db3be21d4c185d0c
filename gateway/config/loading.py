"""Loads the settings in force from every source, or explains the first mistake in one sentence.

A later source overrides an earlier one: the fields' defaults, a TOML file, environment variables (`GATEWAY__PORT`,
`GATEWAY__ENGINE__MAX_NUM_SEQS`), command line flags. Every mistake is a `StartupError` that names its place: the
file and the setting, the variable, or the flag.

Knows: which settings depend on one another. Must not know: what they are for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import replace

from gateway.config.settings import AuthSettings, EngineSettings, Settings, engines_of
from gateway.config.sources import Source, environment_source, file_source, flag_source, merged, origin, stated
from gateway.config.validation import check_types, check_values
from gateway.domain.errors import InvalidValue, StartupError
from gateway.domain.pairs import PairPattern
from gateway.domain.roles import NAME
from gateway.engines.vllm.devices import spelled

_Engine = TypeVar("_Engine", bound=EngineSettings)

# Bytes of one session's outbox for everything besides the texts of an utterance: names, numbers, other messages.
_OUTBOX_BESIDES_BYTES = 65_536

# Most bytes of a character in UTF-8.
_CHAR_BYTES = 4
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_NAME_OF_PART = re.compile(r"[A-Za-z0-9_-]{1,32}")
# Of apps as well, such as `capacitor://localhost`.
_ORIGIN = re.compile(r"(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://[a-z0-9.\[\]:_-]+", re.ASCII)
_HOST_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_.-]*[a-zA-Z0-9])?")


def load(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """The settings in force. `overrides` has dotted keys (`engine.model`). Raises `StartupError`."""
    sources = [file_source(file), environment_source(environment or {}), flag_source(overrides or {})]
    for source in sources:
        check_types(source)
    check_values(sources)
    try:
        settings = msgspec.convert(merged(sources), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise StartupError(f"The settings cannot be used: {error}.") from None
    _check_together(settings, sources)
    return replace(
        settings,
        engine=_with_device(settings.engine, "engine", sources),
        engines=tuple(
            _with_device(lane, f"engines[{number}]", sources) for number, lane in enumerate(settings.engines)
        ),
    )


def _with_device(engine: _Engine, at: str, sources: Sequence[Source]) -> _Engine:
    """With its device in the one way to write it: engines of one device are to be known as such."""
    if engine.device is None:
        return engine
    try:
        return replace(engine, device=spelled(engine.device))
    except ValueError as error:
        raise StartupError(f"{stated(f'{at}.device', repr(engine.device), sources)}: {error}") from None


def _check_auth(auth: AuthSettings, sources: Sequence[Source]) -> None:
    if auth.jwks_url is not None:
        address = urlsplit(auth.jwks_url)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in _LOOPBACK):
            raise StartupError(
                f"{stated('auth.jwks_url', auth.jwks_url, sources)}: it is not an https address; "
                "whoever can change the keys on their way could make tokens."
            )
    if (auth.jwks_url is None) != (auth.jwks_issuer is None):
        given = "auth.jwks_url" if auth.jwks_issuer is None else "auth.jwks_issuer"
        raise StartupError(f"{stated(given, 'given', sources)}: auth.jwks_url and auth.jwks_issuer go together.")
    if auth.insecure_open and (auth.keys_file is not None or auth.jwks_url is not None):
        raise StartupError(
            f"{stated('auth.insecure_open', True, sources)}: with keys, nobody is let in without a token."
        )


def _check_remote(engine: EngineSettings, at: str, sources: Sequence[Source]) -> None:
    if engine.kind != "remote":
        if engine.url is not None:
            raise StartupError(
                f"{stated(f'{at}.url', 'given', sources)}: only an engine of kind `remote` has an address."
            )
        return
    if engine.url is None:
        raise StartupError(
            f"{stated(f'{at}.kind', 'remote', sources)}: {at}.url is missing, the address of the vLLM server."
        )
    address = urlsplit(engine.url)
    if address.username is not None or address.password is not None:
        raise StartupError(
            f"{stated(f'{at}.url', 'given', sources)}: leave user and password out of it, and name the file with "
            f"the key in {at}.api_key_file."
        )
    try:
        port = address.port
    except ValueError:
        port = 0
    if (
        address.scheme not in ("http", "https")
        or not address.hostname
        or port == 0
        or address.query
        or address.fragment
    ):
        raise StartupError(
            f"{stated(f'{at}.url', engine.url, sources)}: it is not an address like https://gpu.example.com:8000."
        )
    if engine.api_key is not None and engine.api_key_file is not None:
        raise StartupError(
            f"{stated(f'{at}.api_key_file', engine.api_key_file, sources)}: {at}.api_key is given as well; "
            "leave one of them out."
        )


def _check_name(names: Sequence[str], number: int, at: str, what: str, sources: Sequence[Source]) -> None:
    """Of one of several parts, after those before it. what: kind of part, as people call it."""
    name = names[number]
    if not _NAME_OF_PART.fullmatch(name):
        raise StartupError(
            f"{stated(f'{at}.name', repr(name), sources)}: a name has 1 to 32 letters, digits, _ and -."
        )
    if name in names[:number]:
        raise StartupError(f"{stated(f'{at}.name', name, sources)}: another {what} has this name.")


def _check_engines(settings: Settings, sources: Sequence[Source]) -> None:
    names = [lane.name for lane in settings.engines]
    if names and (both := origin("engine", sources)) is not None:
        # A flag or a variable is named by the first that is set.
        set_there = "engine." + next(iter(both.tree["engine"]), "kind")
        raise StartupError(
            f"{both.where(set_there)} has settings of the only engine, and there are several: put them into the "
            "[[engines]] that they are for."
        )
    for number, lane in enumerate(settings.engines):
        at = f"engines[{number}]"
        _check_name(names, number, at, "engine", sources)
        if not lane.pairs:
            raise StartupError(f"{stated(f'{at}.pairs', 'empty', sources)}: without a pair it is of no use.")
        for index, pair in enumerate(lane.pairs):
            try:
                PairPattern.parse(pair)
            except InvalidValue as error:
                raise StartupError(
                    f"{stated(f'{at}.pairs[{index}]', repr(pair), sources)}: {error.message}"
                ) from None
    for at, engine in zip(
        [f"engines[{n}]" for n in range(len(names))] or ["engine"], engines_of(settings), strict=True
    ):
        if engine.restart_backoff_max_s < engine.restart_backoff_s:
            raise StartupError(
                f"{stated(f'{at}.restart_backoff_max_s', engine.restart_backoff_max_s, sources)}: "
                f"it must be at least {at}.restart_backoff_s = {engine.restart_backoff_s}."
            )
        _check_remote(engine, at, sources)
        # An engine that gathers text for longer would seem to hang.
        if settings.delta_interval_s > engine.stall_s / 4:
            raise StartupError(
                f"{stated('delta_interval_s', settings.delta_interval_s, sources)}: it must be at most a "
                f"quarter of {at}.stall_s = {engine.stall_s}."
            )


def _check_webhooks(settings: Settings, sources: Sequence[Source]) -> None:
    names = [webhook.name for webhook in settings.webhooks]
    for number, webhook in enumerate(settings.webhooks):
        at = f"webhooks[{number}]"
        _check_name(names, number, at, "webhook", sources)
        if not webhook.events:
            raise StartupError(f"{stated(f'{at}.events', 'empty', sources)}: leave it out to send all of them.")
        for tenant in webhook.tenants:
            if not re.match(NAME, tenant):
                raise StartupError(
                    f"{stated(f'{at}.tenants', repr(tenant), sources)}: no tenant can have this name."
                )
        address = _address(webhook.url)
        # The address itself may be a secret.
        if address is None or address.scheme not in ("http", "https") or address.fragment:
            raise StartupError(
                f"{stated(f'{at}.url', 'given', sources)}: it is not an address like https://example.com/webhooks."
            )
        if address.username is not None or address.password is not None:
            raise StartupError(
                f"{stated(f'{at}.url', 'given', sources)}: leave user and password out of it; a signature proves "
                "who sends."
            )
        if address.scheme == "http" and address.hostname not in _LOOPBACK and not webhook.allow_http:
            raise StartupError(
                f"{stated(f'{at}.url', 'given', sources)}: it is not an https address; what is sent could be read "
                f"on its way. If that is meant, set {at}.allow_http = true."
            )


def _address(url: str) -> SplitResult | None:
    """None if it names no host."""
    try:
        address = urlsplit(url)
        return address if address.hostname and address.port != 0 else None
    except ValueError:
        return None


def _check_together(settings: Settings, sources: Sequence[Source]) -> None:
    """Check bounds that depend on other settings, and rules that are not ranges."""
    if settings.store.url is not None and not settings.store.urls:
        raise StartupError(f"{stated('store.url', 'empty', sources)}: leave it out to keep meetings in memory.")
    if settings.store.urls and settings.event_log.handover_file is not None:
        given = settings.event_log.handover_file
        raise StartupError(
            f"{stated('event_log.handover_file', given, sources)}: leave it out, as the store keeps all of it."
        )
    files = {
        "event_log.handover_file": settings.event_log.handover_file,
        "auth.audit_file": settings.auth.audit_file,
        "admin_keys_file": settings.admin_keys_file,
        "tls_cert": settings.tls_cert,
        "tls_key": settings.tls_key,
    }
    for path, file in files.items():
        if file == "":
            raise StartupError(f"{stated(path, 'empty', sources)}: name a file, or leave it out to have none.")
    if settings.admin_keys_file is not None and settings.admin_port is None:
        given = settings.admin_keys_file
        raise StartupError(f"{stated('admin_keys_file', given, sources)}: the administration needs admin_port.")
    for path, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if files[path] is not None and files[other] is None:
            raise StartupError(f"{stated(path, files[path], sources)}: TLS needs {other} as well.")
    _check_engines(settings, sources)
    _check_webhooks(settings, sources)
    _check_auth(settings.auth, sources)
    for proxy in settings.trusted_proxies:
        try:
            ip_network(proxy)
        except ValueError:
            raise StartupError(
                f"{stated('trusted_proxies', proxy, sources)}: it is not an address or a network like 10.0.0.0/8."
            ) from None
    for name in settings.allowed_hosts:
        if name != "*" and not _HOST_NAME.fullmatch(name.removeprefix("*.")):
            raise StartupError(
                f"{stated('allowed_hosts', name, sources)}: it is not a host name like meet.example.com, without "
                "scheme and port."
            )
    for page in settings.allowed_origins:
        if page not in ("*", "null") and not _ORIGIN.fullmatch(page):
            raise StartupError(
                f"{stated('allowed_origins', page, sources)}: it is not an origin as browsers send it, like "
                "https://meet.example.com or http://localhost:3000: in lower case, without path and without the "
                "scheme's own port."
            )
    limits = settings.limits
    # The caption of the longest text and its finals in every language can wait for one client at the same time.
    least = _OUTBOX_BESIDES_BYTES + _CHAR_BYTES * limits.text_chars * (1 + limits.languages)
    if settings.outbox_bytes < least:
        raise StartupError(
            f"{stated('outbox_bytes', settings.outbox_bytes, sources)}: one utterance of limits.text_chars = "
            f"{limits.text_chars} characters in limits.languages = {limits.languages} languages would close its "
            f"session. It must be at least {least}."
        )
    # One session may hold half of the queue.
    least = 2 * limits.languages
    if settings.max_waiting < least:
        raise StartupError(
            f"{stated('max_waiting', settings.max_waiting, sources)}: one session may fill half of it, and an "
            f"utterance in limits.languages = {limits.languages} languages must fit. "
            f"It must be at least {least}."
        )
