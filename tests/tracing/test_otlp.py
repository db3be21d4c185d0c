"""What the standard variables switch on and off."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from gateway.tracing import otlp, spans

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, False),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_traces_are_sent_where_an_endpoint_is_set(environ: dict[str, str], wanted: bool) -> None:
    assert otlp.is_wanted(environ) is wanted


def test_stopping_what_never_started_does_nothing() -> None:
    otlp.start({})
    otlp.stop()


def test_silent_collector_does_not_delay_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "_FLUSH_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        otlp.start(os.environ)
        tracer = spans.tracer()
        assert isinstance(tracer, otlp._Tracer)
        tracer.provider.get_tracer("test").start_span("one").end()
        ends, shutdown = threading.Event(), tracer.provider.shutdown
        monkeypatch.setattr(tracer.provider, "shutdown", lambda: ends.wait(60))
        otlp.stop()
        assert not ends.is_set()
        ends.set()
        # Or its thread would go on trying, and draw from `random` beside the tests that follow.
        shutdown()
