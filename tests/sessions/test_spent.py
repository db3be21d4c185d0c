"""Tokens that were revoked or used up: what is refused, what is forgotten when, what the next process knows."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.errors import RateLimited, Unauthenticated
from gateway.domain.grants import OPEN, Grant, Revocation
from gateway.sessions import spent as spent_module
from gateway.sessions.spent import SpentTokens

DAY_S = 86_400.0
ANA = Grant(subject="ana", token_id="t1", issued_s=100.0, expires_s=700.0)
ONCE = Grant(subject="ana", token_id="t2", issued_s=100.0, expires_s=700.0, once=True)


def revocation(**fields: Any) -> Revocation:
    return Revocation(**{"tenant": "default", "before_s": 200.0, **fields})


def is_refused(spent: SpentTokens, grant: Grant, user: str) -> bool:
    try:
        spent.use(grant, user)
    except Unauthenticated:
        return True
    return False


def test_what_is_revoked_is_neither_valid_nor_used() -> None:
    spent = SpentTokens()
    spent.check(ANA)
    spent.revoke(revocation(token_id="t1"))
    assert spent.is_revoked(ANA)
    assert not spent.is_revoked(ONCE)
    with pytest.raises(Unauthenticated):
        spent.check(ANA)
    assert is_refused(spent, ANA, "p")
    spent.revoke(revocation(subject="ana"))
    assert is_refused(spent, ONCE, "p")
    assert spent.kept()[1] == (), "what was refused is not used"


def test_a_token_that_opens_one_session_is_its_first_users() -> None:
    spent = SpentTokens()
    assert [is_refused(spent, ONCE, user) for user in ("p", "p", "q", "p", "q")] == [
        False,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("grant", [ANA, OPEN])
def test_any_other_token_opens_as_many_as_one_likes(grant: Grant) -> None:
    spent = SpentTokens()
    assert not any(is_refused(spent, grant, user) for user in "pqr")
    assert spent.kept() == ((), ())


def test_ids_of_two_tenants_are_two_tokens() -> None:
    spent = SpentTokens()
    spent.use(ONCE, "p")
    spent.use(Grant(tenant="acme", subject="ana", token_id="t2", once=True), "q")
    assert len(spent.kept()[1]) == 2


def test_a_revoked_token_is_not_even_for_its_user_any_more() -> None:
    spent = SpentTokens()
    spent.use(ONCE, "p")
    spent.revoke(revocation(token_id="t2"))
    assert is_refused(spent, ONCE, "p")


def test_a_used_token_is_remembered_for_longer_than_it_is_valid() -> None:
    spent = SpentTokens()
    spent.use(ONCE, "p")
    # Clocks may differ: it is accepted 30 s after its time.
    spent.sweep(700.0 + 30.0)
    assert is_refused(spent, ONCE, "q")
    spent.sweep(700.0 + 61.0)
    assert spent.kept() == ((), ())


def test_a_revocation_is_remembered_for_as_long_as_an_invite_may_be_valid() -> None:
    spent = SpentTokens()
    spent.revoke(revocation(token_id="old", before_s=0.0))
    spent.revoke(revocation(token_id="t1", before_s=DAY_S))
    spent.sweep(7 * DAY_S)
    assert len(spent.kept()[0]) == 2
    spent.sweep(7 * DAY_S + 3_600.0)
    assert [each.token_id for each in spent.kept()[0]] == ["t1"]
    assert spent.is_revoked(ANA)


def test_the_next_process_knows_them_besides_its_own() -> None:
    earlier, spent = SpentTokens(), SpentTokens()
    earlier.revoke(revocation(token_id="t1"))
    earlier.use(ONCE, "p")
    spent.revoke(revocation(token_id="t3"))
    spent.use(replace(ONCE, token_id="t4"), "p")
    spent.restore(*earlier.kept())
    assert spent.is_revoked(ANA)
    assert spent.is_revoked(Grant(subject="bo", token_id="t3"))
    assert is_refused(spent, ONCE, "q")
    assert not is_refused(spent, ONCE, "p")
    assert is_refused(spent, replace(ONCE, token_id="t4"), "q")


def test_the_newest_revocation_of_a_kind_counts_and_there_are_only_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spent_module, "_MOST_REVOCATIONS", 2)
    tokens = SpentTokens()
    for before_s in (5.0, 9.0, 7.0):
        tokens.revoke(Revocation(tenant="acme", before_s=before_s, subject="ana"))
    assert tokens.kept()[0] == (Revocation(tenant="acme", before_s=9.0, subject="ana"),)
    tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="bo"))
    with pytest.raises(RateLimited):
        tokens.revoke(Revocation(tenant="acme", before_s=1.0, subject="cy"))
    tokens.revoke(Revocation(tenant="acme", before_s=9.0, subject="bo"))
    tokens.revoke(Revocation(tenant="other", before_s=1.0, subject="cy"))
    everything = Revocation(tenant="acme", before_s=9.0)
    tokens.revoke(everything)
    assert everything in tokens.kept()[0]
    assert len(tokens.kept()[0]) == 2
