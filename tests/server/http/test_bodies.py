"""Problems and the errors that they are made of."""

from __future__ import annotations

from gateway.domain.errors import error_classes
from gateway.protocol.asyncapi import error_meaning
from gateway.server.http.bodies import HTTP_ERRORS, problem


def test_every_error_has_a_problem_and_a_meaning() -> None:
    for cls in error_classes():
        error = cls("What went wrong.", field="text", retry_after_ms=5)
        made, meaning = problem(error), error_meaning(cls)
        assert made.type == f"/errors/{cls.code}"
        assert (made.code, made.status, made.retryable) == (meaning.code, meaning.status, meaning.retryable)
        assert (made.detail, made.field, made.retry_after_ms) == ("What went wrong.", "text", 5)
        assert made.title == meaning.title != ""
        assert meaning.meaning.endswith(".")
        assert "\n" not in meaning.meaning


def test_the_errors_of_http_have_one_class_per_code() -> None:
    codes = [cls.code for cls in HTTP_ERRORS]
    assert len(set(codes)) == len(codes)
