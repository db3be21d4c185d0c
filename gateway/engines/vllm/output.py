"""Where an engine's processes write what they say.

Knows: file descriptors, vLLM's logger. Must not know: what is started, what it says.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


class EngineLog:
    """A file that several processes append to."""

    def __init__(self) -> None:
        # None before `open`.
        self.path: Path | None = None

    def open(self) -> int:
        """A new file's descriptor, which the caller closes."""
        handle, name = tempfile.mkstemp(prefix="gateway-engine-", suffix=".log")
        os.close(handle)
        self.path = Path(name)
        return os.open(self.path, os.O_WRONLY | os.O_APPEND)

    def take_logger(self) -> None:
        """From now on, what vLLM logs in this process goes there, too; it is open."""
        assert self.path is not None  # noqa: S101 -- it is open
        log_of_vllm = logging.getLogger("vllm")
        log_of_vllm.setLevel(logging.WARNING)
        log_of_vllm.handlers = [logging.FileHandler(self.path)]

    def close(self, *, keep: bool) -> None:
        """keep: whether it is worth reading."""
        for handler in logging.getLogger("vllm").handlers:
            handler.close()
        if self.path is not None and not keep:
            self.path.unlink(missing_ok=True)


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
