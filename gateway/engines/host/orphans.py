"""Makes an engine process end when its gateway ends, and not before.

vLLM calls `exit_with_parent` in each of its processes, because `pyproject.toml` names it as a plugin (group
`vllm.general_plugins`). The engine's host process calls it too. It prevents two problems: a killed gateway would
leave a process that holds the GPU's memory; and Ctrl-C, which a terminal sends to all its processes, would end the
engine before the gateway has finished accepted work.
A host that outlives its gateway calls `exit_when_hung` instead, and ends by itself where no gateway has it.
Knows: processes. Must not know: vLLM.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import connection

# Time between two looks at a process that may hang.
_LOOK_S = 1.0


def exit_with_parent(before: Callable[[], object] = lambda: None) -> None:
    """End this process as soon as its parent is gone. Does nothing in the gateway's own process.

    before: called first, in a thread.
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


def exit_when_hung(
    turns: Callable[[], int],
    is_attended: Callable[[], bool],
    after_s: float,
    before: Callable[[], object] = lambda: None,
) -> None:
    """End this process once `turns` has not grown for `after_s` in which no gateway had it.

    is_attended: whether a gateway has it, which ends it when it hangs; asked in a thread. before: called first, in
    that thread.
    """

    def watch() -> None:
        seen, looks = turns(), 0.0
        # Looks are counted, as the time in which this process was stopped does not matter.
        while looks < after_s:
            time.sleep(_LOOK_S)
            now = turns()
            seen, looks = now, 0.0 if now != seen or is_attended() else looks + _LOOK_S
        try:
            before()
        finally:
            os._exit(1)

    threading.Thread(target=watch, name="exit when hung", daemon=True).start()
