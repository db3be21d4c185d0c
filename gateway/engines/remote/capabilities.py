"""Finds out what a remote server can do, and says in one sentence what it lacks.

Knows: what a translation needs of a vLLM server, and which of its settings give that.
Must not know: how a server is reached, when it is asked.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from gateway.domain.errors import StartupError
from gateway.engines.remote.events import GENERATE, Served, generate_body, served, unstreamed
from gateway.engines.remote.server import Answer, Lost, NotTaken, Refused, Server, ServerError

_log = logging.getLogger(__name__)

# Contains what tokenizers differ in: a number, a capital, punctuation, letters outside ASCII.
_SAMPLE = "Zwölf 12: これは"

# The least that can be generated, and how long that may take, in seconds.
_ONE_TOKEN = generate_body("health", [0], {"max_tokens": 1})
_TOKEN_S = 5.0

_NO_PROMPT = "it gives no log-probabilities of prompts, so drafts are ignored and committed text is kept unchecked"


class Capabilities(Struct, frozen=True):
    """What a server has."""

    # The model's name there; None if it does not say which it has.
    model: str | None
    # Most tokens of prompt and output together; None if it does not say.
    max_model_len: int | None
    # Whether it tells how likely a prompt's tokens are.
    logprobs: bool


async def problem(server: Server) -> str | None:
    """Why the server takes no requests; None if it does."""
    try:
        status, _ = await server.get("/health")
        if status == 200:
            return None
        # A router's page may speak of every server behind it, or there may be no page. What counts is that one of
        # them generates a token.
        async with asyncio.timeout(_TOKEN_S):
            await server.post(GENERATE, _ONE_TOKEN)
    except Refused:
        return None  # it answers; what it refuses shows when it is examined, or asked
    except NotTaken as error:
        return str(error)
    except (Lost, TimeoutError):
        return f"its health page has status {status}"
    return None


async def examine(server: Server, url: str, model: str, tokenizer: Any) -> Capabilities:
    """What the server at `url` can do. Raises `StartupError` if it cannot translate, and `ServerError`.

    model: the folder or name of the model that it is to serve. tokenizer: that of this model.
    """
    try:
        found = _chosen(await server.get("/v1/models"), url, model)
        name = None if found is None else found.id
        ids: list[int] = tokenizer.encode(_SAMPLE, add_special_tokens=False)
        await _compare_tokenizers(server, url, name, model, ids)
        logprobs = await _try(server, url, name, ids)
    except Refused as refused:
        _explain(refused, url)
    return Capabilities(name, None if found is None else found.max_model_len, logprobs)


def _chosen(answer: Answer, url: str, model: str) -> Served | None:
    """The model to ask for; None if the server has no list."""
    if answer.status in (401, 403):
        raise Refused(answer.status, "")
    if answer.status >= 500:
        raise Lost(f"its list of models has status {answer.status}")
    if answer.status != 200:
        return None
    try:
        models = served(answer.body)
    except (ValueError, msgspec.ValidationError):
        raise StartupError(f"What answers at {url} is not a vLLM server: it has no list of models.") from None
    names = {model, model.rstrip("/"), Path(model).name}
    if len(models) == 1:
        return models[0]
    if (found := next((each for each in models if names & {each.id, each.root}), None)) is not None:
        return found
    listed = ", ".join(each.id for each in models) or "none"
    raise StartupError(f"The server at {url} does not serve the model {Path(model).name}; its models: {listed}.")


async def _compare_tokenizers(server: Server, url: str, name: str | None, model: str, ids: list[int]) -> None:
    """Raises `StartupError` if the server makes other tokens of a text. Not every server can be asked."""
    body = msgspec.json.encode({"model": name, "prompt": _SAMPLE, "add_special_tokens": False})
    try:
        told = msgspec.json.decode(await server.post("/tokenize", body))
    except (ServerError, ValueError):
        return
    if isinstance(told, dict) and told.get("tokens", ids) != ids:
        raise StartupError(
            f"The server at {url} has another tokenizer than {model}: "
            "set engine.model to the model that it serves."
        )


async def _try(server: Server, url: str, name: str | None, ids: list[int]) -> bool:
    """Run one probe; whether it tells how likely the prompt's tokens are. Raises `StartupError` and `Refused`."""
    asked: dict[str, Any] = {"prompt_logprobs": 2}
    while True:
        sampling = {"temperature": 0.0, "max_tokens": 1, **asked}
        body = generate_body("capabilities", ids, sampling, model=name, priority=1, cache_salt="capabilities")
        try:
            told = await server.post(GENERATE, body)
        except Refused as refused:
            if not (asked and refused.status == 400 and "logprobs" in str(refused)):
                raise
            asked = {}
            continue
        try:
            _, rows = unstreamed(told, ids)
        except ValueError as error:
            raise StartupError(f"The answer of the server at {url} cannot be read: {error}.") from None
        if rows is None:
            _log.warning("the server at %s: %s", url, _NO_PROMPT)
        return rows is not None


def _explain(refused: Refused, url: str) -> NoReturn:
    """Raise the refusal of a probe as a sentence for the operator."""
    said = str(refused)
    match refused.status:
        case 0 if "certificate" in said:
            text = f"The server at {url} cannot be trusted: {said}; engine.ca_file names who may sign it."
        case 0:
            text = f"The server at {url} cannot be asked: {said}. If it speaks plain HTTP, write http://."
        case 401 | 403:
            text = f"The server at {url} does not accept the API key: set engine.api_key_file or engine.api_key."
        case 404 | 405 if "model" not in said:
            text = (
                f"The server at {url} has no route {GENERATE}: start vLLM with --enable-scale-out "
                "(0.26 to 0.29 always have the route)."
            )
        # vLLM 0.32 ignores priorities under another policy, which nothing shows from outside; others may refuse.
        case 400 if "priority" in said:
            text = f"The server at {url} cannot put finals first: start vLLM with --scheduling-policy priority."
        case _:
            text = f"The server at {url} refuses a translation: {said}."
    raise StartupError(text) from refused
