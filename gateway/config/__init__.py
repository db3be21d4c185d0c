"""Every setting, its default and where it can come from. Only `app` and `cli` read it.

settings: the settings themselves. sources: a file, variables, flags. validation: valid names, types and ranges.
loading: all of these together.
"""

from gateway.config.loading import load, mistakes
from gateway.config.settings import (
    BUNDLED,
    AuthSettings,
    EngineSettings,
    EventLogSettings,
    LaneSettings,
    Settings,
    StoreSettings,
    engines_of,
    part,
)

__all__ = [
    "BUNDLED",
    "AuthSettings",
    "EngineSettings",
    "EventLogSettings",
    "LaneSettings",
    "Settings",
    "StoreSettings",
    "engines_of",
    "load",
    "mistakes",
    "part",
]
