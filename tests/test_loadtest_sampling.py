"""The machine over time, the CPU by part, and a trial made of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast

import pytest

from loadtest.driving.driven import Driven
from loadtest.driving.driver import Driver
from loadtest.results import LoadtestError
from loadtest.systems.running import Running
from loadtest.trial import measure as measuring
from loadtest.trial.accounting import Accounts, Reading
from loadtest.trial.measure import DRIVER_WAS_THE_LIMIT, measure
from loadtest.trial.sampling import sampling
from loadtest.trial.values import (
    Closed,
    Delivered,
    EngineInProcess,
    Line,
    ProcessUse,
    Record,
    Sample,
    Trial,
    WebSocketGateway,
)

# ---------------------------------------------------------------- a server that says something of itself


class _Metrics(BaseHTTPRequestHandler):
    steps = 0

    def do_GET(self) -> None:
        _Metrics.steps += 10
        body = (
            "# HELP gateway_engine_running Sequences.\n"
            "gateway_engine_running 3.0\nvllm:num_requests_running 99.0\n"
            'vllm:num_requests_waiting{engine="0"} 1.0\nvllm:num_requests_waiting{engine="1"} 1.0\n'
            "gateway_tokens_total 40.0\n"
            f'gateway_engine_step_seconds_bucket{{le="0.1"}} {_Metrics.steps - 2}.0\n'
            f'gateway_engine_step_seconds_bucket{{le="+Inf"}} {_Metrics.steps}.0\n'
        ).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def metrics_url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Metrics) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def busy() -> Iterator[int]:
    """A process that keeps a core busy, below one that does nothing."""
    spin = "while True: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent], start_new_session=True)
    accounts = Accounts({"serving": [process.pid]})
    while not accounts.read().cpu_s["engine"] > 0.05:
        time.sleep(0.02)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# ---------------------------------------------------------------- accounts


def test_what_is_below_the_server_is_the_engine(busy: int) -> None:
    accounts = Accounts({"serving": [busy], "clients": []})
    before = accounts.read()
    while (used := accounts.read(search=False).since(before))["engine"] < 0.1:
        time.sleep(0.02)
    assert used["serving"] < 0.05
    assert used["clients"] == 0
    assert set(used) == {"serving", "engine", "clients", "other"}


def test_of_other_parts_what_is_below_belongs_to_them(busy: int) -> None:
    assert Accounts({"clients": [busy]}).read().cpu_s["clients"] > 0.05


def test_a_process_that_ended_stays_counted() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    accounts = Accounts({"clients": [process.pid]})
    while not (before := accounts.read().cpu_s["clients"]):
        time.sleep(0.01)
    process.communicate(b"\n")
    assert accounts.read().cpu_s["clients"] >= before


def test_a_reading_never_goes_back() -> None:
    # The rest of the machine is a difference of clocks with different steps.
    assert Reading(2.0, {"other": 1.0}).since(Reading(1.0, {"other": 1.01})) == {"other": 0.0}


# ---------------------------------------------------------------- sampling


async def test_samples_come_while_the_block_lasts(metrics_url: str, busy: int) -> None:
    began_s = time.monotonic()
    async with sampling({"serving": [busy]}, metrics_url, hz=50) as samples:
        while not any(sample.running is not None for sample in samples) or len(samples) < 10:
            await asyncio.sleep(0.01)
    ended_s, count = time.monotonic(), len(samples)
    assert [sample.at_s for sample in samples] == sorted(sample.at_s for sample in samples)
    assert all(began_s <= sample.at_s <= ended_s for sample in samples)
    assert samples[0].cores == {}
    assert all(sample.cores.keys() == {"serving", "engine", "other"} for sample in samples[1:])
    # The gateway's own name goes before the engine's; series of one name are added.
    said = next(sample for sample in samples if sample.running is not None)
    assert (said.running, said.waiting, said.tokens) == (3.0, 2.0, 40.0)
    assert sum(sample.running is not None for sample in samples) < len(samples)
    await asyncio.sleep(0.05)
    assert len(samples) == count


async def test_a_server_that_says_nothing_leaves_nulls() -> None:
    async with sampling({}, "http://127.0.0.1:9/metrics", hz=100) as samples:
        while len(samples) < 5:
            await asyncio.sleep(0.01)
    assert {(sample.running, sample.waiting, sample.tokens) for sample in samples} == {(None, None, None)}


def test_cpu_is_counted_between_two_moments_alone() -> None:
    samples = [Sample(0.0), *(Sample(float(at), cores={"serving": 1.0, "engine": 0.5}) for at in (1, 2, 3))]
    assert measuring._used_s(samples, 0.5, 2.5) == {"serving": 2.0, "engine": 1.0}
    assert measuring._used_s(samples, 5.0, 6.0) == {}


# ---------------------------------------------------------------- measuring


class _Driver:
    """Plays for a moment. late: the first record is due so many seconds after the beginning."""

    pids: Sequence[int] = ()

    def __init__(self, records: Sequence[Record], lag_ms: float = 0.0) -> None:
        self._records = list(records)
        self._lag_ms = lag_ms

    async def play(self, lines: Sequence[Line], **_options: object) -> Driven:
        began_s = time.monotonic()
        await asyncio.sleep(0.25)
        elapsed_s = time.monotonic() - began_s
        use = ProcessUse(0.01, elapsed_s, self._lag_ms, self._lag_ms, self._lag_ms)
        return Driven(began_s, elapsed_s, self._records, Delivered(), [use])


def _record(due_s: float, failed: str | None = None) -> Record:
    return Record(f"{due_s}", "de", due_s, due_s, due_s + 0.01, due_s + 0.05, tokens=3, failed=failed)


async def _measured(records: Sequence[Record], running: Running, lag_ms: float = 0.0, **options: Any) -> Trial:
    driver = cast(Driver, _Driver(records, lag_ms))
    return await measure(
        running,
        driver,
        [],
        Closed(1),
        name="a trial",
        repetition=1,
        workload="made up",
        say=lambda _: None,
        limit_s=10,
        **options,
    )


_EXISTING = Running("gateway", WebSocketGateway("http://127.0.0.1:9"), {"url": "elsewhere"})


async def test_a_trial_holds_what_was_seen(metrics_url: str, busy: int) -> None:
    running = Running("gateway", WebSocketGateway("unused"), {"engine": {}}, busy, metrics_url)
    trial = await _measured([_record(0.0), _record(0.1)], running)
    assert (trial.name, trial.system, trial.repetition, trial.load) == ("a trial", "gateway", 1, Closed(1))
    assert len(trial.records) == 2
    assert trial.cpu_s["engine"] > trial.cpu_s["serving"]
    assert trial.memory_mib is not None
    assert trial.memory_mib > 1
    assert trial.samples
    assert all(0 <= sample.at_s <= trial.elapsed_s for sample in trial.samples)
    steps, gaps = trial.settings["engine_steps"], trial.settings["engine_gaps_over_100_ms"]
    assert steps >= 10
    assert gaps == 0


async def test_the_beginning_can_be_left_out() -> None:
    trial = await _measured([_record(0.05), _record(0.15)], _EXISTING, discard_s=0.1)
    (record,) = trial.records
    assert record.due_s == pytest.approx(0.05)
    assert record.first_s == pytest.approx(0.06)
    assert record.done_s == pytest.approx(0.1)
    assert trial.elapsed_s < 0.25
    with pytest.raises(LoadtestError, match="within the 60 s"):
        await _measured([_record(0.05)], _EXISTING, discard_s=60)


async def test_a_driver_that_was_the_limit_is_refused_or_noted() -> None:
    with pytest.raises(LoadtestError, match="a trial: The driver was the limit"):
        await _measured([_record(0.0)], _EXISTING, lag_ms=50)
    trial = await _measured([_record(0.0)], _EXISTING, lag_ms=50, allow_bottleneck=True)
    assert "late by 50" in trial.settings[DRIVER_WAS_THE_LIMIT]


async def test_nothing_translated_is_no_trial() -> None:
    with pytest.raises(LoadtestError, match="no line was translated: overloaded"):
        await _measured([_record(0.0, failed="overloaded")], _EXISTING)


async def test_a_client_that_holds_the_engine_is_what_serves(busy: int) -> None:
    driver = _Driver([_record(0.0)])
    driver.pids = [busy]
    running = Running("asyncllm", EngineInProcess({}), {})
    assert measuring._parts(running, cast(Driver, driver)) == {"serving": [busy]}
    assert measuring._parts(_EXISTING, cast(Driver, driver)) == {"clients": [busy]}
