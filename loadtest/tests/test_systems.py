"""Systems as child processes: started, asked, ended with everything below them; a store that survives kills."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from gateway.engines.vllm import hardware
from gateway.engines.vllm.options import VllmOptions
from loadtest import options as common
from loadtest.measuring import Accounts
from loadtest.options import with_share
from loadtest.results import LoadtestError
from loadtest.systems import processes
from loadtest.systems.gateway import as_toml, existing, gateway
from loadtest.systems.server import (
    Server,
    attempted,
    buckets,
    free_port,
    get,
    metric,
    standing,
    together,
    until_idle,
)
from loadtest.systems.store import Store, enter_lossy_network
from loadtest.systems.vllm_serve import Serve, as_flags, server_arguments
from tests.patience import until
from tests.processes import alive
from tests.usual import usual

SIMULATED = {"engine": {"kind": "simulated", "script": {"first_token_s": 0.01, "token_s": 0.005}}}

# ---------------------------------------------------------------- settings


def test_settings_survive_their_file() -> None:
    tree = {
        "port": 8000,
        "drain_s": 1e-05,
        "allowed_origins": ["https://a.example", 'a "quoted" \\ one\x7f'],
        "engine": {
            "enforce_eager": False,
            "extra": {"compilation_config": {"cudagraph_mode": "FULL", "odd key": 1}},
        },
    }
    assert tomllib.loads(as_toml({**tree, "absent": None})) == tree


def test_unknown_values_have_no_toml() -> None:
    with pytest.raises(TypeError, match="no place"):
        as_toml({"a": object()})


def _options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    common.add_options(parser, *common.ENGINE, "--max-num-seqs", "--scenario", *common.LANGUAGES)
    return parser.parse_args(arguments)


def test_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("max_waiting = 500\n[engine]\nmax_num_seqs = 8\nmodel = 'one'\n[engine.extra]\nseed = 1\n")
    given = ("--config", str(file), "--max-num-seqs", "32", "--set", "engine.extra.compilation_config={mode = 0}")
    settings = common.settings(_options(*given))
    assert settings["max_waiting"] == 500
    assert settings["engine"] == {
        "max_num_seqs": 32,
        "model": "one",
        "extra": {"seed": 1, "compilation_config": {"mode": 0}},
    }


def test_several_engines_come_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("".join(f"[[engines]]\nname = '{name}'\nmodel = '/m/{name}'\n" for name in ("one", "two")))
    settings = common.settings(_options("--config", str(file)), several=True)
    assert "engine" not in settings
    assert [engine["name"] for engine in settings["engines"]] == ["one", "two"]
    assert common.model_name(settings) == "one, two"
    assert [engine["model"] for engine in common.shown(settings)["engines"]] == ["one", "two"]
    with pytest.raises(LoadtestError, match="is about one engine"):
        common.settings(_options("--config", str(file)))
    with pytest.raises(LoadtestError, match="--model, --max-num-seqs: the settings have several engines"):
        common.settings(_options("--config", str(file), "--model", "m", "--max-num-seqs", "3"), several=True)


def test_unreadable_settings_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("port = ")
    for name in ("broken.toml", "nowhere.toml"):
        with pytest.raises(LoadtestError, match=rf"{name} cannot be read"):
            common.settings(_options("--config", str(tmp_path / name)))
    for wrong in ("port", ".port=1", "=1"):
        with pytest.raises(SystemExit):
            _options("--set", wrong)
    # What is not a TOML value is text.
    assert common.settings(_options("--set", "engine.model=a/model"))["engine"]["model"] == "a/model"
    with pytest.raises(LoadtestError, match="there is no setting"):
        common.settings(_options("--set", "engine.max_seqs=3"))


def test_a_report_hides_the_models_path() -> None:
    for path in ("/somewhere/else/model-7b/", "./else/model-7b", "~/model-7b"):
        assert common.shown({"engine": {"model": path}})["engine"]["model"] == "model-7b"
    assert common.model_name({"engine": {"model": "/somewhere/else/model-7b/"}}) == "model-7b"
    assert common.model_name({}) == "small_model"
    # Nor does it tell where anything else lies.
    extra = {"speculative_config": {"model": "/somewhere/draft", "num_speculative_tokens": 3}, "seed": 1}
    given = {"max_waiting": 5, "engine": {"extra": extra}, "event_log": {"handover_file": "/somewhere/kept"}}
    told = common.shown(given)
    assert told["max_waiting"] == 5
    assert told["engine"]["extra"] == {
        "speculative_config": {"model": "draft", "num_speculative_tokens": 3},
        "seed": 1,
    }
    assert told["event_log"] == {"handover_file": "kept"}
    assert extra["speculative_config"] == {"model": "/somewhere/draft", "num_speculative_tokens": 3}


def test_a_scenario_is_shape_or_file(tmp_path: Path) -> None:
    assert common.scenario(_options("--scenario", "uniform", "--target", "ja")).targets == ("ja",)
    assert common.file(_options()) is None
    assert common.file(_options("--scenario", str(tmp_path / "talk.jsonl"))) == tmp_path / "talk.jsonl"


def test_engines_on_one_gpu_share_its_memory() -> None:
    assert with_share({"engine": {"max_num_seqs": 8}}, 4, None) == {"engine": {"max_num_seqs": 8}}
    shared = with_share({"engine": {"max_num_seqs": 8}}, 4, 100_000.0)["engine"]
    assert shared["gpu_memory_utilization"] == 0.225
    assert shared["extra"]["kv_cache_memory_bytes"] < 0.225 * 100_000 * 2**20
    own = with_share({"engine": {"extra": {"kv_cache_memory_bytes": 5}}}, 4, 100_000.0)
    assert own["engine"]["extra"]["kv_cache_memory_bytes"] == 5


def test_arguments_become_flags() -> None:
    flags = as_flags(
        {"max_num_seqs": 16, "enforce_eager": False, "compilation_config": {"mode": 0}, "a": ["b", "c"]}
    )
    graphs = ("--compilation-config", '{"mode": 0}')
    assert flags == ["--max-num-seqs", "16", "--no-enforce-eager", *graphs, "--a", "b", "c"]
    assert as_flags({"trust_remote_code": True, "dtype": None}) == ["--trust-remote-code"]


SERVE = Serve(settings={}, tuned=False, arguments={"api_server_count": 2}, port=1, name="model")


def test_the_default_server_has_only_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    extra = {"load_format": "dummy", "async_scheduling": True}
    options = usual(VllmOptions, model="m", max_num_seqs=256, max_num_batched_tokens=512, extra=extra)
    plain = server_arguments(options, SERVE)
    assert plain["load_format"] == "dummy"
    assert plain["api_server_count"] == 2
    assert plain["block_size"] == 32
    assert not plain.keys() & {"max_num_seqs", "max_num_batched_tokens", "async_scheduling", "stream_interval"}


def test_the_tuned_server_has_gateway_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: False)
    options = usual(VllmOptions, model="m", max_num_seqs=256, extra={"async_scheduling": True})
    serve = structs.replace(SERVE, tuned=True)
    tuned = server_arguments(options, serve)
    assert (tuned["max_num_seqs"], tuned["async_scheduling"], tuned["api_server_count"]) == (256, True, 2)
    # Tokens are gathered on their way to clients, unless it is told otherwise.
    assert tuned["stream_interval"] == 10
    told = server_arguments(options, structs.replace(serve, arguments={"stream_interval": 1}))
    assert told["stream_interval"] == 1


def test_a_gpu_server_keeps_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "gpu_present", lambda: True)
    options = usual(VllmOptions, model="m", gpu_memory_utilization=0.2, extra={"kv_cache_memory_bytes": 1000})
    plain = server_arguments(options, structs.replace(SERVE, arguments={}))
    assert plain == {
        "model": "m",
        "dtype": "auto",
        "gpu_memory_utilization": 0.2,
        "kv_cache_memory_bytes": 1000,
        "host": "127.0.0.1",
        "port": 1,
        "served_model_name": "model",
        "disable_uvicorn_access_log": True,
    }


def test_metrics_are_summed_over_their_series() -> None:
    text = 'errors_total{code="a"} 1.0\nerrors_total{code="b"} 2.0\nerrors_total_more 7.0\nplain 3.0\n'
    assert metric(text, "errors_total") == 3.0
    assert metric(text, "errors_total", code="b") == 2.0
    assert metric(text, "plain") == 3.0
    assert metric(text, "nothing") is None


def test_a_histogram_is_read() -> None:
    text = 'step_bucket{le="0.1"} 3.0\nstep_bucket{le="+Inf"} 4.0\nstep_count 4.0\n'
    assert buckets(text, "step") == {0.1: 3.0, float("inf"): 4.0}


async def test_a_gateway_is_idle_without_work(monkeypatch: pytest.MonkeyPatch) -> None:
    told = ["gateway_translations_waiting 1.0\n", "gateway_translations_running 2.0\n", "gateway_sessions 3.0\n"]
    monkeypatch.setattr("loadtest.systems.server.get", lambda _url: (200, told.pop(0)))
    said: list[str] = []
    assert await until_idle("unused", 300, 0, said.append) == "gateway_sessions 3.0\n"
    assert len(said) == 2
    monkeypatch.setattr("loadtest.systems.server.get", lambda _url: (200, "gateway_translations_running 1.0\n"))
    with pytest.raises(LoadtestError, match=r"Within 0\.01 s the gateway did not finish its work"):
        await until_idle("unused", 0.01, 0, said.append)


# ---------------------------------------------------------------- processes

# Starts another process in a session of its own, ignores SIGTERM, and waits.
_STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print("up", flush=True)
time.sleep(60)
"""


