"""Checks what is asked for against what a token allows.

Knows: roles, meetings and languages of a grant. Must not know: tokens, which message asks (`machine`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gateway.domain.errors import Forbidden, InvalidValue
from gateway.domain.grants import Grant
from gateway.domain.roles import Role


def check_role(grant: Grant, role: Role, field: str | None = None) -> None:
    """Raises `Forbidden`."""
    if role not in grant.roles:
        raise Forbidden(f"The token does not have the role {role}.", field=field)


def check_meeting(grant: Grant, meeting: str | None) -> str | None:
    """The meeting to join, None for a private one. meeting: what was asked for. Raises `Forbidden`."""
    if not grant.roles & {"speak", "read"}:
        # Whoever is in a meeting sees who else is.
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
        f"This meeting is {_recorded(recorded)}, as whoever began it has decided. Join it without `record`, or "
        "begin another one.",
        field="record",
    )


def _recorded(recorded: bool) -> str:
    return "recorded" if recorded else "not recorded"


def may_read(grant: Grant, lang: str) -> bool:
    """Whether a language may be read."""
    return "read" in grant.roles and (grant.langs is None or lang in grant.langs)


def check_speaks(grant: Grant, lang: str, field: str) -> None:
    """Raises `Forbidden`."""
    check_role(grant, "speak", field)
    _check_language(grant.speaks, lang, field)


def _check_language(allowed: Collection[str] | None, lang: str, field: str) -> None:
    if allowed is not None and lang not in allowed:
        raise Forbidden(f"The token does not allow the language {lang!r}.", field=field)
