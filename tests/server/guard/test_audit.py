"""What the audit log says, and how much of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.requests import HTTPConnection

from gateway.app import Gateway
from gateway.config import AuthSettings, Settings
from gateway.domain.audit import AuditEntry
from gateway.domain.errors import QuotaExceeded, StartupError
from gateway.domain.grants import OPEN, Grant, hash_of_meeting
from gateway.protocol.messages import Error, SessionEnd, SessionRefresh, SessionRefreshed, SessionStart
from gateway.server.guard.audit import Audit
from tests.keys import Keyring
from tests.meetings import away, close_of, joined, say
from tests.over_http import serving

ANA = Grant(tenant="acme", subject="ana", token_id="t1", meeting="standup", name="Ana Secret")
CLIENT = HTTPConnection({"type": "http", "client": ("10.0.0.7", 50_000)})
MEETING = hashlib.sha256(b"acme/standup").hexdigest()[:16]


class Book:
    """An audit log in memory, and its clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.entries: list[AuditEntry] = []
        self.audit = Audit(
            self.entries.append, clock=lambda: self.now_s, wall_clock=lambda: 1_700_000_000.25 + self.now_s
        )


def test_an_entry_says_who_did_what_where_and_when() -> None:
    book = Book()
    with book.audit.attempt("join", CLIENT) as attempt:
        attempt.grant, attempt.meeting = ANA, "standup"
    assert book.entries == [
        AuditEntry(
            time="2023-11-14T22:13:20.250Z",
            action="join",
            outcome="ok",
            address="10.0.0.7",
            tenant="acme",
            sub="ana",
            jti="t1",
            meeting=MEETING,
        )
    ]


def test_of_what_happens_all_the_time_refusals_are_enough() -> None:
    book = Book()
    with book.audit.attempt("translate", CLIENT, refusals_only=True) as attempt:
        attempt.grant = ANA
    with pytest.raises(QuotaExceeded), book.audit.attempt("translate", CLIENT, refusals_only=True):
        raise QuotaExceeded("no", retry_after_ms=1)
    assert [entry.outcome for entry in book.entries] == ["quota_exceeded"]


def test_flood_of_refusals_is_thinned_per_tenant() -> None:
    book = Book()
    for _ in range(10_000):
        book.audit.record("join", CLIENT, "unauthenticated")
    assert len(book.entries) == 100
    book.audit.record("join", CLIENT, "forbidden", ANA)
    book.audit.record("join", CLIENT, "forbidden", replace(ANA, tenant="other"))
    book.audit.record("join", CLIENT, "ok", OPEN)
    assert len(book.entries) == 103
    book.now_s = 0.1
    book.audit.record("join", CLIENT, "unauthenticated")
    book.now_s = 0.2
    book.audit.record("join", CLIENT, "unauthenticated")
    assert [entry.left_out for entry in book.entries[-2:]] == [9_900, 0]


def test_flood_of_allowed_calls_keeps_every_session() -> None:
    book = Book()
    for _ in range(1_000):
        book.audit.record("usage", CLIENT, "ok", ANA)
    assert len(book.entries) == 500
    for _ in range(1_000):
        book.audit.record("join", CLIENT, "ok", ANA)
        book.audit.record("leave", CLIENT, "lost", ANA)
    assert len(book.entries) == 2_500
    assert book.entries[500].left_out == 500
    book.audit.record("join", CLIENT, "forbidden", ANA)
    assert len(book.entries) == 2_501


def test_without_a_log_nothing_is_written() -> None:
    audit = Audit()
    with audit.attempt("join", CLIENT):
        audit.record("leave", CLIENT, "left", ANA)


# ---------------------------------------------------------------- a whole gateway


