"""The gateway beside other systems: which there are, what neighbouring rounds say, and the whole command."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadtest.driving.driver import Driven, Driver
from loadtest.measuring import measure
from loadtest.peers import run as rounds
from loadtest.peers.comparison import PEERS, comparisons, findings, table
from loadtest.peers.run import Outcome, Peer, PeersPlan, named, run, shared, takes_context, variants
from loadtest.results import LoadtestError
from loadtest.systems.server import Running, get, metric
from loadtest.tests.made_up_trials import a_trial, parsed
from loadtest.trial.content import Table
from loadtest.trial.report import passed
from loadtest.trial.values import (
    Closed,
    Delivered,
    EngineInProcess,
    Finding,
    Http,
    Line,
    Load,
    Record,
    Sample,
    Trial,
    WebSocketGateway,
)

ROOT = Path(__file__).parents[2]
SCRIPT = {"first_token_s": 0.002, "token_s": 0.001}
SIMULATED = {"engine": {"kind": "simulated", "script": SCRIPT}}

# ---------------------------------------------------------------- which systems


def test_the_gateway_is_the_first_peer() -> None:
    peers = named(["vllm-serve", "vllm-serve-tuned", "vllm-serve-workers"], {}, 3)
    assert [(peer.name, peer.tuned, peer.arguments) for peer in peers] == [
        ("gateway", False, {}),
        ("vllm-serve", False, {}),
        ("vllm-serve-tuned", True, {}),
        ("vllm-serve-workers", True, {"api_server_count": 3}),
    ]


def test_vllms_server_has_no_simulated_engine() -> None:
    with pytest.raises(LoadtestError, match="no simulated engine"):
        named(["vllm-serve"], SIMULATED, 4)


def test_variants_are_further_systems_with_other_settings(tmp_path: Path) -> None:
    file = tmp_path / "variants.json"
    file.write_text(
        '{"small": {"engine": {"max_num_seqs": 8}, "workers": 4},'
        ' "bare": {"route": "asyncllm", "settings": {"port": 1}}}'
    )
    small, bare = variants(file, {"engine": {"dtype": "auto"}})
    assert (small.name, small.route, small.workers) == ("small", "gateway", 4)
    assert small.settings["engine"] == {"dtype": "auto", "max_num_seqs": 8}
    assert (bare.route, bare.settings["port"]) == ("asyncllm", 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "names no variants"),
        ('{"gateway": {}}', "not a variant"),
        ('{"a": {"engine": {"seqs": 1}}}', "no setting"),
        ('{"a": {"rout": "gateway"}}', "names no variants"),
        ('{"a": {"route": "vllm-serve", "workers": 2}}', "only a gateway has workers"),
    ],
)
def test_variants_that_cannot_be_are_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "variants.json"
    file.write_text(text)
    with pytest.raises(LoadtestError, match=why):
        variants(file, {})


def test_all_share_the_memory() -> None:
    settings = {"engine": {"gpu_memory_utilization": 0.8}}
    peers = shared(named(["asyncllm", "vllm-serve"], settings, 4), 1000.0)
    # The gateway and the engine called directly are one engine in one process.
    assert [peer.settings["engine"]["gpu_memory_utilization"] for peer in peers] == [0.4, 0.4, 0.4]
    ports = {peer.name: peer.port for peer in peers}
    assert ports["gateway"] == ports["asyncllm"] is not None
    assert ports["vllm-serve"] is None
    alone = shared(named(["vllm-serve"], settings, 4), 1000.0)
    assert [peer.port for peer in alone] == [None, None]


# ---------------------------------------------------------------- what rounds say


def _trial(
    system: str, repetition: int, elapsed_s: float, in_flight: int = 25, first_ms: float = 10.0, **own: Any
) -> Trial:
    """A hundred lines; the last first token is late."""
    firsts = [first_ms] * 98 + [first_ms * 10] * 2
    records = [Record(str(n), "de", 0, 0, ms / 1000, elapsed_s, tokens=10) for n, ms in enumerate(firsts)]
    return a_trial(
        records,
        name=f"{system}, {in_flight} in flight",
        system=system,
        load=Closed(in_flight),
        repetition=repetition,
        elapsed_s=elapsed_s,
        samples=[Sample(at, gpu=gpu) for at, gpu in ((0.5, 0.0), (2.0, 97.0), (3.0, 99.0))],
        **own,
    )


def _found(outcome: Outcome, levels: Sequence[int] = (25,), *, bars: bool = True) -> dict[str, Finding]:
    return {each.name: each for each in findings(outcome, comparisons(outcome), levels, bars=bars)}


def _ratio(peer: str, in_flight: int = 25) -> str:
    return f"gateway ÷ {peer}, requests/s, {in_flight} in flight"


def test_rounds_of_the_same_repetition_are_compared() -> None:
    trials = [
        *(_trial("gateway", repetition, elapsed_s) for repetition, elapsed_s in ((1, 1.0), (2, 2.0), (3, 4.0))),
        *(_trial("asyncllm", repetition, elapsed_s) for repetition, elapsed_s in ((3, 4.4), (2, 2.0), (1, 0.9))),
        # Has no neighbour.
        _trial("asyncllm", 4, 100.0),
    ]
    (compared,) = comparisons(Outcome(trials, {(25, "asyncllm"): 0.75}, {}))
    assert (compared.peer, compared.in_flight, compared.repetitions, compared.same_text) == (
        "asyncllm",
        25,
        3,
        0.75,
    )
    assert (compared.requests.low, compared.requests.median, compared.requests.high) == (0.9, 1.0, 1.1)
    assert compared.tokens == compared.requests


def test_bars_are_met_or_missed() -> None:
    trials = [
        _trial("gateway", 1, 4.0, first_ms=10.2, steps=500, long_steps=1),
        _trial("asyncllm", 1, 3.9),
        _trial("vllm-serve", 1, 8.1),
        _trial("vllm-serve-tuned", 1, 7.9),
    ]
    found = _found(Outcome(trials, {}, {}))
    reached = [found[_ratio(peer)].passed for peer in ("asyncllm", "vllm-serve", "vllm-serve-tuned")]
    assert reached == [True, True, False]
    told = {name: (each.value, each.passed) for name, each in found.items() if not name.startswith("gateway ÷")}
    assert told == {
        "translations that failed": ("0 of 400", True),
        # 2 of 100 are late by ten times as much: 102 against 100 ms.
        "first token p99 added by the gateway, 25 in flight": ("+2.00 (+2.00 to +2.00) ms", True),
        # Without the beginning of the round.
        "GPU busy under the gateway, 25 in flight": ("98 %", True),
        "steps of the engine over 100 ms, 25 in flight": ("1 of 500", False),
    }


@pytest.mark.parametrize(
    ("tuned_s", "workers_s", "barred", "reached"),
    [
        (7.9, 5.0, "vllm-serve-workers", False),
        (8.1, 9.0, "vllm-serve-tuned", True),
        (None, 8.1, "vllm-serve-workers", True),
    ],
)
def test_the_best_tuned_server_counts(tuned_s: float | None, workers_s: float, barred: str, reached: bool) -> None:
    trials = [_trial("gateway", 1, 4.0), _trial("vllm-serve-workers", 1, workers_s)]
    if tuned_s is not None:
        trials.append(_trial("vllm-serve-tuned", 1, tuned_s))
    found = _found(Outcome(trials, {}, {}))
    servers = [found[name] for name in map(_ratio, ("vllm-serve-tuned", "vllm-serve-workers")) if name in found]
    assert [(each.name, each.passed) for each in servers if each.bar] == [(_ratio(barred), reached)]


@pytest.mark.parametrize(
    ("gateway_s", "ratio", "passed"),
    [
        (4.0, "1.0000", True),
        (4.0 / 0.968, "0.9680", False),
        (4.0 / 0.9699, "0.9699", False),
        (4.0 / 0.97, "0.9700", True),
    ],
)
def test_near_its_bar_a_ratio_is_exact(gateway_s: float, ratio: str, passed: bool) -> None:
    found = _found(Outcome([_trial("gateway", 1, gateway_s), _trial("asyncllm", 1, 4.0)], {}, {}))
    assert found[_ratio("asyncllm")].value == f"{ratio} ({ratio} to {ratio})"
    assert found[_ratio("asyncllm")].passed is passed


def test_failed_translations_always_fail() -> None:
    trials = [_trial("gateway", 1, 1.0), _trial("asyncllm", 1, 1.0)]
    half = [
        replace(each, failed="overloaded", done_s=None) if number % 2 else each
        for number, each in enumerate(trials[1].records)
    ]
    outcome = Outcome([trials[0], replace(trials[1], records=half)], {}, {})
    found = _found(outcome, bars=False)["translations that failed"]
    assert (found.value, found.bar, found.passed) == ("50 of 200", "0", False)


def test_without_bars_nothing_has_to_be_reached() -> None:
    outcome = Outcome([_trial("gateway", 1, 4.0), _trial("asyncllm", 1, 1.0)], {}, {})
    assert list(_found(outcome, bars=False)) == ["translations that failed"]


def test_a_limiting_driver_proves_no_bar() -> None:
    limited: dict[str, Any] = {"limited": "The driver was the limit."}
    trials = [
        _trial("gateway", 1, 1.0),
        _trial("asyncllm", 1, 1.0, **limited),
        _trial("vllm-serve", 1, 9.0, **limited),
    ]
    found = _found(Outcome(trials, {}, {}))
    for peer in ("asyncllm", "vllm-serve"):
        assert (found[_ratio(peer)].value, found[_ratio(peer)].passed) == ("not measured", False)
        assert "Not to be counted on" in found[_ratio(peer)].note
    assert found[_ratio("vllm-serve")].note.startswith("It would be 9.0000 (9.0000 to 9.0000).")
    held_back = [_trial("gateway", 1, 1.0, **limited), _trial("asyncllm", 1, 1.0)]
    assert _found(Outcome(held_back, {}, {}))["gateway ÷ asyncllm, requests/s, 25 in flight"].passed is True


def test_bars_belong_to_the_asked_levels() -> None:
    trials = [_trial("gateway", 1, 1.0, 64), _trial("asyncllm", 1, 1.0, 64), _trial("vllm-serve", 1, 9.0, 64)]
    found = _found(Outcome(trials, {}, {}), levels=(25, 64, 256))
    # The highest that there was time for is not the highest.
    assert _ratio("vllm-serve", 64) not in found
    assert found[_ratio("asyncllm", 64)].passed is True
    not_measured = {each.name for each in found.values() if (each.value, each.passed) == ("not measured", False)}
    assert not_measured == {
        _ratio("asyncllm", 25),
        _ratio("asyncllm", 256),
        _ratio("vllm-serve", 256),
        _ratio("vllm-serve-tuned", 256),
        "first token p99 added by the gateway, 25 in flight",
        "GPU busy under the gateway, 256 in flight",
        "steps of the engine over 100 ms, 256 in flight",
    }


def test_an_unmeasured_bar_is_missed() -> None:
    blind = replace(_trial("gateway", 1, 1.0), samples=[])
    found = _found(Outcome([blind, _trial("asyncllm", 1, 1.0)], {}, {}))
    for name in ("GPU busy under the gateway, 25 in flight", "steps of the engine over 100 ms, 25 in flight"):
        assert (found[name].value, found[name].passed) == ("not measured", False)


@pytest.mark.parametrize(("name", "takes"), [("Hy-MT2-7B", True), ("Hunyuan-MT-7B", False)])
def test_context_models_have_longer_prompts(tmp_path: Path, name: str, takes: bool) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "hunyuan_v1_dense"}')
    assert takes_context({"engine": {"model": str(folder)}}) is takes
    assert not takes_context({"engine": {"model": str(folder), "kind": "simulated"}})
    outcome = Outcome([_trial("gateway", 1, 1.0), _trial("asyncllm", 1, 1.0)], {}, {})
    found = findings(outcome, comparisons(outcome), (25,), bars=False, context=takes)
    assert ("prompts" in {each.name for each in found}) is takes


def test_a_missing_system_always_fails() -> None:
    trials = [_trial("gateway", 1, 1.0), _trial("asyncllm", 1, 1.0)]
    failures = {"vllm-serve": "It could not start.", "asyncllm": "It ended."}
    found = _found(
        Outcome(trials, {}, failures, cut_short="There was no time for all (--time-limit-s)."), bars=False
    )
    said = {name: (each.value, each.note) for name, each in found.items() if each.passed is False}
    assert said == {
        "vllm-serve": ("missing", "It could not start."),
        "asyncllm": ("left out from some round on", "It ended."),
        "the rounds": ("incomplete", "There was no time for all (--time-limit-s)."),
    }


def _table(outcome: Outcome) -> Table:
    return table(comparisons(outcome))


def test_the_table_has_system_and_level_rows() -> None:
    limited: dict[str, Any] = {"limited": "The driver was the limit."}
    trials = [_trial("gateway", 1, 4.0), _trial("asyncllm", 1, 1.0, **limited)]
    (row,) = _table(Outcome(trials, {(25, "asyncllm"): 0.75}, {})).rows
    same = "+0.0 (+0.0 to +0.0)"
    assert row == ["25", "asyncllm", *["0.25 (0.25 to 0.25)"] * 2, same, same, "75.0%", "asyncllm"]


def test_the_table_tells_the_stream_interval() -> None:
    def caption(*peers: str) -> str:
        return _table(Outcome([_trial(name, 1, 1.0) for name in ("gateway", *peers)], {}, {})).caption

    assert "--stream-interval 10" in caption("vllm-serve", "vllm-serve-tuned")
    assert "--stream-interval" not in caption("vllm-serve")


# ---------------------------------------------------------------- the rounds

_PLAN = PeersPlan(
    peers=(Peer("gateway", "gateway", SIMULATED), Peer("asyncllm", "asyncllm", SIMULATED)),
    in_flight=(2, 4),
    repetitions=2,
    round_s=0.0,
)


@pytest.mark.slow
async def test_systems_alternate_and_shared_engines_forget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    real = Driver.reset_prefix_cache

    async def noted(self: Driver) -> None:
        told.append("forget")
        await real(self)

    def say(line: str) -> None:
        if "repetition" in line:
            told.append(line.replace(" in flight, repetition", ""))

    monkeypatch.setattr(Driver, "reset_prefix_cache", noted)
    # A server of its own sees no line twice.
    alone = Peer("alone", "gateway", SIMULATED)
    outcome = await run(replace(_PLAN, peers=(*shared(_PLAN.peers, None), alone)), say)
    assert outcome.failures == {}
    assert told == [
        each
        for level in (2, 4)
        for each in (
            *("forget", "forget"),
            *("forget", f"gateway, {level} 1", "forget", f"asyncllm, {level} 1", f"alone, {level} 1"),
            *(f"alone, {level} 2", "forget", f"asyncllm, {level} 2", "forget", f"gateway, {level} 2"),
        )
    ]
    rounds_of: dict[tuple[object, int], dict[str, int]] = {}
    for trial in outcome.trials:
        # Five turns of as many as are in flight; the last line is sent when the round is over.
        assert isinstance(trial.load, Closed)
        assert len(trial.records) in (5 * trial.load.in_flight - 1, 5 * trial.load.in_flight)
        assert {each.text for each in trial.records} == {""}
        tokens = rounds_of.setdefault((trial.load, trial.repetition), {})
        # All say the same lines.
        assert all(tokens.setdefault(each.line, each.tokens) == each.tokens for each in trial.records)
    assert all(tokens.keys() <= set(map(str, range(20))) for tokens in rounds_of.values())
    # No repetition says what another said.
    assert len({frozenset(tokens.items()) for tokens in rounds_of.values()}) == 4
    assert outcome.same_text == {(level, peer): 1.0 for level in (2, 4) for peer in ("asyncllm", "alone")}
    # Two processes serve for a gateway on a shared engine; one of them is that of the other system.
    by_system = {trial.system: trial for trial in outcome.trials}
    through, direct = by_system["gateway"], by_system["asyncllm"]
    assert through.cpu_s["serving"] > sum(through.hosts_cpu_s) > 0
    assert direct.cpu_s["serving"] > 0
    assert direct.hosts_cpu_s == by_system["alone"].hosts_cpu_s == []
    assert through.memory_mib is not None
    assert direct.memory_mib is not None
    assert through.memory_mib > 1.5 * direct.memory_mib
    assert through.cpu_s["engine"] == direct.cpu_s["engine"] == 0


class Regular:
    """Instead of client processes: answers eight lines a second, but slowly at first and at last."""

    pids = (1,)

    async def reset_prefix_cache(self) -> None:
        pass

    async def play(self, lines: Sequence[Line], **_: Any) -> Driven:
        done_s = [5.0 + number / 8 for number in range(len(lines))]
        done_s[-1] += 20.0
        records = [Record(line.id, "de", 0, 0, at_s, at_s, 1) for line, at_s in zip(lines, done_s, strict=True)]
        return Driven(0.0, done_s[-1], records, Delivered(), [])


@asynccontextmanager
async def regular(*_: object, **_options: object) -> AsyncIterator[Regular]:
    yield Regular()


@pytest.mark.parametrize(("round_s", "count"), [(6.0, 48 + 4), (0.1, 4 * 4 + 4)])
async def test_a_round_has_lines_beyond_its_time(
    monkeypatch: pytest.MonkeyPatch, round_s: float, count: int
) -> None:
    asked: list[int] = []

    async def counting(
        _running: Running, _driver: object, lines: Sequence[Line], *_: object, **_options: Any
    ) -> Trial:
        asked.append(len(lines))
        return _trial("asyncllm", 1, 1.0, 4)

    monkeypatch.setattr(rounds, "driver", regular)
    monkeypatch.setattr(rounds, "measure", counting)
    plan = PeersPlan(peers=(_PLAN.peers[1],), in_flight=(4,), repetitions=1, round_s=round_s)
    assert (await run(plan, lambda _: None)).failures == {}
    assert asked == [count]


async def test_systems_that_differ_get_rounds_for_their_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[Line]] = {}

    async def counting(running: Running, _driver: object, lines: Sequence[Line], *_: object, **__: Any) -> Trial:
        asked[running.name] = list(lines)
        return _trial(running.name, 1, 1.0, 4)

    @asynccontextmanager
    async def started(peer: Peer, _say: object) -> AsyncIterator[Running]:
        address = Http("http://b") if peer.route == "baseline" else WebSocketGateway("http://g")
        yield Running(peer.name, address, {}, pid=1)

    monkeypatch.setattr(rounds, "driver", regular)
    monkeypatch.setattr(rounds, "measure", counting)
    monkeypatch.setattr(rounds, "system", started)
    queue = Peer("queue", "baseline", {}, architecture="one-worker", shape="uniform")
    peers = (Peer("gateway", "gateway", {}, shape="natural"), queue)
    plan = PeersPlan(peers=peers, in_flight=(40,), repetitions=1, round_s=1.0, alike=False)
    outcome = await run(plan, lambda _: None, [[peers[1]], [peers[0]]])
    assert outcome.failures == {}
    # At least so many turns, and those in flight at the end; what stands behind a queue needs fewer.
    assert {name: len(lines) for name, lines in asked.items()} == {"queue": 3 * 40, "gateway": 5 * 40}
    assert len({len(line.text.split()) for line in asked["queue"]}) < 4
    assert len({len(line.text.split()) for line in asked["gateway"]}) > 8


async def test_what_was_measured_in_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = [_trial("asyncllm", 1, 1.0, 4)]

    async def once(*_: object, **_options: object) -> Trial:
        if not measured:
            await asyncio.Event().wait()
        return measured.pop()

    monkeypatch.setattr(rounds, "driver", regular)
    monkeypatch.setattr(rounds, "measure", once)
    plan = PeersPlan(peers=(_PLAN.peers[1],), in_flight=(4,), time_limit_s=0.1)
    outcome = await run(plan, lambda _: None)
    assert len(outcome.trials) == 1
    assert "no time" in outcome.cut_short


async def test_without_any_system_there_are_no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def refused(peer: Peer, _say: object) -> AsyncIterator[Running]:
        raise LoadtestError(f"{peer.name} is not to be had.")
        yield

    monkeypatch.setattr(rounds, "system", refused)
    outcome = await run(_PLAN, lambda _: None)
    assert outcome.trials == []
    assert outcome.failures.keys() == {"gateway", "asyncllm"}


async def test_without_its_engine_a_gateway_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def refused(*_: object, **_options: object) -> AsyncIterator[Driver]:
        raise LoadtestError("The engine does not fit.")
        yield

    monkeypatch.setattr(rounds, "driver", refused)
    plan = PeersPlan(peers=tuple(shared(_PLAN.peers, None)), in_flight=(2,))
    said: list[str] = []
    outcome = await run(plan, said.append)
    assert outcome.failures.keys() == {"gateway", "asyncllm"}
    assert "going on without asyncllm: The engine does not fit." in said


# ---------------------------------------------------------------- the command


def _command(out: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "loadtest", "peers", "--out", str(out), *arguments]


@pytest.mark.slow
def test_the_command_reports_what_is_missing(tmp_path: Path) -> None:
    variants_file, out = tmp_path / "variants.json", tmp_path / "out"
    variants_file.write_text('{"nobody": {"engine": {"kind": "vllm", "model": "./nowhere"}}}')
    done = subprocess.run(
        _command(
            out,
            *("--engine", "simulated", "--model", "/somewhere/model-7b", "--variants", str(variants_file)),
            *("--in-flight", "2", "--repetitions", "1", "--round-s", "0.1"),
        ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "repetition 1" in done.stderr
    assert "going on without nobody: " in done.stderr
    assert "| nobody | missing | in every round | FAILED | " in done.stdout
    # The others are compared nevertheless.
    assert "The gateway beside the others" in done.stdout
    written = gzip.decompress((out / "result.json.gz").read_bytes()).decode()
    result = json.loads(written)
    assert result["kind"] == "peers"
    assert [each["peer"] for each in result["details"]["comparisons"]] == ["asyncllm"]
    # A report does not tell where the model lies.
    assert result["settings"]["peers"][0]["settings"]["engine"]["model"] == "model-7b"
    assert "/somewhere" not in written
    assert "plot.png, result.json.gz, table.md, utterances.jsonl" in done.stdout
    utterances = [json.loads(line) for line in (out / "utterances.jsonl").read_text().splitlines()]
    assert {each["trial"] for each in utterances} == {"gateway, 2 in flight", "asyncllm, 2 in flight"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *_command(tmp_path, "--engine", "simulated", "--in-flight", "2", "--repetitions", "50"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LOADTEST_MARK": str(tmp_path)},
    )
    assert process.stderr is not None
    while b"repetition 1" not in (line := await process.stderr.readline()):
        assert line
    process.send_signal(number)
    assert b"interrupted" in await process.stderr.read()
    assert await process.wait() == 130
    assert not os.listdir(tmp_path)
    assert _marked(str(tmp_path)) == []


def _marked(mark: str) -> list[int]:
    """Processes that inherited this from the command."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"LOADTEST_MARK={mark}".encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


