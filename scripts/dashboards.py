"""Writes Grafana's dashboards in deploy/grafana/dashboards, from the metrics that the gateway has.

    python -m scripts.dashboards
    python -m scripts.dashboards http://127.0.0.1:9090    # what they would show now, where there is no Grafana

A test checks that the files are what this would write. Queries name the gateway's metrics by the objects of
`gateway.metrics`, so no panel can ask for one that does not exist; a test finds the others in a real gateway's.
"""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gateway import metrics

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards"

# Grafana's grid has 24 columns.
_WIDTH, _HEIGHT = 12, 8

_SELECTED = 'instance=~"$instance"'


class Described(Protocol):
    """A metric of `prometheus_client`."""

    def describe(self) -> Iterable[Any]: ...


@dataclass(frozen=True)
class Panel:
    """A chart. unit: as Grafana names it. queries: legend → PromQL. text: what it means, and what is normal."""

    title: str
    unit: str
    queries: dict[str, str]
    text: str


def series(metric: Described | str, *labels: str, suffix: str = "") -> str:
    """Those of the gateways that are selected. metric: its object; its name if it is not the gateway's own."""
    if isinstance(metric, str):
        name = metric
    else:
        [family] = metric.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
    return f"{name}{suffix}{{{','.join((_SELECTED, *labels))}}}"


def over(what: str, expression: str, *by: str) -> str:
    """what: `sum`, `max` or `min`."""
    return f"{what} by ({', '.join(by)}) ({expression})" if by else f"{what} ({expression})"


def rate(metric: Described | str, *by: str, labels: Sequence[str] = (), suffix: str = "") -> str:
    """A second."""
    return over("sum", f"rate({series(metric, *labels, suffix=suffix)}[$__rate_interval])", *by)


def total(metric: Described | str, *by: str) -> str:
    return over("sum", series(metric), *by)


def increase(metric: Described | str, *by: str) -> str:
    return over("sum", f"increase({series(metric)}[$__rate_interval])", *by)


def quantile(metric: Described, share: float) -> str:
    return f"histogram_quantile({share}, {rate(metric, 'le', suffix='_bucket')})"


def quantiles(metric: Described) -> dict[str, str]:
    return {f"p{share * 100:.0f}": quantile(metric, share) for share in (0.5, 0.9, 0.99)}


def mean(metric: Described, *by: str) -> str:
    return f"{rate(metric, *by, suffix='_sum')} / {rate(metric, *by, suffix='_count')}"


MEETINGS = (
    Panel(
        "Sessions",
        "short",
        {"connected": total(metrics.SESSIONS), "away": total(metrics.SESSIONS_AWAY)},
        "Connected now, and without a connection but kept to be resumed.",
    ),
    Panel(
        "Meetings",
        "short",
        {"meetings": total(metrics.MEETINGS)},
        "With a participant or a translation under way. A meeting on two gateways counts at both.",
    ),
    Panel(
        "First words of a final",
        "s",
        quantiles(metrics.FIRST_TOKEN_S),
        "From acceptance to the first token. What was translated while it was said has its words already.",
    ),
    Panel(
        "Whole translation of a final", "s", quantiles(metrics.TRANSLATION_S), "From acceptance to the last token."
    ),
    Panel(
        "What is being said, translated",
        "s",
        quantiles(metrics.PARTIAL_S),
        "From the arrival of a revision to its translation. Empty while nobody asks for it while it is said.",
    ),
    Panel(
        "Revisions by outcome",
        "cps",
        {"{{outcome}}": rate(metrics.PARTIALS, "outcome")},
        "Superseded is normal while people speak fast. Refused and preempted mean that finals take the engine.",
    ),
    Panel(
        "Finals by outcome",
        "cps",
        {"{{outcome}}": rate(metrics.TRANSLATIONS, "outcome")},
        "Everything but final and cancelled is a translation that somebody misses.",
    ),
    Panel(
        "Finals that come",
        "cps",
        {"{{outcome}}": rate(metrics.UTTERANCES, "outcome")},
        "What is refused is sent again by the client, or never said.",
    ),
    Panel(
        "Errors by code",
        "cps",
        {"{{code}}": rate(metrics.ERRORS, "code") + " > 0"},
        "overloaded: the engine is full. rate_limited, quota_exceeded: one client or tenant asks for too much.",
    ),
    Panel(
        "Sessions resumed",
        "cps",
        {"{{outcome}}": rate(metrics.SESSIONS_RESUMED, "outcome")},
        "lost: the session starts over like a latecomer's.",
    ),
    Panel(
        "Readers that lag",
        "cps",
        {"merged deltas": rate(metrics.OUTBOX_MERGED)},
        "Deltas merged because a reader did not read fast enough. Nothing is lost by it.",
    ),
    Panel("Tokens by language", "cps", {"{{lang}}": rate(metrics.FINAL_TOKENS, "lang")}, "Of finals."),
    Panel(
        "Webhooks",
        "cps",
        {"{{webhook}} {{outcome}}": rate(metrics.WEBHOOK_DELIVERIES, "webhook", "outcome")},
        "failed: a try; it is tried again for a day. given_up and dropped: an event is lost.",
    ),
    Panel(
        "Webhooks: oldest event",
        "s",
        {"{{webhook}}": over("max", series(metrics.WEBHOOK_OLDEST_S), "webhook")},
        "Of those that are not delivered yet. Near 0 while the webhook takes them. Empty without one.",
    ),
    Panel("Event log", "bytes", {"bytes": total(metrics.LOG_BYTES)}, "Bounded by event_log.max_bytes."),
)

