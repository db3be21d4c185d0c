"""The live channel in memory has no state that outlives its listeners; the rest is in `tests/contract/`."""

from __future__ import annotations

from gateway.stores.memory_live_channel import MemoryLiveChannel, Switchboard


async def test_nothing_is_left_of_a_meeting_that_nobody_listens_to() -> None:
    switchboard = Switchboard()
    channel = MemoryLiveChannel(switchboard)
    async with channel.listen("standup", lambda _, event: None, lambda: None):
        assert not channel.is_heard("standup")
        assert switchboard.listeners
    assert not switchboard.listeners
