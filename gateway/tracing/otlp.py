"""Records spans with OpenTelemetry's SDK and sends them over OTLP, as the standard environment variables say.

Knows: OpenTelemetry, which is imported only once tracing is wanted. Must not know: what is traced.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import gateway
from gateway.domain.errors import StartupError
from gateway.tracing import spans, utterances
from gateway.tracing.spans import NOT_TRACED, Event, Kind, Span, Value

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_log = logging.getLogger(__name__)

_SERVICE = "translation-gateway"

# For what is still to be sent when the gateway ends.
_FLUSH_S = 3.0

# Where OpenTelemetry's conventions have a name; everything else is `gateway.…`.
_NAMES = {
    "error": "error.type",
    "method": "http.request.method",
    "model": "gen_ai.request.model",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "route": "http.route",
    "status": "http.response.status_code",
    "tokens": "gen_ai.usage.output_tokens",
}

# What a speaker does, which is no failure of the gateway's.
_NOT_FAILURES = {"cancelled"}


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether an endpoint is set, and tracing is not switched off."""
    endpoint = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return bool(endpoint) and not is_off and environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"


def start(environ: Mapping[str, str]) -> None:
    """Record spans from now on, if that is wanted. Raises `StartupError`."""
    if not is_wanted(environ) or spans.is_on():
        return
    try:
        provider = _provider(environ)
    except ImportError:
        raise StartupError(
            "An endpoint for traces is set, and OpenTelemetry is not installed: "
            "pip install 'translation-gateway[traces]', or unset OTEL_EXPORTER_OTLP_ENDPOINT."
        ) from None
    spans.trace_with(_Tracer(provider))


def stop() -> None:
    """Send what is left and record nothing more. Blocks, for `_FLUSH_S` at most."""
    if isinstance(tracer := spans.tracer(), _Tracer):
        utterances.close()
        spans.trace_with(None)
        # It waits for longer than it is told where a collector takes connections and does not answer.
        sending = threading.Thread(target=tracer.provider.shutdown, daemon=True)
        sending.start()
        sending.join(_FLUSH_S)


def _provider(environ: Mapping[str, str]) -> TracerProvider:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about: dict[str, Any] = {
        "service.version": gateway.__version__,
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
    }
    named = environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if not environ.get("OTEL_SERVICE_NAME") and "service.name=" not in named:
        about["service.name"] = _SERVICE
    if "service.instance.id=" in named:
        del about["service.instance.id"]
    # The sampler is that of OTEL_TRACES_SAMPLER, the sizes are those of OTEL_BSP_… and OTEL_SPAN_….
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_exporter(environ)))
    return provider


def _exporter(environ: Mapping[str, str]) -> SpanExporter:
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol in (None, "", "http/protobuf"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter

        return GrpcSpanExporter()
    raise StartupError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}: it has to be http/protobuf or grpc.")


class _Tracer:
    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import trace
        from opentelemetry.context import Context

        self.provider = provider
        self._tracer = provider.get_tracer("gateway", gateway.__version__)
        self._trace, self._nothing = trace, Context()
        self._kinds = {"server": trace.SpanKind.SERVER, "internal": trace.SpanKind.INTERNAL}
        self._failed = trace.StatusCode.ERROR

    def begin(self, name: str, kind: Kind, parent: str, fields: dict[str, Value]) -> Span:
        span = self._tracer.start_span(
            name, self._under(parent) if parent else self._nothing, self._kinds[kind], _named(fields)
        )
        return _Recorded(span, self._failed) if span.is_recording() else NOT_TRACED

    def past(
        self,
        name: str,
        parent: str,
        fields: dict[str, Value],
        events: Iterable[Event],
        began_ns: int,
        ended_ns: int,
    ) -> None:
        span = self._tracer.start_span(
            name, self._under(parent), self._kinds["internal"], _named(fields), start_time=began_ns
        )
        if span.is_recording():
            for event, at_ns, about in events:
                span.add_event(event, _named(about), at_ns)
        span.end(ended_ns)

    def _under(self, parent: str) -> Any:
        trace = self._trace
        _, trace_id, span_id, flags = parent.split("-")[:4]
        context = trace.SpanContext(
            int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=trace.TraceFlags(int(flags, 16))
        )
        return trace.set_span_in_context(trace.NonRecordingSpan(context), self._nothing)


class _Recorded(Span):
    __slots__ = ("_failed", "_is_over", "_span", "traceparent")

    def __init__(self, span: Any, failed: Any) -> None:
        context = span.get_span_context()
        self._span = span
        self._failed = failed
        self._is_over = False
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"

    def event(self, name: str, **fields: Value) -> None:
        self._span.add_event(name, _named(fields))

    def set(self, **fields: Value) -> None:
        self._span.set_attributes(_named(fields))

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, code: str) -> None:
        self._span.set_attribute(_NAMES["error"], code)
        if code not in _NOT_FAILURES:
            self._span.set_status(self._failed, code)

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._span.end()


def _named(fields: dict[str, Value]) -> dict[str, Value]:
    return {_NAMES.get(name) or f"gateway.{name}": value for name, value in fields.items()}
