"""The administration of a gateway with workers: the store is asked, and all workers are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from websockets.exceptions import ConnectionClosed

from gateway.config import LaneSettings, Settings
from gateway.domain.errors import InvalidValue, StartupError
from gateway.engines.simulated import Script
from gateway.keys import operators_of
from gateway.store import Store
from gateway.workers import administration
from gateway.workers.administration import routes
from gateway.workers.parent import Parent
from tests.administration import Operator
from tests.over_http import check_problem
from tests.patience import until
from tests.workers.gateways import settings, workers

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("level_as_before")]


async def test_operator_ends_meetings_and_drains_workers_and_lanes(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    lanes = tuple(LaneSettings(name=name, kind="simulated", script=Script()) for name in ("one", "two"))
    given = replace(settings(), engines=lanes)
    allowed, store = operators_of(operator.settings(given)), Store(given, lambda _: None)
    assert allowed is not None
    async with workers(given) as gateway:
        await store.reach()
        transport = httpx.ASGITransport(Starlette(routes=routes(allowed, store, gateway.parent)))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=operator.bearer
        ) as client:
            sessions = [await gateway.session(number) for number in (1, 2)]
            for session in sessions:
                await session.say("1")
                await session.until("translation.final")
            found = (await client.get("/admin/meetings")).json()["meetings"]
            assert [(each["connected"], each["private"], each["publications"]) for each in found] == [
                (1, True, 2)
            ] * 2
            for each in found:
                address = f"/admin/meetings/default/{each['meeting']}"
                assert (await client.delete(f"{address}/transcript")).json() == {"erased": True}
                assert (await client.delete(address)).json() == {"sessions": 1}
            for session in sessions:
                with pytest.raises(ConnectionClosed) as closed:
                    await session.until("nothing")
                assert closed.value.rcvd is not None
                # The log was begun again, or the meeting has ended: whichever the worker has heard first.
                assert closed.value.rcvd.code in (1012, 4505)
            assert (await client.get("/admin/sessions")).json() == {"sessions": []}

            before = gateway.pids
            listed = (await client.get("/admin/workers")).json()["workers"]
            assert {each["number"]: each["pid"] for each in listed} == before
            check_problem(await client.post("/admin/workers/3/drain"), 404, "not_found")
            assert (await client.post("/admin/workers/1/drain")).status_code == 202
            await until(lambda: gateway.pids[1] != before[1] and len(gateway.parent.workers()) == 2)
            assert gateway.pids[2] == before[2]

            assert (await client.post("/admin/lanes/two/drain")).status_code == 202
            await until(lambda: [each.name for each in gateway.parent.whole().lanes] == ["one"])
            check_problem(await client.post("/admin/lanes/one/drain"), 422, "invalid_value")
            assert json.loads((await gateway.get("/readyz"))[1])["status"] == "ready"
            assert (await client.put("/admin/log-level", json={"level": "debug"})).json() == {"level": "debug"}
            assert (await client.get("/admin/log-level")).json() == {"level": "debug"}
    await store.close()


def test_lanes_drain_one_after_another() -> None:
    lanes = tuple(LaneSettings(name=name, kind="simulated") for name in ("a", "b", "c"))
    loads: list[Callable[[], Settings]] = []
    parent = SimpleNamespace(settings=replace(settings(), engines=lanes), reload=loads.append)
    workers = administration._Workers(cast(Parent, parent))
    workers.drain_lane("a")
    workers.drain_lane("b")
    workers.drain_lane("c")
    for load, left in zip(loads[:2], (["b", "c"], ["c"]), strict=True):
        parent.settings = load()
        assert [lane.name for lane in parent.settings.engines] == left
    with pytest.raises(StartupError, match="c is the only lane"):
        loads[2]()
    with pytest.raises(InvalidValue, match="c is the only lane"):
        workers.drain_lane("c")
