"""What vLLM's engine process says about itself."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.engines.vllm.load import EngineLoad, load_logger


def steps(load: EngineLoad, count: int, took_s: float, *, running: int = 4, begin_s: float = 0.0) -> float:
    """So many steps, the first at `begin_s`; when the last one was."""
    for step in range(count):
        load.stepped(running=running, waiting=0, now_s=begin_s + step * took_s)
    return begin_s + (count - 1) * took_s


def test_the_step_time_follows_the_engine_and_leaves_idleness_out() -> None:
    load = EngineLoad()
    assert load.tokens_a_piece(0.04) == 1
    last_s = steps(load, 50, 0.010)
    assert load.step_s == pytest.approx(0.010)
    assert load.tokens_a_piece(0.04) == 4
    load.stepped(running=0, waiting=0, now_s=last_s + 0.010)
    # Ten minutes later somebody speaks.
    load.stepped(running=1, waiting=0, now_s=last_s + 600.0)
    assert load.step_s == pytest.approx(0.010)
    steps(load, 100, 0.100, begin_s=last_s + 600.0)
    assert load.tokens_a_piece(0.04) == 1
    load.stepped(running=4, waiting=2, now_s=last_s + 610.0)
    assert (load.running, load.waiting) == (4, 2)


def test_what_the_event_loop_sees_late_and_at_once_is_no_faster_engine() -> None:
    load = EngineLoad()
    last_s = steps(load, 100, 0.010)
    # The loop was elsewhere for half a second, in which the engine made fifty steps.
    steps(load, 50, 1e-5, begin_s=last_s + 0.5)
    assert load.step_s == pytest.approx(0.010, rel=0.2)


def test_the_stat_logger_takes_the_load_and_leaves_the_rest_to_vllm() -> None:
    class Stats:
        num_running_reqs, num_waiting_reqs = 3, 1

    recorded: list[object] = []

    class Prometheus:
        def record(self, scheduler_stats: Any, iteration_stats: Any, **_: Any) -> None:
            recorded.append((scheduler_stats, iteration_stats))

    load, stats = EngineLoad(), Stats()
    logger = load_logger(load, Prometheus)()
    logger.record(stats, None, engine_idx=0)
    logger.record(None, None, engine_idx=0)
    assert recorded == [(stats, None), (None, None)]
    assert (load.running, load.waiting) == (3, 1)
