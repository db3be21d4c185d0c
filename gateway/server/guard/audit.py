"""Records who did what: each session, token, transcript, and what was refused.

Knows: grants, addresses, how fast refusals may come. Must not know: where entries are written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import Struct
from starlette.requests import HTTPConnection

from gateway.domain.audit import Action, AuditEntry
from gateway.domain.errors import GatewayError
from gateway.domain.grants import Grant, hash_of_meeting
from gateway.protocol.rate_limit import TokenBucket

# The outcome of what was done.
OK = "ok"

# Entries a second of one tenant, and of everybody who is not known together, and at once. Otherwise whoever is
# refused, or reads their usage all the time, could fill a disk. Sessions have rates of their own.
_REFUSED = (10.0, 100.0)
_DONE = (50.0, 500.0)
_OF_SESSIONS = {"join", "resume", "leave"}

_MOST_RATES = 10_000


class Attempt(Struct):
    """What a client is about to do, as far as it is known yet."""

    action: Action
    grant: Grant | None = None
    # The meeting's id.
    meeting: str | None = None
    # As in `AuditEntry`.
    detail: str | None = None


class Audit:
    """Makes the entries of the audit log."""

    def __init__(
        self,
        # None: there is no audit log.
        write: Callable[[AuditEntry], None] | None = None,
        *,
        # Monotonic, seconds.
        clock: Callable[[], float] = time.monotonic,
        # Seconds since 1970.
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._write = write
        self._clock = clock
        self._wall_clock = wall_clock
        # Tenant, None for nobody known, and whether it was done → how fast entries may come.
        self._rates: dict[tuple[str | None, bool], TokenBucket] = {}
        # Tenant → how many were not written.
        self._left_out: dict[str | None, int] = {}

    @contextmanager
    def attempt(self, action: Action, client: HTTPConnection, *, refusals_only: bool = False) -> Iterator[Attempt]:
        """Record how the block ends. What is known of who and where is set on the way."""
        attempt = Attempt(action)
        try:
            yield attempt
        except GatewayError as error:
            self._record(attempt, client, error.code)
            raise
        if not refusals_only:
            self._record(attempt, client, OK)

    def record(
        self,
        action: Action,
        client: HTTPConnection,
        outcome: str,
        grant: Grant | None = None,
        meeting: str | None = None,
    ) -> None:
        """Write an entry. meeting: its id."""
        self._record(Attempt(action, grant, meeting), client, outcome)

    def _record(self, attempt: Attempt, client: HTTPConnection, outcome: str) -> None:
        if self._write is None:
            return
        grant, meeting = attempt.grant, attempt.meeting
        tenant = None if grant is None else grant.tenant
        if not self._may_write(attempt.action, tenant, done=outcome == OK):
            self._left_out[tenant] = self._left_out.get(tenant, 0) + 1
            return
        now = datetime.fromtimestamp(self._wall_clock(), UTC)
        self._write(
            AuditEntry(
                time=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                action=attempt.action,
                outcome=outcome,
                address=client.client.host if client.client is not None else "",
                tenant=tenant,
                sub=None if grant is None else grant.subject,
                jti=None if grant is None else grant.token_id,
                meeting=None if tenant is None or meeting is None else hash_of_meeting(tenant, meeting),
                detail=attempt.detail,
                left_out=self._left_out.pop(tenant, 0),
            )
        )

    def _may_write(self, action: Action, tenant: str | None, *, done: bool) -> bool:
        if action == "leave" or (done and action in _OF_SESSIONS):
            return True
        if len(self._rates) >= _MOST_RATES:
            self._rates.clear()
        bucket = self._rates.setdefault((tenant, done), TokenBucket(*(_DONE if done else _REFUSED)))
        return not bucket.take(self._clock())
