"""What the audit log says of each thing that was done, or was not allowed.

Knows: the fields of an entry. Must not know: when one is made, files.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# join, resume, refresh, leave: a session. message: something in a session that its token does not allow.
# token, invite: issued. exchange: an invite for a token. transcript, usage: read. revoke: tokens.
# erase: what was said in a meeting. host: what a host has done in one.
# translate: a call over HTTP, only where it is refused. glossary: made, changed, deleted; read only where it is
# refused.
Action = Literal[
    "join",
    "resume",
    "refresh",
    "leave",
    "message",
    "token",
    "invite",
    "exchange",
    "revoke",
    "transcript",
    "erase",
    "host",
    "usage",
    "translate",
    "glossary",
]


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One entry. It has no texts, no tokens and no ids of meetings."""

    # ISO 8601, UTC.
    time: str
    action: Action
    # `ok`, or the code of the error; of `leave` why the connection ended.
    outcome: str
    # The client's network address.
    address: str
    # None where it is not known who it was.
    tenant: str | None = None
    sub: str | None = None
    # Id of the token.
    jti: str | None = None
    # A hash of tenant and meeting; None where no meeting was named.
    meeting: str | None = None
    # What a token or an invite was issued for: an API key, or the id of an invite. Of a revocation what was
    # revoked: `all`, or such as `sub ana`. Of a glossary its id. Of a host `end`, `title`, `lock`,
    # `unlock`, or `remove`, `mute` or `unmute` and the participant.
    detail: str | None = None
    # Entries of the same tenant, or of unknown ones, that came too fast to be written before this one.
    left_out: int = 0
