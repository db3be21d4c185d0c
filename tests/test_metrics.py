"""The two pages of metrics: the gateway's own and its engine's, which together are one."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway import metrics


def families(page: bytes) -> set[str]:
    return {family.name for family in text_string_to_metric_families(page.decode())}


def test_no_family_is_on_both_pages() -> None:
    own, engine = families(metrics.exposition()), families(metrics.engine_exposition())
    assert "gateway_sessions" in own
    assert "process_cpu_seconds" in own
    assert {"gateway_engine_step_seconds", "gateway_engine_process_cpu_seconds"} == {
        name for name in engine if not name.startswith("vllm:")
    }
    assert not own & engine


def test_names_choose_on_either_page() -> None:
    names = ["gateway_sessions", "gateway_engine_step_seconds_count"]
    assert families(metrics.exposition(names)) == {"gateway_sessions"}
    assert families(metrics.engine_exposition(names)) == {"gateway_engine_step_seconds"}
    assert metrics.engine_exposition(["gateway_sessions"]) == b""
