"""What is asked for against what a token allows: roles, meetings, languages."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.errors import Forbidden
from gateway.domain.grants import OPEN, ROLES, Grant, Role
from gateway.sessions.grants import check_meeting, check_reads, check_role, check_speaks, may_read


def granted(*roles: Role, **fields: Any) -> Grant:
    return Grant(subject="ana", roles=frozenset(roles), **fields)


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_is_there_or_it_is_forbidden(role: Role) -> None:
    check_role(OPEN, role)
    check_role(granted(role), role)
    with pytest.raises(Forbidden, match=role) as refused:
        check_role(granted(*ROLES - {role}), role, "some.field")
    assert (refused.value.field, refused.value.code) == ("some.field", "forbidden")


@pytest.mark.parametrize(
    ("grant", "asked", "joined"),
    [
        (granted(meeting="m"), "m", "m"),
        (granted(meeting="m"), None, "m"),
        (granted(), None, None),
        (granted(any_meeting=True), "m", "m"),
        (granted(any_meeting=True), None, None),
        (OPEN, "m", "m"),
    ],
)
def test_the_meeting_is_the_tokens(grant: Grant, asked: str | None, joined: str | None) -> None:
    assert check_meeting(grant, asked) == joined


@pytest.mark.parametrize(
    ("grant", "asked"),
    [
        (granted(meeting="m"), "n"),
        (granted(meeting="m"), "M"),
        (granted(meeting="m"), "m."),
        (granted(), "m"),
    ],
)
def test_another_meeting_is_forbidden(grant: Grant, asked: str) -> None:
    with pytest.raises(Forbidden) as refused:
        check_meeting(grant, asked)
    assert refused.value.field == "meeting"


@pytest.mark.parametrize(
    ("grant", "reads", "originals", "field"),
    [
        (granted("read"), ["de", "fr"], True, None),
        (granted("speak"), [], False, None),
        (granted("speak"), ["de"], False, "reads"),
        (granted("speak"), [], True, "originals"),
        (granted("transcript", "admin"), ["de"], True, "reads"),
        (granted("read", langs=frozenset({"de"})), ["de"], False, None),
        (granted("read", langs=frozenset({"de"})), ["de", "fr"], False, "reads[1]"),
        (granted("read", langs=frozenset({"de"})), ["fr", "de"], False, "reads[0]"),
        (granted("read", langs=frozenset({"de"})), ["de"], True, "originals"),
        (granted("read", langs=frozenset({"de"})), [], True, "originals"),
        (granted("read", langs=frozenset()), [], False, None),
        (granted("read", langs=frozenset()), ["de"], False, "reads[0]"),
        # What may be spoken does not bound what may be read.
        (granted("read", speaks=frozenset({"fr"})), ["de"], True, None),
    ],
)
def test_what_is_read(grant: Grant, reads: list[str], originals: bool, field: str | None) -> None:
    if field is None:
        check_reads(grant, reads, originals=originals)
        return
    with pytest.raises(Forbidden) as refused:
        check_reads(grant, reads, originals=originals)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("grant", "lang", "allowed"),
    [
        (granted("speak"), "en", True),
        (granted("read", "transcript", "admin"), "en", False),
        (granted("speak", speaks=frozenset({"en"})), "en", True),
        (granted("speak", speaks=frozenset({"en"})), "de", False),
        (granted("speak", speaks=frozenset()), "en", False),
        (granted("speak", langs=frozenset({"de"})), "en", True),
    ],
)
def test_what_is_spoken(grant: Grant, lang: str, allowed: bool) -> None:
    if allowed:
        check_speaks(grant, lang, "speaks")
        return
    with pytest.raises(Forbidden) as refused:
        check_speaks(grant, lang, "speaks")
    assert refused.value.field == "speaks"


@pytest.mark.parametrize(
    ("grant", "allowed"),
    [
        (OPEN, True),
        (granted("read"), True),
        (granted("read", langs=frozenset({"de"})), True),
        (granted("read", langs=frozenset({"fr"})), False),
        (granted("speak", langs=frozenset({"de"})), False),
    ],
)
def test_whether_a_language_may_be_read(grant: Grant, allowed: bool) -> None:
    assert may_read(grant, "de") is allowed
