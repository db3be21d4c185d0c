"""Sessions without sockets: `Sessions`, the core around it, and connections in the hand of the test."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from gateway.domain.close_codes import CloseCode
from gateway.domain.engine import EngineProfile
from gateway.domain.errors import Forbidden, GatewayError
from gateway.domain.grants import OPEN, Grant
from gateway.domain.ports import LiveChannel, SessionStore
from gateway.domain.quotas import NO_QUOTA
from gateway.meeting.outbox import Outbox
from gateway.meeting.room import Room, Rooms
from gateway.protocol.limits import Limits
from gateway.protocol.messages import Error, Resume, ServerMessage, SessionStart
from gateway.sessions.entrance import Entry
from gateway.sessions.machine import Effect, Join, Reply, SessionState
from gateway.sessions.sessions import Sessions
from gateway.stores.memory_session_store import MemorySessions, MemorySessionStore
from gateway.translation.scheduling.quotas import Quotas
from gateway.translation.speech import Speech
from tests.translation.stage import Log, Stage, stage
from tests.usual import usual

PROFILE = EngineProfile("m", "f", ("en", "de", "fr", "ja"))
# What a token of hers allows, for the one meeting.
ANA = Grant(
    tenant="acme",
    subject="ana",
    token_id="t1",
    roles=frozenset({"speak", "read"}),
    meeting="m",
    issued_s=100.0,
    expires_s=1e12,
)


def api_key_of(tenant: str) -> Grant:
    """Everything in every meeting of a tenant."""
    return replace(OPEN, tenant=tenant, subject=f"api-key:{tenant}")


class Connection:
    """What a session has while it is connected: its state, its outbox, the codes it was closed with."""

    def __init__(self, limits: Limits) -> None:
        self.state = SessionState(limits)
        self.outbox = Outbox(10**6)
        self.closed: list[CloseCode] = []
        # Why, each time.
        self.reasons: list[GatewayError | None] = []

    def send(self, message: Any) -> list[Effect]:
        return self.state.receive(message, 0.0, PROFILE)

    def finish(self, code: CloseCode, error: GatewayError | None) -> None:
        self.closed.append(code)
        self.reasons.append(error)

    async def received(self) -> list[ServerMessage]:
        """Everything that waits to be written."""
        return [payload.message for payload in await self.outbox.get()] if self.outbox.bytes else []


class Desk:
    """The sessions of one gateway; `now_s` is its clock."""

    def __init__(
        self,
        core: Stage,
        limits: Limits,
        max_sessions: int,
        joins: int,
        channel: LiveChannel | None,
        session_store: SessionStore,
    ) -> None:
        self.core = core
        self.limits = limits
        self.session_store = session_store
        self.now_s = 0.0
        # Subjects of whoever presents a key that is not the gateway's any more.
        self.keys_gone: set[str] = set()
        # The quota of the tenant `acme`.
        self.quota = NO_QUOTA
        self.sessions = Sessions(
            log=core.log,
            session_store=session_store,
            rooms=Rooms(
                partial(
                    Room,
                    log=core.log,
                    snapshot=10,
                    present=session_store.subscribe,
                    channel=channel,
                    cancel=core.finals.cancel_here,
                )
            ),
            finals=core.finals,
            speech=usual(
                Speech,
                core.finals,
                core.partials,
                text_chars=limits.text_chars,
                in_flight=limits.utterances_in_flight,
            ),
            limits=limits,
            max_sessions=max_sessions,
            joins_per_address=joins,
            quotas=Quotas(lambda tenant: self.quota if tenant == "acme" else NO_QUOTA),
            stands=lambda grant: grant.subject not in self.keys_gone,
            clock=lambda: self.now_s,
        )

    async def join(self, account: str = "", grant: Grant = OPEN, **fields: Any) -> tuple[Entry, Connection]:
        """Raises what `Sessions.join` raises, and what the client is told instead."""
        connection = Connection(self.limits)
        connection.state.grant = grant
        [join] = connection.send(SessionStart(**{"reads": [], "meeting": "m", **fields}))
        if isinstance(join, Reply) and isinstance(join.message, Error) and join.message.code == Forbidden.code:
            raise Forbidden(join.message.message, field=join.message.field)
        assert isinstance(join, Join)
        entry = await self.sessions.join(join, connection.state, connection.outbox, connection.finish, account)
        return entry, connection


@contextlib.asynccontextmanager
async def desk(
    limits: Limits | None = None,
    max_sessions: int = 100,
    log: Log | None = None,
    joins: int = 1_000,
    channel: LiveChannel | None = None,
    session_store: SessionStore | None = None,
) -> AsyncIterator[Desk]:
    made: Desk
    async with stage(log=log, leaves_unfinished=True) as core:
        if session_store is None:
            session_store = MemorySessionStore(usual(MemorySessions, keep_s=60.0, wall_clock=lambda: made.now_s))
        made = Desk(core, limits or Limits(keep_s=60), max_sessions, joins, channel, session_store)
        async with made.sessions:
            yield made


async def joined(d: Desk, grant: Grant = OPEN, **fields: Any) -> tuple[Entry, Connection]:
    """In the meeting `m`, if no other is named, with everything that there was."""
    entry, connection = await d.join(grant=grant, **fields)
    await entry.session.room.stream_to(entry.session.member, entry.feed)
    return entry, connection


def resume_of(entry: Entry, offset: int = 0) -> Resume:
    return Resume(entry.session.secret, entry.session.room.epoch, offset)
