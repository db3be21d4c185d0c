"""What is found out about a server, and the one sentence for what it lacks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gateway.domain.errors import StartupError
from gateway.engines.remote import capabilities
from gateway.engines.remote.capabilities import Capabilities, examine, problem
from gateway.engines.remote.events import GENERATE
from gateway.engines.remote.server import Server
from tests.engines.remote.scripted import ScriptedServer, refuses, says, scripted, streams

TOKENS = [5, 6, 7]


class Tokenizer:
    def encode(self, _text: str, add_special_tokens: bool) -> list[int]:
        return TOKENS


async def examined(there: ScriptedServer, model: str = "/models/model", key: str | None = None) -> Capabilities:
    server = Server(there.url, key, None, 60.0)
    try:
        return await examine(server, there.url, model, Tokenizer())
    finally:
        await server.close()


async def refused(there: ScriptedServer, **asked: Any) -> str:
    """The sentence for the operator, without the address in it."""
    with pytest.raises(StartupError) as error:
        await examined(there, **asked)
    return error.value.message.replace(there.url, "URL")


async def test_a_server_that_has_everything() -> None:
    async with scripted() as there:
        there.tokens = TOKENS
        assert await examined(there) == Capabilities("model", 256, logprobs=True)
        (asked,) = there.asked
    assert asked["token_ids"] == TOKENS
    assert asked["priority"] == 1
    assert asked["stream"] is False


async def test_server_may_tell_only_its_model() -> None:
    async with scripted() as there:
        there.models = [{"id": "anything"}]
        assert await examined(there) == Capabilities("anything", None, logprobs=True)


async def test_a_server_without_logprobs_translates_without_drafts(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted() as there:
        there.script = [
            refuses(400, "Requested prompt logprobs of 2, which is greater than max allowed: 0"),
            says([5]),
        ]
        assert not (await examined(there)).logprobs
        there.script = [says([5], rows=False)]
        assert not (await examined(there)).logprobs
    assert caplog.text.count("drafts are ignored and committed text is kept unchecked") == 2


@pytest.mark.parametrize("model", ["/models/two", "/models/two/", "two"])
async def test_of_several_models_it_takes_its_own(model: str) -> None:
    async with scripted() as there:
        there.models = [{"id": "one", "root": "/models/one"}, {"id": "two", "root": "/models/two"}]
        assert (await examined(there, model)).model == "two"


# ---------------------------------------------------------------- what a server lacks


async def test_another_model() -> None:
    async with scripted() as there:
        there.models = [{"id": "one"}, {"id": "two"}]
        said = await refused(there, model="/models/three")
        assert said == "The server at URL does not serve the model three; its models: one, two."
        there.models = []
        assert (await refused(there)).endswith("its models: none.")


async def test_another_tokenizer() -> None:
    async with scripted() as there:
        there.tokens = [5, 6, 8]
        assert await refused(there) == (
            "The server at URL has another tokenizer than /models/model: set engine.model to the model that it "
            "serves."
        )


@pytest.mark.parametrize("key", [None, "wrong"])
async def test_the_key(key: str | None) -> None:
    async with scripted() as there:
        there.key = "secret"
        assert (await examined(there, key="secret")).model == "model"
        assert await refused(there, key=key) == (
            "The server at URL does not accept the API key: set engine.api_key_file or engine.api_key."
        )


@pytest.mark.parametrize(
    ("status", "message", "sentence"),
    [
        (
            404,
            "Not Found",
            f"has no route {GENERATE}: start vLLM with --enable-scale-out (0.26 to 0.29 always have the route).",
        ),
        (
            400,
            "Got priority 1 but Priority scheduling is not enabled.",
            "cannot put finals first: start vLLM with --scheduling-policy priority.",
        ),
        (400, "something else", "refuses a translation: something else (status 400)."),
        (
            404,
            "The model `model` does not exist.",
            "refuses a translation: The model `model` does not exist (status 404).",
        ),
    ],
)
async def test_refusals_name_what_is_missing(status: int, message: str, sentence: str) -> None:
    async with scripted() as there:
        there.script = [refuses(status, message)]
        assert await refused(there) == f"The server at URL {sentence}"


async def test_a_server_without_tls() -> None:
    async with scripted() as there:
        url = there.url.replace("http:", "https:")
        server = Server(url, None, None, 60.0)
        with pytest.raises(StartupError) as error:
            await examine(server, url, "/models/model", Tokenizer())
        await server.close()
    assert error.value.message.startswith(f"The server at {url} cannot be asked: no TLS connection")
    assert error.value.message.endswith("If it speaks plain HTTP, write http://.")


async def test_what_is_no_vllm_server() -> None:
    async with scripted() as there:
        there.models = [{"name": "llama"}]
        assert re.match("What answers at URL is not a vLLM server", await refused(there))


# ---------------------------------------------------------------- whether it takes requests


async def test_whether_a_server_takes_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted() as there:
        server = Server(there.url, None, None, 60.0)
        try:
            assert await problem(server) is None
            assert there.asked == []
            # Some of the servers behind a router are not well, or there is no such page: one generates.
            for status in (503, 404):
                there.health = status
                assert await problem(server) is None
            assert there.asked[-1]["sampling_params"]["max_tokens"] == 1
            # A key that is wrong is found out when the server is examined.
            there.key = "secret"
            assert await problem(server) is None
            there.key = None
            there.script = [refuses(500, "EngineCore died")]
            assert await problem(server) == "its health page has status 404"
            there.script = [refuses(503, "no server")]
            assert await problem(server) == "no server (status 503)"
            monkeypatch.setattr(capabilities, "_TOKEN_S", 0.05)
            there.script = [streams(hangs=True)]
            assert await problem(server) == "its health page has status 404"
        finally:
            await server.close()
    server = Server(there.url, None, None, 60.0)
    assert "Connect" in str(await problem(server))
    await server.close()
