"""Addresses that one client can choose between are one account."""

from __future__ import annotations

import pytest

from gateway.server.guard.accounts import account_of


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
def test_an_account_is_an_address_or_the_network_of_one_customer(address: str, account: str) -> None:
    assert account_of(address) == account
