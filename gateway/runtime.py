"""How a process of the gateway runs: the interpreter's pauses, and where its log goes.

Knows: Python's garbage collector and threads, logging. Must not know: what the process does.
"""

from __future__ import annotations

import gc
import logging
import sys
from typing import TextIO

__all__ = ["log_to", "settle_interpreter"]

# How long a thread, such as one that writes metrics, may keep the event loop waiting; Python's 5 ms are a token.
_SWITCH_S = 0.001

# How much is made between two passes of the garbage collector. A session is 200 objects that survive: while
# thousands open, a pass of the middle generation looks at the product of the first two, and takes 20 ms. A smaller
# first one takes a twentieth of a full event loop. A whole pass takes seconds whatever is set, and is rare.
_GARBAGE_THRESHOLDS = (10_000, 5, 1_000)


def settle_interpreter() -> None:
    """Make Python's own pauses short; for a process that serves."""
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_S)


def log_to(terminal: TextIO, level: str | int) -> None:
    """Send the log of this process, the gateway's and its server's, there. level: of the gateway's own."""
    handler = logging.StreamHandler(terminal)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("gateway", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
    logging.getLogger("gateway").setLevel(level)
    uvicorn_log = logging.getLogger("uvicorn.error")
    uvicorn_log.setLevel("WARNING")
    # uvicorn calls a refused WebSocket handshake an error of the application; any web page could fill a log so.
    uvicorn_log.addFilter(lambda record: "without completing handshake" not in record.getMessage())
