"""The audit log as a file: a line of JSON for each entry, appended, readable by its owner only.

Knows: the file, and that another program may rotate it. Must not know: what entries mean.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from pathlib import Path

import msgspec

from gateway.domain.audit import AuditEntry
from gateway.domain.errors import StartupError
from gateway.ownership import check_owner, check_way

_log = logging.getLogger(__name__)

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class AuditFile:
    """Appends entries to a file; opens it again when it was moved away.

    Raises `StartupError` if it cannot, or if another user could replace the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Whether the last entry could not be written.
        self._failing = False
        # Whether the file ends in the middle of a line: a disk was full, or a process was killed.
        self._torn = False
        try:
            self._open()
            found = os.fstat(self._descriptor)
            if stat.S_ISREG(found.st_mode):  # and not a terminal, or a pipe
                check_way(path)
                check_owner(path, found)
        except OSError as error:
            raise StartupError(f"The audit log {path} cannot be written ({error.strerror or error}).") from None

    def write(self, entry: AuditEntry) -> None:
        """Append an entry. Never raises: that it fails is logged, once until it works again."""
        try:
            if self._is_moved():
                os.close(self._descriptor)
                self._open()
            line = (b"\n" if self._torn else b"") + msgspec.json.encode(entry) + b"\n"
            self._torn = os.write(self._descriptor, line) < len(line)
        except OSError as error:
            if not self._failing:
                _log.error("the audit log cannot be written (%s)", error.strerror or error)
            self._failing = True
        else:
            self._failing = False

    def _open(self) -> None:
        self._descriptor = os.open(self._path, _FLAGS, 0o600)
        self._torn = False
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                self._torn = file.read(1) != b"\n"

    def _is_moved(self) -> bool:
        held = os.fstat(self._descriptor)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return True
        return (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino)
