"""Tokens that were revoked: what is refused, what is forgotten when, what the next process knows."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.errors import RateLimited, Unauthenticated
from gateway.domain.grants import OPEN, Grant, Revocation
from gateway.domain.sessions import UsedToken
from gateway.sessions import spent as spent_module
from gateway.sessions.spent import SpentTokens

DAY_S = 86_400.0
ANA = Grant(subject="ana", token_id="t1", issued_s=100.0, expires_s=700.0)
ONCE = Grant(subject="ana", token_id="t2", issued_s=100.0, expires_s=700.0, once=True)


def revocation(**fields: Any) -> Revocation:
    return Revocation(**{"tenant": "default", "before_s": 200.0, **fields})


def test_what_is_revoked_is_neither_valid_nor_used() -> None:
    spent = SpentTokens()
    spent.check(ANA)
    spent.revoke(revocation(token_id="t1"))
    assert spent.is_revoked(ANA)
    assert not spent.is_revoked(ONCE)
    with pytest.raises(Unauthenticated):
        spent.check(ANA)
    spent.revoke(revocation(subject="ana"))
    with pytest.raises(Unauthenticated):
        spent.used(ONCE, "p")


def test_a_token_that_opens_one_session_is_used_up_and_any_other_is_not() -> None:
    spent = SpentTokens()
    assert spent.used(ONCE, "p") == UsedToken("default", "t2", "p", 700.0)
    for grant in (ANA, OPEN):
        assert spent.used(grant, "p") is None


def test_a_revocation_is_remembered_for_as_long_as_an_invite_may_be_valid() -> None:
    spent = SpentTokens()
    spent.revoke(revocation(token_id="old", before_s=0.0))
    spent.revoke(revocation(token_id="t1", before_s=DAY_S))
    spent.sweep(7 * DAY_S)
    assert len(spent.kept()) == 2
    spent.sweep(7 * DAY_S + 3_600.0)
    assert [each.token_id for each in spent.kept()] == ["t1"]
    assert spent.is_revoked(ANA)


def test_the_newest_revocation_of_a_kind_counts_and_there_are_only_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spent_module, "_MOST_REVOCATIONS", 2)
    tokens = SpentTokens()
    for before_s in (5.0, 9.0, 7.0):
        tokens.revoke(Revocation(tenant="acme", before_s=before_s, subject="ana"))
    assert tokens.kept() == (Revocation(tenant="acme", before_s=9.0, subject="ana"),)
    tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="bo"))
    with pytest.raises(RateLimited):
        tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="cy"))
    tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="cy"), known=True)
    # An operator can always end a meeting.
    tokens.revoke(Revocation(tenant="acme", before_s=1.0, meeting="m", by_operator=True))
    tokens.revoke(Revocation(tenant="acme", before_s=9.0, subject="bo"))
    tokens.revoke(Revocation(tenant="other", before_s=1.0, subject="cy"))
    everything = Revocation(tenant="acme", before_s=9.0)
    tokens.revoke(everything)
    assert everything in tokens.kept()
    assert len(tokens.kept()) == 2
