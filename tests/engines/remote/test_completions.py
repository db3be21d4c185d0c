"""What a server is asked for one prompt, and which of its failures are repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from gateway.domain.engine import FinishReason
from gateway.domain.errors import EngineFailed, EngineUnavailable, TextTooLong
from gateway.engines.lifecycle import Generations
from gateway.engines.prompting.completions import News, Prompt, Sampling
from gateway.engines.remote import completions
from gateway.engines.remote.completions import Completing, RemoteRequests
from gateway.engines.remote.server import Server
from tests.engines.remote.scripted import (
    DONE,
    END,
    ScriptedServer,
    chunk,
    dies,
    event,
    refuses,
    says,
    scripted,
    streams,
    usage,
)

PROMPT = Prompt("r", [20, 21], 9, stop=(END,), salt="abc", priority=3, traceparent="00-ab-cd-01")


class Asking:
    """The requests for one prompt to a scripted server."""

    def __init__(self, there: ScriptedServer, **options: Any) -> None:
        self.there = there
        self.server = Server(there.url, None, None, 60.0)
        self.alive = True
        self.deaths: list[str] = []
        self.generations = Generations()
        asked: dict[str, Any] = {"model": "model", "logprobs": True, "delta_interval_s": 0.0}
        self.requests = RemoteRequests(self.server, alive=self._alive, died=self.deaths.append, **asked | options)

    async def _alive(self) -> bool:
        return self.alive

    async def complete(self, **changed: Any) -> list[News]:
        news: list[News] = []
        completing = Completing(self.requests, self.generations.open(), replace(PROMPT, **changed))
        await completing.run(news.append)
        return news

    async def probe(self, **changed: Any) -> News:
        (news,) = await self.complete(max_tokens=1, rows_from=0, **changed)
        return news

    async def text(self) -> str:
        """Each token is a letter, but the one that ends a text."""
        ids = [id for news in await self.complete() for id in news.ids]
        return "".join(chr(96 + id) for id in ids if id != END)


@asynccontextmanager
async def asking(*script: Any, **options: Any) -> AsyncIterator[Asking]:
    async with scripted() as there:
        there.script = list(script)
        asking = Asking(there, **options)
        try:
            yield asking
        finally:
            await asking.server.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "_PAUSE_S", 0.0)


GOOD = streams(chunk([3]), chunk([4, 5]), chunk([6, END], "stop"), usage(32), DONE)


async def spells_on(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    """The rest of the text behind what the prompt has of it."""
    rest = [3, 4, 5, 6][len(body["token_ids"]) - 2 :]
    return await streams(chunk(rest), chunk([END], "stop"), DONE)(request, body)


async def test_tokens_come_as_the_server_sends_them() -> None:
    async with asking(GOOD) as translation:
        news = await translation.complete()
    assert [id for new in news for id in new.ids] == [3, 4, 5, 6, END]
    assert [new.finish for new in news[:-1]] == [None] * (len(news) - 1)
    assert news[-1].finish is FinishReason.STOP
    assert news[-1].cached_tokens == 32


async def test_text_at_its_limit_says_so() -> None:
    async with asking(streams(chunk([3, 4], "length"), DONE)) as translation:
        assert await translation.complete() == [News([3, 4], FinishReason.LENGTH)]


async def test_the_server_is_asked_with_ids_and_priority() -> None:
    async with asking(GOOD) as translation:
        await translation.complete(sampling=Sampling(temperature=0.7, top_k=20))
        (asked,) = translation.there.asked
    assert translation.there.traceparents == [PROMPT.traceparent]
    assert asked == {
        "request_id": "r-1",
        "model": "model",
        "token_ids": [20, 21],
        "cache_salt": "abc",
        "sampling_params": {
            "detokenize": False,
            "temperature": 0.7,
            "top_p": 1.0,
            "top_k": 20,
            "repetition_penalty": 1.0,
            "stop_token_ids": [END],
            "max_tokens": 9,
        },
        "priority": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_of_a_fast_server_tokens_are_asked_for_together() -> None:
    async with asking(GOOD, delta_interval_s=0.04) as translation:
        assert translation.requests.tokens_a_piece() == 1
        translation.requests.took(10, 0.1)
        translation.requests.took(0, 5.0)
        assert translation.requests.tokens_a_piece() == 4
        await translation.complete()
    assert translation.there.asked[0]["sampling_params"]["stream_interval"] == 4


# ---------------------------------------------------------------- probes


async def test_probe_never_reads_the_cache() -> None:
    async with asking(says([7])) as translation:
        for read_cache in (True, False):
            probe = await translation.probe(reads_cache=read_cache)
            assert probe.rows is not None
            assert probe.rows.token_ids == [21, 21, 1]
            assert (probe.cached_tokens, probe.finish, probe.ids) == (0, FinishReason.LENGTH, [7])
    for asked in translation.there.asked:
        assert asked["stream"] is False
        assert asked["sampling_params"]["prompt_logprobs"] == 2
        assert asked["sampling_params"]["max_tokens"] == 1
        assert "skip_reading_prefix_cache" not in asked["sampling_params"]


async def test_only_the_wanted_rows_are_told() -> None:
    async with asking(says([7])) as translation:
        (probe,) = await translation.complete(ids=[20, 21, 22], max_tokens=1, rows_from=2)
        assert probe.rows is not None
        assert probe.rows.token_ids == [22, 22, 1]


async def test_a_probe_says_when_the_model_ends_the_answer() -> None:
    async with asking(says([END])) as translation:
        assert (await translation.probe()).finish is FinishReason.STOP


async def test_a_server_without_logprobs_is_not_probed() -> None:
    async with asking(says([7]), logprobs=False) as translation:
        assert await translation.probe() == News([], FinishReason.LENGTH)
        assert translation.there.asked == []


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    "fails",
    [
        streams(chunk([3, 4]), dies()),
        streams(chunk([3, 4]), cut=True),
        streams(chunk([3, 4])),
        streams(chunk([3]), chunk([4], "abort"), DONE),
        streams(chunk([3, 4]), b"data: <html>\n\n"),
    ],
    ids=["engine died", "connection lost", "cut off", "aborted", "unreadable"],
)
async def test_lost_text_continues_at_another_server(fails: Any) -> None:
    async with asking(fails, spells_on) as translation:
        assert await translation.text() == "cdef"
        first, second = translation.there.asked
    assert translation.deaths == []
    again = len(second["token_ids"]) - len(first["token_ids"])
    assert second["token_ids"] == [20, 21, 3, 4][: 2 + again]
    assert second["sampling_params"]["max_tokens"] == 9 - again
    assert second["request_id"] != first["request_id"]


async def test_connection_lost_after_last_token_loses_nothing() -> None:
    async with asking(streams(chunk([3, END], "stop"), cut=True)) as translation:
        assert await translation.text() == "c"
        assert len(translation.there.asked) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_without_room_is_asked_again(status: int) -> None:
    async with asking(*[refuses(status, "busy")] * 12, GOOD) as translation:
        assert await translation.text() == "cdef"


async def test_a_probe_is_repeated_as_well() -> None:
    async with asking(refuses(500, "EngineCore died"), refuses(503, "no server"), says([7])) as translation:
        assert (await translation.probe()).ids == [7]
        assert len(translation.there.asked) == 3


@pytest.mark.parametrize(
    "fails", [streams(chunk([3]), dies()), streams(chunk([3]), cut=True), refuses(503, "gone")]
)
async def test_silent_server_is_dead(fails: Any) -> None:
    async with asking(fails) as translation:
        translation.alive = False
        with pytest.raises(EngineUnavailable):
            await translation.complete()
        assert len(translation.deaths) == 1
        assert len(translation.there.asked) == 1
        assert translation.requests.running == 0


async def test_text_lost_by_every_server_fails_alone() -> None:
    async with asking(streams(chunk([3]), dies())) as translation:
        with pytest.raises(EngineFailed, match="did not finish this text in 3 tries"):
            await translation.complete()
        assert translation.deaths == []


@pytest.mark.parametrize("fails", [streams(dies()), refuses(500, "EngineCore died"), refuses(503, "no server")])
async def test_server_dead_before_counts_against_no_text(fails: Any) -> None:
    async with asking(*[fails] * 7, GOOD) as translation:
        assert await translation.text() == "cdef"


@pytest.mark.parametrize(
    "fails", [streams(dies()), refuses(500, "EngineCore died"), refuses(502, "gone"), refuses(504, "late")]
)
async def test_text_no_server_begins_fails_alone(fails: Any) -> None:
    async with asking(*[fails] * 8, GOOD) as translation:
        with pytest.raises(EngineFailed, match="did not finish this text in 8 tries"):
            await translation.complete()
        assert translation.deaths == []


async def test_what_no_server_has_room_for_waits() -> None:
    async with asking(*[refuses(503, "no room")] * 20, GOOD) as translation:
        assert await translation.text() == "cdef"
        assert translation.deaths == []


async def test_a_text_that_is_refused_fails_alone() -> None:
    async with asking(refuses(400, "too long")) as translation:
        with pytest.raises(EngineFailed, match="too long"):
            await translation.complete()
        with pytest.raises(EngineFailed, match="too long"):
            await translation.probe()
        assert translation.deaths == []


@pytest.mark.parametrize(
    "said",
    [
        "The decoder prompt (length 9) is longer than the maximum model length of 8. Make sure …",
        "This model's maximum context length is 8 tokens. However, you requested 9 tokens.",
    ],
)
async def test_refusal_of_a_length_is_named(said: str) -> None:
    async with asking(refuses(400, said)) as translation:
        with pytest.raises(TextTooLong, match="8"):
            await translation.complete()


async def test_an_error_in_band_may_be_a_refusal() -> None:
    error = event({"error": {"message": "bad salt", "code": 400}})
    async with asking(streams(error)) as translation:
        with pytest.raises(EngineFailed, match="bad salt"):
            await translation.complete()


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_server_that_refuses_our_key_is_dead(status: int) -> None:
    async with asking(refuses(status, "no")) as translation:
        with pytest.raises(EngineUnavailable):
            await translation.complete()
        assert len(translation.deaths) == 1


async def test_ended_generations_end_in_the_server() -> None:
    async with asking(streams(chunk([3]), hangs=True)) as translation:
        reading = asyncio.create_task(translation.complete())
        while not translation.there.running:
            await asyncio.sleep(0.01)
        translation.generations.end("The engine was stopped.")
        with pytest.raises(EngineUnavailable, match="stopped"):
            await reading
        while translation.there.running:
            await asyncio.sleep(0.01)
        assert translation.requests.running == 0


async def test_a_request_without_a_scope_shares_the_cache() -> None:
    async with asking(GOOD) as translation:
        await translation.complete(salt=None)
    assert "cache_salt" not in translation.there.asked[0]
