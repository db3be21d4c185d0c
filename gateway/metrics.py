"""Every metric of the gateway, in Prometheus' default registry.

Imports nothing of the gateway. Every layer except the pure ones may import it. The engine's own metrics (`vllm:*`
and the time of its steps) are in the registry of the engine's process, and are read from there.
Times are in seconds, by Prometheus' convention.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from prometheus_client import REGISTRY, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client import Gauge as Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

# Prometheus adds a creation time to every series; operators do not need it.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 3, 5, 10, 30, 60)
_STEP_SECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1)

EVENT_LOOP_LAG_S = Histogram(
    "gateway_event_loop_lag_seconds",
    "How late the gateway's event loop runs what is due.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
SESSIONS = Gauge("gateway_sessions", "Sessions connected now.")
SESSIONS_AWAY = Gauge("gateway_sessions_away", "Sessions without a connection, kept to be resumed.")
SESSIONS_RESUMED = Counter(
    "gateway_sessions_resumed", "Attempts to resume a session, by outcome: recovered or lost.", ["outcome"]
)
# An alert on growth needs the series before the first one: many lost at once would count as none otherwise.
for _outcome in ("recovered", "lost"):
    SESSIONS_RESUMED.labels(_outcome)
MEETINGS = Gauge("gateway_meetings", "Meetings with a participant or with a translation under way.")
STORE_AVAILABLE = Gauge("gateway_store_available", "1 while the shared store answers; 1 without one.")
STORE_AVAILABLE.set(1)
STORE_ANSWER_S = Gauge("gateway_store_answer_seconds", "How long the shared store takes to answer, lately.")
STORE_ENTRIES_REFUSED = Counter(
    "gateway_store_entries_refused",
    "Sealed entries of the shared store that were not opened, by reason: another key; changed, or copied from "
    "another place; another part of the place, such as another epoch.",
    ["reason"],
)
for _reason in ("key", "part", "changed"):
    STORE_ENTRIES_REFUSED.labels(_reason)
LOG_PUBLICATIONS = Gauge("gateway_log_publications", "Publications held in the event log.")
LOG_BYTES = Gauge("gateway_log_bytes", "Bytes of the event log; a high estimate.")
SESSIONS_STARTED = Counter("gateway_sessions_started", "Sessions started.")
UTTERANCES = Counter("gateway_utterances", "Final utterances, by outcome: accepted or refused.", ["outcome"])
TRANSLATIONS = Counter("gateway_translations", "Translations ended, by outcome and language.", ["outcome", "lang"])
TRANSLATIONS_WAITING = Gauge("gateway_translations_waiting", "Translations admitted and waiting for their turn.")
TRANSLATIONS_RUNNING = Gauge("gateway_translations_running", "Translations handed to the engine.")
TRANSLATIONS_RETRIED = Counter(
    "gateway_translations_again", "Translations put back into the queue because the engine died."
)
QUEUE_S = Histogram(
    "gateway_queue_seconds", "From acceptance of a final utterance to its turn in the engine.", buckets=_SECONDS
)
FIRST_TOKEN_S = Histogram(
    "gateway_first_token_seconds", "From acceptance of an utterance to its first token.", buckets=_SECONDS
)
TRANSLATION_S = Histogram(
    "gateway_translation_seconds", "From acceptance of an utterance to its translation.", buckets=_SECONDS
)
TOKEN_INTERVAL_S = Histogram(
    "gateway_token_interval_seconds",
    "Time per token after the first one; the mean of each translation.",
    buckets=_STEP_SECONDS,
)
PARTIALS = Counter(
    "gateway_partials",
    "Revisions of unfinished utterances, by language and outcome: translated; superseded by a newer revision; "
    "preempted by finals; rejected, because they contradict what readers saw; unchanged; refused; failed.",
    ["outcome", "lang"],
)
PARTIAL_S = Histogram(
    "gateway_partial_seconds", "From the arrival of a revision to its translation.", buckets=_SECONDS
)
TOKENS = Counter("gateway_tokens", "Tokens generated.")
FINAL_TOKENS = Counter("gateway_final_tokens", "Tokens generated for final utterances.", ["lang"])
PARTIAL_TOKENS = Counter("gateway_partial_tokens", "Tokens generated for unfinished utterances.", ["lang"])
TOKENS_REUSED = Counter(
    "gateway_tokens_reused", "Tokens reused from an earlier translation of the same utterance, not generated."
)
GENERATION_S = Counter(
    "gateway_generation_seconds", "Time that translations spent in the engine, in total.", ["stage", "lang"]
)
PROMPT_TOKENS = Counter("gateway_prompt_tokens", "Prompt tokens of finished translations.")
PROMPT_TOKENS_CACHED = Counter(
    "gateway_prompt_tokens_cached", "Prompt tokens of finished translations that came from the prefix cache."
)
PUBLIC_KEYS_REQUESTS = Counter(
    "gateway_public_keys_requests",
    "Requests for the identity provider's keys, by outcome: answered or failed.",
    ["outcome"],
)
for _outcome in ("answered", "failed"):
    PUBLIC_KEYS_REQUESTS.labels(_outcome)
ERRORS = Counter("gateway_errors", "Errors sent to clients, by code.", ["code"])
TENANT_USAGE = Gauge(
    "gateway_tenant_usage", "What a tenant uses now, and has used today (UTC), by quota.", ["tenant", "quota"]
)
TENANT_CHARACTERS = Counter(
    "gateway_tenant_characters", "Characters of final texts translated, once for each language.", ["tenant"]
)
TENANT_TRANSLATED_S = Counter(
    "gateway_tenant_translated_seconds",
    "Time in which a meeting got a translation, in whole minutes, once for each language.",
    ["tenant"],
)
# The name of earlier versions, for one more: Prometheus wants seconds.
TENANT_MINUTES = Counter(
    "gateway_tenant_minutes", "Deprecated: gateway_tenant_translated_seconds_total in minutes.", ["tenant"]
)
WEBHOOK_DELIVERIES = Counter(
    "gateway_webhook_deliveries",
    "Events for webhooks, by outcome: delivered; failed, for each try; given_up after a day; dropped, as too many "
    "waited.",
    ["webhook", "outcome"],
)
WEBHOOK_WAITING = Gauge("gateway_webhook_waiting", "Events not delivered yet, over all gateways.", ["webhook"])
WEBHOOK_OLDEST_S = Gauge(
    "gateway_webhook_oldest_seconds", "Age of the oldest event that is not delivered yet.", ["webhook"]
)
OUTBOX_MERGED = Counter("gateway_deltas_merged", "Deltas merged into an unsent one because the reader lagged.")
# The label `engine` of the only engine.
DEFAULT_ENGINE = "default"
ENGINE_RUNNING = Gauge("gateway_engine_running", "Sequences that the engine generates now.", ["engine"])
ENGINE_WAITING = Gauge("gateway_engine_waiting", "Sequences that wait inside the engine.", ["engine"])
ENGINE_STEP_S = Histogram(
    "gateway_engine_step_seconds",
    "Time between two outputs of the engine while it has something to generate.",
    ["engine"],
    buckets=_STEP_SECONDS,
)
# Read in the process of the engine that uses them; absent without a GPU.
GPU_BUSY = Gauge(
    "gateway_engine_gpu_busy_ratio",
    "Share of the last second or less in which the engine's GPU computed.",
    ["engine", "device"],
)
GPU_MEMORY_USED = Gauge(
    "gateway_engine_gpu_memory_used_bytes", "Memory of the engine's GPU that is used.", ["engine", "device"]
)
GPU_MEMORY_TOTAL = Gauge(
    "gateway_engine_gpu_memory_bytes", "All memory of the engine's GPU.", ["engine", "device"]
)
ENGINE_READY = Gauge("gateway_engine_ready", "1 while the engine takes requests.", ["engine"])
ENGINE_RESTARTS = Counter(
    "gateway_engine_restarts", "Engines replaced, by reason: crash or stall.", ["engine", "reason"]
)
ENGINE_START_FAILURES = Counter(
    "gateway_engine_start_failures", "Engines that could not be started again.", ["engine"]
)
ENGINE_RESTART_S = Histogram(
    "gateway_engine_restart_seconds",
    "From the death of an engine until the next one is ready.",
    ["engine"],
    buckets=(1, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1_800),
)


class _EngineProcess(Collector):
    """CPU time of the engine's host process, as `process_cpu_seconds_total` is of the gateway's."""

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "gateway_engine_process_cpu_seconds",
            "CPU time of the engine's host process.",
            labels=["engine"],
        )
        family.add_metric([DEFAULT_ENGINE], time.process_time())
        yield family


REGISTRY.register(_EngineProcess())

# Names of the metrics that belong to the engine.
_OF_ENGINE = ("vllm:", "gateway_engine_step_seconds", "gateway_engine_process_", "gateway_engine_gpu_")


class _Part(Collector):
    """The metrics of the engine in this process, or all others; with `names`, only those samples."""

    def __init__(self, names: Sequence[str], *, engine: bool) -> None:
        self._names = names
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        registry = REGISTRY.restricted_registry(self._names) if self._names else REGISTRY
        return (family for family in registry.collect() if family.name.startswith(_OF_ENGINE) is self._engine)


def exposition(names: Sequence[str] = ()) -> bytes:
    """The gateway's metrics in Prometheus text format: all, or only the samples with these names."""
    return generate_latest(_Part(names, engine=False))


def exposition_with_examples(names: Sequence[str] = ()) -> bytes:
    """The same in OpenMetrics' format, with an example of each latency that is traced."""
    page: bytes = openmetrics.generate_latest(_Part(names, engine=False))  # type: ignore[no-untyped-call]
    return page


def engine_exposition(names: Sequence[str] = ()) -> bytes:
    """The same for an engine in this process, without the metrics of the process itself."""
    return generate_latest(_Part(names, engine=True))
