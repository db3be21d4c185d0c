"""An engine process ends with its gateway, however the gateway ends, and not before.

vLLM calls `exit_with_parent` in each of its processes, because it is named as a plugin in `pyproject.toml`
(group `vllm.general_plugins`). Without it, a gateway that is killed leaves a process that holds the GPU's memory,
and Ctrl-C, which a terminal sends to every process it started, ends the engine under the work that the gateway
is about to finish.
The process that hosts the engine calls it too. Knows: processes. Must not know: vLLM.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import connection

__all__ = ["exit_with_parent"]


def exit_with_parent(before: Callable[[], object] = lambda: None) -> None:
    """In a child process: end it as soon as its parent is gone. In the gateway's own process: nothing.

    before: what is done first, in a thread.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        connection.wait([parent.sentinel])
        try:
            before()
        finally:
            os._exit(1)

    threading.Thread(target=watch, name="exit with parent", daemon=True).start()
