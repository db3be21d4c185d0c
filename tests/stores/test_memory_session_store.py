"""The session store in memory: what is its own; what holds for every store is in `tests/contract/`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.grants import Revocation
from gateway.domain.session_store import REVOCATION_S
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from tests.usual import usual


async def test_used_tokens_are_handed_over_while_valid() -> None:
    now_s = 700.0
    session_store = MemorySessionStore(usual(MemorySessions, wall_clock=lambda: now_s))
    used = UsedToken("acme", "t1", "ana", 700.0)
    await session_store.use(used)
    # Clocks may differ: it is accepted 30 s after its time.
    now_s = 730.0
    await session_store.sweep()
    assert session_store.kept_tokens() == (used,)
    now_s = 761.0
    await session_store.sweep()
    assert session_store.kept_tokens() == ()


async def test_revocations_are_forgotten_when_nothing_older_is_valid() -> None:
    now_s = 1_000.0
    store = usual(MemorySessions, wall_clock=lambda: now_s)
    session_store = MemorySessionStore(store)
    await session_store.revoke(Revocation(tenant="acme", before_s=1_000.0))
    await session_store.sweep()
    assert len(store.revocations) == 1
    now_s += REVOCATION_S
    await session_store.sweep()
    assert not store.revocations


async def test_nothing_is_left_of_sessions_that_have_ended() -> None:
    store = usual(MemorySessions)
    session_store = MemorySessionStore(store)
    ana = SessionRecord("ana", "acme/m", False, "Ana", None, ("de", "fr"))
    async with session_store.subscribe("acme/m", lambda _participant, _present: None):
        await session_store.begin(b"a", ana)
        await session_store.release(b"a", 1)
        await session_store.end(b"a", 1)
        assert store.meetings
    held = (store.sessions, store.ownerless, store.meetings, store.sessions_of, store.meetings_of)
    assert not any(held)


async def test_a_gateway_that_has_left_is_told_nothing() -> None:
    store = usual(MemorySessions)
    one, another = MemorySessionStore(store), MemorySessionStore(store)
    moved: list[tuple[bytes, bool]] = []
    await one.open(lambda *session: moved.append(session), lambda _: None)
    ana = SessionRecord("ana", "m", False, "Ana", None, ())
    fence = await one.begin(b"a", ana)
    await one.close()
    assert await another.take(b"a", fence, ana) is not None
    assert moved == []


# How many seconds pass, and what the tenant's quota is then.
COMING = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 90)), max_size=60)


@given(COMING)
def test_joins_stay_within_a_tenants_minute(
    coming: list[tuple[int, int]],
) -> None:
    now_s, minutes, begun_s = 1.7e9, 0.0, 1.7e9
    store = usual(MemorySessions, wall_clock=lambda: now_s)
    for passes_s, most in coming:
        now_s += passes_s
        wait_s = store.join("acme", most)
        assert 0 <= wait_s <= 60
        now_s += wait_s
        if wait_s:
            assert store.join("acme", most) == 0, "it has waited"
        minutes += 1 / most
        assert minutes <= 1 + (now_s - begun_s) / 60 + 1e-4, "each join takes its part of a minute"
    now_s += 60
    for _ in range(7):
        assert store.join("acme", 7) == 0, "it has rested"
    assert store.join("acme", 7) > 0
    assert store.join("other", 1) == 0


async def test_tenants_that_have_rested_are_forgotten() -> None:
    now_s = 0.0
    store = usual(MemorySessions, wall_clock=lambda: now_s)
    store.join("acme", 2)
    store.sweep()
    assert store.busy_until_us
    now_s = 30.0
    store.sweep()
    assert not store.busy_until_us
