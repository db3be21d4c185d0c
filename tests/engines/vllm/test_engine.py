"""What the adapter itself decides; that it is an engine is in `tests/contract/test_engine_contract.py`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo_model import SMALL_MODEL
from gateway.domain.errors import StartupError
from gateway.engines.vllm import hardware
from gateway.engines.vllm.engine import EngineLog, Stage, VllmEngine, output_to
from gateway.engines.vllm.options import VllmOptions
from tests.usual import usual


async def test_the_engine_is_refused_before_vllm_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    monkeypatch.setattr(hardware, "available_shared_mib", lambda: 64)
    engine = VllmEngine(usual(VllmOptions, model=str(SMALL_MODEL), kv_cache_gib=0.0))
    with pytest.raises(StartupError, match="--shm-size 1g"):
        await engine.start()
    # Its log is made where the import begins.
    assert engine.log_path is None


SAYS = [sys.executable, "-c", "import sys; print('said', flush=True); print('complained', file=sys.stderr)"]


def test_a_process_writes_to_the_file_only_inside(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    handle = os.open(log, os.O_WRONLY | os.O_CREAT)
    print("before")
    with output_to(handle):
        subprocess.run(SAYS, check=True)
    os.close(handle)
    subprocess.run(SAYS, check=True)
    assert log.read_text() == "said\ncomplained\n"
    assert capfd.readouterr() == ("before\nsaid\n", "complained\n")


@pytest.fixture
def log_of_vllm() -> Iterator[logging.Logger]:
    logger = logging.getLogger("vllm")
    before = logger.handlers, logger.level
    yield logger
    logger.handlers, level = before
    logger.setLevel(level)


def test_several_processes_and_the_logger_write_to_one_log(log_of_vllm: logging.Logger) -> None:
    log = EngineLog()
    assert log.path is None
    own = log.open()
    assert log.path is not None
    others = os.open(log.path, os.O_WRONLY | os.O_APPEND)  # as a process below has it
    log.take_logger()
    for number, handle in enumerate((own, others, own)):
        os.write(handle, b"%d\n" % number)
        log_of_vllm.warning("logged %d", number)
        log_of_vllm.info("a detail")
    os.close(own)
    os.close(others)
    assert log.path.read_text().split("\n") == ["0", "logged 0", "1", "logged 1", "2", "logged 2", ""]
    log.close(keep=False)
    assert not log.path.exists()


def test_a_log_is_kept_if_it_is_worth_reading() -> None:
    log = EngineLog()
    os.close(log.open())
    assert log.path is not None
    log.close(keep=True)
    assert log.path.exists()
    log.path.unlink()
    EngineLog().close(keep=False)


def test_a_start_that_takes_longer_than_usual_says_how_long_it_has_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    engine = VllmEngine(usual(VllmOptions, model=str(SMALL_MODEL)))
    engine._enter(Stage("starting the engine process", usual_s=30, more="after the download"))
    assert engine.health().reason == "starting the engine process (about 30 s on a CPU, after the download)"
    now_s = 130.0
    assert "about 30 s" in engine.health().reason
    now_s = 199.0
    said = "starting the engine process (longer than usual: 90 s so far, after the download)"
    assert engine.health().reason == said
    engine._enter(Stage("warming up"))
    now_s = 900.0
    assert engine.health().reason == "warming up"
