"""The machine over time, the CPU by part, and a trial made of them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace as replaced
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gateway.translation import partials
from loadtest import measuring
from loadtest.driving.driver import Driven, Driver
from loadtest.measuring import (
    HOST,
    PACE_S,
    STORE,
    Accounts,
    Reading,
    could_be_translated,
    counters,
    engine_gpus,
    hosts,
    measure,
    sampling,
    share_in_queues,
    translated,
    translated_part,
)
from loadtest.results import LoadtestError
from loadtest.systems import processes
from loadtest.systems.server import Running
from loadtest.trial.values import (
    Address,
    Closed,
    Delivered,
    EngineInProcess,
    Http,
    Line,
    Load,
    Open,
    OpenAiServer,
    Partial,
    ProcessUse,
    Record,
    Sample,
    Trial,
    WebSocketGateway,
)
from tests.clocks import swiftly
from tests.engines.vllm.nvml import Device, installed


def line(due_s: float, *partials: tuple[float, str], targets: tuple[str, ...] = ("de",)) -> Line:
    return Line("1", "All of it.", "en", targets, due_s, partials=tuple(Partial(*each) for each in partials))


SAID = ((1.0, "a"), (1.3, "a b"), (1.6, "a b c"), (1.9, "a b c d"))


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ([], 0),
        ([line(2.0)], 0),
        ([line(2.0, (1.0, "a"))], 1),
        # At once, and 0.6 s later what is new by then; the last would come after the final.
        ([line(2.1, *SAID)], 2),
        ([line(2.3, *SAID)], 3),
        ([line(2.3, *SAID, targets=("de", "ja"))], 6),
        # What is said again is not translated again.
        ([line(9.0, (1.0, "a"), (2.0, "a"), (3.0, "a b"))], 2),
        ([line(2.0, (1.0, "a")), line(2.0, (1.0, "a"))], 2),
    ],
)
def test_so_many_partials_could_be_translated(lines: list[Line], count: int) -> None:
    assert could_be_translated(lines) == count


def test_the_pace_is_the_gateways() -> None:
    assert PACE_S == partials._PACE_S


def test_the_part_that_was_translated() -> None:
    lines = [line(2.3, *SAID)] * 4
    assert translated_part(lines, 10, 16) == 0.5
    assert translated_part(lines, 10, 30) == 1.0
    assert translated_part([line(2.0)], 10, 16) is None


def test_translated_partials_of_all_languages_are_counted() -> None:
    text = (
        'gateway_partials_total{lang="de",outcome="translated"} 3.0\n'
        'gateway_partials_total{lang="ja",outcome="translated",worker="1"} 4.0\n'
        'gateway_partials_total{lang="de",outcome="superseded"} 50.0\n'
    )
    assert translated(text) == 7
    assert translated("") == 0


class _Metrics(BaseHTTPRequestHandler):
    steps = 0

    def do_GET(self) -> None:
        _Metrics.steps += 10
        body = (
            "# HELP gateway_engine_running Sequences.\n"
            'gateway_engine_running{engine="default"} 3.0\n'
            "vllm:num_requests_running 99.0\n"
            'vllm:num_requests_waiting{engine="0"} 1.0\nvllm:num_requests_waiting{engine="1"} 1.0\n'
            'gateway_engine_waiting{engine="default"} 0.0\n'
            "gateway_tokens_total 40.0\nvllm:generation_tokens_total 70.0\n"
            'vllm:num_requests_waiting_by_reason{reason="capacity"} 5.0\n'
            f'gateway_engine_step_seconds_bucket{{engine="default",le="0.1"}} {_Metrics.steps - 2}.0\n'
            f'gateway_engine_step_seconds_bucket{{engine="default",le="+Inf"}} {_Metrics.steps}.0\n'
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


def test_processes_below_the_server_are_the_engine(busy: int) -> None:
    accounts = Accounts({"serving": [busy], "clients": []})
    before = accounts.read()
    while (used := accounts.read(search=False).since(before))["engine"] < 0.1:
        time.sleep(0.02)
    assert used["serving"] < 0.05
    assert used["clients"] == 0
    assert set(used) == {"serving", "engine", "clients", "other"}


# Processes that keep a core busy, each below the one before, named as they name themselves.
NAMED = """
import subprocess, sys, threading
from setproctitle import setproctitle
name, *below = sys.argv[1:]
if below:
    threading.Thread(target=subprocess.run, args=([sys.executable, "-c", CODE, *below],), daemon=True).start()
