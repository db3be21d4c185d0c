"""A gateway as an operator starts it, and a collector that it sends its traces to."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gateway.client import connect
from gateway.protocol.messages import TranslationDelta, TranslationFinal
from tests.processes import GatewayProcess, gateway_process
from tests.tracing.collector import Collector, Seen, collector

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
SAID = "Quarterly figures are up"


@pytest.fixture(scope="module")
def traces() -> Iterator[Collector]:
    with collector() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(traces: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    file = tmp_path_factory.mktemp("gateway") / "gateway.toml"
    file.write_text(
        '[engine]\nkind = "simulated"\n[event_log]\nhandover_file = "left"\n'.replace("left", str(file) + ".left")
    )
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
        "GATEWAY__LOG_FORMAT": "json",
    }
    with gateway_process("--config", str(file), env=env) as process:
        process.url = process.wait_for(r'Ready: (https?://[^"\s]+)').group(1)
        yield process


async def translated(url: str, text: str, traceparent: str | None, *, name: str = "Ana Pérez") -> None:
    async with connect(url, meeting="planning", name=name, speaks="en", reads=["de", "ja"]) as session:
        await session.final(text, traceparent=traceparent)
        left = {"de", "ja"}
        async for message in session:
            if isinstance(message, TranslationFinal):
                left.remove(message.lang)
                if not left:
                    break


async def test_utterance_is_traced_to_its_last_byte(gateway: GatewayProcess, traces: Collector) -> None:
    await translated(gateway.url, SAID, TRACEPARENT)

    def whole(spans: list[Seen]) -> bool:
        return any(span.name == "utterance" and span.trace_id == TRACE for span in spans)

    traces.wait_for(whole)
    [utterance] = traces.named("utterance", TRACE)
    assert (utterance.parent_id, utterance.kind, utterance.failed) == (SPAN, 2, False)
    assert utterance.about["gateway.lang"] == "en"
    assert [(name, about["gateway.what"]) for name, about in utterance.events] == [
        ("committed", "said"),
        ("committed", "translated"),
        ("committed", "translated"),
    ]
    translations = traces.named("translate", TRACE)
    assert {each.about["gateway.target"] for each in translations} == {"de", "ja"}
    for each in translations:
        assert each.parent_id == utterance.span_id
        assert [name for name, _ in each.events] == ["dispatched", "first token"]
        assert each.about["gateway.lane"] == "default"
        assert each.about["gen_ai.request.model"] == "simulated"
        assert int(str(each.about["gen_ai.usage.output_tokens"])) > 0
    deliveries = traces.named("deliver", TRACE)
    assert [each.about["gateway.what"] for each in deliveries] == ["said", "translated", "translated"]
    # Its acknowledgement and its caption, then each translation.
    assert [each.about["gateway.readers"] for each in deliveries] == [2, 1, 1]
    assert utterance.begins <= min(each.begins for each in (*translations, *deliveries))
    assert utterance.ends >= max(each.ends for each in deliveries)
    assert utterance.resource["service.name"] == "translation-gateway"
    assert utterance.resource["deployment.environment"] == "test"


async def test_partials_are_in_the_same_trace(gateway: GatewayProcess, traces: Collector) -> None:
    trace = "a3ce929d0e0e47364bf92f3577b34da6"
    async with connect(gateway.url, meeting="partials", speaks="en", reads=["de"]) as session:
        await session.partial(SAID, "u1", rev=7)
        async for message in session:
            if isinstance(message, TranslationDelta):
                break
        await session.final(SAID, "u1", rev=8, traceparent=f"00-{trace}-{SPAN}-01")
        async for message in session:
            if isinstance(message, TranslationFinal):
                break
    traces.wait_for(lambda spans: any(span.name == "utterance" and span.trace_id == trace for span in spans))
    [utterance] = traces.named("utterance", trace)
    [partials] = traces.named("partials", trace)
    assert (partials.parent_id, partials.about["gateway.target"]) == (utterance.span_id, "de")
    assert partials.about["gateway.translated"] == 1
    [(name, about)] = partials.events
    assert (name, about["gateway.rev"], about["gateway.lane"]) == ("translated", 7, "default")
    assert partials.begins < partials.ends <= utterance.ends


async def test_without_a_trace_of_the_clients_it_begins_one(gateway: GatewayProcess, traces: Collector) -> None:
    for given in (None, "nonsense"):
        before = len(traces.named("utterance"))
        await translated(gateway.url, "Let us begin.", given)
        traces.wait_for(lambda spans, before=before: sum(span.name == "utterance" for span in spans) > before)  # type: ignore[misc]
        newest = traces.named("utterance")[-1]
        assert (newest.parent_id, newest.trace_id != TRACE) == ("", True)


async def test_traces_have_no_words_or_names(gateway: GatewayProcess, traces: Collector) -> None:
    before = len(traces.named("utterance"))
    await translated(gateway.url, "My password is swordfish.", None, name="Zuleika Dobson")
    traces.wait_for(lambda spans: sum(span.name == "utterance" for span in spans) > before)
    for secret in ("swordfish", "Zuleika", "planning", SAID, "Pérez"):
        assert secret.encode() not in traces.raw


async def test_a_session_that_is_resumed_is_traced(gateway: GatewayProcess, traces: Collector) -> None:
    async with connect(gateway.url, meeting="planning", speaks="en", reads=["de"]) as session:
        kept = session.position
        await session.drop()
        async with connect(gateway.url, speaks="en", reads=["de"], resume=kept):
            pass
    spans = traces.wait_for(lambda spans: any("gateway.recovered" in span.about for span in spans))
    resumed = next(span for span in spans if "gateway.recovered" in span.about)
    assert (resumed.name, resumed.about["gateway.resumes"], resumed.about["gateway.recovered"]) == (
        "session",
        True,
        True,
    )


def post(url: str, body: object, **headers: str) -> int:
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 -- our own address
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


async def test_http_request_and_its_log_line_are_traced(gateway: GatewayProcess, traces: Collector) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    body = {"text": "Good morning.", "source_lang": "en", "target_lang": "de"}
    header = {"Content-Type": "application/json", "traceparent": f"00-{trace}-{SPAN}-01"}
    assert post(f"{gateway.url}/v1/translate", body, **header) == 200
    traces.wait_for(lambda spans: any(span.trace_id == trace and span.kind == 2 for span in spans))
    [request] = [each for each in traces.spans if each.trace_id == trace and each.kind == 2]
    assert (request.name, request.parent_id) == ("POST /v1/translate", SPAN)
    assert request.about["http.response.status_code"] == 200
    [translation] = traces.named("translate", trace)
    assert translation.parent_id == request.span_id
    line = json.loads(gateway.wait_for(rf'.*"event":"request".*{trace}.*').group())
    assert (line["trace_id"], line["span_id"]) == (trace, request.span_id)


async def test_an_example_of_each_latency_names_its_trace(gateway: GatewayProcess) -> None:
    trace = "e" * 32
    await translated(gateway.url, "For example.", f"00-{trace}-{SPAN}-01")
    request = urllib.request.Request(  # noqa: S310 -- our own address
        f"{gateway.url}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    wanted = {"gateway_first_token_seconds", "gateway_queue_seconds", "gateway_translation_seconds"}
    found: set[str] = set()
    # What is said first of a meeting may be what others said before.
    while found < wanted:
        with await asyncio.to_thread(urllib.request.urlopen, request) as response:
            kind, page = response.headers["Content-Type"], response.read().decode()
        examples = [line for line in page.splitlines() if f'trace_id="{trace}"' in line]
        found = wanted & {line.partition("_bucket")[0] for line in examples}
    assert kind.startswith("application/openmetrics-text")
    # It reads strictly, as Prometheus does.
    assert [*text_string_to_metric_families(page)]  # type: ignore[no-untyped-call]
    assert " # {" not in gateway.get("/metrics")


async def test_what_is_left_at_the_end_is_sent(traces: Collector, tmp_path: Path) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}
    file = tmp_path / "gateway.toml"
    file.write_text('[engine]\nkind = "simulated"\n')
    trace = "1" * 32
    with gateway_process("--config", str(file), env=env) as process:
        process.ready()
        await translated(process.url, "Goodbye.", f"00-{trace}-{SPAN}-01")
    assert len(traces.named("utterance", trace)) == 1


@pytest.mark.parametrize(
    ("env", "said"),
    [({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "http/protobuf or grpc")],
)
def test_what_cannot_be_done_is_said_at_the_start(env: dict[str, str], said: str, traces: Collector) -> None:
    with gateway_process(env={"OTEL_EXPORTER_OTLP_ENDPOINT": traces.endpoint, **env}) as process:
        process.wait_for(said)


def test_while_it_is_off_nothing_of_opentelemetry_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[engine]\nkind = "simulated"\n')
    with gateway_process("--config", str(file), env={"PYTHONPROFILEIMPORTTIME": "1"}) as process:
        process.ready()
    assert "gateway.tracing.spans" in process.said
    assert "opentelemetry" not in process.said
