"""A process below the gateway ends with it, however it ends, and not before."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from gateway.engines.host import processes
from gateway.engines.host.orphans import exit_with_parent

# A parent that waits for ever, with a child that says so once it is watching.
PARENT = """
import multiprocessing, signal, sys, time
from functools import partial
from pathlib import Path

from gateway.engines.host.orphans import exit_with_parent


def child(folder):
    exit_with_parent(partial(Path(folder, "last word").write_text, "gone"))
    signal.signal(signal.SIGUSR1, lambda *_: Path(folder, "goes on").touch())
    print(multiprocessing.current_process().pid, flush=True)
    try:
        while True:
            time.sleep(3_600)
    except KeyboardInterrupt:
        Path(folder, "interrupted").touch()


if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child, args=(sys.argv[1],))
    process.start()
    process.join()
"""


def test_gateways_own_process_has_no_watch() -> None:
    before = signal.getsignal(signal.SIGINT), threading.active_count()
    exit_with_parent()
    assert (signal.getsignal(signal.SIGINT), threading.active_count()) == before


async def test_a_child_outlives_an_interrupt_and_not_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(tmp_path), stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    found = processes.with_pids(child)
    assert found
    # From a terminal every process gets it; the gateway goes on until it has finished.
    os.kill(child, signal.SIGINT)
    os.kill(child, signal.SIGUSR1)
    while not (tmp_path / "goes on").exists():
        await asyncio.sleep(0.01)
    parent.kill()
    await parent.wait()
    while processes.descendants(found):
        await asyncio.sleep(0.01)
    assert (tmp_path / "last word").read_text() == "gone"
    assert not (tmp_path / "interrupted").exists()


HANGS = """
import itertools, sys, time
from pathlib import Path

from gateway.engines.host import orphans

orphans._LOOK_S = 0.01
turns = itertools.count()
hang = Path(sys.argv[1], "hang")
orphans.exit_when_hung(
    lambda: -1 if hang.exists() else next(turns), lambda: False, 0.1, lambda: print("last word", flush=True)
)
print("works", flush=True)
time.sleep(3_600)
"""


async def test_process_with_a_hung_loop_ends_itself(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HANGS, str(tmp_path), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"works\n"
    (tmp_path / "hang").touch()
    assert await process.stdout.readline() == b"last word\n"
    assert await process.wait() == 1