async def test_records_name_actions_and_nothing_said(tmp_path: Path) -> None:
    keys, file = Keyring(tmp_path), tmp_path / "audit.jsonl"
    auth = AuthSettings(keys_file=str(keys.path), audit_file=str(file))
    api_key = {"Authorization": f"Bearer {keys.api_key}"}
    async with serving(settings=Settings(auth=auth)) as (gateway, client):

        async def post(path: str, headers: dict[str, str], **body: Any) -> Any:
            return (await client.post(path, json=body, headers=headers)).json()

        reader = keys.token(subject="bo", roles=frozenset({"read"}))
        async with joined(gateway, token=reader, reads=["ja"]) as bo:
            await bo.peer.send(say("1", "secret words"))
            await bo.until(Error)
            await bo.peer.send(SessionRefresh(keys.token(subject="ana")))
            await bo.until(Error, 2)
            await bo.peer.send(SessionRefresh(keys.token(subject="bo", roles=frozenset({"read"}))))
            await bo.until(SessionRefreshed)
            bo.lose()
        await away(gateway)
        async with gateway.peer() as peer:
            await peer.send(SessionStart(reads=["ja"], meeting="n", token=reader))
            assert isinstance(await peer.receive(), Error)
        async with joined(gateway, token=reader, reads=["ja"], resume=bo.resume()) as again:
            await again.peer.send(SessionEnd())
            assert await again.closed() == 1000
        async with gateway.peer() as peer:
            await peer.send(SessionStart(reads=["ja"], meeting="m", token="nonsense"))
            assert (await close_of(peer))[0] == 4501
        await post("/v1/tokens", api_key, sub="cy", meeting="m")
        invite = (await post("/v1/tokens", api_key, invite=True, meeting="m"))["invite"]
        await post("/v1/tokens", {}, invite=invite, guest="a secret of a guest")
        await post("/v1/revocations", api_key, meeting="m", sub="ana")
        await post("/v1/revocations", api_key, all=True)
        await client.get("/v1/meetings/n/transcript.txt", headers=api_key)
        await client.get("/v1/usage", headers=api_key)
        await post("/v1/translate", api_key, text="secret words", source_lang="en", target_lang="ja")
        await post("/v1/translate", {}, text="secret words", source_lang="en", target_lang="ja")
    written = file.read_text("utf-8")
    entries = [json.loads(line) for line in written.splitlines()]
    guest, backend = entries[11]["sub"], entries[12]["sub"]
    assert [(each["action"], each["outcome"], each["sub"]) for each in entries] == [
        ("join", "ok", "bo"),
        ("message", "forbidden", "bo"),
        ("refresh", "forbidden", "ana"),
        ("refresh", "ok", "bo"),
        ("leave", "lost", "bo"),
        ("join", "forbidden", "bo"),
        ("resume", "ok", "bo"),
        ("leave", "normal", "bo"),
        ("join", "unauthenticated", None),
        ("token", "ok", "cy"),
        ("invite", "ok", "guests"),
        ("exchange", "ok", guest),
        ("revoke", "ok", backend),
        ("revoke", "ok", backend),
        ("transcript", "unknown_meeting", backend),
        ("usage", "ok", backend),
        ("translate", "unauthenticated", None),
    ]
    assert guest.startswith("guest:")
    assert backend.startswith("api-key:")
    details = [each["detail"] for each in entries if each["detail"]]
    assert details == [backend, backend, entries[10]["jti"], "sub ana", "all"]
    meetings = {(each["action"], each["outcome"]): each["meeting"] for each in entries}
    for attempt in (("join", "forbidden"), ("transcript", "unknown_meeting")):
        assert meetings.pop(attempt) == hash_of_meeting("acme", "n")
    nowhere = {action for (action, _), meeting in meetings.items() if meeting is None}
    assert nowhere == {"join", "revoke", "usage", "translate"}, "of a join that named no tenant"
    assert {meeting for meeting in meetings.values() if meeting} == {hash_of_meeting("acme", "m")}
    assert {each["address"] for each in entries} == {"127.0.0.1"}
    for secret in ("secret", reader, keys.api_key, invite, "nonsense", bo.started.session):
        assert secret not in written


async def test_unwritable_audit_log_stops_the_start(tmp_path: Path) -> None:
    settings = Settings(auth=AuthSettings(audit_file=str(tmp_path / "nowhere" / "audit.jsonl")))
    with pytest.raises(StartupError, match="cannot be written"):
        Gateway(settings)
