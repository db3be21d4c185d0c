"""The bodies of the administration's answers and requests.

Knows: fields. Must not know: where they come from.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from gateway.server.http.bodies import EngineReadiness


class Meeting(Struct, frozen=True, kw_only=True):
    """A meeting that somebody is in, or of which something is kept."""

    tenant: str
    meeting: str
    # Whether it is of one participant, who named no meeting.
    private: bool
    # Sessions with a connection, and those that can be resumed.
    connected: int
    away: int
    # Utterances and translations that are kept, and their estimated bytes.
    publications: int
    bytes: int
    # When the newest publication was appended. None: nothing is kept.
    newest_at: datetime | None


class MeetingsAnswer(Struct, frozen=True):
    meetings: list[Meeting]


class Session(Struct, frozen=True, kw_only=True):
    """A participant in a meeting."""

    tenant: str
    meeting: str
    participant: str
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    # Whether it has no connection now.
    away: bool
    # Subject of the token, in its issuer's words. None where sessions need no token.
    sub: str | None


class SessionsAnswer(Struct, frozen=True):
    sessions: list[Session]


class EndedAnswer(Struct, frozen=True):
    """How many sessions have ended."""

    sessions: int


class ErasedAnswer(Struct, frozen=True):
    """Whether anything was kept."""

    erased: bool


class LanesAnswer(Struct, frozen=True):
    lanes: list[EngineReadiness]


class Worker(Struct, frozen=True, kw_only=True):
    """A process that serves. The numbers are translations."""

    # None: the only process.
    number: int | None
    pid: int
    status: Literal["serving", "starting", "draining"]
    running: int
    waiting: int


class WorkersAnswer(Struct, frozen=True):
    workers: list[Worker]


class LogLevel(Struct, frozen=True, forbid_unknown_fields=True):
    level: Literal["debug", "info", "warning", "error"]


class WebhookAnswer(Struct, frozen=True, kw_only=True):
    """A webhook, over all gateways of a store."""

    name: str
    # Host of its address.
    host: str
    # Events that are not delivered yet, and when the oldest of them happened.
    waiting: int
    oldest_at: datetime | None
    # When something was sent last, and what came of it. None: nothing was sent yet.
    tried_at: datetime | None
    said: str | None
    # Whether it has answered 410, and gets nothing more.
    gone: bool


class WebhooksAnswer(Struct, frozen=True):
    webhooks: list[WebhookAnswer]


class TestedAnswer(Struct, frozen=True):
    """What came of a test event that was taken."""

    said: str