def test_a_name_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(PEERS, "--out", "nowhere", "--peers", "gateway,sglang")
    assert "'sglang' is none of gateway" in capsys.readouterr().err


@pytest.mark.long
async def test_real_routes_agree_and_keep_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One run for both, because its two engines take a minute to start."""
    cached: dict[tuple[int, str], float] = {}

    async def counting(
        running: Running, own: Driver, lines: Sequence[Line], load: Load, *, repetition: int, **options: Any
    ) -> Trial:
        before = _cached_tokens(running)
        trial = await measure(running, own, lines, load, repetition=repetition, **options)
        # With several in flight, what one finds of another depends on when each came.
        if load == Closed(1):
            cached[repetition, running.name] = _cached_tokens(running) - before
        return trial

    monkeypatch.setattr(rounds, "measure", counting)
    options = parsed(
        PEERS,
        *("--out", str(tmp_path), "--peers", "gateway,asyncllm,vllm-serve", "--scenario", "sentences"),
        *("--in-flight", "1,4", "--repetitions", "2", "--round-s", "0.1"),
    )
    report = await PEERS.run(options, lambda _: None)
    assert passed(report)
    compared = {(each["in_flight"], each["peer"]): each for each in report.details["comparisons"]}
    assert compared.keys() == {(level, peer) for level in (1, 4) for peer in ("asyncllm", "vllm-serve")}
    # What is added up in another order may fall to the other side where two words are equally likely.
    assert all(each["same_text"] >= 0.75 for each in compared.values())
    assert all(trial.cpu_s["engine"] > 0 for trial in report.trials)
    # In a shared engine neither system finds what the other has said before, whichever comes first.
    names = ["gateway", "asyncllm", "vllm-serve"]
    assert list(cached) == [*((1, name) for name in names), *((2, name) for name in reversed(names))]
    for repetition in (1, 2):
        assert cached[repetition, "gateway"] == cached[repetition, "asyncllm"]


def _cached_tokens(running: Running) -> float:
    """Prompt tokens that its engine has found in its prefix cache so far."""
    address = running.address
    # The engine that is called directly tells of itself through the gateway that is on it, too.
    shared = f"http://127.0.0.1:{address.port}/metrics" if isinstance(address, EngineInProcess) else None
    url = running.metrics_url or shared
    assert url is not None
    found = metric(get(url)[1], "vllm:prefix_cache_hits_total")
    assert found is not None
    return found
