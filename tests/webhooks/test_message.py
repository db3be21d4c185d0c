"""What is sent: the body of each event, and signatures that others can verify."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.domain.errors import StartupError
from gateway.domain.webhooks import Event
from gateway.webhooks.message import PING, body, headers, read_secrets

STARTED_MS, ENDED_MS = 1_764_072_000_123, 1_764_075_600_000
ID = "evt_0123456789abcdef01234567"


def test_ended_meeting_is_told_without_its_words() -> None:
    event = Event(ID, "transcript.ready", "acme/standup", ENDED_MS + 1_500, STARTED_MS, ENDED_MS)
    assert json.loads(body(event)) == {
        "id": ID,
        "type": "transcript.ready",
        "timestamp": "2025-11-25T13:00:01.500Z",
        "data": {
            "tenant": "acme",
            "meeting": "standup",
            "started_at": "2025-11-25T12:00:00.123Z",
            "ended_at": "2025-11-25T13:00:00.000Z",
        },
    }


def test_running_meeting_has_no_end_nor_tests_meetings() -> None:
    """A test has no meeting."""
    started = json.loads(body(Event(ID, "meeting.started", "standup", STARTED_MS, STARTED_MS)))
    assert started["data"] == {
        "tenant": "default",
        "meeting": "standup",
        "started_at": "2025-11-25T12:00:00.123Z",
    }
    assert json.loads(body(Event(ID, PING, "", STARTED_MS, 0)))["data"] == {}


def test_the_signature_is_that_of_the_specification(tmp_path: Path) -> None:
    # The example of Standard Webhooks.
    (tmp_path / "secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    found = headers(
        read_secrets(str(tmp_path / "secret")),
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        b'{"test": 2432232314}',
    )
    assert found == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_two_secrets_both_sign(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"whsec_{'A' * 32}\nwhsec_{'B' * 32}\n")
    both = read_secrets(str(tmp_path / "secret"))
    signed = headers(both, "id", 1, b"{}")["webhook-signature"].split(" ")
    assert signed == [headers([each], "id", 1, b"{}")["webhook-signature"] for each in both]
    assert len(set(signed)) == 2


@pytest.mark.parametrize(
    "content",
    [
        "",
        "secret",
        "whsec_",
        "whsec_!!!!",
        f"whsec_{'A' * 28}",
        f"whsec_{'A' * 88}",
        " ".join([f"whsec_{'A' * 32}"] * 3),
    ],
)
def test_invalid_secret_is_refused_with_instructions(tmp_path: Path, content: str) -> None:
    """It says how to make one."""
    (tmp_path / "secret").write_text(content)
    with pytest.raises(StartupError, match="openssl rand"):
        read_secrets(str(tmp_path / "secret"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="nowhere of a webhook cannot be read: No such file"):
        read_secrets(str(tmp_path / "nowhere"))
