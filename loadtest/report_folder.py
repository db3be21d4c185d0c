"""Where a report goes: a folder with the same files, whatever was measured. Must not know what that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["write_report"]


def write_report(
    folder: Path,
    *,
    result: str | None,
    table: str,
    plot: Callable[[Path], None] | None,
    more: Mapping[str, str] | None = None,
) -> None:
    """`result.json`, `table.md` and `plot.png` in `folder`, which is made when it is missing, and further texts by
    the names of their files.

    result: None leaves what is there. plot: None when nothing can be drawn; an older picture is taken away then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if result is not None:
        (folder / "result.json").write_text(result)
    (folder / "table.md").write_text(table)
    for name, text in (more or {}).items():
        (folder / name).write_text(text)
    if plot is not None:
        plot(folder / "plot.png")
    else:
        (folder / "plot.png").unlink(missing_ok=True)
