"""The audit log as a file: a line of JSON for each entry, appended, readable by its owner only.

Knows: the file, and that another program may rotate it. Must not know: what entries mean.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from gateway.domain.audit import AuditEntry
from gateway.domain.errors import StartupError

__all__ = ["AuditFile"]

_log = logging.getLogger(__name__)

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class AuditFile:
    """Appends entries to a file; opens it again when it was moved away. Raises `StartupError` if it cannot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Whether the file ends in the middle of a line.
        self._torn = False
        try:
            self._descriptor = os.open(path, _FLAGS, 0o600)
        except OSError as error:
            raise StartupError(f"The audit log {path} cannot be written ({error.strerror or error}).") from None

    def write(self, entry: AuditEntry) -> None:
        """Append an entry. Never raises: that it fails is logged."""
        try:
            self._follow()
            line = (b"\n" if self._torn else b"") + msgspec.json.encode(entry) + b"\n"
            self._torn = os.write(self._descriptor, line) < len(line)
        except OSError as error:
            _log.error("an entry of the audit log cannot be written (%s)", error.strerror or error)

    def close(self) -> None:
        os.close(self._descriptor)

    def _follow(self) -> None:
        """Go on in a new file where this one was moved away."""
        held = os.fstat(self._descriptor)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            there = None
        if there is None or (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino):
            descriptor = os.open(self._path, _FLAGS, 0o600)
            self._torn = False
            os.close(self._descriptor)
            self._descriptor = descriptor
