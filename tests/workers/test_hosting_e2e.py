"""A host at one worker, and those whom it removes, keeps out and sends home at another."""

from __future__ import annotations

import pytest
from websockets.exceptions import ConnectionClosed

from gateway.domain.grants import meeting_of_host_key
from tests.workers.gateways import Session, settings, workers

pytestmark = pytest.mark.slow


async def closed(session: Session) -> tuple[int, str]:
    """With which code, and after which error."""
    with pytest.raises(ConnectionClosed) as end:
        await session.until("nothing")
    assert end.value.rcvd is not None
    return end.value.rcvd.code, session.received[-1]["code"]


async def test_host_at_another_worker() -> None:
    meeting = meeting_of_host_key("secret")
    async with workers(settings()) as gateway:
        host = await gateway.session(1, meeting=meeting, host="secret")
        bo, cy = [await gateway.session(2, meeting=meeting, name=name) for name in ("Bo", "Cy")]
        participant = bo.received[0]["participant"]
        await host.until("participant.joined", participant=participant)
        await host.send(type="meeting.title", title="Weekly")
        await bo.until("meeting.titled", title="Weekly")
        await host.send(type="participant.mute", participant=participant, muted=True)
        await bo.until("session.muted", muted=True)
        await host.until("participant.updated", participant=participant, muted=True)
        await bo.send(type="utterance.final", id="u1", rev=1, lang="en", text="One.")
        await bo.until("error", code="muted", utterance="u1")
        await host.send(type="participant.remove", participant=participant)
        assert await closed(bo) == (4503, "removed")
        other_host = await gateway.session(2, meeting=meeting, host="secret")
        await host.send(type="meeting.lock", locked=True)
        for session in (host, other_host, cy):
            await session.until("meeting.locked", locked=True)
        await cy.is_accepted("u1")
        await host.send(type="meeting.end")
        assert await closed(cy) == (4505, "meeting_ended")
        for session in (host, other_host):
            assert await closed(session) == (4505, "meeting_ended")
        late = await gateway.session(2, meeting=meeting)  # nobody was left: it is not locked any more
        await late.finished("u1")
