"""Where an engine's processes write what they say.

Knows: file descriptors. Must not know: what is started, what it says.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

__all__ = ["output_to"]


@contextlib.contextmanager
def output_to(descriptor: int) -> Iterator[None]:
    """Let a process started inside this context inherit `descriptor` as its stdout and stderr.

    The engine's log is long, so it goes to a file. Our own log handlers still write to the terminal, because
    `host.main` gives them a duplicate of the terminal's descriptor before an engine starts.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        for number, original in zip((1, 2), saved, strict=True):
            os.dup2(original, number)
            os.close(original)
