"""Every setting, its default and where it may come from; read by `app` and `cli` alone.

settings: the settings themselves. sources: a file, variables, flags. validation: which names, types and ranges are
right. loading: all of these together.
"""

from gateway.config.loading import load
from gateway.config.settings import BUNDLED_MODEL, EngineSettings, EventLogSettings, Settings, part

__all__ = ["BUNDLED_MODEL", "EngineSettings", "EventLogSettings", "Settings", "load", "part"]
