"""What `/readyz` says of an engine and the workers that share it."""

from __future__ import annotations

import pytest
from msgspec import UNSET
from starlette.requests import Request

from gateway.domain.engine import EngineHealth, EngineState, LaneHealth
from gateway.server.http.bodies import EngineReadiness
from gateway.server.http.readiness import Whole, readiness, readyz

READY = EngineHealth(EngineState.READY)
TWO_SERVE = Whole(3, 4)
ONE_SERVES = Whole(3, 4, absent="Worker 2 does not serve now.")
NONE_SERVES = Whole(0, 0, serves=False, absent="Workers 1 and 2 do not serve now.")


@pytest.mark.parametrize(
    ("health", "whole", "status", "reason", "code"),
    [
        (READY, TWO_SERVE, "ready", "", 200),
        (READY, ONE_SERVES, "ready", "Worker 2 does not serve now.", 200),
        (READY, Whole(3, 4, store="The store is full."), "ready", "The store is full.", 200),
        (READY, NONE_SERVES, "starting", "Workers 1 and 2 do not serve now.", 503),
        (READY, Whole(0, 0, draining=True), "draining", "The gateway is shutting down.", 503),
        (EngineHealth(EngineState.STOPPED), TWO_SERVE, "draining", "The gateway is shutting down.", 503),
        (EngineHealth(EngineState.STARTING, "loading"), TWO_SERVE, "starting", "loading", 503),
        (EngineHealth(EngineState.RESTARTING, "again"), ONE_SERVES, "restarting", "again", 200),
        (EngineHealth(EngineState.FAILED, "often"), Whole(0, 0, draining=True), "failed", "often", 503),
    ],
)
def test_all_that_it_says(health: EngineHealth, whole: Whole, status: str, reason: str, code: int) -> None:
    answer = readiness(health, whole, "token")
    assert (answer.status, answer.reason, answer.auth) == (status, reason, "token")
    assert (answer.running, answer.waiting) == (whole.running, whole.waiting)
    assert readyz(answer, asked("")).status_code == code
    # For pages.
    assert readyz(answer, asked("status=200")).status_code == 200


def asked(query: str) -> Request:
    return Request({"type": "http", "query_string": query.encode(), "headers": []})


def test_each_of_several_engines() -> None:
    lanes = (
        LaneHealth("a", EngineState.READY, "", max_running=8, running=8, waiting=1),
        LaneHealth("b", EngineState.RESTARTING, "It died.", max_running=8),
        LaneHealth("c", EngineState.READY, "", leaves=True, max_running=8, running=2),
    )
    answer = readiness(READY, Whole(3, 4, lanes=lanes), "none")
    assert answer.engines == [
        EngineReadiness("a", "ready", "", running=8, waiting=1, seats=8),
        EngineReadiness("b", "restarting", "It died.", running=0, waiting=0, seats=8),
        EngineReadiness("c", "draining", "It finishes what it has and takes no more.", 2, 0, 8),
    ]
    assert readiness(READY, Whole(3, 4), "none").engines is UNSET
