"""The folder of a gateway that keeps something there: tells whether it runs, and which process it is.

Knows: files, locks. Must not know: what the gateway keeps there besides.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from gateway.domain.errors import StartupError
from gateway.ownership import check_folder, make_folder

_NAME = "gateway.pid"

# For how long an earlier gateway's store may take to end.
_WAIT_S = 10.0


def default_folder() -> Path:
    """Where it is unless another is given."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "translation-gateway"


@contextlib.contextmanager
def held(folder: Path, *, reloads: bool = True) -> Iterator[int]:
    """Make the folder this process's own, for as long as the context lasts. Raises `StartupError`.

    reloads: whether it may be found and sent SIGHUP, see `holder`.
    Gives the file descriptor of the lock: processes that inherit it hold the folder as well.
    """
    try:
        make_folder(folder)
        lock = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _useless(folder, error.strerror or str(error)) from None
    try:
        _take(lock, folder)
        os.ftruncate(lock, 0)
        if reloads:
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _take(lock: int, folder: Path) -> None:
    until_s = time.monotonic() + _WAIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The parent of what holds it may be gone; then its store ends soon.
            running = _pid(lock)
            if time.monotonic() > until_s or (running is not None and _runs(running)):
                raise _belongs(folder, running) from None
            time.sleep(0.05)
        else:
            return


def check(folder: Path) -> None:
    """Raises `StartupError` where `held` would now; makes nothing."""
    check_folder(folder)
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise _useless(folder, f"nothing can be made in {there}")
    try:
        lock = os.open(folder / _NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _useless(folder, error.strerror or str(error)) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _belongs(folder, _pid(lock)) from None
    finally:
        os.close(lock)


def _useless(folder: Path, why: str) -> StartupError:
    return StartupError(f"The folder {folder} cannot be used ({why}): name another with --state-dir.")


def _belongs(folder: Path, running: int | None) -> StartupError:
    whose = "another gateway" if running is None else f"another gateway (process {running})"
    return StartupError(
        f"The folder {folder} belongs to {whose}: stop it, or name another folder with --state-dir."
    )


def holder(folder: Path) -> int | None:
    """The process of the gateway that has this folder and reloads; None if none runs."""
    try:
        lock = os.open(folder / _NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # What it started may hold the folder a little longer.
        running = _pid(lock)
        return running if running is not None and _uid(running) == os.fstat(lock).st_uid else None
    else:
        return None
    finally:
        os.close(lock)


def _pid(lock: int) -> int | None:
    text = os.pread(lock, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _uid(pid: int) -> int | None:
    """Whose process it is, as a file could name any; None if it does not run."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except FileNotFoundError:
        return None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
