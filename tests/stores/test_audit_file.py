"""The audit log on disk: private, appended to, and rotated by somebody else."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path

import pytest

from gateway.domain.audit import AuditEntry
from gateway.domain.errors import StartupError
from gateway.stores.audit_file import AuditFile


def entry(sub: str) -> AuditEntry:
    return AuditEntry(time="2026-01-01T00:00:00.000Z", action="join", outcome="ok", address="::1", sub=sub)


def subjects(path: Path) -> list[str]:
    return [json.loads(line)["sub"] for line in path.read_text("utf-8").removesuffix("\n").split("\n")]


def test_entries_are_appended_to_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    umask = os.umask(0)
    try:
        for sub in ("ana", "b\n\u2028o"):
            AuditFile(path).write(entry(sub))
    finally:
        os.umask(umask)
    assert subjects(path) == ["ana", "b\n\u2028o"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = json.loads(path.read_text("utf-8").split("\n")[0])
    assert first == {
        "time": "2026-01-01T00:00:00.000Z",
        "action": "join",
        "outcome": "ok",
        "address": "::1",
        "tenant": None,
        "sub": "ana",
        "jti": None,
        "meeting": None,
        "detail": None,
        "left_out": 0,
    }


def test_rotated_file_is_followed_by_a_new_one(tmp_path: Path) -> None:
    path, old = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    file = AuditFile(path)
    file.write(entry("ana"))
    path.rename(old)
    file.write(entry("bo"))
    assert (subjects(old), subjects(path)) == (["ana"], ["bo"])


def test_unwritable_file_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"The audit log .* cannot be written"):
        AuditFile(tmp_path)


def test_unwritable_entry_is_reported_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        file = AuditFile(Path("/dev/full"))
        for _ in range(3):
            file.write(entry("somebody"))
    assert caplog.text.count("cannot be written") == 1
    assert "somebody" not in caplog.text


def test_entries_after_a_full_disk_begin_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write = os.write

    def short(descriptor: int, line: bytes) -> int:
        return write(descriptor, line[:20])

    file = AuditFile(path)
    with pytest.MonkeyPatch.context() as full:
        full.setattr(os, "write", short)
        file.write(entry("ana"))
    for sub in ("bo", "cy"):
        file.write(entry(sub))
    torn, *whole = path.read_text("utf-8").splitlines()
    assert len(torn) == 20
    assert [json.loads(line)["sub"] for line in whole] == ["bo", "cy"]


def test_entries_after_a_kill_begin_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"torn":')
    AuditFile(path).write(entry("ana"))
    torn, whole = path.read_text("utf-8").splitlines()
    assert torn == '{"torn":'
    assert json.loads(whole)["sub"] == "ana"


def test_file_in_a_folder_that_others_change_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(StartupError, match=f"{tmp_path} can be changed by other users"):
        AuditFile(tmp_path / "audit.jsonl")
    tmp_path.chmod(0o1777)
    AuditFile(tmp_path / "audit.jsonl")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    os.chown(path, 65_534, -1)
    with pytest.raises(StartupError, match="belongs to another user"):
        AuditFile(path)
