"""Engine hosts that outlive their gateway: found again by the next one, or ended.

Their sockets are in a folder that is one gateway's own. A host that is found is used if it is made of what is
wanted and its messages are understood; any other is ended, as it takes the room of the engine that is wanted.
Knows: the folder, processes, the first word of a host (`Hello`).
Must not know: which engines there are, what they are made of, when a gateway leaves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import secrets
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from gateway.domain.errors import StartupError
from gateway.engines.host import main, processes
from gateway.engines.host.channel import read_message
from gateway.engines.host.main import Keep, Role
from gateway.engines.host.messages import PROTOCOL, Hello
from gateway.engines.host.proxy import Host
from gateway.engines.prompting.completions import Completions
from gateway.ownership import check_folder, check_peer, make_folder
from gateway.runtime import log_style

_log = logging.getLogger(__name__)

# Longest wait for the first word of a host, and for one that has not noticed yet that its gateway is gone.
_HELLO_S = 5.0
_LOOK_S = 0.05

# What a socket's path may have, in bytes; see unix(7).
_PATH_BYTES = 107

# Those that this process has started and that run: they are not waited for at its end, and reaped before.
_children: set[subprocess.Popen[bytes]] = set()

_START = "from gateway.engines.host.main import run_kept; run_kept({})"


_SILENT = "it does not answer"


class Waiting(NamedTuple):
    """A host that waits for the next gateway."""

    pid: int
    # Why it would not be used; empty: it would.
    why_not: str


class KeptHosts:
    """The hosts of one gateway. folder: this gateway's own. keep_s: for how long they wait for the next one.

    leaving: set by a gateway that ends and leaves them to the next one. Raises `StartupError` where no sockets can
    be made.
    """

    def __init__(self, folder: Path, keep_s: float) -> None:
        self.leaving = False
        self._folder = folder
        self._keep_s = keep_s
        self._found: defaultdict[str, list[KeptHost]] = defaultdict(list)
        check(folder)
        try:
            make_folder(folder)
        except OSError as error:
            raise StartupError(f"The folder {folder} cannot be used ({error.strerror or error}).") from None

    def _at(self, name: str, what: str) -> Path:
        return self._folder / f"{name}.{what}"

    @property
    def any_found(self) -> bool:
        """Whether an engine is there already."""
        return any(self._found.values())

    def find(self, wanted: Iterable[str]) -> None:
        """Take the hosts that are made of what is wanted, and end all others. Blocks, for seconds at most.

        Raises `StartupError` for one of another user.
        """
        missing = Counter(wanted)
        for path in sorted(self._folder.glob("*.host")):
            host, hello = _met(path)
            if host is None:
                self._forget(path)
            elif hello is not None and hello.taken:
                _log.warning("another gateway has the engine of process %s; it is left alone", host.pid)
                host.sock.close()
            elif hello is not None and not (why := _assign(hello, missing)):
                host.shared_at = Path(hello.shared_at)
                self._found[hello.made_of].append(host)
                _log.info("going on with the engine of process %s, of version %s", host.pid, hello.version)
            else:
                _log.info("the engine of process %s is ended: %s", host.pid, _SILENT if hello is None else why)
                host.kill()
                host.sock.close()
                self._forget(path)
        # What those have said that ended by themselves.
        for path in self._folder.glob("*.log"):
            if not path.with_suffix(".host").exists():
                self._forget(path)

    def _forget(self, path: Path) -> None:
        for left in self._folder.glob(f"{path.stem}.*"):
            left.unlink(missing_ok=True)

    def open(self, build: Callable[[], Completions], made_of: str) -> Host:
        """One that was found, or a new one that hosts the engine made by `build`."""
        if found := self._found[made_of]:
            return found.pop()
        name = secrets.token_hex(4)
        keep = Keep(self._at(name, "host"), self._keep_s, made_of)
        return _start(build, Role(self._at(name, "workers"), keep), self._at(name, "log"))


def look(folder: Path, wanted: Iterable[str]) -> list[Waiting]:
    """What a gateway with this folder that wants these would find, by the same means; it changes nothing.

    Each begins to wait for the next gateway once more. Blocks, for seconds at most. Raises
    `StartupError` as that does.
    """
    check_folder(folder)
    missing, found = Counter(wanted), []
    for path in sorted(folder.glob("*.host")):
        host, hello = _met(path)
        if host is not None:
            host.sock.close()
            found.append(Waiting(host.pid, _SILENT if hello is None else _assign(hello, missing)))
    return found


def check(folder: Path) -> None:
    """Raises `StartupError` where no sockets can be made, as their paths would be too long."""
    if len(os.fsencode(folder / "12345678.workers")) > _PATH_BYTES:
        raise StartupError(f"The path of {folder} is too long for sockets: name another with --state-dir.")


def _assign(hello: Hello, missing: Counter[str]) -> str:
    """Use it for one that is missing, which is not missing any more then. Returns why not; empty: it is used."""
    if hello.taken:
        return "another gateway has it"
    if hello.protocol != PROTOCOL:
        return f"version {hello.version} has loaded it, which speaks to engines in another way"
    if missing[hello.made_of] <= 0:
        return "no engine has its settings, model and version of vLLM any more"
    missing[hello.made_of] -= 1
    return ""


class KeptHost(Host):
    """A host that does not end with the process that has started it. child: if that is this one."""

    def __init__(
        self,
        sock: socket.socket,
        pid: int,
        shared_at: Path | None = None,
        child: subprocess.Popen[bytes] | None = None,
    ) -> None:
        super().__init__(sock, None, shared_at)
        self._own = processes.with_pids(pid)
        self._pid = pid
        self._child = child

    @property
    def pid(self) -> int:
        return self._pid

    def _exit_code(self, wait_s: float) -> int | None:
        if self._child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._child.wait(wait_s)
        return None

    @property
    def alive(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return processes.any_runs(self._own)


def _met(path: Path) -> tuple[KeptHost | None, Hello | None]:
    """The host at this socket, which has this gateway from now on, and its first word. None: gone; silent.

    Raises `StartupError` for one of another user.
    """
    until_s = time.monotonic() + _HELLO_S
    while True:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(max(0.1, until_s - time.monotonic()))
            sock.connect(str(path))
            pid = check_peer(sock, path).pid
        except StartupError:
            sock.close()
            raise
        except OSError as error:
            sock.close()
            if isinstance(error, (ConnectionRefusedError, FileNotFoundError)) or time.monotonic() > until_s:
                return None, None
            # It is there, and has no time.
            time.sleep(_LOOK_S)
            continue
        host = KeptHost(sock, pid)
        try:
            hello = msgspec.msgpack.decode(read_message(sock), type=Hello)
        except (OSError, msgspec.MsgspecError):
            return host, None
        if not hello.taken or time.monotonic() > until_s:
            sock.settimeout(None)
            return host, hello
        sock.close()
        time.sleep(_LOOK_S)


def _start(build: Callable[[], Completions], role: Role, log: Path) -> KeptHost:
    ours, theirs = socket.socketpair()
    try:
        # What would end with the pipe of a terminal, or keep it open, goes to a file.
        with log.open("ab") as said, main.signals_blocked():
            child = subprocess.Popen(  # noqa: S603 -- this interpreter
                [sys.executable, "-c", _START.format(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    _children.difference_update([each for each in _children if each.poll() is not None])
    _children.add(child)
    assert child.stdin is not None  # noqa: S101 -- a pipe
    # Modules are found as they are here before what comes of them is read.
    given = pickle.dumps((build, log_style(), role))
    with contextlib.suppress(BrokenPipeError), child.stdin as pipe:
        pickle.dump((sys.path, given), pipe)
    return KeptHost(ours, child.pid, role.shared_at, child)