async def test_a_hanging_family_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = Server("The server", [sys.executable, "-c", _STUBBORN], 9, log, stop_s=0.2)
    await child.start()
    while "up" not in log.read_text() or not processes.below(child.pid):
        await asyncio.sleep(0.01)
    family = [child.pid, *processes.below(child.pid)]
    await child.end()
    assert len(family) == 2
    assert not any(map(alive, family))


async def test_a_process_is_signalled_by_name(tmp_path: Path) -> None:
    # As an engine's is, below the one that hosts it.
    host = "import subprocess, time; subprocess.run(['sleep', '60']); print('over', flush=True); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {host!r}])"
    log = tmp_path / "log"
    child = Server("The server", [sys.executable, "-c", code], 9, log, stop_s=0.2)
    await child.start()
    try:
        assert not processes.signal_below(child.pid, re.compile("^nobody"), signal.SIGKILL)
        while not processes.signal_below(child.pid, re.compile("^sleep"), signal.SIGKILL):
            await asyncio.sleep(0.01)
        while "over" not in log.read_text():
            await asyncio.sleep(0.01)
        assert child.running
    finally:
        await child.end()


async def test_what_outlives_its_parent_is_killed_too(tmp_path: Path) -> None:
    orphaning = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid)"
    log = tmp_path / "log"
    child = Server("The server", [sys.executable, "-c", orphaning], 9, log)
    await child.start()
    while child.running:
        await asyncio.sleep(0.01)
    orphan = int(log.read_text())
    assert alive(orphan)
    await child.end()
    assert not alive(orphan)


