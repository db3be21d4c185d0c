"""The systemd unit, read by systemd."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.config.loading import load
from tests.deploy.programs import DEPLOY, run

pytestmark = pytest.mark.slow

UNIT = DEPLOY / "systemd" / "translation-gateway.service"


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    # It has to be there, and is installed elsewhere.
    unit.write_text(UNIT.read_text().replace("/opt/translation-gateway/.venv/bin/gateway", "/bin/true"))
    assert "translation-gateway" not in run("systemd-analyze", "verify", str(unit))


def test_unit_leaves_the_gateway_little_to_harm() -> None:
    said = run("systemd-analyze", "security", "--offline=true", str(UNIT))
    (exposure,) = re.findall(r"Overall exposure level for \S+ (\d+\.\d+)", said)
    assert float(exposure) < 3


def test_it_waits_for_accepted_work_to_be_finished() -> None:
    (stop_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.MULTILINE)
    settings = load(DEPLOY / "systemd" / "gateway.toml", {})
    assert int(stop_s) >= settings.drain_s + 20
