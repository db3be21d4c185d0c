"""The wire of vLLM's token-in, token-out route: requests to bytes, bytes to new tokens, probes and errors.

Knows: the JSON of `/inference/v1/generate`, of vLLM's errors, and the lines of an event stream, on 0.26 and 0.32.
Must not know: sockets, tasks, translations. It only turns bytes into values, and values into bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gateway.engines.prompting.completions import Rows

GENERATE = "/inference/v1/generate"

_DONE = b"[DONE]"


# ---------------------------------------------------------------- what is asked


def generate_body(
    request_id: str,
    ids: Sequence[int],
    sampling: dict[str, Any],
    *,
    model: str | None = None,
    priority: int = 0,
    cache_salt: str | None = None,
    stream: bool = False,
) -> bytes:
    """The body of a request to `GENERATE`. sampling: vLLM's sampling parameters that differ from its defaults."""
    body: dict[str, Any] = {
        "request_id": request_id,
        "token_ids": ids,
        # The text is made on this side, so the server need not make it too.
        "sampling_params": {"detokenize": False, **sampling},
        "priority": priority,
        "stream": stream,
    }
    if model is not None:
        body["model"] = model
    if cache_salt is not None:
        body["cache_salt"] = cache_salt
    if stream:
        # Cached tokens are told at the end, if at all.
        body["stream_options"] = {"include_usage": True}
    return msgspec.json.encode(body)


# ---------------------------------------------------------------- what is answered


class Error(Struct, frozen=True):
    """An error as vLLM and the servers in front of it write it."""

    message: str
    # An HTTP status; of an error within a stream, that which it would have had before.
    code: int


class Generated(Struct, frozen=True):
    """New tokens of one generation."""

    ids: list[int]
    # vLLM's own word, on the last one only: `stop`, `length`, `abort`.
    finish: str | None = None
    # Prompt tokens from the server's prefix cache, on the last one, if the server tells.
    cached_tokens: int | None = None


class Served(Struct, frozen=True):
    """A model that a server has."""

    id: str
    # The folder or name that it was loaded from.
    root: str | None = None
    # Set on adapters: the model that they change.
    parent: str | None = None
    # Most tokens of prompt and output together.
    max_model_len: int | None = None


class _Logprob(Struct):
    logprob: float


class _CachedTokens(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens_details: _CachedTokens | None = None


class _Choice(Struct):
    token_ids: list[int] | None = None
    finish_reason: str | None = None


class _Answer(Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    prompt_logprobs: list[dict[str, _Logprob] | None] | None = None
    error: Any = None


_answers = msgspec.json.Decoder(_Answer)


class EventStream:
    """Reads the events of one streamed generation, in pieces of any size."""

    def __init__(self) -> None:
        self._rest = b""
        # Tokens that came with the reason of the end, which wait for the number of cached tokens behind them.
        self._last: list[int] = []
        self._finish: str | None = None
        self._cached_tokens: int | None = None
        self._error: Error | None = None

    @property
    def finished(self) -> bool:
        """Whether all tokens have come. A stream that ends before was cut off."""
        return self._finish is not None

    def feed(self, data: bytes) -> Generated | Error | None:
        """What these bytes bring: new tokens, the last of them with the end, or an error instead of it.

        data: empty at the end of the stream. Raises `ValueError` for what is not such a stream.
        """
        *events, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n\n")
        ids: list[int] = []
        for event in events:
            # Other lines are comments, which keep the connection open, or fields that vLLM does not use.
            lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
            if not lines:
                continue
            payload = b"\n".join(lines).strip()
            if payload == _DONE:
                break
            answer = _answers.decode(payload)
            if answer.error is not None:
                self._error = _error(answer.error)
                break
            for choice in answer.choices:
                ids += choice.token_ids or ()
                self._finish = choice.finish_reason or self._finish
            self._cached_tokens = _cached_tokens(answer) or self._cached_tokens
        if self._finish is None:
            # What came before the error counts; the error is what the next bytes bring, or the end.
            return Generated(ids) if ids else self._error
        self._last += ids
        return None if data else Generated(self._last, self._finish, self._cached_tokens)


def unstreamed(body: bytes, ids: Sequence[int]) -> tuple[Generated, Rows | None]:
    """What an answer that was not streamed says, and the log-probabilities of its prompt `ids`, if it has them.

    Raises `ValueError` for another answer.
    """
    answer = _answers.decode(body)
    if not answer.choices or (new := answer.choices[0].token_ids) is None:
        raise ValueError("it has no token ids")
    rows = answer.prompt_logprobs
    found = None if rows is None or len(rows) != len(ids) else _rows(rows, ids)
    return Generated(new, answer.choices[0].finish_reason, _cached_tokens(answer)), found


def _rows(told: list[dict[str, _Logprob] | None], ids: Sequence[int]) -> Rows:
    """Each row as vLLM's own lists have it: the token, then the two likeliest in its place.

    On the wire a row has each token once, and the ranks are those of the likeliest: of two equally likely tokens,
    one has rank 1. Here neither has.
    """
    rows = Rows([], [], [], [], [])
    for token, row in zip(ids, told, strict=True):
        rows.start_indices.append(len(rows.token_ids))
        if row and (own := row.get(str(token))) is not None:
            others = [(each.logprob, int(name)) for name, each in row.items() if name != str(token)]
            # Two entries: the token is one of the two likeliest.
            likeliest = others if len(others) > 1 else [(own.logprob, token), *others]
            likeliest.sort(key=lambda each: -each[0])
            rank = 1 + sum(logprob >= own.logprob for logprob, _ in others)
            for number, (logprob, name) in enumerate([(own.logprob, token), *likeliest]):
                rows.token_ids.append(name)
                rows.logprobs.append(logprob)
                rows.ranks.append(number or rank)
        rows.end_indices.append(len(rows.token_ids))
    return rows


class _Models(Struct):
    data: list[Served]


def served(body: bytes) -> list[Served]:
    """The models in an answer of `/v1/models`, without adapters. Raises `ValueError` for another answer."""
    return [model for model in msgspec.json.decode(body, type=_Models).data if model.parent is None]


def error_of(status: int, body: bytes) -> Error:
    """The error in an answer with a status of 400 or more."""
    try:
        told = msgspec.json.decode(body)
    except ValueError:
        told = None
    if isinstance(told, dict):
        return Error(_error(told.get("error", told.get("detail", told))).message, status)
    return Error(body[:200].decode(errors="replace").strip() or f"status {status}", status)


def _cached_tokens(answer: _Answer) -> int | None:
    details = answer.usage and answer.usage.prompt_tokens_details
    return details.cached_tokens if details else None


def _error(told: object) -> Error:
    if isinstance(told, dict):
        code = told.get("code")
        return Error(str(told.get("message", told)), code if isinstance(code, int) else 500)
    return Error(str(told), 500)
