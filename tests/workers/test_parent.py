"""The parent of real workers: whatever ends is started again, and nobody else is disturbed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed

from gateway.client import Reconnected, connect
from gateway.config import AuthSettings, EngineSettings, LaneSettings, Settings
from gateway.domain.errors import StartupError
from gateway.engines.simulated import Rule, Script
from gateway.engines.supervisor import Supervisor
from gateway.protocol.limits import Limits
from gateway.protocol.messages import TranslationFailed, TranslationFinal
from gateway.workers import parent as parents
from gateway.workers.administration import _Workers
from gateway.workers.parent import Parent, Restarts
from gateway.workers.process import WorkerProcess
from tests.patience import until
from tests.processes import alive
from tests.workers.gateways import LONG, Running, settings, stalling, workers

pytestmark = pytest.mark.slow


def supervisor(gateway: Running) -> Supervisor:
    """That of the only engine."""
    assert isinstance(gateway.parent.engine, Supervisor)
    return gateway.parent.engine


async def rolled(gateway: Running) -> None:
    """Until the present reload has ended."""
    assert gateway.parent._rolling is not None
    await asyncio.wait([gateway.parent._rolling])


async def test_killed_worker_is_started_again() -> None:
    async with workers(settings(stalling())) as gateway:
        first, second = await gateway.session(1), await gateway.session(2)
        before = gateway.pids
        # The counter of this process, in which other tests may have run.
        crashes = 'gateway_engine_restarts_total{engine="default",reason="crash"}'
        crashed = await gateway.metric(crashes)
        for session in (first, second):
            await session.say("u1", "STALL two")
        await gateway.runs("default", 2)
        os.kill(before[1], signal.SIGKILL)
        with pytest.raises(ConnectionClosed):
            await first.until("translation.final")
        await until(lambda: gateway.pids[1] != before[1])
        # What it ran is ended in the engine, which is the same as before.
        while await gateway.metric('gateway_engine_running{engine="default"}') != 1:
            await asyncio.sleep(0.05)
        await second.cancel("u1")
        await second.say("u2")
        await second.until("translation.final", utterance="u2")
        await gateway.all_serve()
        assert gateway.pids[2] == before[2]
        assert await gateway.metric(crashes) == crashed
        await (await gateway.session(1)).say("u1")


class Unstartable:
    """In place of `WorkerProcess`: the first ones cannot be started."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = [*errors]

    def __call__(self, *given: Any, **named: Any) -> WorkerProcess:
        if self.errors:
            raise self.errors.pop(0)
        return WorkerProcess(*given, **named)


async def test_a_worker_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parents, "_AGAIN_S", 0.01)
    async with workers(settings()) as gateway:
        before = gateway.pids
        few = Unstartable(OSError(24, "Too many open files"), BlockingIOError(11, "no more processes"))
        monkeypatch.setattr(parents, "WorkerProcess", few)
        os.kill(before[1], signal.SIGKILL)
        await until(lambda: gateway.pids[1] != before[1])
        await gateway.all_serve()
        assert gateway.pids[2] == before[2]


async def test_interrupted_reload_says_who_has_which_settings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given = settings()
    async with workers(given) as gateway:
        second = gateway.pids[2]
        kept = gateway.parent._settings

        def start(number: int, *more: Any, **named: Any) -> WorkerProcess:
            if number == 2:
                raise OSError(24, "Too many open files")
            return WorkerProcess(number, *more, **named)

        monkeypatch.setattr(parents, "WorkerProcess", start)
        gateway.parent.reload(lambda: replace(given, log_level="error"))
        await rolled(gateway)
        assert "only worker 1 has the new settings" in caplog.text
        assert "the settings stay as they were" not in caplog.text
        assert gateway.parent._settings is kept
        assert gateway.pids[2] == second
        # Each comes back as it was.
        monkeypatch.undo()
        before = gateway.pids
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not set(gateway.pids.values()) & set(before.values()))
        await gateway.all_serve()
        assert [gateway.worker(number).settings.log_level for number in (1, 2)] == ["error", kept.log_level]


