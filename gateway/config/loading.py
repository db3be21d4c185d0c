"""Loads the settings in force from every source, or explains each mistake in one sentence.

A later source overrides an earlier one: the fields' defaults, a TOML file, environment variables (`GATEWAY__PORT`,
`GATEWAY__ENGINE__MAX_NUM_SEQS`), command line flags. Every mistake is a `StartupError` that names its place: the
file and the setting, the variable, or the flag.

Knows: which settings depend on one another. Must not know: what they are for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_network
from itertools import chain
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import replace

from gateway.config.settings import AuthSettings, EngineSettings, Settings, engines_of
from gateway.config.sources import Source, environment_source, file_source, flag_source, merged, origin, stated
from gateway.config.validation import type_mistakes, value_mistakes
from gateway.domain.errors import InvalidValue, StartupError
from gateway.domain.pairs import PairPattern
from gateway.domain.roles import NAME
from gateway.engines.vllm.options import spelled

_Engine = TypeVar("_Engine", bound=EngineSettings)

# The error about a setting in force: its path, its value as it is told, and what is wrong with it.
_Refused = Callable[[str, object, str], StartupError]

# Bytes of one session's outbox for everything besides the texts of an utterance: names, numbers, other messages.
_OUTBOX_BESIDES_BYTES = 65_536

# Most bytes of a character in UTF-8.
_CHAR_BYTES = 4
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_NAME_OF_PART = re.compile(r"[A-Za-z0-9_-]{1,32}")
# An origin may be an app's as well, such as `capacitor://localhost`.
_ORIGIN = re.compile(r"(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://[a-z0-9.\[\]:_-]+", re.ASCII)
_HOST_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_.-]*[a-zA-Z0-9])?")


def load(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """The settings in force. `overrides` has dotted keys (`engine.model`).

    Raises `StartupError` with the first mistake.
    """
    sources = _sources(file, environment, overrides)
    if found := _mistakes_of_each(sources):
        raise StartupError(found[0])
    return _together(sources)


def mistakes(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> list[str]:
    """A sentence for each setting that is wrong by itself; if there is none, what `load` raises."""
    try:
        sources = _sources(file, environment, overrides)
        found = _mistakes_of_each(sources)
        if not found:
            _together(sources)
    except StartupError as error:
        return [error.message]
    return found


def _sources(
    file: Path | None, environment: Mapping[str, str] | None, overrides: Mapping[str, object] | None
) -> list[Source]:
    return [file_source(file), environment_source(environment or {}), flag_source(overrides or {})]


def _mistakes_of_each(sources: Sequence[Source]) -> list[str]:
    """A sentence for each setting that is wrong by itself. Ranges are looked at once all types are right."""
    return list(chain.from_iterable(map(type_mistakes, sources))) or list(value_mistakes(sources))


def _together(sources: Sequence[Source]) -> Settings:
    """The settings of sources of which each value is right by itself. Raises `StartupError`."""
    try:
        settings = msgspec.convert(merged(sources), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise StartupError(f"The settings cannot be used: {error}.") from None

    def refused(path: str, value: object, why: str) -> StartupError:
        return StartupError(f"{stated(path, value, sources)}: {why}")

    _check_together(settings, refused)
    _check_engines(settings, sources, refused)
    _check_webhooks(settings, refused)
    _check_auth(settings.auth, refused)
    return replace(
        settings,
        engine=_with_device(settings.engine, "engine", refused),
        engines=tuple(
            _with_device(lane, f"engines[{number}]", refused) for number, lane in enumerate(settings.engines)
        ),
    )


def _with_device(engine: _Engine, at: str, refused: _Refused) -> _Engine:
    """With its device in the one way to write it: engines of one device are to be known as such."""
    if engine.device is None:
        return engine
    try:
        return replace(engine, device=spelled(engine.device))
    except ValueError as error:
        raise refused(f"{at}.device", repr(engine.device), str(error)) from None


def _check_auth(auth: AuthSettings, refused: _Refused) -> None:
    if auth.jwks_url is not None:
        address = urlsplit(auth.jwks_url)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in _LOOPBACK):
            why = "it is not an https address; whoever can change the keys on their way could make tokens."
            raise refused("auth.jwks_url", auth.jwks_url, why)
    if (auth.jwks_url is None) != (auth.jwks_issuer is None):
        given = "auth.jwks_url" if auth.jwks_issuer is None else "auth.jwks_issuer"
        raise refused(given, "given", "auth.jwks_url and auth.jwks_issuer go together.")
    if auth.insecure_open and (auth.keys_file is not None or auth.jwks_url is not None):
        raise refused("auth.insecure_open", True, "with keys, nobody is let in without a token.")


def _check_remote(engine: EngineSettings, at: str, refused: _Refused) -> None:
    if engine.kind != "remote":
        if engine.url is not None:
            raise refused(f"{at}.url", "given", "only an engine of kind `remote` has an address.")
        return
    if engine.url is None:
        raise refused(f"{at}.kind", "remote", f"{at}.url is missing, the address of the vLLM server.")
    if _has_user(engine.url):
        why = f"leave user and password out of it, and name the file with the key in {at}.api_key_file."
        raise refused(f"{at}.url", "given", why)
    address = _address(engine.url)
    if address is None or address.query or address.fragment:
        raise refused(f"{at}.url", engine.url, "it is not an address like https://gpu.example.com:8000.")
    if engine.api_key is not None and engine.api_key_file is not None:
        why = f"{at}.api_key is given as well; leave one of them out."
        raise refused(f"{at}.api_key_file", engine.api_key_file, why)


def _check_name(names: Sequence[str], number: int, at: str, what: str, refused: _Refused) -> None:
    """Check the name of one of several parts, after those before it. what: kind of part, as people call it."""
    name = names[number]
    if not _NAME_OF_PART.fullmatch(name):
        raise refused(f"{at}.name", repr(name), "a name has 1 to 32 letters, digits, _ and -.")
    if name in names[:number]:
        raise refused(f"{at}.name", name, f"another {what} has this name.")


def _check_engines(settings: Settings, sources: Sequence[Source], refused: _Refused) -> None:
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
        _check_name(names, number, at, "engine", refused)
        if not lane.pairs:
            raise refused(f"{at}.pairs", "empty", "without a pair it is of no use.")
        for index, pair in enumerate(lane.pairs):
            try:
                PairPattern.parse(pair)
            except InvalidValue as error:
                raise refused(f"{at}.pairs[{index}]", repr(pair), error.message) from None
    for at, engine in zip(
        [f"engines[{n}]" for n in range(len(names))] or ["engine"], engines_of(settings), strict=True
    ):
        if engine.restart_backoff_max_s < engine.restart_backoff_s:
            why = f"it must be at least {at}.restart_backoff_s = {engine.restart_backoff_s}."
            raise refused(f"{at}.restart_backoff_max_s", engine.restart_backoff_max_s, why)
        _check_remote(engine, at, refused)
        # An engine that gathers text for longer would seem to hang.
        if settings.delta_interval_s > engine.stall_s / 4:
            why = f"it must be at most a quarter of {at}.stall_s = {engine.stall_s}."
            raise refused("delta_interval_s", settings.delta_interval_s, why)


def _check_webhooks(settings: Settings, refused: _Refused) -> None:
    names = [webhook.name for webhook in settings.webhooks]
    for number, webhook in enumerate(settings.webhooks):
        at = f"webhooks[{number}]"
        _check_name(names, number, at, "webhook", refused)
        if not webhook.events:
            raise refused(f"{at}.events", "empty", "leave it out to send all of them.")
        for tenant in webhook.tenants:
            if not re.match(NAME, tenant):
                raise refused(f"{at}.tenants", repr(tenant), "no tenant can have this name.")
        address = _address(webhook.url)
        # The address itself may be a secret.
        if address is None or address.fragment:
            raise refused(f"{at}.url", "given", "it is not an address like https://example.com/webhooks.")
        if _has_user(webhook.url):
            why = "leave user and password out of it; a signature proves who sends."
            raise refused(f"{at}.url", "given", why)
        if address.scheme == "http" and address.hostname not in _LOOPBACK and not webhook.allow_http:
            why = (
                "it is not an https address; what is sent could be read on its way. If that is meant, set "
                f"{at}.allow_http = true."
            )
            raise refused(f"{at}.url", "given", why)


def _has_user(url: str) -> bool:
    """Whether a user or a password is part of an address."""
    return "@" in re.split(r"[/?#]", url.partition("//")[2], maxsplit=1)[0]


def _address(url: str) -> SplitResult | None:
    """An address of HTTP; None if it is none, or names no host."""
    try:
        address = urlsplit(url)
        is_usable = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError:
        return None
    return address if is_usable else None


def _check_together(settings: Settings, refused: _Refused) -> None:
    """Check bounds that depend on other settings, and rules that are not ranges."""
    handover_file, admin_keys_file = settings.event_log.handover_file, settings.admin_keys_file
    if settings.store.url is not None and not settings.store.urls:
        raise refused("store.url", "empty", "leave it out to keep meetings in memory.")
    if settings.store.urls and handover_file is not None:
        raise refused("event_log.handover_file", handover_file, "leave it out, as the store keeps all of it.")
    files = {
        "event_log.handover_file": handover_file,
        "auth.audit_file": settings.auth.audit_file,
        "admin_keys_file": admin_keys_file,
        "tls_cert": settings.tls_cert,
        "tls_key": settings.tls_key,
    }
    for path, file in files.items():
        if file == "":
            raise refused(path, "empty", "name a file, or leave it out to have none.")
    if admin_keys_file is not None and settings.admin_port is None:
        raise refused("admin_keys_file", admin_keys_file, "the administration needs admin_port.")
    for path, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if files[path] is not None and files[other] is None:
            raise refused(path, files[path], f"TLS needs {other} as well.")
    for proxy in settings.trusted_proxies:
        try:
            ip_network(proxy)
        except ValueError:
            why = "it is not an address or a network like 10.0.0.0/8."
            raise refused("trusted_proxies", proxy, why) from None
    for name in settings.allowed_hosts:
        if name != "*" and not _HOST_NAME.fullmatch(name.removeprefix("*.")):
            why = "it is not a host name like meet.example.com, without scheme and port."
            raise refused("allowed_hosts", name, why)
    for page in settings.allowed_origins:
        if page not in ("*", "null") and not _ORIGIN.fullmatch(page):
            why = (
                "it is not an origin as browsers send it, like https://meet.example.com or http://localhost:3000: "
                "in lower case, without path and without the scheme's own port."
            )
            raise refused("allowed_origins", page, why)
    limits = settings.limits
    # The caption of the longest text and its finals in every language can wait for one client at the same time.
    least = _OUTBOX_BESIDES_BYTES + _CHAR_BYTES * limits.text_chars * (1 + limits.languages)
    if settings.outbox_bytes < least:
        why = (
            f"one utterance of limits.text_chars = {limits.text_chars} characters in limits.languages = "
            f"{limits.languages} languages would close its session. It must be at least {least}."
        )
        raise refused("outbox_bytes", settings.outbox_bytes, why)
    # One session may hold half of the queue.
    least = 2 * limits.languages
    if settings.max_waiting < least:
        why = (
            f"one session may fill half of it, and an utterance in limits.languages = {limits.languages} "
            f"languages must fit. It must be at least {least}."
        )
        raise refused("max_waiting", settings.max_waiting, why)
