"""The wire, as vLLM 0.32 writes it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engines.remote.events import (
    Error,
    EventStream,
    Generated,
    Served,
    error_of,
    generate_body,
    served,
    unstreamed,
)
from tests.engines.remote.scripted import DONE, chunk, dies, event, usage


def test_a_request_says_what_vllm_needs() -> None:
    sampling = {"max_tokens": 9, "temperature": 0.0}
    body = generate_body("r-1", [5, 6], sampling, model="m", priority=3, cache_salt="abc", stream=True)
    assert json.loads(body) == {
        "request_id": "r-1",
        "model": "m",
        "token_ids": [5, 6],
        "sampling_params": {"detokenize": False, "max_tokens": 9, "temperature": 0.0},
        "priority": 3,
        "cache_salt": "abc",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_unknown_fields_are_left_out() -> None:
    assert json.loads(generate_body("r-1", [5], {})).keys() == {
        "request_id",
        "token_ids",
        "sampling_params",
        "priority",
        "stream",
    }


WHOLE = (
    chunk([5])
    + b": keep-alive\n\n: again\nid: 7\nevent: message\n"
    + chunk([6, 7])
    + chunk([8], "stop")
    + usage(32)
    + DONE
)


def read(pieces: list[bytes]) -> list[Generated | Error]:
    stream = EventStream()
    return [found for piece in [*pieces, b""] if (found := stream.feed(piece)) is not None]


def test_joined_chunks_are_one_piece() -> None:
    assert read([chunk([5]) + chunk([6, 7]), chunk([8], "stop") + usage(32), DONE]) == [
        Generated([5, 6, 7]),
        Generated([8], "stop", 32),
    ]


@given(st.lists(st.integers(1, len(WHOLE) - 1), unique=True).map(sorted))
def test_pieces_may_end_anywhere(cuts: list[int]) -> None:
    pieces = [WHOLE[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(WHOLE)], strict=True)]
    found = [each for each in read(pieces) if isinstance(each, Generated)]
    assert [token for each in found for token in each.ids] == [5, 6, 7, 8]
    assert [(each.finish, each.cached_tokens) for each in found[:-1]] == [(None, None)] * (len(found) - 1)
    assert (found[-1].finish, found[-1].cached_tokens) == ("stop", 32)


def test_lines_may_end_as_http_ends_them() -> None:
    assert read([WHOLE.replace(b"\n", b"\r\n")]) == [Generated([5, 6, 7, 8], "stop", 32)]


def test_a_stream_that_is_cut_off_has_no_end() -> None:
    stream = EventStream()
    assert stream.feed(chunk([5])) == Generated([5])
    assert stream.feed(b"") is None
    assert not stream.finished


def test_stream_cut_after_last_token_has_an_end() -> None:
    stream = EventStream()
    assert stream.feed(chunk([5], "length")) is None
    assert stream.finished
    assert stream.feed(b"") == Generated([5], "length", None)


def test_the_death_of_an_engine_comes_in_band() -> None:
    found = read([chunk([5]), dies()])
    assert found[0] == Generated([5])
    assert isinstance(found[1], Error)
    assert found[1].code == 500
    assert found[1].message.startswith("EngineCore encountered an issue")


def test_tokens_that_come_together_with_an_error_count() -> None:
    found = read([chunk([5]) + dies()])
    assert found[0] == Generated([5])
    assert isinstance(found[1], Error)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="malformed"):
        EventStream().feed(b"data: <html>\n\n")


# ---------------------------------------------------------------- probes


def row(**told: float) -> dict[str, dict[str, float | int]]:
    return {name.strip("_"): {"logprob": logprob, "rank": 1} for name, logprob in told.items()}


def probed(*rows: dict[str, dict[str, float | int]] | None) -> list[list[tuple[int, float, int | None]]]:
    """The rows of a prompt of tokens 10, 11, …: for each, (token, log-probability, rank)."""
    ids = list(range(10, 10 + len(rows)))
    body = {"choices": [{"token_ids": [9], "finish_reason": "length"}], "prompt_logprobs": rows}
    new, found = unstreamed(json.dumps(body).encode(), ids)
    assert new == Generated([9], "length", None)
    assert found is not None
    columns = list(zip(found.token_ids, found.logprobs, found.ranks, strict=True))
    return [columns[a:b] for a, b in zip(found.start_indices, found.end_indices, strict=True)]


def test_row_has_the_token_and_two_likeliest() -> None:
    assert probed(
        None,
        row(_11=-0.5, _7=-2.0),  # the model's own choice
        row(_12=-2.0, _7=-0.5),  # the second likeliest
        row(_13=-8.0, _7=-0.5, _8=-2.0),  # another
    ) == [
        [],
        [(11, -0.5, 1), (11, -0.5, 1), (7, -2.0, 2)],
        [(12, -2.0, 2), (7, -0.5, 1), (12, -2.0, 2)],
        [(13, -8.0, 3), (7, -0.5, 1), (8, -2.0, 2)],
    ]


def test_of_two_equally_likely_tokens_neither_is_the_choice() -> None:
    _, tied = probed(None, row(_11=-0.7, _7=-0.7))
    assert tied[0] == (11, -0.7, 2)
    assert tied[1][1] == tied[2][1]


def test_a_row_that_was_not_computed_is_empty() -> None:
    assert probed(None, {}, row(_7=-0.5)) == [[], [], []]


def test_a_probe_may_have_no_rows() -> None:
    assert unstreamed(b'{"choices":[{"token_ids":[2],"finish_reason":"stop"}]}', [1]) == (
        Generated([2], "stop", None),
        None,
    )


@pytest.mark.parametrize("body", [b"{}", b'{"choices":[{"text":"Guten"}]}', b"<html>"])
def test_an_answer_without_tokens_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"token ids|malformed"):
        unstreamed(body, [1])


# ---------------------------------------------------------------- errors and models


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"too long","type":"BadRequestError","code":400}}', "too long"),
        (b'{"error":"Unauthorized"}', "Unauthorized"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b"no healthy upstream", "no healthy upstream"),
        (b"", "status 400"),
    ],
)
def test_errors_are_told_in_many_ways(body: bytes, message: str) -> None:
    assert error_of(400, body) == Error(message, 400)


def test_models_are_listed_without_adapters() -> None:
    body = event(
        {"data": [{"id": "m", "root": "/m", "max_model_len": 64}, {"id": "lora", "parent": "m", "owned_by": "me"}]}
    )
    assert served(body.removeprefix(b"data: ")) == [Served("m", "/m", None, 64)]