async def test_a_reload_whose_worker_ends_is_not_called_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given = settings()
    async with workers(given, count=1) as gateway:

        def start(*all_: Any, **named: Any) -> WorkerProcess:
            worker = WorkerProcess(*all_, **named)
            worker.kill()
            return worker

        monkeypatch.setattr(parents, "WorkerProcess", start)
        gateway.parent.reload(lambda: given)
        await rolled(gateway)
        assert "the settings stay as they were: worker 1 ended by signal 9 while it started" in caplog.text
        gateway.parent.reload(lambda: replace(given, auth=AuthSettings(keys_file="/nowhere/keys.json")))
        monkeypatch.undo()
        await rolled(gateway)
        assert "the settings stay as they were: refused: " in caplog.text


async def test_one_that_starts_no_process_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parents, "WorkerProcess", Unstartable(OSError(24, "Too many open files")))
    parent = Parent(settings(), 2, tmp_path, 0)
    await parent.run()
    assert parent.failure is not None
    assert "Too many open files" in parent.failure.message


async def test_nothing_is_left_of_a_parent_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing() -> None:
        async with workers(settings()) as gateway:
            pids = [*gateway.pids.values(), gateway.host_pid]
            monkeypatch.setattr(parents, "WorkerProcess", Unstartable(RuntimeError("a bug")))
            os.kill(pids[0], signal.SIGKILL)
            await until(lambda: not any(map(alive, pids)))

    with pytest.raises(ExceptionGroup):
        await failing()


async def test_the_engine_is_started_again_once_for_all_workers() -> None:
    async with workers(settings(stalling())) as gateway:
        restarts = supervisor(gateway)._restarts["crash"]._value.get()
        sessions = [await gateway.session(number) for number in (1, 2)]
        before = gateway.pids
        for session in sessions:
            await session.say("u1", f"STALL {LONG}")
        for session in sessions:
            await session.until("translation.delta")
        gateway.next_engine_is_sound()
        os.kill(gateway.host_pid, signal.SIGKILL)
        for session in sessions:
            # Each once, and whole.
            final = await session.until("translation.final", utterance="u1")
            assert final["text"] == f"[ja] STALL {LONG}"
        assert supervisor(gateway)._restarts["crash"]._value.get() == restarts + 1
        assert gateway.pids == before


async def test_stalled_engine_is_started_again() -> None:
    script = Script(token_s=0.005, rules=(Rule(match="hush", stall_after=1),))
    async with workers(settings(script, stall_s=1.0), count=1) as gateway:
        stalls = supervisor(gateway)._restarts["stall"]._value.get()
        session = await gateway.session(1)
        await session.say("u1", "hush now")
        # It hangs as often as it is tried: a text that is found to be the cause is given up.
        await session.until("translation.failed", utterance="u1")
        assert supervisor(gateway)._restarts["stall"]._value.get() == stalls + 3
        await session.say("u2")
        await session.until("translation.final", utterance="u2")


async def test_a_worker_that_is_frozen_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parents, "_FROZEN_REPORTS", 3)
    async with workers(settings()) as gateway:
        frozen = gateway.pids[2]
        os.kill(frozen, signal.SIGSTOP)
        try:
            await until(lambda: gateway.pids.get(2, frozen) != frozen)
            assert not alive(frozen)
        finally:
            # It could not even end with this process.
            if alive(frozen):
                os.kill(frozen, signal.SIGKILL)
        monkeypatch.undo()
        await gateway.all_serve()