ENGINES = (
    Panel(
        "Ready",
        "bool",
        {"{{engine}}": over("min", series(metrics.ENGINE_READY), "engine")},
        "1 while the engine takes requests.",
    ),
    Panel(
        "Translations",
        "short",
        {"running": total(metrics.TRANSLATIONS_RUNNING), "waiting": total(metrics.TRANSLATIONS_WAITING)},
        "Handed to the engines, and admitted but waiting for their turn.",
    ),
    Panel(
        "Sequences",
        "short",
        {
            "running {{engine}}": total(metrics.ENGINE_RUNNING, "engine"),
            "waiting {{engine}}": total(metrics.ENGINE_WAITING, "engine"),
        },
        "Running up to engine.max_num_seqs. Waiting is near 0, because texts wait in the gateway.",
    ),
    Panel("Wait for a turn", "s", quantiles(metrics.QUEUE_S), "From acceptance to the turn in the engine."),
    Panel(
        "Tokens",
        "cps",
        {
            "generated": rate(metrics.TOKENS),
            "of partials": rate(metrics.PARTIAL_TOKENS),
            "reused": rate(metrics.TOKENS_REUSED),
            "prompt": rate(metrics.PROMPT_TOKENS),
        },
        "Reused: taken over from what was translated while it was said.",
    ),
    Panel(
        "Prompt tokens from the cache",
        "percentunit",
        {"gateway": f"{rate(metrics.PROMPT_TOKENS_CACHED)} / {rate(metrics.PROMPT_TOKENS)}"},
        "Of the prompts of finished translations.",
    ),
    Panel("Time between tokens", "s", quantiles(metrics.TOKEN_INTERVAL_S), "The mean of each translation."),
    Panel(
        "Step of the engine",
        "s",
        {"p50": quantile(metrics.ENGINE_STEP_S, 0.5), "p99": quantile(metrics.ENGINE_STEP_S, 0.99)},
        "Between two outputs while there is something to generate. Above 0.1 s nobody gets a token for that long.",
    ),
    Panel(
        "GPU busy",
        "percentunit",
        {"{{engine}} {{device}}": over("max", series(metrics.GPU_BUSY), "engine", "device")},
        "Share of the last second in which it computed. Near 1 the engine is full. Well below 1 while "
        "translations wait: something else holds it up. Empty without a GPU of the gateway's own.",
    ),
    Panel(
        "GPU memory",
        "percentunit",
        {
            "{{engine}} {{device}}": over(
                "max",
                f"{series(metrics.GPU_MEMORY_USED)} / {series(metrics.GPU_MEMORY_TOTAL)}",
                "engine",
                "device",
            )
        },
        "Used by whomever; the engine takes engine.gpu_memory_utilization at its start. Empty as above.",
    ),
    Panel(
        "KV cache in use",
        "percentunit",
        {"{{engine}}": over("max", series("vllm:kv_cache_usage_perc"), "engine")},
        "At 1, sequences are preempted.",
    ),
    Panel(
        "Preempted sequences",
        "cps",
        {"{{engine}}": rate("vllm:num_preemptions_total", "engine")},
        "Begun again because the KV cache was full: lower engine.max_num_seqs.",
    ),
    Panel(
        "Engines replaced",
        "short",
        {
            "{{engine}} {{reason}}": increase(metrics.ENGINE_RESTARTS, "engine", "reason"),
            "cannot start {{engine}}": increase(metrics.ENGINE_START_FAILURES, "engine"),
        },
        "A crash or a stall; translations begin again, and nothing accepted is lost.",
    ),
    Panel(
        "Time to replace an engine",
        "s",
        {"p50": quantile(metrics.ENGINE_RESTART_S, 0.5)},
        "From its death until the next one is ready.",
    ),
)

