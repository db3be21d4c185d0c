"""Who is charged for what a connection uses: its network address, as far as one client can choose it.

Knows: forms of addresses. Must not know: what is charged, connections.
"""

from __future__ import annotations

import ipaddress

from starlette.requests import HTTPConnection

# A provider gives each customer at least a network of this size, with 2⁶⁴ addresses to choose from.
_IPV6_NETWORK_BITS = 64


def account_of(address: str) -> str:
    """An IPv4 address itself, or the /64 network of an IPv6 address; anything else is `local`."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "local"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_NETWORK_BITS), strict=False))


def client_account(connection: HTTPConnection) -> str:
    """The account of the client that sent a request or opened a WebSocket."""
    return account_of(connection.client.host if connection.client is not None else "")