setproctitle(name)
while True:
    pass
"""


@contextmanager
def named(*names: str) -> Iterator[int]:
    """The first of them, with the others below it, one below the other."""
    code = f"CODE = {NAMED!r}\nCODE = f'CODE = {{CODE!r}}' + CODE\n" + NAMED
    process = subprocess.Popen([sys.executable, "-c", code, *names], start_new_session=True)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_the_store_serves_and_is_separate() -> None:
    with named("gateway", "gateway worker 1", "redis-server *:0") as gateway:
        accounts = Accounts({"serving": [gateway]})
        # It has its name a moment after it began.
        while STORE not in (reading := accounts.read()).cpu_s or reading.cpu_s[STORE] < 0.1:
            time.sleep(0.02)
        before = accounts.read()
        while (used := accounts.read().since(before))[STORE] < 0.1:
            time.sleep(0.02)
        assert used["serving"] > used[STORE]


def test_the_engine_host_serves_and_is_separate() -> None:
    with named("gateway", "gateway engine host", "VLLM::EngineCore") as gateway:
        accounts = Accounts({"serving": [gateway], "clients": []})
        # It has its name a moment after it began.
        while HOST not in (reading := accounts.read()).cpu_s or not all(
            reading.cpu_s[part] > 0.1 for part in ("serving", "engine")
        ):
            time.sleep(0.02)
        before = accounts.read()
        while (used := accounts.read().since(before))[HOST] < 0.1:
            time.sleep(0.02)
        assert used.keys() == {"serving", HOST, "engine", "clients", "other"}
        # The gateway's own is in it too.
        assert used["serving"] > used[HOST]
        (host,) = processes.named_below(gateway, re.compile("^gateway engine host"))
        mib = processes.resident_mib(gateway) + processes.resident_mib(host)
        assert accounts.serving_mib() == pytest.approx(mib, rel=0.05)


def test_each_host_of_several_engines_is_told() -> None:
    with named("gateway", "gateway engine host", "gateway engine host") as gateway:
        accounts, second = Accounts({"serving": [gateway]}), f"{HOST} 2"
        # One that has just been forked bears the name of its parent until it runs its own program.
        while hosts([*(used_s := accounts.read().cpu_s)]) != [HOST, second] or used_s[second] < 0.1:
            time.sleep(0.02)
        assert used_s["serving"] > used_s[HOST] + used_s[second]
        # Found later, it had used nothing before.
        assert Reading(2.0, {second: 1.0}).since(Reading(1.0, {})) == {second: 1.0}


def test_a_gateway_beside_is_not_the_engine() -> None:
    with named("client", processes.BESIDE_ITS_ENGINE) as client:
        while not (below := processes.named_below(client, re.compile(f"^{processes.BESIDE_ITS_ENGINE}"))):
            time.sleep(0.02)
        direct, through = Accounts({"serving": [client]}), Accounts({"serving": below, HOST: [client]})
        while not (reading := through.read()).cpu_s["serving"] - reading.cpu_s[HOST] > 0.1:
            time.sleep(0.02)
        assert direct.read().cpu_s["engine"] == through.read().cpu_s["engine"] == 0
        assert HOST not in direct.read().cpu_s


def test_other_parts_own_what_they_started(busy: int) -> None:
    assert Accounts({"clients": [busy]}).read().cpu_s["clients"] > 0.05


def test_a_reading_follows_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is used while a busy machine searches would else be counted as that of no time at all.
    accounts, searched_s = Accounts({}), []
    monkeypatch.setattr(accounts, "_search", lambda: searched_s.append(time.monotonic()))
    assert accounts.read().at_s > searched_s[0]


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
    # What an engine's host had used when it was found was used meanwhile.
    assert Reading(2.0, {HOST: 1.0}).since(Reading(1.0, {})) == {HOST: 1.0}


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
    assert sum(sample.running is not None for sample in samples) < len(samples)
    await asyncio.sleep(0.05)
    assert len(samples) == count


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (WebSocketGateway("unused"), (3.0, 0.0, 40.0)),
        # Its process has the gateway's counters beside its own; series of one name are added.
        (OpenAiServer("unused", "model", {}), (99.0, 2.0, 70.0)),
        (Http("unused"), (None, None, None)),
    ],
)
async def test_each_system_has_its_own_counters(
    metrics_url: str, address: Address, told: tuple[float | None, ...]
) -> None:
    asked = _Metrics.steps
    async with sampling({}, metrics_url, counters(address), hz=50) as samples:
        # With the second answer, the first has been read.
        while _Metrics.steps < asked + 20:
            await asyncio.sleep(0.01)
    readings = [(sample.running, sample.waiting, sample.tokens) for sample in samples]
    assert {reading for reading in readings if reading != (None, None, None)} <= {told}
    assert told in readings


async def test_a_server_that_says_nothing_leaves_nulls() -> None:
    async with sampling({}, "http://127.0.0.1:9/metrics", hz=100) as samples:
        while len(samples) < 5:
            await asyncio.sleep(0.01)
    assert {(sample.running, sample.waiting, sample.tokens) for sample in samples} == {(None, None, None)}


FOUR = [Device(f"GPU-{index}", busy=10 * index, used=index * 2**30) for index in range(4)]


@pytest.mark.parametrize(
    ("settings", "indexes"),
    [
        ({"engine": {}}, [1]),
        ({"engine": {"device": "cuda:3"}}, [3]),
        ({"engine": {"device": "2,3"}}, [2]),
        ({"engine": {"device": "2,3", "extra": {"tensor_parallel_size": 2}}}, [2, 3]),
        ({"engines": [{"device": "3"}, {"device": "2"}, {"device": "3", "kind": "vllm"}]}, [2, 3]),
        ({"engines": [{"device": "3"}, {"kind": "simulated"}]}, [3]),
        ({"engines": [{"device": "3"}, {"kind": "remote"}]}, [3]),
        ({"engine": {"kind": "simulated"}}, []),
        ({"url": "http://somewhere"}, [1]),
    ],
)
def test_the_gpus_are_those_in_use(
    settings: dict[str, Any], indexes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, *FOUR)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert [each.index for each in engine_gpus(settings)] == indexes


async def test_a_trial_has_each_gpus_load(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, *FOUR)

    async def sampled(**settings: Any) -> Sample:
        running = replaced(_EXISTING, settings=settings)
        return (await _measured([_record(0.0)], running)).samples[-1]

    several = await sampled(engines=[{"device": "2"}, {"device": "3"}])
    assert (several.gpu, several.gpus, several.gpu_memory_mib) == (25, {"2": 20, "3": 30}, 5 * 1024)
    one = await sampled(engine={"device": "2"})
    assert (one.gpu, one.gpus, one.gpu_memory_mib) == (20, {}, 2 * 1024)


def test_cpu_is_counted_between_two_moments_alone() -> None:
    samples = [Sample(0.0), *(Sample(float(at), cores={"serving": 1.0, "engine": 0.5}) for at in (1, 2, 3))]
    assert measuring._used_s(samples, 0.5, 2.5) == {"serving": 2.0, "engine": 1.0}
    assert measuring._used_s(samples, 5.0, 6.0) == {}
    # An engine's host that was found later has used nothing before.
    samples[2:] = [replace(sample, cores={HOST: 0.25}) for sample in samples[2:]]
    assert measuring._used_s(samples, 0.5, 2.5)[HOST] == 0.375


# ---------------------------------------------------------------- measuring


class _Driver:
    """Plays for a moment, and on until it is enough. ran_out_s: as in `Driven`."""

    pids: Sequence[int] = ()

    def __init__(
        self,
        records: Sequence[Record],
        lag_ms: float = 0.0,
        ran_out_s: float | None = None,
        enough: Callable[[], bool] = lambda: True,
    ) -> None:
        self._enough = enough
        self._records = list(records)
        self._lag_ms = lag_ms
        self._ran_out_s = ran_out_s

    async def play(self, lines: Sequence[Line], **_options: object) -> Driven:
        began_s = time.monotonic()
        await asyncio.sleep(0.25)
        while not self._enough():
            await asyncio.sleep(0.01)
        elapsed_s = time.monotonic() - began_s
        use = ProcessUse(0.01, elapsed_s, self._lag_ms, self._lag_ms)
        return Driven(began_s, elapsed_s, self._records, Delivered(), [use], ran_out_s=self._ran_out_s)


def _record(due_s: float, failed: str | None = None) -> Record:
    return Record(f"{due_s}", "de", due_s, due_s, due_s + 0.01, due_s + 0.05, tokens=3, failed=failed)


async def _measured(
    records: Sequence[Record],
    running: Running,
    lag_ms: float = 0.0,
    *,
    ran_out_s: float | None = None,
    enough: Callable[[], bool] = lambda: True,
    lines: Sequence[Line] = (),
    load: Load = Closed(1),  # noqa: B008 -- it never changes
    **options: Any,
) -> Trial:
    driver = cast(Driver, _Driver(records, lag_ms, ran_out_s, enough))
    return await measure(
        running,
        driver,
        lines,
        load,
        name="a trial",
        repetition=1,
        workload="made up",
        say=lambda _: None,
        limit_s=300,
        **options,
    )


_EXISTING = Running("gateway", WebSocketGateway("http://127.0.0.1:9"), {"url": "elsewhere"})


async def test_a_trial_holds_what_was_seen(metrics_url: str, busy: int) -> None:
    running = Running("gateway", WebSocketGateway("unused"), {"engine": {}}, busy, metrics_url)
    accounts, asked = Accounts({"serving": [busy]}), _Metrics.steps
    before = accounts.read()

    def enough() -> bool:
        """It was asked often, and the engine was given some time."""
        return _Metrics.steps >= asked + 40 and accounts.read().since(before)["engine"] > 0.2

    trial = await _measured([_record(0.0), _record(0.1)], running, enough=enough)
    assert (trial.name, trial.system, trial.repetition, trial.load) == ("a trial", "gateway", 1, Closed(1))
    assert len(trial.records) == 2
    assert trial.cpu_s["engine"] > trial.cpu_s["serving"]
    assert trial.memory_mib is not None
    assert trial.memory_mib > 1
    assert trial.samples
    assert all(0 <= sample.at_s <= trial.elapsed_s for sample in trial.samples)
    assert trial.steps is not None
    assert trial.steps >= 10
    assert trial.long_steps == 0


@swiftly
async def test_the_beginning_can_be_left_out() -> None:
    begun = replace(_record(0.15), began_s=0.02, shown_s=0.12)
    trial = await _measured([_record(0.05), begun], _EXISTING, discard_s=0.1)
    (record,) = trial.records
    assert record.due_s == pytest.approx(0.05)
    assert record.first_s == pytest.approx(0.06)
    assert record.done_s == pytest.approx(0.1)
    assert record.began_s == pytest.approx(-0.08)
    assert record.shown_s == pytest.approx(0.02)
    assert trial.elapsed_s == pytest.approx(0.15)
    with pytest.raises(LoadtestError, match="within the 60 s"):
        await _measured([_record(0.05)], _EXISTING, discard_s=60)


@swiftly
async def test_rates_leave_out_the_drain() -> None:
    # Sent before, within and after the time in which as many were in flight as were to be: from 0.05 s to 0.2 s.
    records = [
        Record("before", "de", 0.01, 0.01, 0.02, 0.1, tokens=3),
        Record("within", "de", 0.1, 0.1, 0.12, 0.15, tokens=5),
        Record("drained", "de", 0.19, 0.19, 0.2, 0.24, tokens=7),
        Record("after", "de", 0.21, 0.21, 0.22, 0.23, tokens=11),
        Record("broken", "de", 0.12, 0.12, None, None, tokens=2, failed="internal"),
        Record("late", "de", 0.22, 0.22, None, None, tokens=1, failed="overloaded"),
    ]
    trial = await _measured(records, _EXISTING, ran_out_s=0.2, discard_s=0.05)
    assert trial.elapsed_s == pytest.approx(0.15)
    assert [record.line for record in trial.records] == ["within", "drained", "broken", "late"]
    assert (trial.finished, trial.generated, trial.with_drain) == (2, 3 + 5 + 2, False)
    assert all(0 <= sample.at_s <= trial.elapsed_s for sample in trial.samples)
    assert trial.delivered.elapsed_s >= 0.25


@swiftly
async def test_a_short_closed_loop_counts_whole() -> None:
    trial = await _measured([_record(0.0), _record(0.15)], _EXISTING, ran_out_s=0.1)
    assert trial.elapsed_s >= 0.25
    assert (len(trial.records), trial.finished, trial.with_drain) == (2, 2, True)


@swiftly
async def test_an_open_loop_ends_when_due() -> None:
    lines = [Line(f"{due_s}", "a", "en", ("de",), due_s=due_s) for due_s in (0.05, 0.1)]
    # The second is done when nothing is due any more.
    trial = await _measured([_record(0.05), _record(0.1)], _EXISTING, lines=lines, load=Open(20.0), discard_s=0.02)
    assert trial.elapsed_s == pytest.approx(0.08)
    assert (len(trial.records), trial.finished, trial.generated) == (2, 1, 3)
    assert not trial.with_drain


async def test_a_limiting_driver_is_refused_or_noted() -> None:
    with pytest.raises(LoadtestError, match="a trial: The driver was the limit"):
        await _measured([_record(0.0)], _EXISTING, lag_ms=50)
    trial = await _measured([_record(0.0)], _EXISTING, lag_ms=50, allow_bottleneck=True)
    assert trial.limited is not None
    assert "late by 50" in trial.limited


async def test_nothing_translated_is_no_trial() -> None:
    with pytest.raises(LoadtestError, match="no line was translated: overloaded"):
        await _measured([_record(0.0, failed="overloaded")], _EXISTING)


async def test_a_client_with_the_engine_serves(busy: int) -> None:
    driver = _Driver([_record(0.0)])
    driver.pids = [busy]
    running = Running("asyncllm", EngineInProcess({}), {})
    assert measuring._parts(running, cast(Driver, driver)) == {"serving": [busy]}
    assert measuring._parts(_EXISTING, cast(Driver, driver)) == {"clients": [busy]}
    gateway = Running("gateway", WebSocketGateway("unused"), {}, 7, host=8)
    assert measuring._parts(gateway, cast(Driver, driver)) == {"serving": [7], HOST: [8], "clients": [busy]}


def test_queue_share_is_between_two_readings() -> None:
    def told(queue_s: float, total_s: float) -> str:
        return f"baseline_queue_seconds_total {queue_s}\nbaseline_response_seconds_total {total_s}\n"

    assert share_in_queues(told(4.0, 10.0), told(12.0, 20.0)) == 0.8
    assert share_in_queues(told(4.0, 10.0), told(4.0, 10.0)) is None
    assert share_in_queues("", "") is None
