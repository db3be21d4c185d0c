"""The messages: each can be told from the others, and none gives a secret away."""

from __future__ import annotations

from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    Resume,
    SessionRefresh,
    SessionStart,
    SessionStarted,
    client_messages,
    server_messages,
)


def test_every_message_has_its_own_type() -> None:
    tags = [cls.__struct_config__.tag for cls in (*client_messages(), *server_messages())]
    assert len(set(tags)) == len(tags)


def test_repr_of_session_hides_its_secret() -> None:
    started = SessionStarted("secret", "p", "m", "e", 0, None, ["en"], [], [], Limits())
    for shown in (repr(started), repr(Resume("secret", "e", 7))):
        assert "secret" not in shown
        assert "e" in shown


def test_repr_hides_tokens() -> None:
    for holder in (SessionStart(["en"], context="secret", token="secret"), SessionRefresh("secret")):
        assert "secret" not in repr(holder)
