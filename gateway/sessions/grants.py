"""Checks what is asked for against what a token allows.

Knows: roles, meetings and languages of a grant, which tokens are used up or revoked. Must not know: how tokens are
made, which message asks (`machine`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, product

from msgspec.structs import replace

from gateway.domain.errors import Forbidden, InvalidValue, RateLimited, Unauthenticated
from gateway.domain.grants import Grant, Revocation, meeting_of_host_key
from gateway.domain.roles import Role
from gateway.domain.session_store import REVOCATION_S
from gateway.domain.sessions import UsedToken


def check_role(grant: Grant, role: Role, field: str | None = None) -> None:
    """Raises `Forbidden`."""
    if role not in grant.roles:
        raise Forbidden(f"The token does not have the role {role}.", field=field)


def check_host(grant: Grant) -> None:
    """Raises `Forbidden`."""
    if not grant.is_host:
        raise Forbidden("Only a host of the meeting may do this.")


def as_host(grant: Grant, meeting: str | None, host_key: str | None) -> Grant:
    """What a session may that starts with the secret of a host. Where tokens are needed, only they count."""
    if not grant.is_open or host_key is None or meeting_of_host_key(host_key) != meeting:
        return grant
    return replace(grant, roles=grant.roles | {"host"})


def check_meeting(grant: Grant, meeting: str | None) -> str | None:
    """The meeting to join, None for a private one. meeting: what was asked for. Raises `Forbidden`."""
    if not grant.roles & {"speak", "read"}:
        # Every member of a meeting sees the others.
        raise Forbidden("The token has neither the role speak nor read.")
    if grant.any_meeting:
        return meeting
    if meeting not in (None, grant.meeting):
        raise Forbidden("The token is for another meeting.", field="meeting")
    return grant.meeting


def check_reads(grant: Grant, reads: Sequence[str], *, originals: bool) -> None:
    """Raises `Forbidden`."""
    if reads or originals:
        check_role(grant, "read", "reads" if reads else "originals")
    for n, lang in enumerate(reads):
        _check_language(grant.langs, lang, f"reads[{n}]")
    if originals and grant.langs is not None:
        raise Forbidden("The token does not allow every language.", field="originals")


def wanted_record(grant: Grant, asked: bool | None) -> bool | None:
    """Whether the meeting has to be recorded, or must not be; None: neither. Raises `Forbidden`."""
    if grant.record is None or asked in (None, grant.record):
        return asked if grant.record is None else grant.record
    raise Forbidden(f"The token is for meetings that are {_recorded(grant.record)}.", field="record")


def check_recorded(grant: Grant, asked: bool | None, recorded: bool) -> None:
    """Whether a meeting is as the session needs it. Raises `Forbidden` or `InvalidValue`."""
    if wanted_record(grant, asked) in (None, recorded):
        return
    if grant.record is not None:
        allowed = _recorded(grant.record)
        raise Forbidden(f"This meeting is {_recorded(recorded)}: the token is for those that are {allowed}.")
    raise InvalidValue(
        f"This meeting is {_recorded(recorded)}, as its first session has decided. Join it without `record`, or "
        "begin another one.",
        field="record",
    )


def _recorded(recorded: bool) -> str:
    return "recorded" if recorded else "not recorded"


def may_read(grant: Grant, lang: str) -> bool:
    return "read" in grant.roles and (grant.langs is None or lang in grant.langs)


def check_speaks(grant: Grant, lang: str, field: str) -> None:
    """Raises `Forbidden`."""
    check_role(grant, "speak", field)
    _check_language(grant.speaks, lang, field)


def _check_language(allowed: Collection[str] | None, lang: str, field: str) -> None:
    if allowed is not None and lang not in allowed:
        raise Forbidden(f"The token does not allow the language {lang!r}.", field=field)


# Revocations of one tenant; revoking everything needs one.
_MOST_REVOCATIONS = 10_000

# Id of a token or an invite, subject, meeting.
_Meant = tuple[str | None, str | None, str | None]
_EVERYTHING: _Meant = (None, None, None)


def _meant(revocation: Revocation) -> _Meant:
    return revocation.token_id, revocation.subject, revocation.meeting


class Revocations:
    """What was revoked. Times are in seconds since 1970."""

    def __init__(self) -> None:
        # Tenant → (token id, subject, meeting), each None for any → the newest revocation.
        self._revocations: dict[str, dict[_Meant, Revocation]] = {}

    def revoke(self, revocation: Revocation, *, known: bool = False) -> None:
        """known: another gateway has it already; otherwise raises `RateLimited` if a tenant has too many."""
        meant = _meant(revocation)
        of_tenant = self._revocations.setdefault(revocation.tenant, {})
        if meant == _EVERYTHING:
            of_tenant.clear()
        if not known:
            self.check_room(revocation)
        earlier = of_tenant.get(meant)
        if earlier is None or earlier.before_s < revocation.before_s:
            of_tenant[meant] = revocation

    def check_room(self, revocation: Revocation) -> None:
        """Raises `RateLimited` if its tenant has too many. An operator may have more; brief ones are not kept."""
        of_tenant = self._revocations.get(revocation.tenant, {})
        is_exempt = revocation.is_brief or (revocation.by_operator and not revocation.by_host)
        if not is_exempt and _meant(revocation) not in of_tenant and len(of_tenant) >= _MOST_REVOCATIONS:
            raise RateLimited("This tenant has too many revocations; revoke everything.", retry_after_ms=60_000)

    def is_revoked(self, grant: Grant) -> bool:
        of_tenant = self._revocations.get(grant.tenant)
        if not of_tenant:
            return False
        ids, subjects, meetings = (
            (None, grant.token_id, grant.invite_id),
            (None, grant.subject),
            (None, grant.meeting),
        )
        return any(
            meant in of_tenant and of_tenant[meant].hits(grant) for meant in product(ids, subjects, meetings)
        )

    def check(self, grant: Grant) -> None:
        """Raises `Unauthenticated` if it was revoked."""
        if self.is_revoked(grant):
            raise Unauthenticated(why="revoked")

    def used(self, grant: Grant, user: str) -> UsedToken | None:
        """What a token for one session uses up; None for another. Raises `Unauthenticated` if it was revoked."""
        self.check(grant)
        return UsedToken(grant.tenant, grant.token_id, user, grant.expires_s or 0.0) if grant.once else None

    def sweep(self, now_s: float) -> None:
        oldest_s = now_s - REVOCATION_S
        for tenant, of_tenant in list(self._revocations.items()):
            kept = {meant: each for meant, each in of_tenant.items() if each.before_s > oldest_s}
            if kept:
                self._revocations[tenant] = kept
            else:
                del self._revocations[tenant]

    def kept_revocations(self) -> tuple[Revocation, ...]:
        """For another process."""
        return tuple(chain.from_iterable(of_tenant.values() for of_tenant in self._revocations.values()))
