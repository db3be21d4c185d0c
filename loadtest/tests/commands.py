"""`python -m loadtest report` without a process, and the result in a folder as text."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from loadtest.commands import Command
from loadtest.report.content import Shown
from loadtest.report.folder import RESULT

__all__ = ["made_again", "result_in"]


async def made_again(command: Command[Shown], folder: Path) -> str:
    """Make the report in a folder again; what is printed."""
    parser = argparse.ArgumentParser()
    command.add(parser)
    result = await command.run(parser.parse_args([str(folder)]), "", lambda _line: None)
    command.write(result, folder)
    assert command.passed(result)
    return command.table(result)


def result_in(folder: Path) -> str:
    """The JSON that is in a folder."""
    return gzip.decompress((folder / RESULT).read_bytes()).decode()