async def test_a_server_that_ends_says_why(tmp_path: Path) -> None:
    child = Server("The server", [sys.executable, "-c", "raise SystemExit('no model')"], 9, tmp_path / "log")
    await child.start()
    with pytest.raises(LoadtestError, match=r"The server ended with status 1\. Its last words: no model"):
        await child.ready("starting", lambda _: None)
    await child.end()


# Never ready, and says what it is doing.
_THINKING = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b'{"reason": "thinking"}')
http.server.HTTPServer(("127.0.0.1", %d), Handler).serve_forever()
"""


async def test_a_never_ready_server_is_given_up(tmp_path: Path) -> None:
    said: list[str] = []
    port = free_port()
    child = Server("It", [sys.executable, "-c", _THINKING % port], port, tmp_path / "log", stop_s=5)
    await child.start()
    limit_s = 1
    # Until that is long enough on this machine for it to say anything.
    while not any(re.fullmatch(r"starting it: \d+ s, thinking", line) for line in said):
        with pytest.raises(LoadtestError, match=f"It takes no requests after {limit_s} s"):
            await child.ready("starting it", said.append, limit_s=limit_s)
        limit_s *= 2
    await child.end()


@pytest.mark.slow
async def test_a_gateway_includes_its_workers() -> None:
    async with gateway(SIMULATED, lambda _: None, workers=2) as served:
        assert served.settings["workers"] == 2
        assert served.pid is not None
        pid = served.pid
        # One that has just begun is called as its parent is.
        await until(lambda: len(processes.named_below(pid, processes.WORKER)) == 2)
        below = processes.below(served.pid)
        workers, stores = (processes.named_below(served.pid, each) for each in (processes.WORKER, processes.STORE))
        assert (len(workers), len(stores)) == (2, 1)
        [host] = processes.named_below(served.pid, re.compile("^gateway engine host"))
        mib = sum(map(processes.resident_mib, (served.pid, *workers, *stores, host)))
        assert Accounts({"serving": [served.pid]}).serving_mib() == pytest.approx(mib, rel=0.05)
    assert not any(map(alive, below))


async def test_a_missing_gateway_is_one_sentence() -> None:
    with pytest.raises(LoadtestError, match="No gateway answers"):
        async with existing("http://127.0.0.1:9"):
            pass


@asynccontextmanager
async def _system(name: str, log: list[str], fails: bool = False) -> AsyncIterator[str]:
    await asyncio.sleep(0)
    if fails:
        raise LoadtestError(f"{name} does not start.")
    log.append(f"{name} up")
    try:
        yield name
    finally:
        log.append(f"{name} down")


async def test_systems_start_together_and_leave_together() -> None:
    log: list[str] = []

    async def go_wrong() -> None:
        async with together(_system("a", log), _system("b", log)) as started:
            assert started == ["a", "b"]
            assert log == ["a up", "b up"]
            raise ValueError("mine")

    # What the block raises comes out as it is.
    with pytest.raises(ValueError, match="mine"):
        await go_wrong()
    assert sorted(log[2:]) == ["a down", "b down"]


async def test_one_that_cannot_start_ends_the_others() -> None:
    log: list[str] = []
    with pytest.raises(LoadtestError, match="b does not start"):
        async with together(_system("a", log), _system("b", log, fails=True)):
            pass
    assert log in (["a up", "a down"], [])


async def test_one_that_cannot_start_need_not_matter() -> None:
    log: list[str] = []
    left_out: list[tuple[str, str]] = []
    async with together(attempted(_system("a", log)), attempted(_system("b", log, fails=True))) as started:
        assert standing("ab", started, lambda *why: left_out.append(why)) == {"a": "a"}
    assert left_out == [("b", "b does not start.")]
    assert log == ["a up", "a down"]


@pytest.mark.slow
async def test_a_gateway_serves_and_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    # The environment speaks of another gateway.
    monkeypatch.setenv("GATEWAY__ENGINE__KIND", "vllm")
    async with gateway(SIMULATED, lambda _: None) as running:
        assert running.pid is not None
        assert running.metrics_url is not None
        assert 'gateway_engine_ready{engine="default"} 1.0' in get(running.metrics_url)[1]
        async with existing(running.metrics_url.removesuffix("/metrics")) as same:
            assert same.address == running.address
    assert not alive(running.pid)


# Says what rules there are in its network, and which interfaces.
INSIDE = """
import socket, subprocess
from loadtest.systems.store import enter_lossy_network
enter_lossy_network({port}, {percent})
print(subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout)
print([name for _, name in socket.if_nameindex()])
"""


def inside(percent: float) -> str:
    code = INSIDE.format(port=6379, percent=percent)
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def allowed() -> bool:
    unshare = shutil.which("unshare")
    return bool(
        shutil.which("nft") and unshare and not subprocess.run([unshare, "--net", "true"], check=False).returncode
    )


@pytest.mark.skipif(not allowed(), reason="needs root and nft")
def test_packets_of_one_port_are_lost() -> None:
    before = os.readlink("/proc/self/ns/net")
    said = inside(2.5)
    for direction in ("dport", "sport"):
        assert f"tcp {direction} 6379 numgen random mod 10000 < 250 drop" in said
    assert "['lo']" in said
    assert os.readlink("/proc/self/ns/net") == before


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadtestError, match="Packets cannot be lost without `ip`"):
        enter_lossy_network(1, 2)


async def asked(store: Store, command: str) -> str:
    """The answer of a store that may have to be started again first."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(store.url.rpartition(":")[2]))
        except OSError:
            await asyncio.sleep(0.01)
            continue
        password = store.url.split(":")[2].partition("@")[0]
        writer.write(f"AUTH {password}\r\n{command}\r\n".encode())
        await reader.readline()
        answer = await reader.readline()
        writer.close()
        # While it reads its file it takes no commands.
        if answer and not answer.startswith(b"-LOADING"):
            return answer.decode().strip()


@pytest.mark.slow
async def test_what_was_confirmed_outlives_a_kill(tmp_path: Path) -> None:
    store = Store(free_port(), tmp_path / "store")
    assert not store.signal(signal.SIGKILL)
    try:
        await store.start()
        for count in range(1, 4):
            assert await asked(store, "INCR count") == f":{count}"
            killed = store.pid
            assert store.signal(signal.SIGKILL)
            while store.pid in (killed, None):
                await asyncio.sleep(0.01)
    finally:
        await store.end()
    assert store.pid is None
    with pytest.raises(OSError, match="Connect"):
        await asyncio.open_connection("127.0.0.1", int(store.url.rpartition(":")[2]))


async def test_a_machine_without_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadtestError, match="not installed"):
        await Store(free_port(), tmp_path / "store").start()
