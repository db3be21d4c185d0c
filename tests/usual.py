"""The one builder of parts whose constructors take settings: what a test does not name is as `config` has it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import structs

from gateway import config
from gateway.config import Settings
from gateway.domain.log import LogBounds
from gateway.engines.supervisor import RestartPolicy
from gateway.stores.memory_session_store import MemorySessions
from gateway.stores.redis.session_store import RedisSessionStore
from gateway.translation.partials import Partials

_SETTINGS = Settings()
_BOUNDS = config.part(LogBounds, _SETTINGS.event_log)
# What tests want otherwise: a busy machine is not a reason to refuse work, and every token is a delta.
_VALUES: dict[str, Any] = {
    **structs.asdict(_SETTINGS.store),
    **structs.asdict(_SETTINGS.engine),
    **structs.asdict(_SETTINGS),
    "audience": _SETTINGS.auth.audience,
    "auth": _SETTINGS.auth.kind,
    "best_effort_share": _SETTINGS.partials_share,
    "deadline_s": _SETTINGS.utterance_deadline_s,
    "delta_interval_s": 0.0,
    "max_queue_s": 3_600.0,
    "policy": config.part(RestartPolicy, _SETTINGS.engine),
}
# Parts in which a name means something else.
_OWN: dict[object, dict[str, Any]] = {
    MemorySessions: {"keep_s": _SETTINGS.limits.keep_s},
    RedisSessionStore: {"keep_s": _SETTINGS.limits.keep_s},
    Partials: {"max_bytes": 2**26},
}


T = TypeVar("T")


def usual(kind: Callable[..., T], *given: object, **changed: object) -> T:
    """`kind(*given, **changed)`, with the usual value of each other parameter that has no default."""
    parameters = inspect.signature(kind).parameters.values()
    if any(each.name == "bounds" for each in parameters):
        changes = {name: changed.pop(name) for name in LogBounds.__struct_fields__ if name in changed}
        changed["bounds"] = structs.replace(_BOUNDS, **changes)
    left = [each for each in parameters if each.name not in changed][len(given) :]
    wanted = {each.name for each in left if each.default is each.empty}
    values = _VALUES | _OWN.get(kind, {})
    return kind(*given, **{name: values[name] for name in wanted & values.keys()}, **changed)
