"""Who is let in: bounds in all and for each address, and who has to go for a newcomer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.guard.connections import Connections, Place, in_networks


class Street:
    """Connections, and which of them were closed."""

    def __init__(self, most: int = 100, most_per_address: int = 100, proxies: tuple[str, ...] = ()) -> None:
        self.connections = Connections(most, most_per_address, in_networks(proxies))
        self.closed: list[str] = []

    def enter(self, name: str, address: str = "1.1.1.1") -> Place:
        return self.connections.enter(address, lambda: self.closed.append(name))


def test_a_newcomer_pushes_out_the_oldest_that_said_nothing() -> None:
    street = Street(most=3)
    first, *_ = (
        street.enter(name, address) for name, address in [("a", "1.1.1.1"), ("b", "2.2.2.2"), ("c", "::1")]
    )
    street.connections.heard(first)
    assert not street.enter("d", "3.3.3.3").crowded
    assert street.closed == ["b"]
    assert len(street.connections) == 3


def test_one_address_pushes_out_its_own() -> None:
    street = Street(most_per_address=2)
    street.enter("other", "2.2.2.2")
    for name in "abc":
        street.enter(name)
    assert street.closed == ["a"]


def test_newcomer_among_heard_ones_is_one_too_many() -> None:
    street = Street(most_per_address=1)
    street.connections.heard(street.enter("a"))
    late = street.enter("b")
    assert late.crowded
    assert not street.enter("c", "2.2.2.2").crowded
    street.connections.leave(late)
    street.connections.leave(late)
    assert len(street.connections) == 2


def test_those_who_are_too_many_are_few() -> None:
    street = Street(most=0)
    for n in range(100):
        assert street.enter(str(n)).crowded
    assert street.closed == [str(n) for n in range(100 - 64)]


def test_a_proxy_is_many_clients() -> None:
    street = Street(most_per_address=1, proxies=("10.0.0.0/8", "::1"))
    for name, address in [("a", "10.1.2.3"), ("b", "10.1.2.3"), ("c", "::1"), ("d", "::1")]:
        place = street.enter(name, address)
        street.connections.heard(place)
        assert not place.crowded


def test_invalid_network_is_refused_invalid_address_outside() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        in_networks(["nonsense"])
    assert not in_networks(["10.0.0.0/8"])("")


def test_mapped_ipv4_address_is_in_its_network() -> None:
    assert in_networks(["10.0.0.0/8"])("::ffff:10.1.2.3")
    assert not in_networks(["10.0.0.0/8"])("::ffff:11.1.2.3")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("enter", "heard", "leave")),
            st.sampled_from(("1.1.1.1", "2.2.2.2")),
            st.integers(0, 9),
        )
    )
)
def test_bounds_hold_whoever_comes_speaks_and_goes(steps: list[tuple[str, str, int]]) -> None:
    connections = Connections(4, 3)
    there: list[Place] = []
    for step, address, which in steps:
        if step == "enter":
            closed: list[int] = []
            place = connections.enter(address, lambda closed=closed: closed.append(1))  # type: ignore[misc]
            there.append(place)
        elif there:
            place = there[which % len(there)]
            connections.heard(place) if step == "heard" else connections.leave(place)
            if step == "leave":
                there.remove(place)
        assert len(connections._places) <= 4
        assert all(count <= 3 for count in connections._accounts.values())
        assert sum(connections._accounts.values()) == len(connections._places)