async def asked(port: int) -> bytes:
    """What a gateway answers; nothing if it resets the connection."""
    with contextlib.suppress(ConnectionError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return await reader.read()
        finally:
            writer.close()
    return b""


async def test_silent_worker_gets_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (parents._SILENT_REPORTS + 1) * parents._REPORT_S < 5
    monkeypatch.setattr(parents, "_FROZEN_REPORTS", 10_000)
    async with workers(settings()) as gateway:
        frozen = gateway.worker(1)
        os.kill(frozen.pid, signal.SIGSTOP)
        try:
            # Some wait for the one, some are answered by the other.
            waiting = [asyncio.create_task(asked(gateway.port)) for _ in range(32)]
            await until(lambda: frozen.is_shut)
            answers = await asyncio.gather(*waiting)
            assert 0 < sum(answer == b"" for answer in answers) < len(answers)
            assert gateway.parent.whole().absent == "Worker 1 does not serve now."
            assert [each.status for each in _Workers(gateway.parent).workers()] == ["frozen", "serving"]
            assert all([b" 200 " in await asked(gateway.port) for _ in range(32)])
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        await gateway.all_serve()
        assert gateway.worker(1) is frozen
        await (await gateway.session(1)).is_accepted("u1")
        # And again, with the socket that it has by now.
        os.kill(frozen.pid, signal.SIGSTOP)
        await until(lambda: frozen.is_shut)
        assert all([b" 200 " in await asked(gateway.port) for _ in range(32)])
        os.kill(frozen.pid, signal.SIGCONT)
        await gateway.all_serve()


async def test_silent_worker_without_others_keeps_its_connections() -> None:
    async with workers(settings(), count=1) as gateway:
        silent = gateway.worker(1)
        os.kill(silent.pid, signal.SIGSTOP)
        try:
            waiting = asyncio.create_task(asked(gateway.port))
            await until(lambda: silent.unanswered > parents._SILENT_REPORTS + 1)
        finally:
            os.kill(silent.pid, signal.SIGCONT)
        assert b" 200 " in await waiting


@pytest.mark.long
async def test_reloads_beside_a_held_engine_fail_nothing() -> None:
    """Each text has more owners, one after the other, than may die with it."""
    given = settings(drain_s=0.1)
    async with workers(given, count=1) as gateway:
        session = await gateway.session(1)
        ids = [f"u{number}" for number in range(5)]
        with gateway.held():
            for id in ids:
                await session.is_accepted(id)
            for _ in range(3):
                gateway.parent.reload(lambda: given)
                await rolled(gateway)
        meeting = session.received[0]["meeting"]
        reader = await gateway.session(1, meeting=meeting)
        while len(ended := reader.ended()) < len(ids):
            await reader.next()
        assert ended == dict.fromkeys(ids, "translation.final")


async def test_reload_loses_nothing_accepted() -> None:
    given = settings()
    async with workers(given) as gateway:
        before = gateway.pids
        sessions = [await gateway.session(number) for number in (1, 2)]
        served: list[bool] = []
        with gateway.held():
            for session in sessions:
                await session.is_accepted("u1")
            watching = asyncio.create_task(always_served(gateway, served))
            gateway.parent.reload(lambda: replace(given, limits=Limits(text_chars=4_321)))
        for session in sessions:
            await session.until("translation.final", utterance="u1")
        await rolled(gateway)
        watching.cancel()
        assert served
        assert all(served)
        assert not set(gateway.pids.values()) & set(before.values())
        assert list(gateway.pids) == [1, 2]
        assert not any(alive(pid) for pid in before.values())
        assert json.loads((await gateway.get("/v1/languages"))[1])["limits"]["text_chars"] == 4_321


async def test_one_that_is_replaced_is_measured_until_it_ends() -> None:
    given = settings(stalling(), drain_s=3_600)
    async with workers(given, count=1) as gateway:
        session = await gateway.session(1)
        await session.say("u1", "STALL two")
        await session.until("translation.delta")
        first = gateway.worker(1)
        gateway.parent.reload(lambda: given)
        await until(lambda: gateway.worker(1) is not first)
        assert await gateway.metric('gateway_sessions_started_total{worker="1-draining"}') >= 1
        assert await gateway.metric('gateway_sessions_started_total{worker="1"}') == 0
        first.hurry()
        await rolled(gateway)
        while 'worker="1"' not in (page := (await gateway.get("/metrics"))[1]):
            pass
        assert "1-draining" not in page


async def always_served(gateway: Running, served: list[bool]) -> None:
    while True:
        whole = gateway.parent.whole()
        served.append(whole.serves and not whole.draining)
        await asyncio.sleep(0.01)


async def test_failed_reloads_change_nothing_and_later_ones_follow(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read: list[str] = []

    def reading(what: str) -> Callable[[], Settings]:
        def load() -> Settings:
            read.append(what)
            raise StartupError("prot is not a setting.")

        return load

    given = settings()
    async with workers(given) as gateway:
        before = gateway.pids
        with monkeypatch.context() as starting:
            starting.setattr(parents, "WorkerProcess", Unstartable(OSError(24, "Too many open files")))
            gateway.parent.reload(lambda: given)
            await rolled(gateway)
        assert "Too many open files" in caplog.text
        file = reading("file")
        for load in (reading("first"), file, reading("drain"), file):
            gateway.parent.reload(load)
        await rolled(gateway)
        assert read == ["first", "file", "drain"]
        assert "the settings stay as they were: prot is not a setting." in caplog.text
        # What only a worker can find out.
        gateway.parent.reload(lambda: replace(given, auth=AuthSettings(keys_file="/nowhere/keys.json")))
        await rolled(gateway)
        assert "/nowhere/keys.json" in caplog.text
        assert gateway.pids == before
        await gateway.all_serve()


async def test_what_goes_on_running_keeps_its_settings(caplog: pytest.LogCaptureFixture) -> None:
    given = settings()
    async with workers(given, count=1) as gateway:
        changed = replace(given, host="127.0.0.2", engine=replace(given.engine, stall_s=77.0), log_level="error")
        gateway.parent.reload(lambda: changed)
        await rolled(gateway)
        assert "a change of host, engine takes effect when the gateway is started again" in caplog.text
        assert gateway.parent._settings.log_level == "error"
        await gateway.all_serve()


async def test_stopping_parent_drains_all_workers_at_once() -> None:
    async with workers(settings()) as gateway:
        sessions = [await gateway.session(number) for number in (1, 2)]
        pids = [*gateway.pids.values(), gateway.host_pid]
        with gateway.held():
            for session in sessions:
                await session.is_accepted("u1")
            gateway.parent.stop()
        for session in sessions:
            await session.until("translation.final", utterance="u1")
    assert not any(map(alive, pids))


async def test_signals_to_every_process_lose_nothing() -> None:
    async with workers(settings(drain_s=3_600)) as gateway:
        sessions = [await gateway.session(number) for number in (1, 2)]
        with gateway.held():
            for session in sessions:
                await session.is_accepted("u1")
            for pid in gateway.pids.values():
                os.kill(pid, signal.SIGTERM)
            gateway.parent.stop()
            for session in sessions:
                await session.until("session.draining")
            for pid in gateway.pids.values():
                os.kill(pid, signal.SIGTERM)
        for session in sessions:
            await session.until("translation.final", utterance="u1")


async def test_draining_worker_finishes_when_parent_ends() -> None:
    async with workers(settings(drain_s=3_600), count=1) as gateway:
        session = await gateway.session(1)
        with gateway.held():
            await session.is_accepted("u1")
            gateway.worker(1).drain()
            await session.until("session.draining")
            gateway.parent.stop()
        await session.until("translation.final", utterance="u1")
        # Another worker would have the session at once.
        assert (await session.until("error", code="draining"))["retry_after_ms"] == 0


async def test_second_stop_does_not_wait_for_accepted_work() -> None:
    async with workers(settings(stalling(), drain_s=3_600), count=1) as gateway:
        session = await gateway.session(1)
        await session.say("u1", "STALL two")
        await session.until("translation.delta")
        gateway.parent.stop()
        await session.until("session.draining")
        # Also those that drain are measured.
        while b'gateway_sessions{worker="1"}' not in await gateway.parent.metrics(["gateway_sessions"]):
            pass
        gateway.parent.stop()


async def test_metrics_and_readiness_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parents, "_AGAIN_S", 0.01)
    async with workers(settings(stalling())) as gateway:
        sessions = [await gateway.session(number) for number in (1, 1, 2)]
        for session in sessions:
            await session.say("u1", "STALL two")
            await session.until("translation.delta")
        assert await gateway.metric('gateway_sessions{worker="1"}') == 2
        assert await gateway.metric('gateway_sessions{worker="2"}') == 1
        # The engine's process tells what it runs, and whoever is asked knows it, soon.
        await gateway.runs("default", 3)
        while json.loads((await gateway.get("/readyz"))[1])["running"] != 3:
            await asyncio.sleep(0.05)
        for session in sessions:
            await session.cancel("u1")
        frozen = gateway.pids[2]
        os.kill(frozen, signal.SIGSTOP)
        # The other one answers in time, sooner or later.
        while not (page := (await gateway.parent.metrics(["gateway_sessions"])).decode()):
            pass
        assert page.splitlines()[2:] == ['gateway_sessions{worker="1"} 2.0']
        few = Unstartable(*[OSError(24, "Too many open files")] * 10_000)
        monkeypatch.setattr(parents, "WorkerProcess", few)
        os.kill(frozen, signal.SIGKILL)
        await until(lambda: not gateway.worker(2).available)
        assert gateway.parent.whole().absent == "Worker 2 does not serve now."
        few.errors.clear()
        await gateway.all_serve()


async def test_workers_may_each_play_a_script_of_their_own() -> None:
    # Two in all would wait for one another if they shared one.
    async with workers(settings(stalling(max_running=1, shared=False))) as gateway:
        assert gateway.parent.engines.hosted == {}
        sessions = [await gateway.session(number) for number in (1, 2)]
        for session in sessions:
            await session.say("u1", "STALL two")
        for session in sessions:
            await session.until("translation.delta")
        for number in ("1", "2"):
            assert await gateway.metric(f'gateway_engine_running{{worker="{number}",engine="default"}}') == 1
        assert json.loads((await gateway.get("/readyz"))[1])["status"] == "ready"
        for session in sessions:
            await session.cancel("u1")


async def test_failed_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    given = replace(settings(), auth=AuthSettings(keys_file="/nowhere/keys.json"))
    parent = Parent(given, 2, tmp_path, 0)
    await parent.run()
    assert parent.failure is not None
    assert "/nowhere/keys.json" in parent.failure.message
    assert parent._running == set()


# ---------------------------------------------------------------- several engines


ENDED = ("translation.final", "translation.failed")


def lane(name: str, *pairs: str, **fields: Any) -> LaneSettings:
    fields = {"script": Script(token_s=0.005), "restart_backoff_s": 0, **fields}
    return LaneSettings(name=name, kind="simulated", pairs=pairs, **fields)


def of_several(*lanes: LaneSettings) -> Settings:
    return replace(settings(), engine=EngineSettings(), engines=lanes)


def engines(gateway: Running) -> dict[str, str]:
    """Name → state, as the parent says."""
    return {each.name: each.state.value for each in gateway.parent.whole().lanes}


async def test_workers_share_several_engines() -> None:
    # While both are empty, the first one is chosen; it does not end anything by itself.
    stalls = lane("a", "en-ja", script=stalling())
    async with workers(of_several(stalls, lane("b", "en-ja", "ja-en"))) as gateway:
        first, second = await gateway.session(1), await gateway.session(2)
        status, page = await gateway.get("/readyz")
        assert (status, [each["name"] for each in json.loads(page)["engines"]]) == (200, ["a", "b"])
        for session in (first, second):
            for n in range(3):
                await session.say(f"u{n}", "STALL two")
            # Both may run on it: the second session may know already that the first lane is used.
            await gateway.runs("a", 3)
        crashes = 'gateway_engine_restarts_total{engine="a",reason="crash"}'
        crashed = await gateway.metric(crashes)
        os.kill(gateway.host_of("a"), signal.SIGKILL)
        for session in (first, second):
            while len(ended := [m for m in session.received if m["type"] in ENDED]) < 3:
                await session.next()
            assert {(m["type"], m["utterance"]) for m in ended} == {
                ("translation.final", f"u{n}") for n in range(3)
            }
        # Workers may know of its end before their parent does.
        while await gateway.metric(crashes) == crashed:
            await asyncio.sleep(0.05)
        await until(lambda: engines(gateway) == {"a": "ready", "b": "ready"})
        assert await gateway.metric(crashes) == crashed + 1


async def test_every_worker_reports_each_engine_for_all() -> None:
    lanes = (lane("a", "en-ja", script=stalling()), lane("b", "en-de", script=stalling()))
    async with workers(of_several(*lanes)) as gateway:
        sessions = [await gateway.session(number) for number in (1, 2)]
        for session in sessions:
            await session.say("u1", "STALL two")
        told: list[int] = []
        # Whichever of them answers.
        while told[-6:] != [2, 0] * 3:
            a, b = json.loads((await gateway.get("/readyz"))[1])["engines"]
            assert (a["name"], a["status"], a["seats"], b["name"]) == ("a", "ready", 16, "b")
            told += a["running"], b["running"]
            await asyncio.sleep(0.05)
        for session in sessions:
            await session.cancel("u1")


async def test_reload_adds_and_removes_engines_under_load() -> None:
    before, after = of_several(lane("old", "en-ja")), of_several(lane("new", "en-ja", "en-de"))
    async with workers(before) as gateway:
        session = await gateway.session(1)
        await session.say("u1", LONG)
        gateway.parent.reload(partial(replace, after, store=before.store))
        # It is finished where it was begun, before that worker and its engine end.
        await session.finished("u1")
        await rolled(gateway)
        assert engines(gateway) == {"new": "ready"}
        _, page = await gateway.get("/v1/languages")
        assert json.loads(page)["targets"] == {"en": ["ja", "de"]}
        await (await gateway.session(1)).say("u1")
        assert list(gateway.parent.engines.hosted) == ["new"]


async def test_reader_of_a_removed_language_keeps_its_session() -> None:
    before, after = of_several(lane("a", "en-ja"), lane("b", "en-de")), of_several(lane("a", "en-ja"))
    async with (
        workers(before) as gateway,
        connect(f"http://127.0.0.1:{gateway.port}", reads=["de", "ja"], speaks="en") as session,
    ):
        assert session.started.targets == {"en": ["ja", "de"]}
        gateway.parent.reload(partial(replace, after, store=before.store))
        targets = [session.started.targets]
        async for event in session:
            if session.started.targets != targets[-1]:
                targets.append(session.started.targets)
            if isinstance(event, Reconnected):
                # It was drained with its worker, before the engine went.
                assert event.started.recovered
            if targets[-1] == {"en": ["ja"]}:
                break
        await session.final("hello")
        ended = []
        async for event in session:
            if isinstance(event, TranslationFinal | TranslationFailed):
                ended.append((event.lang, getattr(event, "code", "")))
                if len(ended) == 2:
                    break
        assert sorted(ended) == [("de", "unsupported_language"), ("ja", "")]


async def test_an_engine_that_cannot_be_started_changes_nothing() -> None:
    before = of_several(lane("a", "en-ja"))
    async with workers(before) as gateway:
        pids = gateway.pids
        for wanted in (
            of_several(lane("a", "en-ja"), lane("b", "ko-ja")),
            of_several(lane("a", "en-de")),
            settings(),
        ):
            gateway.parent.reload(partial(replace, wanted, store=before.store))
            await rolled(gateway)
            assert (gateway.pids, engines(gateway)) == (pids, {"a": "ready"})


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
