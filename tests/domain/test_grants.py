"""Whose meeting is whose, who is charged, and which tokens a revocation hits."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.grants import (
    OPEN,
    Grant,
    Issued,
    Revocation,
    account_of_tenant,
    meeting_key,
    meeting_name,
    meeting_of_host_key,
    tenant_of,
)
from gateway.domain.roles import DEFAULT_TENANT, ROLES

# ---------------------------------------------------------------- revocations

ANA = Grant(tenant="acme", subject="ana", token_id="t1", meeting="m", issued_s=100.0, invite_id="i1")


@pytest.mark.parametrize(
    ("fields", "hits"),
    [
        ({}, True),
        ({"before_s": 100.0}, True),
        ({"before_s": 99.9}, False),
        ({"tenant": "other"}, False),
        ({"tenant": DEFAULT_TENANT}, False),
        ({"token_id": "t1"}, True),
        ({"token_id": "i1"}, True),
        ({"token_id": "t2"}, False),
        ({"subject": "ana"}, True),
        ({"subject": "an"}, False),
        ({"meeting": "m"}, True),
        ({"meeting": "M"}, False),
        ({"subject": "ana", "meeting": "m", "token_id": "t1"}, True),
        ({"subject": "ana", "meeting": "n"}, False),
        ({"subject": "bo", "meeting": "m"}, False),
        ({"subject": "ana", "token_id": "t2"}, False),
        ({"token_id": "t1", "before_s": 99.0}, False),
    ],
)
def test_revocation_hits_matching_grants(fields: dict[str, Any], hits: bool) -> None:
    assert Revocation(**{"tenant": "acme", "before_s": 200.0, **fields}).hits(ANA) is hits


@pytest.mark.parametrize(
    ("revocation", "grant"),
    [
        ({"meeting": "m"}, Grant(subject="bo")),
        ({"meeting": "m"}, Grant(subject="bo", any_meeting=True)),
        ({"token_id": "i1"}, Grant(subject="bo", token_id="t9")),
        # A key of the tenant: it is no token that was issued at some time.
        ({}, Grant(subject="api-key:k", issued_s=math.inf)),
    ],
)
def test_revocation_needs_the_field(revocation: dict[str, Any], grant: Grant) -> None:
    assert not Revocation(tenant=grant.tenant, before_s=1e12, **revocation).hits(grant)


# ---------------------------------------------------------------- keys of meetings

# Every character that ids may have; neither a tenant's id nor a meeting's has only dots.
_ids = st.text("aAzZ09._~-", min_size=1, max_size=5).filter(lambda id: id.strip("."))
_tenants = st.just(DEFAULT_TENANT) | _ids

ODD = ["default", "m", "default.m", "default~m", ".m", "m.", "..m", "~", "-", "--", "_", "acme", "acme-m", "a.b"]


def test_meetings_of_two_tenants_never_share_a_key() -> None:
    whose = {(tenant, meeting): meeting_key(tenant, meeting) for tenant in ODD for meeting in ODD}
    for (one, key), (another, other_key) in combinations(whose.items(), 2):
        assert key != other_key, (one, another)


@given(_tenants, _ids, _tenants, _ids)
def test_keys_are_equal_for_the_same_meeting_only(tenant: str, meeting: str, other: str, another: str) -> None:
    same = (tenant, meeting) == (other, another)
    assert (meeting_key(tenant, meeting) == meeting_key(other, another)) is same


@given(_tenants, _ids)
def test_key_tells_tenant_and_name(tenant: str, meeting: str) -> None:
    key = meeting_key(tenant, meeting)
    assert (tenant_of(key), meeting_name(key)) == (tenant, meeting)


def test_without_tenants_the_key_is_the_name() -> None:
    assert meeting_key(OPEN.tenant, "weekly") == "weekly"


# ---------------------------------------------------------------- accounts, and what is written down


@pytest.mark.parametrize(
    ("grant", "account"),
    [
        (OPEN, "192.0.2.1"),
        (Grant(subject="ana", tenant="acme"), "tenant:acme"),
        (Grant(subject="ana"), "tenant:default"),
        (Grant(subject="api-key:k", tenant="acme", any_meeting=True), "tenant:acme"),
    ],
)
def test_tenant_or_address_is_charged(grant: Grant, account: str) -> None:
    assert account_of_tenant(grant, "192.0.2.1") == account


def test_where_nobody_needs_a_token_everything_but_a_hosts_is_allowed() -> None:
    assert OPEN.is_open
    assert OPEN.any_meeting
    assert OPEN.roles == ROLES - {"host"} == {"speak", "read", "transcript", "admin"}
    assert not ANA.is_open


def test_an_issued_token_is_not_shown() -> None:
    issued = Issued("secret-token", ANA)
    assert "secret-token" not in f"{issued!r} {issued}"


def test_id_of_a_hosts_meeting_is_made_of_the_secret() -> None:
    # As docs/protocol.md says, and as the page makes it.
    assert meeting_of_host_key("correct horse battery staple") == "e5m9-8j7f-9326"
    assert meeting_of_host_key("\ud800") != meeting_of_host_key("")
