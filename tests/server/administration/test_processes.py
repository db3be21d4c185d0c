"""The processes and the engines of one gateway, as an operator sees and changes them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from gateway.config import LaneSettings, Settings
from gateway.domain.engine import EngineState
from gateway.engines.simulated import Script
from tests.administration import Operator, administered
from tests.over_http import check_problem
from tests.patience import until

pytestmark = pytest.mark.usefixtures("level_as_before")


def lane(name: str) -> LaneSettings:
    return LaneSettings(name=name, kind="simulated", script=Script())


async def test_the_only_process_and_its_only_engine(tmp_path: Path) -> None:
    async with administered(Operator(tmp_path)) as (gateway, client):
        await until(lambda: gateway.gateway.engine.health().state is EngineState.READY)
        [worker] = (await client.get("/admin/workers")).json()["workers"]
        assert worker == {"number": None, "pid": os.getpid(), "status": "serving", "running": 0, "waiting": 0}
        [only] = (await client.get("/admin/lanes")).json()["lanes"]
        assert (only["name"], only["status"]) == ("default", "ready")
        check_problem(await client.post("/admin/lanes/default/drain"), 422, "invalid_value")
        check_problem(await client.post("/admin/lanes/other/drain"), 404, "not_found")
        check_problem(await client.post("/admin/workers/1/drain"), 422, "invalid_value")


async def test_drained_lane_goes_and_the_last_stays(tmp_path: Path) -> None:
    settings = Settings(engines=(lane("one"), lane("two")))
    async with administered(Operator(tmp_path), settings) as (gateway, client):
        await until(lambda: gateway.gateway.engine.health().state is EngineState.READY)
        answer = await client.post("/admin/lanes/two/drain")
        assert answer.status_code == 202
        await until(lambda: [each.name for each in gateway.gateway.lanes] == ["one"])
        check_problem(await client.post("/admin/lanes/one/drain"), 422, "invalid_value")


async def test_the_log_says_more_or_less_from_now_on(tmp_path: Path) -> None:
    async with administered(Operator(tmp_path)) as (_, client):
        assert (await client.put("/admin/log-level", json={"level": "error"})).json() == {"level": "error"}
        assert logging.getLogger("gateway").level == logging.ERROR
        assert (await client.get("/admin/log-level")).json() == {"level": "error"}
        check_problem(
            await client.put("/admin/log-level", json={"level": "loud"}), 400, "invalid_message", "level"
        )
