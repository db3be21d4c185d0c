"""How a client fails, in sentences for people."""

from __future__ import annotations

import pytest

from gateway.client.errors import ClientError, NotAuthorized, SessionClosed, SessionRefused, refusal
from gateway.protocol.messages import Error

URL = "ws://a"


@pytest.mark.parametrize(
    ("closed", "sentence"),
    [
        (SessionClosed(URL, 4509, Error("too_many_sessions", "It is full.")), "It is full."),
        (SessionClosed(URL, None, None), f"The connection to the gateway at {URL} was lost."),
        (SessionClosed(URL, 1001, None), f"{URL} closed the session with code 1001."),
        (SessionClosed(URL, None, None, gave_up="Nobody answers."), "was lost. It could not be resumed: Nobody"),
    ],
)
def test_a_session_that_is_over_says_why(closed: SessionClosed, sentence: str) -> None:
    assert sentence in str(closed)


def test_what_was_said_already_is_not_said_again() -> None:
    once = str(SessionClosed(URL, None, None))
    assert str(SessionClosed(URL, None, None, gave_up=once)) == once


def test_a_refusal_has_the_words_of_the_gateway() -> None:
    error = Error("unsupported_language", "Not this language.")
    refused = SessionRefused(error)
    assert (str(refused), refused.error) == ("Not this language.", error)
    assert isinstance(refused, ClientError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("unauthenticated", NotAuthorized), ("forbidden", NotAuthorized), ("unsupported_language", SessionRefused)],
)
def test_refusal_for_want_of_token(code: str, kind: type[ClientError]) -> None:
    assert type(refusal(Error(code, "No."))) is kind
