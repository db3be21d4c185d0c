"""`python -m loadtest report` without a process, and the result in a folder as text."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from loadtest.report.commands import Command
from loadtest.report.content import Shown
from loadtest.report.folder import RESULT
from loadtest.report.markdown import markdown
from loadtest.trial import report
from loadtest.trial.values import Report


async def made_again(command: Command[Shown], folder: Path) -> str:
    """Make the report in a folder again; what is printed."""
    parser = argparse.ArgumentParser()
    command.add(parser)
    result = await command.run(parser.parse_args([str(folder)]), "", lambda _line: None)
    assert command.passed(result)
    return command.write(result, folder)


def table_of(made: Report) -> str:
    """The table of a report, without what is said of its charts."""
    return markdown(report._shown(report._written(made), report._nothing).parts)


def result_in(folder: Path) -> str:
    """The JSON that is in a folder."""
    return gzip.decompress((folder / RESULT).read_bytes()).decode()
