"""The driver as a process: what it prints, and how it ends."""

from __future__ import annotations

import asyncio

import pytest

from gateway.conformance.driver import Driver, DriverFailed
from tests.conformance.drivers import printing


async def test_commands_go_in_and_what_matters_comes_out() -> None:
    program = """
import json, sys
print('{"type": "caption"}')
for line in sys.stdin:
    print(json.dumps({"type": "closed", "told": json.loads(line)}), flush=True)
"""
    async with Driver.started(printing(program)) as driver:
        await driver.do({"do": "final", "text": "発売"})
        assert await driver.shown() == {"type": "closed", "told": {"do": "final", "text": "発売"}}
        await driver.end()
        assert await driver.shown() is None


async def test_other_output_is_an_error() -> None:
    async with Driver.started(printing("print('Traceback …')")) as driver:
        with pytest.raises(DriverFailed, match="something else than JSON"):
            await driver.shown()


async def test_an_exit_status_is_an_error() -> None:
    async with Driver.started(printing("raise SystemExit(7)")) as driver:
        assert await driver.shown() is None
        with pytest.raises(DriverFailed, match="status 7"):
            await driver.end()


async def test_a_script_may_leave_a_program_behind() -> None:
    """The program has the script's stdout: the end of the script alone closes nothing."""
    program = """
import subprocess, sys
child = "import sys; print(1, flush=True); sys.stdin.read()"
sys.exit(subprocess.run([sys.executable, "-c", child]).returncode)
"""
    async with asyncio.timeout(60):
        async with Driver.started(printing(program)) as driver:
            assert driver._process.stdout is not None
            await driver._process.stdout.readline()


async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        async with Driver.started(["./no-such-program"]):
            pytest.fail("it was started")
