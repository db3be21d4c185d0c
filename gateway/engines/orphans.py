"""No engine process outlives the gateway, however the gateway ends.

vLLM calls `exit_with_parent` in each of its processes, because it is named as a plugin in `pyproject.toml`
(group `vllm.general_plugins`). Without it, a gateway that is killed leaves a process that holds the GPU's memory.
Knows: processes. Must not know: vLLM.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing import connection

__all__ = ["exit_with_parent"]


def exit_with_parent() -> None:
    """In a child process: end it as soon as its parent is gone. In the gateway's own process: nothing."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="exit with parent", daemon=True).start()
