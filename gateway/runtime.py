"""Process-wide settings: pauses of the Python interpreter, and logging.

Knows: Python's garbage collector and threads, logging. Must not know: what the process does.
"""

from __future__ import annotations

import gc
import logging
import sys
from typing import TextIO

__all__ = ["log_to", "settle_interpreter"]

# How long another thread, such as one that writes metrics, may hold up the event loop. Python's default is 5 ms,
# about the time of one token.
_SWITCH_S = 0.001

# Thresholds of the garbage collector's three generations.
# A session is 200 objects that survive. While thousands of sessions open, a pass of the middle generation looks at
# the product of the first two numbers, and takes 20 ms. With a smaller first number, passes take a twentieth of a
# full event loop. A full pass takes seconds with any setting, so it is made rare.
_GARBAGE_THRESHOLDS = (10_000, 5, 1_000)


def settle_interpreter() -> None:
    """Keep the interpreter's own pauses short. For a process that serves."""
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_S)


def log_to(terminal: TextIO, level: str | int) -> None:
    """Send the logs of the gateway and of uvicorn to `terminal`. level: of the gateway's own log."""
    handler = logging.StreamHandler(terminal)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("gateway", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
    logging.getLogger("gateway").setLevel(level)
    uvicorn_log = logging.getLogger("uvicorn.error")
    uvicorn_log.setLevel("WARNING")
    # uvicorn logs a refused WebSocket handshake as an error, so any web page could fill the log.
    uvicorn_log.addFilter(lambda record: "without completing handshake" not in record.getMessage())
