"""The two pages of metrics: the gateway's own and its engine's, which together are one."""

from __future__ import annotations

import subprocess
import sys

from prometheus_client.parser import text_string_to_metric_families

from gateway import metrics
from gateway.app import Gateway
from gateway.config import Settings
from gateway.engines.simulated import SimulatedEngine
from gateway.engines.vllm.completions import EngineLoad


def families(page: bytes) -> set[str]:
    return {family.name for family in text_string_to_metric_families(page.decode())}


def test_no_family_is_on_both_pages() -> None:
    own, engine = families(metrics.exposition()), families(metrics.engine_exposition())
    assert "gateway_sessions" in own
    assert "process_cpu_seconds" in own
    assert {"gateway_engine_step_seconds", "gateway_engine_process_cpu_seconds"} == {
        name for name in engine if not name.startswith(("vllm:", "gateway_engine_gpu_"))
    }
    assert not own & engine


def test_what_is_measured_of_an_engine_names_it() -> None:
    # As in a process with a gateway and in one with an engine.
    Gateway(Settings(), SimulatedEngine)
    EngineLoad()
    samples = [
        sample
        for page in (metrics.exposition(), metrics.engine_exposition())
        for family in text_string_to_metric_families(page.decode())
        if family.name.startswith("gateway_engine_")
        for sample in family.samples
    ]
    # Other tests in this process may have had several.
    named = {sample.labels.get("engine", "") for sample in samples}
    assert "default" in named
    assert "" not in named
    assert {sample.name for sample in samples if not sample.name.endswith(("_bucket", "_sum"))} == {
        "gateway_engine_ready",
        "gateway_engine_running",
        "gateway_engine_waiting",
        "gateway_engine_step_seconds_count",
        "gateway_engine_restarts_total",
        "gateway_engine_start_failures_total",
        "gateway_engine_restart_seconds_count",
        "gateway_engine_process_cpu_seconds_total",
    }


def test_alert_series_exist_from_the_start() -> None:
    page = subprocess.run(
        [sys.executable, "-c", "from gateway import metrics; print(metrics.exposition().decode())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert 'gateway_sessions_resumed_total{outcome="lost"} 0.0' in page


def test_names_choose_on_either_page() -> None:
    EngineLoad()
    names = ["gateway_sessions", "gateway_engine_step_seconds_count"]
    assert families(metrics.exposition(names)) == {"gateway_sessions"}
    assert families(metrics.engine_exposition(names)) == {"gateway_engine_step_seconds"}
    assert metrics.engine_exposition(["gateway_sessions"]) == b""
