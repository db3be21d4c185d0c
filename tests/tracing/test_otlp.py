"""What the standard variables switch on and off."""

from __future__ import annotations

import pytest

from gateway.tracing import otlp

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
