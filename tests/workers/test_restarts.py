"""A worker is started again soon, then less and less soon, with settings that have served."""

from __future__ import annotations

from gateway.config import Settings
from gateway.workers.restarts import Restarts

OLD, NEW = Settings(), Settings(log_level="error")


def test_pauses_grow_with_each_failure_in_a_row() -> None:
    restarts = Restarts()
    pauses_s = [restarts.pause_s() for _ in range(20)]
    assert pauses_s[:4] == [0.0, 0.5, 1.0, 2.0]
    assert pauses_s[-1] == 30.0
    restarts.ended(OLD, served=True, after_s=59.0)
    restarts.ended(OLD, served=False, after_s=3_600.0)
    assert restarts.pause_s() == 30.0
    restarts.ended(OLD, served=True, after_s=61.0)
    assert restarts.pause_s() == 0.0


def test_settings_are_those_that_have_served() -> None:
    restarts = Restarts()
    restarts.ended(NEW, served=False, after_s=1.0)
    assert restarts.settings(OLD) is OLD
    restarts.ended(OLD, served=True, after_s=1.0)
    restarts.ended(NEW, served=False, after_s=1.0)
    assert restarts.settings(NEW) is OLD
    restarts.ended(NEW, served=True, after_s=1.0)
    assert restarts.settings(OLD) is NEW
