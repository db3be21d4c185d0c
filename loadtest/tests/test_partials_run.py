"""The whole evaluation in seconds: the simulated engine, real sockets, every arm, waits that take no time."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

import msgspec
import pytest

from gateway.config import Settings
from loadtest.partials.result import Arm, PartialsPlan, PartialsResult
from loadtest.partials.run import PARTIALS, run
from loadtest.results import LoadtestError
from loadtest.systems.server import Running
from loadtest.tests.made_up_trials import parsed
from loadtest.trial.values import WebSocketGateway
from tests.clocks import run_swiftly
from tests.gateways import running as gateway_running

pytestmark = pytest.mark.slow

SMALL = PartialsPlan(engine="simulated", sources=("en", "ja"), streams=3, handwritten=1, speed=4.0)


@asynccontextmanager
async def in_this_process(settings: dict[str, Any], _say: object) -> AsyncIterator[Running]:
    """Instead of a process of its own, of whose time the swift loop would know nothing."""
    made = msgspec.convert(settings, Settings)
    async with gateway_running(made, script=made.engine.script) as served:
        url = f"http://127.0.0.1:{served.port}"
        yield Running("gateway", WebSocketGateway(url), {}, os.getpid(), f"{url}/metrics")


@pytest.fixture(scope="module")
def result() -> PartialsResult:
    with mock.patch("loadtest.partials.run.gateway", in_this_process):
        return run_swiftly(run(SMALL, lambda _: None))


def test_every_reader_gets_every_stream(result: PartialsResult) -> None:
    assert list(result.failures()) == []
    assert [(phase.source, phase.arm) for phase in result.phases] == [
        (source, arm) for source in ("en", "ja") for arm in Arm
    ]
    read = Counter((each.arm, each.stability) for each in result.readings)
    # Four streams from English into five languages, two from Japanese into one.
    pairs = 4 * 5 + 2
    assert read == {
        (Arm.OURS, "live"): pairs,
        (Arm.OURS, "stable"): pairs,
        (Arm.OURS, "final"): pairs,
        (Arm.NAIVE, "final"): pairs,
        (Arm.ALONE, "final"): pairs,
    }
    assert [(pair.source, pair.target) for pair in result.pairs] == [
        *(("en", target) for target in ("ja", "es", "de", "fr", "zh")),
        ("ja", "en"),
    ]


def test_naive_revisions_cost_more(result: PartialsResult) -> None:
    for pair in result.pairs:
        # Every revision became something.
        assert sum(pair.outcomes.values()) == pair.revisions
        assert pair.outcomes["translated"] > 0
        assert pair.alone.generated == pair.alone.final
        assert pair.ours.generated < pair.naively.generated
        assert pair.stable.erasure_before == 0
        assert pair.live.first_ms is not None
        assert pair.final_only.first_ms is not None
        assert pair.live.first_ms < pair.final_only.first_ms


async def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def endless(*_: object) -> AsyncIterator[Running]:
        await asyncio.Event().wait()
        yield  # type: ignore[misc]

    monkeypatch.setattr("loadtest.partials.run.gateway", endless)
    plan = PartialsPlan(engine="simulated", sources=("en",), streams=1, handwritten=0, time_limit_s=0.05)
    with pytest.raises(LoadtestError, match="time limit"):
        await run(plan, lambda _: None)


def test_a_wrong_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(PARTIALS, "--out", "nowhere", "--streams", "0")
    assert "between 1 and 10000" in capsys.readouterr().err
