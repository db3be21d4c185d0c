"""What a verified token allows, whose meeting is whose, and what was revoked.

Knows: tenants, roles and the keys of meetings. Must not know: how tokens are written and verified, sessions,
clocks.
"""

from __future__ import annotations

import hashlib

from msgspec import Struct

from gateway.domain.roles import DEFAULT_TENANT, ROLES, Role

# Ids of meetings and tenants have no such character.
_SEPARATOR = "/"

# Enough that no two meetings of a gateway share one.
_HASH_CHARS = 16

# How far the clocks of those who issue tokens may be ahead of ours, in seconds.
LEEWAY_S = 30

# Beginning of the accounts of tenants; no address begins so.
_TENANT_ACCOUNT = "tenant:"


class Grant(Struct, frozen=True, kw_only=True):
    """What one token allows. Times are in seconds since 1970."""

    tenant: str = DEFAULT_TENANT
    # Bearer of the token, in the words of its issuer; empty where tokens are not needed.
    subject: str = ""
    # The token's own id.
    token_id: str = ""
    roles: frozenset[Role] = frozenset()
    # The one meeting that it is for; None: only private meetings.
    meeting: str | None = None
    # Whether it is for every meeting of its tenant instead.
    any_meeting: bool = False
    # Languages that may be read; None: all.
    langs: frozenset[str] | None = None
    # Languages that may be spoken; None: all.
    speaks: frozenset[str] | None = None
    # The participant's name; None: what the client says.
    name: str | None = None
    issued_s: float = 0.0
    # Until when it opens a session; None: as long as its key exists.
    expires_s: float | None = None
    # Seconds that a session may last; None: until `expires_s`.
    max_s: float | None = None
    # Whether the meeting has to be recorded, or must not be; None: neither.
    record: bool | None = None
    # Whether it opens one session only.
    once: bool = False
    # The invite that it was exchanged for, which may be revoked as well.
    invite_id: str = ""

    @property
    def is_open(self) -> bool:
        """Whether tokens are not needed here."""
        return not self.subject

    @property
    def is_host(self) -> bool:
        """Whether it allows what only a host of the meeting may do."""
        return "host" in self.roles


# What everybody may do where tokens are not needed: everything but what only the host of a meeting may.
OPEN = Grant(roles=ROLES - {"host"}, any_meeting=True)


class Issued(Struct, frozen=True):
    """A token or an invite, and what it allows."""

    token: str
    grant: Grant

    def __repr__(self) -> str:
        return f"Issued(…, {self.grant!r})"  # the token must not be logged


class Revocation(Struct, frozen=True, kw_only=True):
    """Tokens of one tenant that are not valid any more: those that match every field that is set."""

    tenant: str
    # Tokens issued until then, in seconds since 1970.
    before_s: float
    # Id of a token or of an invite.
    token_id: str | None = None
    subject: str | None = None
    meeting: str | None = None
    # Whether an operator ends sessions in the meeting, whatever has opened them: an API key, or nothing.
    by_operator: bool = False
    # The only one whose session ends then; None: all. With `by_host` the other sessions of `subject` end as well.
    participant: str | None = None
    # Whether that operator is the meeting's host; those whose sessions end are told so.
    by_host: bool = False

    @property
    def ends_meeting(self) -> bool:
        """Whether it means everybody in one meeting."""
        return self.meeting is not None and self.token_id is self.subject is self.participant is None

    @property
    def is_brief(self) -> bool:
        """Whether it means no tokens, only sessions that are there: it need not be remembered for longer."""
        return self.before_s == 0

    def hits(self, grant: Grant) -> bool:
        """Whether a token that is presented now is revoked by this."""
        return grant.issued_s <= self.before_s and self.means(grant)

    def means(self, grant: Grant) -> bool:
        """Whether it is one of those, whenever it was issued; an API key is none."""
        return (
            grant.tenant == self.tenant
            and not grant.any_meeting
            and (self.token_id is None or self.token_id in (grant.token_id, grant.invite_id))
            and self.subject in (None, grant.subject)
            and self.meeting in (None, grant.meeting)
        )

    def ends(self, grant: Grant, key: str, participant: str) -> bool:
        """Whether it ends a session. key: of the meeting that the session is in."""
        if not self.by_operator:
            return self.means(grant)
        is_there = self.meeting is not None and key == meeting_key(self.tenant, self.meeting)
        is_hosts_guest = self.by_host and self.subject == grant.subject != ""
        return is_there and (self.participant in (None, participant) or is_hosts_guest)


def meeting_key(tenant: str, meeting: str) -> str:
    """The key of a meeting in logs, rooms and caches: meetings of two tenants never share one."""
    return meeting if tenant == DEFAULT_TENANT else f"{tenant}{_SEPARATOR}{meeting}"


# Letters of ids that `meeting_of_host_key` makes: 32 that do not look alike.
_ID_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"


def meeting_of_host_key(host_key: str) -> str:
    """The id of the meeting whose host has this secret, where no tokens are needed: any gateway can check it.

    60 bits of its SHA-256 in groups of four letters: too many for a secret to be found from the id.
    """
    digest = hashlib.sha256(host_key.encode("utf-8", "surrogatepass")).digest()[:12]
    letters = "".join(_ID_LETTERS[byte % len(_ID_LETTERS)] for byte in digest)
    return f"{letters[:4]}-{letters[4:8]}-{letters[8:]}"


def meeting_name(key: str) -> str:
    """The meeting's id as its tenant knows it."""
    return key.rpartition(_SEPARATOR)[2]


def person_of(grant: Grant, key: str, guest: str | None) -> str:
    """What is the same in all sessions of one person in a meeting, and tells nothing else; empty: not known.

    key: of the meeting. guest: a secret that the client has drawn, where its token does not say who it is.
    """
    if not (grant.is_open or grant.any_meeting):
        who = f"subject {grant.subject}"
    elif guest:
        who = f"guest {guest}"
    else:
        return ""
    return hashlib.sha256(f"{key} {who}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]


def tenant_of(key: str) -> str:
    """Whose meeting it is."""
    return key.rpartition(_SEPARATOR)[0] or DEFAULT_TENANT


def account_of_tenant(grant: Grant, address: str) -> str:
    """Who is charged for what the bearer uses: the tenant, or the account of the address where there are none."""
    return address if grant.is_open else f"{_TENANT_ACCOUNT}{grant.tenant}"


def tenant_of_account(account: str) -> str:
    """Whose account it is: the only tenant's where there are none."""
    return account.removeprefix(_TENANT_ACCOUNT) if account.startswith(_TENANT_ACCOUNT) else DEFAULT_TENANT


def hash_of_meeting(tenant: str, meeting: str) -> str:
    """What stands for a meeting in logs: the same in all, so that a known meeting can be found."""
    return hashlib.sha256(f"{tenant}/{meeting}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
