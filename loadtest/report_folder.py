"""Where a report goes: a folder with the same three files, whatever was measured. Must not know what that is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

__all__ = ["write_report"]


def write_report(folder: Path, *, result: str, table: str, plot: Callable[[Path], None]) -> None:
    """`result.json`, `table.md` and `plot.png` in `folder`, which is made when it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(result)
    (folder / "table.md").write_text(table)
    plot(folder / "plot.png")
