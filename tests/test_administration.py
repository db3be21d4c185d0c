"""The administration of one process, as an operator starts it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from gateway.domain.errors import StartupError
from gateway.identity import key_file
from gateway.identity.key_file import KeyFile
from gateway.keys import operators_of
from tests.administration import Operator
from tests.over_http import NO_TLS
from tests.processes import gateway_process


def test_admin_address_serves_and_logs_operations(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    env = {"GATEWAY__ADMIN_PORT": "0", "GATEWAY__ADMIN_KEYS_FILE": str(operator.path)}
    with gateway_process("--engine", "simulated", "--log-format", "json", env=env) as gateway:
        gateway.ready()
        [line] = [line for line in gateway.said.splitlines() if "Metrics: " in line]
        address = "http" + line.rpartition("http")[2].partition("/metrics")[0]
        with httpx.Client(verify=NO_TLS, headers=operator.bearer) as client:
            assert client.get(f"{address}/admin/meetings").json() == {"meetings": []}
            assert client.get(f"{address}/admin/meetings", headers={"Host": "rebound.example"}).status_code == 421
            assert client.put(f"{address}/admin/log-level", json={"level": "warning"}).status_code == 200
            assert client.delete(f"{address}/admin/meetings/default/standup").json() == {"sessions": 0}
        assert gateway.end() == 0
    assert f'"operator":"{operator.id}","action":"meeting ended","tenant":"default"' in gateway.said
    assert "standup" not in gateway.said


def test_a_file_without_an_operators_key_is_refused(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    key_file.save(operator.path, KeyFile())
    with pytest.raises(StartupError, match="gateway key admin"):
        operators_of(operator.settings())