PROCESSES = (
    Panel(
        "CPU of the gateway",
        "short",
        {"{{instance}} {{worker}}": rate("process_cpu_seconds_total", "instance", "worker")},
        "Cores. One process uses one at most; near 1 it is full: more workers.",
    ),
    Panel(
        "CPU of the engine's host",
        "short",
        {"{{instance}}": rate("gateway_engine_process_cpu_seconds_total", "instance")},
        "Cores, where vLLM's front end runs. One process uses one at most; near 1 it is full.",
    ),
    Panel(
        "How late the event loop is",
        "s",
        {"{{instance}} {{worker}}": mean(metrics.EVENT_LOOP_LAG_S, "instance", "worker")},
        "Normally below 1 ms. Above 5 ms the process is full, or other processes take its cores.",
    ),
    Panel(
        "Memory",
        "bytes",
        {"{{instance}} {{worker}}": total("process_resident_memory_bytes", "instance", "worker")},
        "Of the gateway's processes, without the engine's.",
    ),
    Panel(
        "Open files",
        "percentunit",
        {
            "{{instance}} {{worker}}": over(
                "max", f"{series('process_open_fds')} / {series('process_max_fds')}", "instance", "worker"
            )
        },
        "Of those that the system allows. Each connection takes one.",
    ),
    Panel(
        "Store",
        "s",
        {"{{instance}}": over("max", series(metrics.STORE_ANSWER_S), "instance")},
        "How long the store takes to answer; most of it is its disk. 0 without a store.",
    ),
)

DASHBOARDS = {"meetings": MEETINGS, "engines": ENGINES, "processes": PROCESSES}


def dashboard(name: str, panels: Sequence[Panel]) -> dict[str, Any]:
    """In the form that Grafana reads from a folder."""
    source = {"type": "prometheus", "uid": "${source}"}
    shown = []
    for number, panel in enumerate(panels):
        place = {"h": _HEIGHT, "w": _WIDTH, "x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT}
        targets = [
            {"refId": chr(ord("A") + each), "datasource": source, "expr": query, "legendFormat": legend}
            for each, (legend, query) in enumerate(panel.queries.items())
        ]
        defaults = {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 8, "showPoints": "never"}}
        shown.append(
            {
                "id": number + 1,
                "type": "timeseries",
                "title": panel.title,
                "description": panel.text,
                "datasource": source,
                "gridPos": place,
                "fieldConfig": {"defaults": defaults, "overrides": []},
                "options": {
                    "tooltip": {"mode": "multi"},
                    "legend": {"displayMode": "list", "placement": "bottom"},
                },
                "targets": targets,
            }
        )
    return {
        "uid": f"gateway-{name}",
        "title": f"Gateway: {name}",
        "tags": ["gateway"],
        "links": [{"type": "dashboards", "tags": ["gateway"], "title": "Gateway", "keepTime": True}],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Source"},
                {
                    "name": "instance",
                    "label": "Gateway",
                    "type": "query",
                    "datasource": source,
                    "query": "label_values(gateway_sessions, instance)",
                    "refresh": 2,
                    "includeAll": True,
                    "allValue": ".*",
                    "multi": True,
                },
            ]
        },
        "panels": shown,
    }


def queries() -> dict[str, list[str]]:
    """Title of a panel → its queries, for every panel."""
    return {panel.title: [*panel.queries.values()] for panels in DASHBOARDS.values() for panel in panels}


def written() -> dict[Path, str]:
    """File → what it has to contain."""
    return {
        FOLDER / f"{name}.json": json.dumps(dashboard(name, panels), indent=1) + "\n"
        for name, panels in DASHBOARDS.items()
    }


def shown(prometheus: str) -> Iterator[str]:
    """A line for each panel, with what is newest in it. prometheus: its address. Raises `OSError`."""
    for name, panels in DASHBOARDS.items():
        yield f"{name}:"
        for panel in panels:
            found = [
                each for legend, query in panel.queries.items() for each in _answers(prometheus, legend, query)
            ]
            yield f"  {panel.title} ({panel.unit}): {', '.join(found) or 'nothing'}"


def _answers(prometheus: str, legend: str, query: str) -> Iterator[str]:
    asked = query.replace("$instance", ".*").replace("$__rate_interval", "1m")
    form = urllib.parse.urlencode({"query": asked}).encode()
    with urllib.request.urlopen(f"{prometheus}/api/v1/query", form, timeout=10) as answer:  # noqa: S310 -- the operator's
        for each in json.load(answer)["data"]["result"]:
            named = legend
            for label, value in each["metric"].items():
                named = named.replace(f"{{{{{label}}}}}", value)
            yield f"{named} {float(each['value'][1]):.4g}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("\n".join(shown(sys.argv[1].rstrip("/"))))
    else:
        for path, content in written().items():
            path.write_text(content)
