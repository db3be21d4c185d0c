"""`gateway admin`: each action, and what it prints."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.config import Settings
from gateway.domain.webhooks import Webhook
from gateway.protocol.messages import SessionStart, SessionStarted
from tests.administration import Operator, administered
from tests.webhooks.receiver import receiver


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    operator = Operator(tmp_path)
    monkeypatch.setenv("GATEWAY_ADMIN_KEY", operator.key)
    return operator


async def admin(*argv: str) -> int:
    return await asyncio.to_thread(main, ["admin", *argv])


async def test_a_meeting_is_found_ended_and_erased(
    operator: Operator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with administered(operator) as (gateway, client), gateway.peer() as ana, gateway.peer() as bo:
        monkeypatch.setenv("GATEWAY_ADMIN_URL", str(client.base_url))
        participants = []
        for peer, name in ((ana, "Ana"), (bo, "B\to")):
            await peer.send(SessionStart(meeting="standup", name=name, reads=["ja", "de"]))
            participants.append((await peer.until(SessionStarted))[-1].participant)
        assert await admin("meetings") == 0
        assert capsys.readouterr().out == "default\tstandup\t2\t0\t0\t0\t-\n"
        assert await admin("sessions", "standup") == 0
        lines = capsys.readouterr().out.splitlines()
        assert f"default\tstandup\t{participants[0]}\tAna\t-\tja,de\tno\t-" in lines
        assert all(line.count("\t") == 7 for line in lines)
        assert await admin("disconnect", "standup", participants[1]) == 0
        assert await admin("disconnect", "standup", participants[1]) == 3
        out, err = capsys.readouterr()
        assert (out, err) == ("1 sessions ended\n", "gateway: There is no such participant in this meeting.\n")
        assert await admin("erase", "standup") == 0
        assert await admin("end", "standup") == 0
        assert await admin("sessions", "--tenant", "acme") == 0
        assert capsys.readouterr().out == "erased\n1 sessions ended\n"


async def test_processes_and_the_log_level(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.getLevelName(logging.getLogger("gateway").getEffectiveLevel()).lower()
    async with administered(operator) as (_, client):
        where = ("--url", str(client.base_url))
        assert await admin("workers", *where) == 0
        assert await admin("log-level", *where) == 0
        assert await admin("lanes", "--json", *where) == 0
        workers, level, lanes = capsys.readouterr().out.splitlines()
        assert (workers.split("\t")[0], level, lanes[:10]) == ("-", before, '{"lanes":[')
        assert await admin("drain-worker", "1", *where) == 3
        assert await admin("drain-lane", "default", *where) == 3
        assert await admin("log-level", "loud", *where) == 3
        assert len(capsys.readouterr().err.splitlines()) == 3


async def test_webhooks(operator: Operator, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"whsec_{'A' * 32}")
    answers = [500, 204]
    with receiver(lambda _: answers.pop(0)) as other:
        webhook = Webhook(name="backend", url=other.url, secret_file=str(tmp_path / "secret"))
        async with administered(operator, Settings(webhooks=(webhook,))) as (_, client):
            where = ("--url", str(client.base_url))
            assert await admin("webhooks", *where) == 0
            assert await admin("test-webhook", "backend", *where) == 3
            assert await admin("test-webhook", "backend", *where) == 0
    out, err = capsys.readouterr()
    host = other.url.split("/")[2]
    assert out == f"backend\t{host}\t0\t-\t-\t-\tno\nIt answered with status 204.\n"
    assert err == "gateway: It answered with status 500.\n"


async def test_unknown_key_is_refused(
    operator: Operator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with administered(operator) as (_, client):
        monkeypatch.setenv("GATEWAY_ADMIN_KEY", "ga_of_nobody")
        assert await admin("meetings", "--url", str(client.base_url)) == 3
    assert "needs an operator's key" in capsys.readouterr().err
