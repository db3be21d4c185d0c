"""What is ordered becomes grants and revocations; what was issued becomes an answer."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from gateway.domain.errors import InvalidValue
from gateway.domain.grants import Grant, Issued, Revocation
from gateway.server.http.token_bodies import (
    REVOCATION,
    TOKEN,
    InviteAnswer,
    TokenAnswer,
    check_guest,
)


def test_an_order_says_all_that_a_grant_has() -> None:
    body = TOKEN.decode(
        b'{"sub": "ana", "meeting": "standup", "roles": ["read"], "langs": ["ja"], "speaks": ["en"],'
        b'"name": "Ana", "max_s": 60, "once": true, "expires_s": 30}'
    )
    assert body.grant("acme") == Grant(
        tenant="acme",
        subject="ana",
        roles=frozenset({"read"}),
        meeting="standup",
        langs=frozenset({"ja"}),
        speaks=frozenset({"en"}),
        name="Ana",
        max_s=60,
        once=True,
    )
    assert body.valid_s == 30


def test_an_order_may_write_a_language_in_other_ways() -> None:
    grant = TOKEN.decode(b'{"sub": "ana", "langs": ["EN-us", "zh_TW"], "speaks": ["De"]}').grant("acme")
    assert (grant.langs, grant.speaks) == (frozenset({"en", "zh-hant"}), frozenset({"de"}))


def test_what_is_not_said() -> None:
    token, invite = TOKEN.decode(b'{"sub": "ana"}'), TOKEN.decode(b'{"invite": true}')
    assert token.grant("acme") == Grant(tenant="acme", subject="ana", roles=frozenset({"speak", "read"}))
    assert invite.grant("acme").subject == "guests"
    assert (token.valid_s, invite.valid_s) == (600, 86_400)


@pytest.mark.parametrize(
    ("order", "field"),
    [
        (b"{}", "sub"),
        (b'{"sub": "a", "meeting": "a/b"}', "meeting"),
        (b'{"sub": "a", "meeting": "..."}', "meeting"),
        (b'{"sub": "a", "langs": ["en", "?"]}', "langs[1]"),
        (b'{"sub": "a", "speaks": [""]}', "speaks[0]"),
    ],
)
def test_what_no_token_may_say_names_its_field(order: bytes, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        TOKEN.decode(order).grant("acme")
    assert refused.value.field == field


def test_a_guest_needs_a_secret_that_cannot_be_guessed() -> None:
    check_guest("x" * 16)
    with pytest.raises(InvalidValue):
        check_guest("x" * 15)


def test_an_answer_tells_what_was_issued() -> None:
    grant = Grant(subject="ana", roles=frozenset({"speak", "read"}), meeting="m", issued_s=1_000, expires_s=1_600)
    at = datetime.fromtimestamp(1_600, UTC)
    everything = TokenAnswer("t", at, 600, "m", ["read", "speak"], None, langs=None, speaks=None, once=False)
    assert TokenAnswer.of(Issued("t", grant)) == everything
    assert InviteAnswer.of(Issued("t", grant)) == InviteAnswer("t", at, "invite=t")


def test_an_answer_tells_the_languages_and_whether_it_was_for_one_guest() -> None:
    grant = Grant(langs=frozenset({"ja", "de"}), speaks=frozenset(), once=True, record=False)
    assert TOKEN.decode(b'{"sub": "ana", "record": false}').grant("acme").record is False
    answer = TokenAnswer.of(Issued("t", grant))
    assert (answer.langs, answer.speaks, answer.once, answer.record) == (["de", "ja"], [], True, False)
    exchanged = Issued("t", Grant())
    assert TokenAnswer.of(exchanged, invited=grant).once
    assert not TokenAnswer.of(exchanged, invited=Grant()).once


def test_a_revocation_is_of_the_tenant_and_of_what_was_issued_until_now() -> None:
    body = REVOCATION.decode(b'{"jti": "1", "sub": "ana", "meeting": "m"}')
    assert body.revocation("acme", 5.0) == Revocation(
        tenant="acme", before_s=5.0, token_id="1", subject="ana", meeting="m"
    )
    everything = REVOCATION.decode(b'{"all": true}').revocation("acme", 5.0)
    assert everything == Revocation(tenant="acme", before_s=5.0)


@pytest.mark.parametrize("body", [b"{}", b'{"all": true, "sub": "ana"}', b'{"all": false}'])
def test_a_revocation_says_of_what(body: bytes) -> None:
    with pytest.raises(InvalidValue):
        REVOCATION.decode(body).revocation("acme", 5.0)


def test_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"roles\[0\]"):
        TOKEN.decode(b'{"sub": "ana", "roles": ["root"]}')
