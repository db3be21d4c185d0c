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
from collections import deque
from pathlib import Path
from typing import NamedTuple

from gateway.domain.errors import StartupError

# As many as Linux follows.
_MOST_LINKS = 40

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
    """Raises `StartupError` if another user could replace the file, a folder on the way to it, or a link there.

    In a folder with the sticky bit, such as /tmp, others cannot. What is not there yet is passed over.
    """
    at, parts, links = Path("/"), deque(file.absolute().parts[1:]), 0
    while parts:
        if (found := _stat(at)) is None:
            return
        check_owner(at, found, 0)
        if not found.st_mode & stat.S_ISVTX:
            _check_writers(at, found)
        if (part := parts.popleft()) == "..":
            at = at.parent
        elif (found := _stat(at / part)) is None:
            return
        elif not stat.S_ISLNK(found.st_mode):
            at /= part
        else:
            check_owner(at / part, found, 0)
            target = os.readlink(at / part)
            links += 1
            if links > _MOST_LINKS:
                raise StartupError(f"{file} is behind more than {_MOST_LINKS} links: name it in another way.")
            at = Path("/") if target.startswith("/") else at
            parts.extendleft(reversed(target.strip("/").split("/")))


def check_folder(folder: Path, *, secret: bool = False) -> None:
    """Raises `StartupError` if another user could change what is in the folder; secret: or read it."""
    check_way(folder)
    if (found := _stat(Path(os.path.realpath(folder)))) is None:
        return
    check_owner(folder, found, 0)
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
        whose = f"belongs to another user (uid {found.st_uid}) than the gateway (uid {os.geteuid()})"
        raise _refused(path, whose, "use a folder of its own")


def _stat(path: Path) -> os.stat_result | None:
    """Does not follow a link."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StartupError(f"{path} cannot be used ({error.strerror or error}).") from None


def _check_writers(folder: Path, found: os.stat_result) -> None:
    by_others = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and _has_others(found.st_gid))
    if by_others and not _is_alone():
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
    return StartupError(f"{path} {why}: {what_to_do}.")
