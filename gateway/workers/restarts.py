"""How a worker is started again: after which pause, and with which settings.

Knows: how the workers that had one number have ended. Must not know: processes, what the other workers do.
"""

from __future__ import annotations

import logging

from msgspec.structs import replace

from gateway.config import Settings
from gateway.domain.errors import StartupError

_log = logging.getLogger(__name__)

# Settings of what goes on running when the workers are replaced.
_FIXED = ("host", "port", "admin_host", "admin_port", "admin_keys_file", "engine", "store")

# A worker that served for so long did not fail at its start.
_STEADY_S = 60.0
# Pause before a worker that ended is started again: none at first, then this, doubled with each failure in a row.
_AGAIN_S, _AGAIN_MAX_S = 0.5, 30.0


class Restarts:
    """Of the workers of one number."""

    def __init__(self) -> None:
        self._failures = 0
        self._proven: Settings | None = None

    def ended(self, settings: Settings, *, served: bool, after_s: float) -> None:
        """One has ended, `after_s` seconds after its start. served: it had begun to accept connections."""
        if served:
            self._proven = settings
            if after_s > _STEADY_S:
                self._failures = 0

    def settings(self, newest: Settings) -> Settings:
        """Those with which one last served, which a reload that stopped midway may not have made the newest."""
        return self._proven or newest

    def pause_s(self) -> float:
        """For how long to wait now; it has failed once more."""
        failures, self._failures = self._failures, self._failures + 1
        return min(_AGAIN_MAX_S, _AGAIN_S * 2.0 ** min(failures - 1, 10)) if failures else 0.0


def with_what_may_change(now: Settings, settings: Settings, *, asked_port: int) -> Settings:
    """The new settings, but for those of what goes on running. asked_port: what the first settings said of it.

    Raises `StartupError` where one engine is made several, or several one.
    """
    if bool(now.engines) is not bool(settings.engines):
        raise StartupError("one engine is made several, or several one, when the gateway is started again.")
    fixed = {name: getattr(now, name) for name in _FIXED}
    asked = replace(settings, port=now.port) if settings.port == asked_port else settings
    if changed := [name for name in _FIXED if getattr(asked, name) != fixed[name]]:
        _log.warning("a change of %s takes effect when the gateway is started again", ", ".join(changed))
    return replace(settings, **fixed)
