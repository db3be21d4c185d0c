"""The Python client's driver, as it is and with faults."""

from __future__ import annotations

import sys

from tests.conftest import ROOT

DRIVER = ROOT / "examples" / "conformance" / "driver.py"


def python_driver(fault: str = "") -> list[str]:
    """The command. fault: Python that breaks the client before it starts."""
    program = f"import runpy, sys\n{fault}\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    return [sys.executable, "-c", program, str(DRIVER)]


def printing(program: str) -> list[str]:
    """A program that is no driver."""
    return [sys.executable, "-c", program]
