"""Several stores that share the meetings: each meeting is on one of them, with its log and its sessions.

Knows: what is on which store, and what is asked of all of them. Must not know: what a store is.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar, cast

from msgspec.structs import replace

from gateway.domain.errors import LimitExceeded, LogUnavailable, MeetingLocked, QuotaExceeded, RateLimited
from gateway.domain.grants import Revocation, tenant_of
from gateway.domain.log import LoggedMeeting, LogUsage, Unfinished
from gateway.domain.ports import EventLog, LiveChannel, SessionStore
from gateway.domain.session_store import UNBOUNDED, Bounds, StoredSession, TenantCounts
from gateway.domain.sessions import SessionRecord, UsedToken
from gateway.domain.webhooks import Delivery, Settled, Tended, Webhook, WebhookOutbox, WebhookState

_log = logging.getLogger(__name__)

# Meetings whose store is not worked out again.
_REMEMBERED = 50_000
_Call = TypeVar("_Call", bound=Callable[..., Any])
_Part = TypeVar("_Part")


class Placement:
    """Which of several stores has what: the one with the highest hash of its id and the key (rendezvous hashing).

    Gateways agree on it without asking, if they know the same stores, in whatever order. To be used after
    `set_stores`.
    """

    def __init__(self) -> None:
        self._ids: tuple[bytes, ...] = ()
        self._of_meeting = lru_cache(_REMEMBERED)(self._highest)

    def set_stores(self, ids: Sequence[str]) -> None:
        """The ids of the stores, all different."""
        self._ids = tuple(id.encode() for id in ids)

    @property
    def common(self) -> int:
        """The index of the store that keeps what concerns all meetings."""
        return self.store_of("")

    def store_of(self, key: str | bytes) -> int:
        """The index of the store of a meeting (its key) or a session (its digest): see `SessionStore.can_hold`."""
        return self._of_meeting(key) if isinstance(key, str) else self._highest(key)

    def _highest(self, key: str | bytes) -> int:
        data = key.encode() if isinstance(key, str) else key
        scores = [hashlib.blake2b(data, key=id, digest_size=8).digest() for id in self._ids]
        return scores.index(max(scores))


def _to_store_of_key(call: _Call) -> _Call:
    """The method of a sharded port that does nothing but call the same method of one store.

    call: the port's method. Its first argument is the key of a meeting or the digest of a session, which says
    which store that is: see `store_for`.
    """

    def routed(self: Any, key: str | bytes, *arguments: Any, **named: Any) -> Any:
        return getattr(self.store_for(key), call.__name__)(key, *arguments, **named)

    return cast(_Call, routed)


def _to_all_stores(call: _Call) -> _Call:
    """The method of a sharded port that calls the same method of all stores, and returns nothing."""

    async def routed(self: Any, *arguments: Any) -> None:
        await asyncio.gather(*(getattr(part, call.__name__)(*arguments) for part in self.parts))

    return cast(_Call, routed)


class _Sharded(Generic[_Part]):
    """A port over several stores. parts: the port of each."""

    def __init__(self, parts: Sequence[_Part], placement: Placement) -> None:
        self.parts = parts
        self._placement = placement

    def store_for(self, key: str | bytes) -> _Part:
        return self.parts[self._placement.store_of(key)]

    @property
    def _common(self) -> _Part:
        """That of the store that keeps what concerns all meetings."""
        return self.parts[self._placement.common]


def _raise_or_log(parts: Sequence[object], message: str, *arguments: object, lost: bool) -> None:
    """What one store has handed over must not be lost, or wait, because another one does not answer.

    lost: whether no store has handed over anything; then the first failure is raised.
    """
    for failure in parts:
        if not isinstance(failure, BaseException):
            continue
        if lost:
            raise failure
        if not isinstance(failure, LogUnavailable):
            _log.error(message, *arguments, exc_info=failure)


class ShardedEventLog(_Sharded[EventLog]):
    accept = _to_store_of_key(EventLog.accept)
    find_utterance = _to_store_of_key(EventLog.find_utterance)
    conclude = _to_store_of_key(EventLog.conclude)
    claim = _to_store_of_key(EventLog.claim)
    read = _to_store_of_key(EventLog.read)
    recent = _to_store_of_key(EventLog.recent)
    subscribe = _to_store_of_key(EventLog.subscribe)
    entitle = _to_store_of_key(EventLog.entitle)
    erase = _to_store_of_key(EventLog.erase)
    start = _to_all_stores(EventLog.start)
    sweep = _to_all_stores(EventLog.sweep)
    close = _to_all_stores(EventLog.close)

    async def take_over(self) -> tuple[Unfinished, ...]:
        parts = await asyncio.gather(*(log.take_over() for log in self.parts), return_exceptions=True)
        taken = tuple(work for part in parts if not isinstance(part, BaseException) for work in part)
        _raise_or_log(parts, "what other gateways left could not be taken over", lost=not taken)
        return taken

    async def usage(self) -> LogUsage:
        parts = await asyncio.gather(*(log.usage() for log in self.parts))
        accounts: Counter[str] = Counter()
        for part in parts:
            accounts.update(part.bytes_by_account)
        return LogUsage(sum(part.publications for part in parts), sum(part.bytes for part in parts), accounts)

    async def meetings(self) -> tuple[LoggedMeeting, ...]:
        parts = await asyncio.gather(*(log.meetings() for log in self.parts))
        return tuple(meeting for part in parts for meeting in part)


class ShardedSessionStore(_Sharded[SessionStore]):
    """One gateway's session store over several stores.

    One of them keeps used tokens and revocations. When a session begins, all are asked what its tenant has, so
    sessions that begin on two stores at the same moment may exceed a bound. Each store counts joins for itself.
    """

    find = _to_store_of_key(SessionStore.find)
    save = _to_store_of_key(SessionStore.save)
    release = _to_store_of_key(SessionStore.release)
    subscribe = _to_store_of_key(SessionStore.subscribe)
    lock = _to_store_of_key(SessionStore.lock)
    mute = _to_store_of_key(SessionStore.mute)
    entitle = _to_store_of_key(SessionStore.entitle)
    open = _to_all_stores(SessionStore.open)
    sweep = _to_all_stores(SessionStore.sweep)
    close = _to_all_stores(SessionStore.close)

    def can_hold(self, session: bytes, meeting: str) -> bool:
        return self._placement.store_of(session) == self._placement.store_of(meeting)

    async def begin(
        self, session: bytes, record: SessionRecord, bounds: Bounds = UNBOUNDED, used: UsedToken | None = None
    ) -> int:
        session_store = self.store_for(session)
        bounds = await self._bounds_for(session_store, tenant_of(record.meeting), bounds)
        if used is None or session_store is self._common:
            return await session_store.begin(session, record, bounds, used)
        fence = await self._using(
            used, session, partial(session_store.begin, session, record, bounds), begins=True
        )
        assert fence is not None  # noqa: S101 -- `begin` returns one
        return fence

    async def take(
        self,
        session: bytes,
        fence: int,
        record: SessionRecord,
        bounds: Bounds = UNBOUNDED,
        used: UsedToken | None = None,
    ) -> int | None:
        session_store = self.store_for(session)
        if used is None or session_store is self._common:
            return await session_store.take(session, fence, record, bounds, used)
        return await self._using(used, session, partial(session_store.take, session, fence, record, bounds))

    async def end(self, session: bytes, fence: int, unused: UsedToken | None = None) -> None:
        session_store = self.store_for(session)
        if unused is not None and session_store is not self._common:
            await self._common.end(session, fence, unused)  # also a `use` that is late comes to nothing then
        await session_store.end(session, fence, unused)

    async def use(self, used: UsedToken, session: bytes = b"") -> bool:
        return await self._common.use(used, session)

    async def revoke(self, revocation: Revocation) -> None:
        await self._common.revoke(revocation)

    async def count_revoked_by(self, revocation: Revocation, but: Collection[bytes]) -> int:
        counts = await asyncio.gather(
            *(session_store.count_revoked_by(revocation, but) for session_store in self.parts),
            return_exceptions=True,
        )
        return sum(count for count in counts if isinstance(count, int))

    async def sessions(self, meeting: str | None = None) -> tuple[StoredSession, ...]:
        if meeting is not None:
            return await self.store_for(meeting).sessions(meeting)
        parts = await asyncio.gather(*(session_store.sessions() for session_store in self.parts))
        return tuple(session for part in parts for session in part)

    async def counts(self, tenant: str) -> TenantCounts:
        return await _counts(tenant, self.parts)

    async def _using(
        self,
        used: UsedToken,
        session: bytes,
        go_on: Callable[[], Awaitable[int | None]],
        *,
        begins: bool = False,
    ) -> int | None:
        """Use up a token and let the session go on; if that is refused, others may use the token."""
        is_new = await self._common.use(used, session if begins else b"")
        refusal, fence = None, None
        try:
            fence = await go_on()
        except (LimitExceeded, MeetingLocked, QuotaExceeded, RateLimited) as error:
            refusal = error
        if fence is None and is_new:
            await self._common.end(session, 0, used)
        if refusal is not None:
            raise refusal
        return fence

    async def _bounds_for(self, session_store: SessionStore, tenant: str, bounds: Bounds) -> Bounds:
        """The bounds for one store, with what the tenant has on the others."""
        if bounds.sessions is None and bounds.meetings is None:
            return bounds
        others = [other for other in self.parts if other is not session_store]
        return replace(bounds, on_other_stores=await _counts(tenant, others))


class ShardedLiveChannel(_Sharded[LiveChannel]):
    listen = _to_store_of_key(LiveChannel.listen)
    is_heard = _to_store_of_key(LiveChannel.is_heard)
    send = _to_store_of_key(LiveChannel.send)


class ShardedWebhookOutbox(_Sharded[WebhookOutbox]):
    resume = _to_all_stores(WebhookOutbox.resume)

    async def tend(self, webhook: Webhook, most: int) -> Tended:
        parts = await asyncio.gather(*(each.tend(webhook, most) for each in self.parts), return_exceptions=True)
        tended = [part for part in parts if isinstance(part, Tended)]
        message = "it cannot be seen what waits for webhook %s at one store"
        _raise_or_log(parts, message, webhook.name, lost=not tended)
        return Tended(
            tuple(delivery for part in tended for delivery in part.deliveries),
            sum(part.waiting for part in tended),
            max(part.oldest_s for part in tended),
            sum(part.dropped for part in tended),
        )

    async def settle(self, webhook: Webhook, delivery: Delivery, settled: Settled) -> None:
        if not settled.gone:
            return await self.store_for(delivery.event.meeting).settle(webhook, delivery, settled)
        await asyncio.gather(*(each.settle(webhook, delivery, settled) for each in self.parts))

    async def state(self, webhook: Webhook) -> WebhookState:
        states = await asyncio.gather(*(each.state(webhook) for each in self.parts))
        newest = max(states, key=lambda state: state.tried_ms)
        return WebhookState(
            waiting=sum(state.waiting for state in states),
            oldest_ms=min((state.oldest_ms for state in states if state.oldest_ms), default=0),
            tried_ms=newest.tried_ms,
            said=newest.said,
            gone=any(state.gone for state in states),
        )


async def _counts(tenant: str, session_stores: Sequence[SessionStore]) -> TenantCounts:
    counts = await asyncio.gather(*(session_store.counts(tenant) for session_store in session_stores))
    return TenantCounts(sum(each.sessions for each in counts), sum(each.meetings for each in counts))
