"""The handover file: a gateway that restarts saves its memory log and sessions for the next process.

Knows: how to write the file atomically, and readable by its owner only: it contains transcripts, and the secrets
that resume sessions.
Must not know: what the values in it are used for, or when. All functions block: call them outside the event loop.

Reading does not delete the file, so a failed start loses nothing. The process that has read it must discard it
once it serves the sessions: from then on the process has the newer state. This module does not stop two processes
from reading the same file; something else must, such as a port that only one process can bind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path

import msgspec

from gateway.domain.errors import StartupError
from gateway.domain.sessions import HANDOVER_VERSION, Handover
from gateway.ownership import check_way


class _Versioned(msgspec.Struct):
    version: int


def check(path: Path) -> None:
    """Raises `StartupError` if the file could not be written at the end. Called at the start."""
    check_way(path)
    if path.is_dir():
        raise StartupError(f"The handover file {path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise StartupError(f"There is no folder {path.parent} for the handover file {path.name}.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise StartupError(f"The folder {path.parent} of the handover file cannot be written to.")


def write(path: Path, handover: Handover) -> None:
    """Replace the file atomically; on failure the folder is unchanged. Raises `OSError`."""
    # `mkstemp` creates it with mode 0600 and a new name.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(msgspec.msgpack.encode(handover))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def read(path: Path) -> Handover | None:
    """What the file holds; None if there is no file. Raises `StartupError` if it is unsafe or damaged."""
    try:
        content = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refused(path, "is a symbolic link") from None
        raise _refused(path, f"cannot be read ({error.strerror})") from None
    try:
        version = msgspec.msgpack.decode(content, type=_Versioned).version
        if version != HANDOVER_VERSION:
            raise _refused(path, f"is of version {version}, and this gateway reads version {HANDOVER_VERSION}")
        return msgspec.msgpack.decode(content, type=Handover)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):  # not shown: it may quote the transcript
        raise _refused(path, "is damaged or not a handover file") from None


def discard(path: Path) -> None:
    """Delete the file if it exists. Raises `OSError`."""
    path.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    check_way(path)
    # Does not follow a link, and does not wait for a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path, "is not a regular file")
        if found.st_uid != os.geteuid():
            raise _refused(path, "belongs to another user")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise _refused(path, "can be read or written by other users")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _refused(path: Path, why: str) -> StartupError:
    return StartupError(
        f"The handover file {path} {why}: delete it to start without the meetings of the previous process."
    )
