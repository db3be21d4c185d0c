"""The gateway beside other systems: which there are, what neighbouring rounds say, and the whole command."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from loadtest.peers import run as rounds
from loadtest.peers.comparison import comparisons, findings
from loadtest.peers.peer import NAMES, Peer, named, shared, variants
from loadtest.peers.run import Outcome, PeersPlan, run
from loadtest.results import LoadtestError
from loadtest.systems.running import Running
from loadtest.trial.measure import DRIVER_WAS_THE_LIMIT
from loadtest.trial.values import Closed, Delivered, Finding, Record, Sample, Trial

ROOT = Path(__file__).parent.parent
SCRIPT = {"first_token_s": 0.002, "token_s": 0.001}
SIMULATED = {"engine": {"kind": "simulated", "script": SCRIPT}}

# ---------------------------------------------------------------- which systems


def test_the_gateway_comes_first_and_is_always_there() -> None:
    assert [peer.name for peer in named(["vllm-serve", "asyncllm"], {}, 4)] == [
        "gateway",
        "vllm-serve",
        "asyncllm",
    ]
    tuned = {peer.name: (peer.tuned, peer.arguments) for peer in named(NAMES, {}, 3)}
    assert tuned["vllm-serve"] == (False, {})
    assert tuned["vllm-serve-tuned"] == (True, {})
    assert tuned["vllm-serve-workers"] == (True, {"api_server_count": 3})


def test_vllms_server_has_no_simulated_engine() -> None:
    with pytest.raises(LoadtestError, match="no simulated engine"):
        named(["vllm-serve"], SIMULATED, 4)


def test_variants_are_further_systems_with_other_settings(tmp_path: Path) -> None:
    file = tmp_path / "variants.json"
    file.write_text(
        '{"small": {"engine": {"max_num_seqs": 8}}, "bare": {"route": "asyncllm", "settings": {"port": 1}}}'
    )
    small, bare = variants(file, {"engine": {"dtype": "auto"}})
    assert (small.name, small.route) == ("small", "gateway")
    assert small.settings["engine"] == {"dtype": "auto", "max_num_seqs": 8}
    assert (bare.route, bare.settings["port"]) == ("asyncllm", 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "names no variants"),
        ('{"gateway": {}}', "no variant"),
        ('{"a": {"engine": {"seqs": 1}}}', "no setting"),
        ('{"a": {"rout": "gateway"}}', "names no variants"),
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
    system: str, repetition: int, elapsed_s: float, in_flight: int = 25, first_ms: float = 10.0, **settings: Any
) -> Trial:
    """A hundred lines; the last first token is late."""
    firsts = [first_ms] * 98 + [first_ms * 10] * 2
    records = [Record(str(n), "de", 0, 0, ms / 1000, elapsed_s, tokens=10) for n, ms in enumerate(firsts)]
    return Trial(
        name=f"{system}, {in_flight} in flight",
        system=system,
        settings=settings,
        workload="made up",
        load=Closed(in_flight),
        repetition=repetition,
        began="2026-01-01T00:00:00Z",
        elapsed_s=elapsed_s,
        delivered=Delivered(),
        clients=[],
        cpu_s={},
        memory_mib=None,
        samples=[Sample(at, gpu=gpu) for at, gpu in ((0.5, 0.0), (2.0, 97.0), (3.0, 99.0), (3.9, 10.0))],
        records=records,
    )


def _found(outcome: Outcome, *, bars: bool = True) -> dict[str, Finding]:
    return {each.name: each for each in findings(outcome, comparisons(outcome), bars=bars)}


def test_neighbouring_rounds_are_compared() -> None:
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
        _trial("gateway", 1, 4.0, first_ms=10.2, engine_steps=500, engine_gaps_over_100_ms=1),
        _trial("asyncllm", 1, 3.9),
        _trial("vllm-serve", 1, 8.1),
        _trial("vllm-serve-tuned", 1, 7.9),
        _trial("vllm-serve-workers", 1, 5.0),
    ]
    found = _found(Outcome(trials, {}, {}))
    ratio = "gateway ÷ {}, requests/s, 25 in flight".format
    assert found[ratio("asyncllm")].passed is True
    assert found[ratio("vllm-serve")].passed is True
    assert found[ratio("vllm-serve-tuned")].passed is False
    assert found[ratio("vllm-serve-workers")].passed is None
    # 2 of 100 are late by ten times as much: 102 against 100 ms.
    assert found["first token p99 added by the gateway, 25 in flight"].value == "+2.0 (+2.0 to +2.0) ms"
    assert found["first token p99 added by the gateway, 25 in flight"].passed is True
    # Without the beginning and the end of the round.
    assert found["GPU busy under the gateway, 25 in flight"].value == "98 %"
    assert found["GPU busy under the gateway, 25 in flight"].passed is True
    assert found["steps of the engine over 100 ms, 25 in flight"].value == "1 of 500"
    assert found["steps of the engine over 100 ms, 25 in flight"].passed is False


def test_without_bars_there_are_the_same_figures_and_no_verdict() -> None:
    outcome = Outcome([_trial("gateway", 1, 4.0), _trial("asyncllm", 1, 1.0)], {}, {})
    found = _found(outcome, bars=False)
    assert found["gateway ÷ asyncllm, requests/s, 25 in flight"].value == "0.25 (0.25 to 0.25)"
    assert {each.passed for each in found.values()} == {None}


def test_a_peer_whose_driver_was_the_limit_proves_nothing() -> None:
    limited: dict[str, Any] = {DRIVER_WAS_THE_LIMIT: "The driver was the limit."}
    trials = [
        _trial("gateway", 1, 1.0),
        _trial("asyncllm", 1, 1.0, **limited),
        _trial("vllm-serve", 1, 9.0, **limited),
    ]
    found = _found(Outcome(trials, {}, {}))
    assert found["gateway ÷ asyncllm, requests/s, 25 in flight"].passed is None
    assert found["gateway ÷ vllm-serve, requests/s, 25 in flight"].passed is None
    assert "Not to be counted on" in found["gateway ÷ vllm-serve, requests/s, 25 in flight"].note
    held_back = [_trial("gateway", 1, 1.0, **limited), _trial("asyncllm", 1, 1.0)]
    assert _found(Outcome(held_back, {}, {}))["gateway ÷ asyncllm, requests/s, 25 in flight"].passed is True


def test_what_was_not_measured_is_a_missed_bar() -> None:
    outcome = Outcome([_trial("gateway", 1, 1.0)], {}, {"vllm-serve": "It ended."}, complete=False)
    found = _found(outcome)
    assert found["vllm-serve took no part, or not in everything"].note == "It ended."
    assert found["the rounds"].value == "incomplete"
    missed = found["gateway ÷ vllm-serve, requests/s, 25 in flight"]
    assert (missed.value, missed.bar, missed.passed) == ("not measured", "≥ 2", False)


# ---------------------------------------------------------------- the rounds

_PLAN = PeersPlan(
    peers=(Peer("gateway", "gateway", SIMULATED), Peer("asyncllm", "asyncllm", SIMULATED)),
    in_flight=(2, 4),
    repetitions=2,
    utterances=8,
)


def _order(trials: Sequence[Trial]) -> list[tuple[str, int]]:
    return [(trial.name, trial.repetition) for trial in trials]


@pytest.mark.slow
async def test_systems_take_turns_forward_and_backward() -> None:
    outcome = await run(_PLAN, lambda _: None)
    assert outcome.failures == {}
    assert _order(outcome.trials) == [
        (f"{system}, {in_flight} in flight", repetition)
        for in_flight in (2, 4)
        for repetition, order in ((1, ("gateway", "asyncllm")), (2, ("asyncllm", "gateway")))
        for system in order
    ]
    lines = {
        (trial.load, trial.repetition): {(each.line, each.tokens) for each in trial.records}
        for trial in outcome.trials
    }
    assert all(len(each) == 8 for each in lines.values())
    for trial in outcome.trials:
        assert {(each.line, each.tokens) for each in trial.records} == lines[trial.load, trial.repetition]
        assert {each.text for each in trial.records} == {""}
    # No repetition says what another said.
    assert len({frozenset(each) for each in lines.values()}) == 4
    assert outcome.same_text == {(2, "asyncllm"): 1.0, (4, "asyncllm"): 1.0}


@pytest.mark.slow
async def test_one_that_cannot_start_is_left_out() -> None:
    broken = Peer("nobody", "gateway", {"engine": {"model": "./nowhere"}})
    plan = PeersPlan(peers=(_PLAN.peers[0], broken, _PLAN.peers[1]), in_flight=(2,), repetitions=1, utterances=4)
    outcome = await run(plan, lambda _: None)
    assert "no model at" in outcome.failures["nobody"]
    assert [trial.system for trial in outcome.trials] == ["gateway", "asyncllm"]


@pytest.mark.slow
async def test_what_was_measured_in_time_is_kept() -> None:
    plan = PeersPlan(peers=_PLAN.peers, in_flight=(2,), repetitions=500, utterances=4, time_limit_s=6.0)
    outcome = await run(plan, lambda _: None)
    assert not outcome.complete
    assert outcome.trials


async def test_without_any_system_there_are_no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused:
        def __init__(self, peer: Peer, _say: object) -> None:
            self._name = peer.name

        async def __aenter__(self) -> Running:
            raise LoadtestError(f"{self._name} is not to be had.")

        async def __aexit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(rounds, "system", Refused)
    outcome = await run(_PLAN, lambda _: None)
    assert outcome.trials == []
    assert outcome.failures.keys() == {"gateway", "asyncllm"}


# ---------------------------------------------------------------- the command


def _command(out: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "loadtest", "peers", "--out", str(out), *arguments]


@pytest.mark.slow
def test_the_command_writes_a_report(tmp_path: Path) -> None:
    done = subprocess.run(
        _command(
            tmp_path,
            *("--engine", "simulated", "--model", "/somewhere/model-7b"),
            *("--in-flight", "2", "--repetitions", "1", "--utterances", "4"),
        ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "The gateway beside the others" in done.stdout
    assert "repetition 1" in done.stderr
    written = (tmp_path / "result.json").read_text()
    result = json.loads(written)
    assert result["kind"] == "peers"
    # Where the model lies is nobody's business.
    assert result["settings"]["peers"][0]["settings"]["engine"]["model"] == "model-7b"
    assert "/somewhere" not in written
    assert [each["peer"] for each in result["details"]["comparisons"]] == ["asyncllm"]
    assert "report.html, result.json, table.md, utterances.jsonl" in done.stdout
    assert (tmp_path / "report.html").exists()
    assert len((tmp_path / "utterances.jsonl").read_text().splitlines()) == 8


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


def test_a_name_that_is_none_is_refused() -> None:
    done = subprocess.run(
        _command(Path("nowhere"), "--peers", "gateway,sglang"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "'sglang' is none of gateway" in done.stderr


@pytest.mark.engine
@pytest.mark.timeout(300)
def test_the_real_engine_says_the_same_on_every_route(tmp_path: Path) -> None:
    done = subprocess.run(
        _command(
            tmp_path,
            *("--peers", "gateway,asyncllm,vllm-serve", "--in-flight", "1,4"),
            *("--repetitions", "1", "--utterances", "8"),
        ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    compared = {(each["in_flight"], each["peer"]): each for each in result["details"]["comparisons"]}
    assert compared.keys() == {(level, peer) for level in (1, 4) for peer in ("asyncllm", "vllm-serve")}
    # What is added up in another order may fall to the other side where two words are equally likely.
    assert all(each["same_text"] >= 0.75 for each in compared.values())
    assert all(each["cpu_s"]["engine"] > 0 for each in result["trials"])
