"""Load tests without a process: their options, what they found as a report, the files of it."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from loadtest.options import Command
from loadtest.tests.made_up_trials import MACHINE
from loadtest.trial import report
from loadtest.trial.content import markdown
from loadtest.trial.values import Results


def parsed(command: Command, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add(parser)
    return parser.parse_args([*arguments])


def as_report(results: Results, kind: str) -> report.Report:
    """The report of a command that found this."""
    began = "2026-01-01T00:00:00Z"
    return report.report(
        results, kind=kind, command=f"python -m loadtest {kind} --out results", began=began, machine=MACHINE
    )


def write(results: Results, kind: str, folder: Path) -> str:
    """All files of its report; the JSON among them."""
    report.write(as_report(results, kind), folder)
    return gzip.decompress((folder / report.RESULT).read_bytes()).decode()


def table_of(results: Results, kind: str = "run") -> str:
    """The table of its report, without what is said of its charts."""
    return markdown(report.parts(as_report(results, kind)))
