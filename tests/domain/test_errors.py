"""The tree of errors: what clients program against, as it is drawn in the module's own words."""

from __future__ import annotations

import re

import pytest

from gateway.domain import errors
from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError, ProtocolError, StateError, Unavailable, error_classes


def drawn() -> dict[str, tuple[str, str]]:
    """Class → (its parent, its code, or what is said in the place of one) in the docstring."""
    found: dict[str, tuple[str, str]] = {}
    above: list[str] = []
    for indent, name, says in re.findall(r"^ {4}([│├└─ ]*)(\w+) +(\S.*)$", str(errors.__doc__), re.MULTILINE):
        depth = len(indent) // 4
        above[depth:] = [name]
        found[name] = (above[depth - 1] if depth else "Exception", says)
    return found


def test_the_tree_is_as_it_is_drawn() -> None:
    assert {name: parent for name, (parent, _) in drawn().items()} == {
        kind.__name__: kind.__base__.__name__ for kind in error_classes() if kind.__base__ is not None
    }


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_every_class_has_the_code_that_is_drawn(kind: type[GatewayError]) -> None:
    _, says = drawn()[kind.__name__]
    assert kind.code == says or says.startswith("(")


def test_codes_of_leaves_are_unique() -> None:
    leaves = [kind for kind in error_classes() if not drawn()[kind.__name__][1].startswith("(")]
    assert len({kind.code for kind in leaves}) == len(leaves)


def test_retryable_follows_the_tree() -> None:
    for kind in error_classes():
        if issubclass(kind, ProtocolError | StateError):
            # Whoever was silent for too long only has to connect again.
            assert kind.retryable == (kind.code == "session_idle")
            assert 400 <= kind.http_status < 500
        elif issubclass(kind, Unavailable):
            # A gateway that is full says so with a close code after which clients do not come back by themselves.
            assert kind.retryable == (kind.code != "too_many_sessions")
            assert kind.http_status in (429, 503)


def test_an_error_says_which_utterance_it_is_about() -> None:
    error = GatewayError("No.", field="text")
    assert error.for_utterance("u") is error
    assert (error.utterance, error.field, str(error)) == ("u", "text", "No.")


def test_close_code_ranges() -> None:
    own = [code for code in CloseCode if code >= 4000]
    assert {code.name: code < 4500 for code in own} == {
        "SLOW_READER": True,
        "IDLE": True,
        "DRAINING": True,
        "TOKEN_EXPIRED": True,
        "UNAUTHENTICATED": False,
        "TOKEN_REVOKED": False,
        "MEETING_ENDED": False,
        "TOO_MANY_SESSIONS": False,
        "REPLACED": False,
        "FLOODING": False,
        "FOREIGN_ORIGIN": False,
    }
