"""Training runs in one table, with the change from row to row: what an option or twice the corpus is worth.

    python -m demo_model.compare FOLDER…

Reads the training.json of each folder. chrF is the mean over kinds and languages; "+" is the change of the
development set's mean. Choose by the development set; the test set is for the report. With a teacher, the loss is
another one and cannot be compared.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_COLUMNS = ("run", "M parameters", "steps", "M tokens", "waited s", "loss")
_SUITES = ("unseen", "composed", "held_out")
_SCORES = ("development, out of English", "into English", "+", "test, out", "into", *_SUITES)


def means(own: Mapping[str, Any]) -> tuple[float, float]:
    """chrF of one of `own.SETS`: out of English, into English."""
    scores = [pair for kind in own["chrf"].values() for pair in kind.items()]
    out = [score for direction, score in scores if direction.startswith("en-")]
    into = [score for direction, score in scores if direction.endswith("-en")]
    return sum(out) / len(out), sum(into) / len(into)


def compared(reports: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """A Markdown table of (name, report of a training that was scored)."""
    head = [*_COLUMNS, *_SCORES]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    before: float | None = None
    for name, report in reports:
        curve, scores = report["curve"], report["scores"]
        waited = max(point.get("waited", 0.0) for point in curve)
        out, into = means(scores["own"]["development"])
        mean = (out + into) / 2
        cells = [
            name,
            f"{report['settings']['parameters'] / 1e6:.1f}",
            f"{curve[-1]['step']:,}",
            f"{curve[-1]['tokens'] / 1e6:.0f}",
            f"{waited:.0f}",
            f"{curve[-1]['loss']:.3f}",
            f"{out:.1f}",
            f"{into:.1f}",
            "" if before is None else f"{mean - before:+.1f}",
            *(f"{score:.1f}" for score in means(scores["own"]["test"])),
            *(
                f"{scores['suites'][each]['chrf_mean_english']:.1f}" if each in scores["suites"] else ""
                for each in _SUITES
            ),
        ]
        before = mean
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="demo_model.compare", description="Compare training runs in a table.")
    parser.add_argument("folders", nargs="+", type=Path, help="of training runs, in the order of the rows")
    reports = []
    for folder in parser.parse_args(arguments).folders:
        report = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        if "scores" not in report or not report["curve"]:
            parser.error(
                f"{folder} was not scored (--sets 0), or too short for a point of the curve (--log-every)."
            )
        reports.append((folder.name, report))
    print(compared(reports))


if __name__ == "__main__":
    main()
