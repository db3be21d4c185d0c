"""The folder of a gateway tells whether it runs, and nobody else may have it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gateway import state_folder
from gateway.domain.errors import StartupError


def test_whoever_has_it_can_be_found(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "state"
    assert state_folder.holder(folder) is None
    with state_folder.held(folder):
        assert state_folder.holder(folder) == os.getpid()
        with (
            pytest.raises(StartupError, match=f"another gateway \\(process {os.getpid()}\\).*--state-dir"),
            state_folder.held(folder),
        ):
            pass
    assert state_folder.holder(folder) is None
    with state_folder.held(folder):
        pass


def test_check_makes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "state"
    state_folder.check(folder)
    assert not any(tmp_path.iterdir())
    with state_folder.held(folder), pytest.raises(StartupError, match=f"process {os.getpid()}"):
        state_folder.check(folder)
    state_folder.check(folder)
    (tmp_path / "file").touch()
    with pytest.raises(StartupError, match="--state-dir"):
        state_folder.check(tmp_path / "file" / "state")


def test_what_inherits_it_holds_it_too(tmp_path: Path) -> None:
    with state_folder.held(tmp_path) as lock:
        store = subprocess.Popen(["sleep", "1000"], pass_fds=(lock,))
        (tmp_path / "gateway.pid").write_text(f"{store.pid}\n")
    assert state_folder.holder(tmp_path) == store.pid
    with pytest.raises(StartupError), state_folder.held(tmp_path):
        pass
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    (tmp_path / "gateway.pid").write_text(f"{gone.pid}\n")
    assert state_folder.holder(tmp_path) is None
    store.kill()
    store.wait()
    with state_folder.held(tmp_path):
        pass


def test_one_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartupError, match="cannot be used"), state_folder.held(tmp_path / "file" / "state"):
        pass


def test_where_it_is_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_folder.default_folder() == Path.home() / ".local" / "state" / "translation-gateway"
    monkeypatch.setenv("XDG_STATE_HOME", "/var/lib/state")
    assert state_folder.default_folder() == Path("/var/lib/state/translation-gateway")


def test_holder_that_does_not_reload_is_hidden(tmp_path: Path) -> None:
    with state_folder.held(tmp_path, reloads=False):
        assert state_folder.holder(tmp_path) is None


def test_folder_that_others_change_is_refused_everywhere(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "state"
    with state_folder.held(folder):
        pass
    for changed in (folder, folder.parent):
        changed.chmod(0o777)
        with (
            pytest.raises(StartupError, match=f"{changed} can be changed by other users"),
            state_folder.held(folder),
        ):
            pass
        with pytest.raises(StartupError, match="can be changed by other users"):
            state_folder.check(folder)
        changed.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_process_of_another_user_holds_nothing(tmp_path: Path) -> None:
    with state_folder.held(tmp_path):
        assert state_folder.holder(tmp_path) == os.getpid()
        os.chown(tmp_path / "gateway.pid", 65_534, -1)
        assert state_folder.holder(tmp_path) is None


def test_what_is_made_on_the_way_is_private(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with state_folder.held(tmp_path / "a" / "state"):
            pass
    finally:
        os.umask(umask)
    state_folder.check(tmp_path / "a" / "state")
