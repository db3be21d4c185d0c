"""What Prometheus is given: where gateways are, alerts, and the queries of Grafana's dashboards."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
import yaml

from gateway.config.loading import load
from gateway.server.http import admin
from scripts import dashboards
from tests.cli.commands import ROOT
from tests.deploy.programs import DEPLOY, program, run

pytestmark = pytest.mark.slow

FOLDER = DEPLOY / "prometheus"

ALERTS = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]


def test_every_alert_fires_when_it_should_and_not_otherwise() -> None:
    run("promtool", "test", "rules", str(FOLDER / "alerts_test.yml"))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_every_alert_is_tested_and_in_the_runbook(alert: dict[str, Any]) -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    expected = [
        each for test in tests for each in test.get("alert_rule_test", ()) if each["alertname"] == alert["alert"]
    ]
    assert sorted(len(each["exp_alerts"]) for each in expected) == [0, 1]
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    sections = re.findall(r"^## (\w+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor == alert["alert"].lower()
    assert alert["alert"] in sections
    assert alert["labels"]["severity"] in ("critical", "warning")


def test_runbook_has_no_section_without_an_alert() -> None:
    sections = re.findall(r"^## (Gateway\w+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    assert sections == [alert["alert"] for alert in ALERTS]


def test_prometheus_accepts_its_file_and_asks_admin_ports() -> None:
    """It asks at the gateway's admin port."""
    run("promtool", "check", "config", str(FOLDER / "prometheus.yml"))
    [job] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    port = tomllib.loads((DEPLOY / "gateway.toml").read_text())["admin_port"]
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    gateways = [name for name in services if name.startswith("gateway")]
    assert job["static_configs"] == [{"targets": [f"{name}:{port}" for name in gateways]}]
    # What the alerts ask for by the job's name.
    assert job["job_name"] == "gateway"


# A process of its own, as labels stay.
EVERY_METRIC = """
from prometheus_client.metrics import MetricWrapperBase
from gateway import metrics
for metric in vars(metrics).values():
    if isinstance(metric, MetricWrapperBase) and metric._labelnames:
        metric.labels(*["x"] * len(metric._labelnames))
print((metrics.exposition() + metrics.engine_exposition()).decode())
"""


def test_metrics_are_named_as_prometheus_wants() -> None:
    page = subprocess.run([sys.executable, "-c", EVERY_METRIC], capture_output=True, check=True).stdout
    lint = subprocess.run([program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False)
    # The name of earlier versions goes with the next one.
    said = [line for line in lint.stderr.decode().splitlines() if "gateway_tenant_minutes_total" not in line]
    assert (page.count(b"# TYPE gateway_") > 40, said) == (True, [])


async def test_gateways_answer_under_their_scraped_names() -> None:
    settings = load(DEPLOY / "gateway.toml", {})

    async def page(_names: Sequence[str]) -> bytes:
        return b"up 1"

    transport = httpx.ASGITransport(admin.app(settings.admin_host, settings.allowed_hosts, page))
    [job] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    async with httpx.AsyncClient(transport=transport) as client:
        for target in job["static_configs"][0]["targets"]:
            assert (await client.get(f"http://{target}/metrics")).status_code == 200


def test_the_dashboards_are_what_the_script_writes() -> None:
    assert {path: path.read_text() for path in dashboards.FOLDER.iterdir()} == dashboards.written()
