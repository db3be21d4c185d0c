"""Webhooks as an operator sees and tests them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gateway.config import Settings
from gateway.domain.webhooks import Webhook
from gateway.protocol.messages import SessionEnd, SessionStart, SessionStarted
from tests.administration import Operator, administered
from tests.over_http import check_problem
from tests.patience import until
from tests.webhooks.receiver import receiver


def settings(folder: Path, url: str) -> Settings:
    (folder / "secret").write_text(f"whsec_{'A' * 32}")
    return Settings(webhooks=(Webhook(name="backend", url=url, secret_file=str(folder / "secret")),))


async def test_what_waits_and_what_came_of_the_last_try(tmp_path: Path) -> None:
    with receiver(lambda _: 503) as other:
        async with administered(Operator(tmp_path), settings(tmp_path, f"{other.url}?s3cret")) as (
            gateway,
            client,
        ):
            [before] = (await client.get("/admin/webhooks")).json()["webhooks"]
            assert before == {
                "name": "backend",
                "host": other.url.split("/")[2],
                "waiting": 0,
                "oldest_at": None,
                "tried_at": None,
                "said": None,
                "gone": False,
            }
            async with gateway.peer() as ana:
                await ana.send(SessionStart(meeting="standup", reads=["ja"]))
                await ana.until(SessionStarted)
                await until(lambda: other.received)
                # The last session ends, which is told as well.
                await ana.send(SessionEnd())
                await until(lambda: len(other.received) == 2)
            answer = (await client.get("/admin/webhooks")).json()["webhooks"][0]
            assert answer["waiting"] == 2
            assert "s3cret" not in str(answer)
            happened = other.of("meeting.started")[0].event["timestamp"]
            assert datetime.fromisoformat(answer["oldest_at"]) == datetime.fromisoformat(happened)


async def test_a_test_says_what_came_of_it(tmp_path: Path) -> None:
    answers = [500, 200]
    with receiver(lambda _: answers.pop(0)) as other:
        async with administered(Operator(tmp_path), settings(tmp_path, other.url)) as (_, client):
            problem = await client.post("/admin/webhooks/backend/test")
            assert (problem.status_code, problem.json()["detail"]) == (502, "It answered with status 500.")
            taken = await client.post("/admin/webhooks/backend/test")
            assert (taken.status_code, taken.json()) == (200, {"said": "It answered with status 200."})
            assert [one.type for one in other.received] == ["ping", "ping"]
            check_problem(await client.post("/admin/webhooks/other/test"), 404, "not_found")


async def test_a_meeting_that_an_operator_ends_has_ended_once(tmp_path: Path) -> None:
    with receiver() as other:
        async with (
            administered(Operator(tmp_path), settings(tmp_path, other.url)) as (gateway, client),
            gateway.peer() as ana,
            gateway.peer() as bo,
        ):
            for peer in (ana, bo):
                await peer.send(SessionStart(meeting="standup", reads=[]))
                await peer.until(SessionStarted)
            assert (await client.delete("/admin/meetings/default/standup")).json() == {"sessions": 2}
            await until(lambda: len(other.received) == 2)
        assert sorted(one.type for one in other.received) == ["meeting.ended", "meeting.started"]
