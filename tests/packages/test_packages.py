"""What a release is made of: checksums that the usual tool reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

from scripts.packages import checksums


def test_the_usual_tool_finds_a_file_that_was_changed(tmp_path: Path) -> None:
    files = [tmp_path / "b.tgz", tmp_path / "a.whl"]
    for file in files:
        file.write_text(file.name)
    sums = checksums(files)
    assert [line.split("  ")[1] for line in sums.splitlines()] == ["a.whl", "b.tgz"]
    (tmp_path / "SHA256SUMS").write_text(sums)
    check = ["sha256sum", "--check", "--strict", "--status", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path).returncode == 0
    files[0].write_text("changed")
    assert subprocess.run(check, cwd=tmp_path).returncode == 1
