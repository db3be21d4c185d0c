"""Who asks: the Authorization header, and what it means where nobody needs a token."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import HTTPConnection

from gateway.domain.errors import Unauthenticated
from gateway.domain.grants import OPEN, Grant
from gateway.server.guard.identity import Identity, account_of, bearer, challenge

ANA = Grant(subject="ana", token_id="t1")


def request(*headers: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "headers": [(b"authorization", value.encode()) for value in headers]})


class OneToken:
    """An authenticator that knows the token `good`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def verify(self, presented: str) -> Grant:
        self.asked.append(presented)
        if presented != "good":
            raise Unauthenticated
        return ANA

    def stands(self, grant: Grant) -> bool:
        return True

    async def reload(self) -> None: ...


async def outcome(asking: Any) -> Any:
    """What it gives, or the code of the error."""
    try:
        return await asking
    except Unauthenticated as error:
        return error.code


# ---------------------------------------------------------------- the header

BAD_HEADERS = [
    ("Bearer",),
    ("Bearer ",),
    ("Bearer   ",),
    ("Basic Z29vZA==",),
    ("good",),
    ("Token good",),
    ("",),
    ("Bearergood",),
    ("Bearer\tgood",),
    ("Bearer good", "Bearer good"),
    ("Bearer good", "Basic Z29vZA=="),
]


@pytest.mark.parametrize(
    ("headers", "presented"),
    [
        ((), None),
        (("Bearer good",), "good"),
        (("bearer good",), "good"),
        (("BEARER  good ",), "good"),
        # Whatever it is, it is not a token; that is for the authenticator to say.
        (("Bearer good token",), "good token"),
    ],
)
def test_what_comes_as_bearer(headers: tuple[str, ...], presented: str | None) -> None:
    assert bearer(request(*headers)) == presented


@pytest.mark.parametrize("headers", BAD_HEADERS)
def test_anything_else_in_the_header_is_no_token(headers: tuple[str, ...]) -> None:
    with pytest.raises(Unauthenticated):
        bearer(request(*headers))


@pytest.mark.parametrize(
    ("status", "headers"), [(401, {"WWW-Authenticate": "Bearer"}), (403, {}), (400, {}), (200, {})]
)
def test_refusal_says_how_to_send_a_token(status: int, headers: dict[str, str]) -> None:
    assert challenge(status) == headers


# ---------------------------------------------------------------- who it is


@pytest.mark.parametrize(
    ("headers", "request_gets", "handshake_gets"),
    [
        (("Bearer good",), ANA, ANA),
        (("Bearer bad",), "unauthenticated", "unauthenticated"),
        # A browser cannot send the header with the handshake.
        ((), "unauthenticated", None),
        *((bad, "unauthenticated", "unauthenticated") for bad in BAD_HEADERS),
    ],
)
async def test_with_keys_nobody_is_served_without_a_valid_token(
    headers: tuple[str, ...], request_gets: Any, handshake_gets: Any
) -> None:
    identity = Identity(OneToken())
    assert identity.required
    assert await outcome(identity.grant_of(request(*headers))) == request_gets
    assert await outcome(identity.of_handshake(request(*headers))) == handshake_gets


@pytest.mark.parametrize("headers", [(), ("Bearer good",), ("Bearer bad",), *BAD_HEADERS])
async def test_without_keys_everybody_may_everything_whatever_they_present(headers: tuple[str, ...]) -> None:
    identity = Identity()
    assert not identity.required
    assert await identity.grant_of(request(*headers)) is OPEN
    assert await identity.of_handshake(request(*headers)) is None
    for presented in (None, "good", "bad", ""):
        assert await identity.grant(presented) is OPEN


async def test_what_is_not_presented_is_not_verified() -> None:
    tokens = OneToken()
    assert await outcome(Identity(tokens).grant(None)) == "unauthenticated"
    assert tokens.asked == []
    assert await outcome(Identity(tokens).grant("")) == "unauthenticated"


async def test_a_valid_token_that_was_revoked_is_none() -> None:
    revoked: list[Grant] = []

    def check(grant: Grant) -> None:
        if grant in revoked:
            raise Unauthenticated

    identity = Identity(OneToken(), check)
    assert await identity.grant("good") is ANA
    revoked.append(ANA)
    for asking in (identity.grant("good"), identity.grant_of(request("Bearer good"))):
        assert await outcome(asking) == "unauthenticated"


@pytest.mark.parametrize(
    ("address", "account"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "local"),
        ("testclient", "local"),
    ],
)
def test_account_is_an_address_or_customers_network(address: str, account: str) -> None:
    assert account_of(address) == account
