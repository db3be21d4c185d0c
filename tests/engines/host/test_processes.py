"""No process of an engine outlives it: not one that hangs, and not what it started itself."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway.engines.host import processes
from tests.processes import alive


def engine(told: Connection) -> None:
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    told.send(worker.pid)
    worker.wait()


@contextmanager
def started() -> Iterator[tuple[BaseProcess, int]]:
    """A process of `multiprocessing`, and the pid of the worker that it has started."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=engine, args=(theirs,))
    child.start()
    try:
        yield child, ours.recv()
    finally:
        child.join()
        ours.close()
        theirs.close()


def test_a_hanging_process_and_its_worker_are_killed() -> None:
    before = processes.children()
    with started() as (child, worker_pid):
        (root,) = processes.children() - before
        assert root.pid == child.pid
        tree = processes.descendants([root])
        assert {process.pid for process in tree} == {child.pid, worker_pid}
        os.kill(root.pid, signal.SIGSTOP)
        assert processes.kill(tree, within_s=60) == frozenset()
        assert processes.children() == before
        assert processes.descendants(tree) == frozenset()
        assert processes.kill(tree, within_s=0) == frozenset()


def test_orphaned_worker_is_killed() -> None:
    before = processes.children()
    with started() as (child, worker_pid):
        tree = processes.descendants(processes.children() - before)
        child.kill()
        child.join()
        assert {process.pid for process in processes.descendants(tree)} == {worker_pid}
        assert processes.kill(tree, within_s=60) == frozenset()
        # Killed; whether it is reaped already is up to init.
        assert not alive(worker_pid)


def test_process_without_first_thread_still_runs() -> None:
    ends_first = "threading.Thread(target=input).start(); ctypes.CDLL(None).pthread_exit(0)"
    child = subprocess.Popen(
        [sys.executable, "-c", f"import ctypes, threading; {ends_first}"], stdin=subprocess.PIPE
    )
    while ") Z " not in (stat := Path(f"/proc/{child.pid}/stat")).read_text():
        assert child.poll() is None
    tree = processes.descendants(processes.with_pids(child.pid))
    assert {process.pid for process in tree} == {child.pid}
    assert processes.kill(tree, within_s=60) == frozenset()
    # What is left of it is only its number, until its parent asks how it ended.
    assert child.wait() == -signal.SIGKILL
    assert not stat.exists()
    assert child.stdin is not None
    child.stdin.close()


def test_reused_pid_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    (impostor,) = processes.with_pids(os.getpid())
    monkeypatch.setattr(impostor, "_ident", (os.getpid(), 1.0))
    assert processes.kill([impostor], within_s=0) == frozenset()
    assert processes.descendants([impostor]) == frozenset()


def test_unreadable_process_hides_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    read = psutil._pslinux.open_binary

    def refusing(name: str) -> Any:
        if name == "/proc/1/stat":
            raise PermissionError(13, "not yours", name)
        return read(name)

    before = processes.children()
    with started() as (child, worker_pid):
        monkeypatch.setattr(psutil._pslinux, "open_binary", refusing)
        tree = processes.descendants(processes.children() - before)
        assert {process.pid for process in tree} == {child.pid, worker_pid}
        assert processes.kill(tree, within_s=60) == frozenset()
