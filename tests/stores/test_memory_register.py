"""The register in memory: what is its own; what holds for every store is in `tests/contract/`."""

from __future__ import annotations

from gateway.domain.grants import Revocation
from gateway.domain.register import REVOCATION_S
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.stores.memory_register import MemoryRegister, MemoryRegisterStore


async def test_used_tokens_are_for_the_next_process_until_they_would_not_be_valid() -> None:
    now_s = 700.0
    register = MemoryRegister(MemoryRegisterStore(wall_clock=lambda: now_s))
    used = UsedToken("acme", "t1", "ana", 700.0)
    await register.use(used)
    # Clocks may differ: it is accepted 30 s after its time.
    now_s = 730.0
    await register.sweep()
    assert await register.kept() == (used,)
    now_s = 761.0
    await register.sweep()
    assert await register.kept() == ()
    assert not register.outlives


async def test_revocations_are_forgotten_when_nothing_older_is_valid() -> None:
    now_s = 1_000.0
    store = MemoryRegisterStore(wall_clock=lambda: now_s)
    register = MemoryRegister(store)
    await register.revoke(Revocation(tenant="acme", before_s=1_000.0))
    await register.sweep()
    assert len(store.revocations) == 1
    now_s += REVOCATION_S
    await register.sweep()
    assert not store.revocations


async def test_nothing_is_left_of_sessions_that_have_ended() -> None:
    store = MemoryRegisterStore()
    register = MemoryRegister(store)
    ana = SessionRecord("ana", "acme/m", False, "Ana", None, ("de", "fr"))
    async with register.subscribe("acme/m", lambda _participant, _present: None):
        await register.begin(b"a", ana)
        await register.release(b"a", 1)
        await register.end(b"a", 1)
        assert store.meetings
    held = (store.sessions, store.ownerless, store.meetings, store.sessions_of, store.meetings_of)
    assert not any(held)


async def test_a_gateway_that_has_left_is_told_nothing() -> None:
    store = MemoryRegisterStore()
    one, another = MemoryRegister(store), MemoryRegister(store)
    moved: list[tuple[bytes, bool]] = []
    await one.open(lambda *session: moved.append(session), lambda _: None)
    ana = SessionRecord("ana", "m", False, "Ana", None, ())
    fence = await one.begin(b"a", ana)
    await one.close()
    assert await another.take(b"a", fence, ana) is not None
    assert moved == []
