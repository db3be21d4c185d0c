"""Whether folders and sockets are this user's own, so that no other user reads or replaces what is there.

Knows: owners, modes, credentials of Unix sockets. Must not know: what the folders and sockets are for.
"""

from __future__ import annotations

import grp
import os
import pwd
import socket
import stat
import struct
from pathlib import Path
from typing import NamedTuple

from gateway.domain.errors import StartupError

# As Linux gives them: pid, uid, gid.
_CREDENTIALS = struct.Struct("3i")


class Peer(NamedTuple):
    """The process at the other end of a Unix socket: that which has connected, or which listens."""

    pid: int
    uid: int

    @property
    def is_own(self) -> bool:
        """Whether it is this user's."""
        return self.uid == os.geteuid()


def peer_of(sock: socket.socket) -> Peer:
    """Raises `OSError` if it is not connected any more."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return Peer(pid, uid)


def check_peer(sock: socket.socket, path: Path) -> Peer:
    """The process that listens at this path. Raises `StartupError` for another user's."""
    peer = peer_of(sock)
    if not peer.is_own:
        raise _refused(path, f"is served by another user (uid {peer.uid})", "delete it, and find out who made it")
    return peer


def check_way(file: Path) -> None:
    """Raises `StartupError` if another user could replace the file, or a folder on the way to it.

    In a folder with the sticky bit, such as /tmp, others cannot. What is not there yet is passed over.
    """
    for end in _ends(file):
        for folder in reversed(end.parents):
            found = _stat(folder)
            if found is None:
                break
            check_owner(folder, found, 0)
            if not found.st_mode & stat.S_ISVTX:
                _check_writers(folder, found)


def check_folder(folder: Path, *, secret: bool = False) -> None:
    """Raises `StartupError` if another user could change what is in the folder; secret: or read it."""
    check_way(folder)
    if (found := _stat(folder)) is None:
        return
    check_owner(folder, found)
    _check_writers(folder, found)
    if secret and found.st_mode & 0o077:
        raise _refused(folder, "can be read by other users", f"chmod go-rwx {folder}")


def make_folder(folder: Path, *, secret: bool = False) -> None:
    """Make it, for its owner only, with the folders on the way. Raises `OSError`, and as `check_folder` does."""
    check_way(folder)
    for each in (*reversed(folder.absolute().parents), folder):
        if _stat(each) is None:
            each.mkdir(mode=0o700, exist_ok=True)
    check_folder(folder, secret=secret)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")


def check_owner(path: Path, found: os.stat_result, *others: int) -> None:
    """Raises `StartupError` if it belongs neither to this user nor to these others. found: at this path."""
    if found.st_uid not in (os.geteuid(), *others):
        raise _refused(path, f"belongs to another user (uid {found.st_uid})", f"chown {os.geteuid()} {path}")


def _ends(file: Path) -> tuple[Path, ...]:
    """The path as it is written, and where its links lead."""
    return file.absolute(), Path(os.path.realpath(file))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _check_writers(folder: Path, found: os.stat_result) -> None:
    by_others = found.st_mode & stat.S_IWOTH and not _is_alone()
    if by_others or (found.st_mode & stat.S_IWGRP and _has_others(found.st_gid)):
        raise _refused(folder, "can be changed by other users", f"chmod go-w {folder}, or use another folder")


def _is_alone() -> bool:
    """Whether no other user's processes can be here: in a pod, whose `emptyDir` all may write to."""
    return "KUBERNETES_SERVICE_HOST" in os.environ


def _has_others(gid: int) -> bool:
    """Whether others than this user and root are in a group.

    On many systems each user is alone in a group that may write to all of its folders; a pod, too (`fsGroup`).
    """
    members = {user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid}
    try:
        named = grp.getgrgid(gid).gr_mem
    except KeyError:
        named = []
    for name in named:
        try:
            members.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    return not members <= {os.geteuid(), 0}


def _refused(path: Path, why: str, what_to_do: str) -> StartupError:
    return StartupError(
        f"{path} {why}, who could read what is said, or give the gateway what is not its own: {what_to_do}."
    )
