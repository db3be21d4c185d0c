"""The file in which a gateway that restarts leaves its memory log and its sessions to the next process.

Knows: how that file is written so that it is whole or not there, and readable by this user alone: it holds
transcripts, and the secrets with which sessions are resumed.
Must not know: what is done with the values in it, or when. Everything here blocks: call it outside the event loop.

Reading leaves the file where it is, so that a start that fails costs nobody anything. Whoever has read it discards
it once they can serve what is in it: from then on theirs is the newer state, and the file must not be used again.
Nothing here keeps two processes from reading one file; something else must, such as a port that only one can bind.
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
from gateway.domain.sessions import VERSION, Handover

__all__ = ["check", "discard", "read", "write"]


class _Versioned(msgspec.Struct):
    version: int


def check(path: Path) -> None:
    """Raises `StartupError` where nothing could be left at the end, so that this is known at the beginning."""
    if path.is_dir():
        raise StartupError(f"The handover file {path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise StartupError(f"There is no folder {path.parent} for the handover file {path.name}.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise StartupError(f"The folder {path.parent} of the handover file cannot be written to.")


def write(path: Path, handover: Handover) -> None:
    """Replace the file, at once and as a whole; on failure the folder is as it was. Raises `OSError`."""
    # Made with mode 0600, under a name that nobody can have taken before.
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
    """What is in the file, which stays where it is; null where there is none.

    Raises `StartupError` for a file that is not this gateway's own or cannot be understood.
    """
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
        if version != VERSION:
            raise _refused(path, f"is of version {version}, and this gateway reads version {VERSION}")
        return msgspec.msgpack.decode(content, type=Handover)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):  # whose words may be of the transcript
        raise _refused(path, "is damaged or no handover file") from None


def discard(path: Path) -> None:
    """Delete the file, if it is there. Raises `OSError`."""
    path.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    # A link is not followed; a pipe is not waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path, "is no regular file")
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
        f"The handover file {path} {why}: delete it to start without the meetings of the process before."
    )
