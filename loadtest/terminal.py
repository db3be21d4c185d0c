"""Progress on the terminal: one line that changes, or one line a stage in a log.

Knows: whether somebody is looking. Must not know: what is measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TextIO


class Progress:
    """Shows the latest of what it is told."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._stage = ""

    def __call__(self, line: str) -> None:
        if self._stream.isatty():
            self._stream.write(f"\r\033[K{line}\r")
            self._stream.flush()
        elif (stage := line.rpartition(":")[0] or line) != self._stage:
            self._stage = stage
            self._stream.write(f"{line}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave an empty line for what comes next."""
        if self._stream.isatty():
            self._stream.write("\r\033[K")
            self._stream.flush()


@contextmanager
def terminal() -> Iterator[TextIO]:
    """Our own way to the terminal: while an engine starts, descriptors 1 and 2 lead to its log."""
    with os.fdopen(os.dup(2), "w", buffering=1) as stream:
        yield stream
