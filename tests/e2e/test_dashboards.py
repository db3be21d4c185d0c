"""Every query of the dashboards and alerts, asked of a real Prometheus after a real meeting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.client import connect
from gateway.engines.vllm import hardware
from gateway.protocol.messages import TranslationFinal
from loadtest.systems.server import free_port
from scripts import dashboards
from tests.deploy.programs import DEPLOY, running
from tests.processes import GatewayProcess

pytestmark = pytest.mark.engine

# What there is only once something went wrong, or a reader lagged; or where there are workers, or a store.
QUIET = {"Engines replaced", "Time to replace an engine", "Sessions resumed"}
# What there is only where the engine runs on a GPU: its metrics are described, and have samples there alone.
OF_A_GPU = {"GPU busy", "GPU memory"}


class Prometheus:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, query: str) -> list[Any]:
        """What a query answers now."""
        form = urllib.parse.urlencode({"query": query}).encode()
        with urllib.request.urlopen(f"{self.url}/api/v1/query", form) as response:  # noqa: S310 -- our own address
            found: list[Any] = json.load(response)["data"]["result"]
        return found


@pytest.fixture
def prometheus(real_gateway: GatewayProcess, tmp_path: Path) -> Iterator[Prometheus]:
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {"job_name": "gateway", "static_configs": [{"targets": [f"127.0.0.1:{real_gateway.port}"]}]}
        ],
    }
    file, port = tmp_path / "prometheus.yml", free_port()
    file.write_text(yaml.safe_dump(config))
    options = (
        f"--config.file={file}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with running("prometheus", *options, log=tmp_path / "prometheus.log"):
        yield Prometheus(port)


async def until_answered(prometheus: Prometheus, query: str) -> None:
    while True:
        with contextlib.suppress(urllib.error.URLError, OSError):
            if prometheus.ask(query):
                return
        await asyncio.sleep(0.1)


def looks(prometheus: Prometheus) -> float:
    """How often it has looked at the gateway and had an answer."""
    [answer] = prometheus.ask("sum_over_time(up[1h])")
    return float(answer["value"][1])


async def test_every_query_has_an_answer(real_gateway: GatewayProcess, prometheus: Prometheus) -> None:
    await until_answered(prometheus, "up == 1")
    async with connect(real_gateway.url, speaks="en", reads=["de"]) as session:
        id = await session.partial("Can you")
        await session.final("Can you hear me?", id=id)
        async for message in session:
            if isinstance(message, TranslationFinal):
                break
    page = real_gateway.get("/metrics")
    # Rates need two looks at each series, of which some are new. One look may have begun before.
    looked = looks(prometheus)
    while looks(prometheus) < looked + 3:
        await asyncio.sleep(0.1)
    await until_answered(prometheus, "rate(gateway_tokens_total[1m]) > 0")
    exported = set(re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE))
    # Which labels there are depends on what happened, such as whether there was time to translate the partial.
    sampled = set(re.findall(r"^([\w:]+)[{ ]", page, re.MULTILINE))
    for title, queries in dashboards.queries().items():
        for query in queries:
            names = re.findall(r"((?:gateway|process|vllm)[_:][a-z_]+)\{", query)
            for name in names:
                assert {name, re.sub(r"_(bucket|sum|count)$", "", name)} & exported, (title, name)
            asked = query.replace("$instance", ".*").replace("$__rate_interval", "1m")
            answer = prometheus.ask(asked)
            if title in OF_A_GPU:
                assert bool(answer) is hardware.gpu_present(), title
            elif sampled.issuperset(names) and not asked.endswith("> 0"):
                assert answer or title in QUIET, (title, asked)
    lines = [*dashboards.shown(prometheus.url)]
    assert any(re.fullmatch(r"  Ready \(bool\): \S+ 1", line) for line in lines), lines
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            for name in re.findall(r"gateway_[a-z_]+", rule["expr"]):
                assert {name, re.sub(r"_(bucket|sum|count)$", "", name)} & exported, (rule["alert"], name)
            prometheus.ask(rule["expr"])  # whether it fires depends on the machine
