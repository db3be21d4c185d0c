"""No other user has a hand in the gateway's folders and sockets."""

from __future__ import annotations

import grp
import os
import pwd
import signal
import socket
import stat
from pathlib import Path

import pytest

from gateway import ownership
from gateway.domain.errors import StartupError
from gateway.ownership import Peer, check_folder, check_peer, check_way, make_folder, peer_of

NOBODY = 65_534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a" / "state"
    make_folder(made)
    return made


def test_made_folders_are_their_owners_alone(folder: Path) -> None:
    for each in (folder, folder.parent):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700
    make_folder(folder, secret=True)


@pytest.mark.parametrize("mode", [0o707, 0o777])
def test_folder_that_others_change_is_refused(folder: Path, mode: int) -> None:
    for changed in (folder.parent, folder):
        changed.chmod(mode)
        with pytest.raises(StartupError, match=f"{changed} can be changed by other users.*chmod go-w {changed}"):
            check_folder(folder)
        changed.chmod(0o755)
    check_folder(folder)


def test_group_alone_may_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o770)
    gid = folder.stat().st_gid
    mine = pwd.getpwuid(os.geteuid())
    monkeypatch.setattr(grp, "getgrgid", lambda _: grp.struct_group(("mine", "x", gid, ["root", "gone"])))
    monkeypatch.setattr(pwd, "getpwall", lambda: [mine])
    check_folder(folder)

    other = pwd.struct_passwd(("other", "x", NOBODY, gid, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [mine, other])
    with pytest.raises(StartupError, match=f"{folder} can be changed by other users"):
        check_folder(folder)


def test_volume_of_a_pod_may_be_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.parent.chmod(0o777)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    check_folder(folder)


def test_sticky_folder_is_safe_on_the_way_only(folder: Path) -> None:
    folder.parent.chmod(0o1777)
    check_folder(folder)
    folder.chmod(0o1777)
    check_way(folder / "file")
    with pytest.raises(StartupError, match="can be changed"):
        check_folder(folder)


@as_root
def test_folder_of_another_user_is_refused(folder: Path) -> None:
    for given in (folder, folder.parent):
        os.chown(given, NOBODY, -1)
        with pytest.raises(
            StartupError, match=rf"{given} belongs to another user \(uid 65534\) .*use a folder of its own"
        ):
            check_folder(folder)
        with pytest.raises(StartupError, match="belongs to another user"):
            make_folder(folder / "more")
        os.chown(given, 0, -1)


def test_folder_that_others_read_is_no_secret(folder: Path) -> None:
    folder.chmod(0o750)
    check_folder(folder)
    with pytest.raises(StartupError, match=r"can be read by other users.*chmod go-rwx"):
        check_folder(folder, secret=True)


def test_way_of_a_link_is_checked_at_both_ends(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "state"
    make_folder(link.parent)
    link.symlink_to(folder)
    check_folder(link)
    for changed in (link.parent, folder.parent):
        changed.chmod(0o777)
        with pytest.raises(StartupError, match=f"{changed} can be changed"):
            check_folder(link)
        changed.chmod(0o700)


@as_root
def test_links_of_others_are_refused(folder: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    make_folder(theirs)
    (theirs / "hop").symlink_to(folder)
    (tmp_path / "link").symlink_to("theirs/hop")
    check_folder(tmp_path / "link")
    os.chown(theirs, NOBODY, -1)
    with pytest.raises(StartupError, match=f"{theirs} belongs to another user"):
        check_folder(tmp_path / "link")

    # Anybody can make one in a folder such as /tmp.
    sticky = tmp_path / "sticky"
    sticky.mkdir(mode=0o1777)
    (sticky / "link").symlink_to(folder)
    check_folder(sticky / "link")
    os.lchown(sticky / "link", NOBODY, -1)
    with pytest.raises(StartupError, match=f"{sticky}/link belongs to another user"):
        check_folder(sticky / "link")


def test_links_that_lead_nowhere_end(folder: Path) -> None:
    (folder / "circle").symlink_to("circle")
    with pytest.raises(StartupError, match="more than 40 links"):
        check_way(folder / "circle" / "file")


@as_root
def test_folder_that_cannot_be_entered_is_one_sentence(folder: Path) -> None:
    folder.parent.chmod(0o700)
    if (child := os.fork()) == 0:
        os.setuid(NOBODY)
        try:
            check_folder(folder)
        except StartupError as error:
            os._exit(0 if "belongs to another user" in error.message or "cannot be used" in error.message else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_nothing_is_made_where_others_write(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.raises(StartupError, match="can be changed"):
        make_folder(folder / "more")
    assert not any(folder.iterdir())


def test_what_is_not_there_is_passed_over(folder: Path) -> None:
    check_folder(folder / "later" / "on")
    (folder / "file").touch()
    check_folder(folder / "file" / "state")
    with pytest.raises(OSError, match="file"):
        make_folder(folder / "file")


def test_peer_is_told_by_the_system(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "sock"
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as sock:
        listening.bind(str(path))
        listening.listen()
        sock.connect(str(path))
        assert peer_of(sock) == check_peer(sock, path) == Peer(os.getpid(), os.geteuid())
        monkeypatch.setattr(ownership, "peer_of", lambda _: Peer(1, NOBODY))
        with pytest.raises(StartupError, match=rf"{path} is served by another user \(uid 65534\).*delete it"):
            check_peer(sock, path)


@as_root
def test_socket_that_another_user_serves_is_refused(folder: Path) -> None:
    path = folder / "sock"
    ready, tell = os.pipe()
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as sock:
        listening.bind(str(path))
        if (child := os.fork()) == 0:
            os.setuid(NOBODY)
            listening.listen()
            os.write(tell, b"1")
            signal.pause()
        try:
            os.read(ready, 1)
            sock.connect(str(path))
            with pytest.raises(StartupError, match=rf"{path} is served by another user"):
                check_peer(sock, path)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(ready)
            os.close(tell)
