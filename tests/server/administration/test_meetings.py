"""Meetings and sessions, as an operator sees, ends and erases them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.domain.grants import hash_of_meeting
from gateway.domain.sessions import Handover
from gateway.protocol.messages import Error, SessionStart, SessionStarted, TranslationFinal, UtteranceFinal
from tests.administration import Operator, administered
from tests.gateways import Peer, Running
from tests.keys import Keyring
from tests.over_http import check_problem


async def joined(peer: Peer, meeting: str = "standup", reads: Sequence[str] = (), **fields: Any) -> SessionStarted:
    await peer.send(SessionStart(meeting=meeting, reads=[*reads], **fields))
    return (await peer.until(SessionStarted))[-1]  # type: ignore[no-any-return]


async def closed(peer: Peer) -> tuple[int, str]:
    """With which code, and what was said before it."""
    message = ""
    while True:
        try:
            received = await peer.receive()
        except ConnectionClosed as end:
            assert end.rcvd is not None
            return end.rcvd.code, message
        message = received.message if isinstance(received, Error) else message


async def said(peer: Peer) -> None:
    await peer.send(UtteranceFinal(id="1", rev=1, text="Nobody else is to read this"))
    await peer.until(TranslationFinal)


def kept(gateway: Running) -> Handover:
    return gateway.gateway.store.handover(gateway.gateway.sessions.kept_sessions(), ())


async def test_operator_sees_members_and_kept_logs(tmp_path: Path) -> None:
    async with (
        administered(Operator(tmp_path)) as (gateway, client),
        gateway.peer() as ana,
        gateway.peer() as bo,
    ):
        started = await joined(ana, name="Ana", speaks="en", reads=["ja"])
        await joined(bo, meeting="board", reads=["de"])
        await said(ana)
        board, standup = (await client.get("/admin/meetings")).json()["meetings"]
        counts = {"tenant": "default", "private": False, "connected": 1, "away": 0}
        assert board == {**counts, "meeting": "board", "publications": 0, "bytes": 0, "newest_at": None}
        assert {name: standup[name] for name in counts} == counts
        assert (standup["meeting"], standup["publications"], standup["bytes"] > 0) == ("standup", 2, True)
        [session] = (await client.get("/admin/meetings/default/standup")).json()["sessions"]
        assert session == {
            "tenant": "default",
            "meeting": "standup",
            "participant": started.participant,
            "name": "Ana",
            "speaks": "en",
            "reads": ["ja"],
            "away": False,
            "sub": None,
        }
        assert len((await client.get("/admin/sessions?tenant=default")).json()["sessions"]) == 2
        assert (await client.get("/admin/sessions?tenant=acme")).json() == {"sessions": []}
        assert (await client.get("/admin/meetings?tenant=acme")).json() == {"meetings": []}
        assert (await client.get("/admin/meetings/acme/standup")).json() == {"sessions": []}
        check_problem(await client.get("/admin/meetings/default/a%20b"), 404, "unknown_meeting")


async def test_ended_meeting_is_left_and_its_tokens_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys, operator = Keyring(tmp_path), Operator(tmp_path)
    async with (
        administered(operator, keys.settings()) as (gateway, client),
        gateway.peer(additional_headers=keys.bearer()) as ana,
        gateway.peer(additional_headers={"Authorization": f"Bearer {keys.api_key}"}) as backend,
        gateway.peer(additional_headers=(other := keys.bearer(meeting="n"))) as elsewhere,
    ):
        await joined(ana, "m")
        await joined(backend, "m")
        await joined(elsewhere, "n")
        old = keys.bearer(age_s=1)
        assert (await client.delete("/admin/meetings/acme/m")).json() == {"sessions": 2}
        over = (4505, "The operator has ended this meeting.")
        assert [await closed(ana), await closed(backend)] == [over, over]
        [left] = (await client.get("/admin/sessions")).json()["sessions"]
        assert left["meeting"] == "n"
        with pytest.raises(InvalidStatus, match="401"):
            await gateway.peer(additional_headers=old).__aenter__()
        async with gateway.peer(additional_headers=other) as again:
            await joined(again, "n")
    [line] = [record for record in caplog.records if getattr(record, "fields", {}).get("event") == "admin"]
    hashed = hash_of_meeting("acme", "m")
    assert line.getMessage() == (
        f"operator {operator.id}: meeting ended, tenant acme, meeting {hashed}, sessions 2"
    )


async def test_disconnected_participant_stays_out_others_remain(tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    async with (
        administered(Operator(tmp_path), keys.settings()) as (gateway, client),
        gateway.peer(additional_headers=keys.bearer()) as ana,
        gateway.peer(additional_headers=keys.bearer(subject="bo")) as bo,
    ):
        started = await joined(ana, "m")
        await joined(bo, "m")
        address = f"/admin/meetings/acme/m/participants/{started.participant}"
        old = keys.bearer(age_s=1)
        assert (await client.delete(address)).json() == {"sessions": 1}
        assert await closed(ana) == (4503, "The operator has removed you from this meeting.")
        check_problem(await client.delete(address), 404, "not_found")
        [left] = (await client.get("/admin/sessions")).json()["sessions"]
        assert left["sub"] == "bo"
        with pytest.raises(InvalidStatus, match="401"):
            await gateway.peer(additional_headers=old).__aenter__()


async def test_erased_meeting_goes_on_without_its_past(tmp_path: Path) -> None:
    async with (
        administered(Operator(tmp_path)) as (gateway, client),
        gateway.peer() as ana,
    ):
        assert (await joined(ana, reads=["ja"], speaks="en", title="Weekly")).title == "Weekly"
        await said(ana)
        assert (await client.delete("/admin/meetings/default/standup/transcript")).json() == {"erased": True}
        assert (await closed(ana))[0] == 1012  # to begin again, as with a log that was lost
        async with gateway.peer() as late:
            started = await joined(late, reads=["ja"], speaks="en")
            assert started.participant
            assert started.title is UNSET
            assert "Nobody else" not in repr([room.history.newest() for room in gateway.gateway.sessions.rooms])
            assert "Nobody else" not in repr(kept(gateway))
            await late.send(UtteranceFinal(id="2", rev=1, text="We go on"))
            [*_, final] = await late.until(TranslationFinal)
            assert "We go on" in final.text
        assert (await client.delete("/admin/meetings/default/nobody/transcript")).json() == {"erased": False}
