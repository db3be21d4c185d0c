"""The HTTP endpoints on a real socket, with the simulated engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from gateway.config import EngineSettings, Settings
from gateway.domain.engine import EngineProfile, EngineState, OnEvent, TokenEvent, TranslationRequest
from gateway.engines.simulated import Rule, Script, SimulatedEngine
from gateway.protocol.limits import Limits
from gateway.server.http.request_bodies import BODY_BYTES
from gateway.translation.scheduling.ticket import Ticket
from tests.clocks import swiftly
from tests.gateways import SCRIPT, running, until_idle
from tests.over_http import NO_TLS, check_problem, serving

FROM_TO = {"source_lang": "en", "target_lang": "ja"}

STREAMED = {"Accept": "text/event-stream"}


async def translate(client: httpx.AsyncClient, body: Any, **headers: str) -> httpx.Response:
    return await client.post("/v1/translate", json=body, headers=headers)


def events(text: str) -> list[tuple[str, Any]]:
    """(event, data) of a stream; comments left out."""
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        if not block.startswith(":"):
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


# ---------------------------------------------------------------- translations


async def test_one_text() -> None:
    async with serving() as (_, client):
        response = await translate(client, {**FROM_TO, "text": "good morning"})
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    answer = response.json()
    timings = answer.pop("timings")
    assert 0 <= timings["queue_ms"] <= timings["first_token_ms"] <= timings["total_ms"]
    assert timings["total_ms"] > 0
    assert answer == {
        "translation": "[ja] good morning",
        "source_lang": "en",
        "target_lang": "ja",
        "tokens": 3,
        "truncated": False,
        "warnings": [],
    }


async def test_several_texts_keep_their_order_whichever_ends_first() -> None:
    texts = ["LONG text first", *(f"text {n}" for n in range(30))]
    async with serving() as (_, client):
        answer = (await translate(client, {**FROM_TO, "texts": texts})).json()
    assert [item["translation"] for item in answer["translations"]] == [
        " ".join(["[ja] LONG text first"] * 100),
        *(f"[ja] {text}" for text in texts[1:]),
    ]
    assert {*answer} == {"translations", "source_lang", "target_lang", "warnings"}
    assert {*answer["translations"][0]} == {"translation", "tokens", "truncated", "timings"}


async def test_unsupported_option_is_a_warning() -> None:
    body = {**FROM_TO, "text": "hi", "context": "we met", "formality": "formal", "glossary": {"hi": "yo"}}
    async with serving(script=Script(options=frozenset({"context"}))) as (_, client):
        answer = (await translate(client, body)).json()
        streamed = events((await translate(client, body, **STREAMED)).text)
    assert [(w["code"], w["field"]) for w in answer["warnings"]] == [
        ("unsupported_option", "glossary"),
        ("unsupported_option", "formality"),
    ]
    assert streamed[-1] == ("done", {**FROM_TO, "warnings": answer["warnings"]})


class SpacedEngine(SimulatedEngine):
    """Begins every translation with what some tokenizers begin with."""

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        on_event(TokenEvent(text="", tokens=1))
        on_event(TokenEvent(text=" ", tokens=1))
        await super().generate(request, on_event)


async def test_leading_space_is_no_part_of_a_translation() -> None:
    async with serving(engine=SpacedEngine(SCRIPT)) as (_, client):
        body = {**FROM_TO, "text": "hi"}
        assert (await translate(client, body)).json()["translation"] == "[ja] hi"
        streamed = events((await translate(client, body, **STREAMED)).text)
    assert streamed[0] == ("translation.delta", {"index": 0, "committed": "[ja]"})


async def test_call_takes_turns_as_its_address() -> None:
    admitted: list[tuple[str, Sequence[TranslationRequest]]] = []
    async with serving() as (gateway, client):
        admit = gateway.gateway.scheduler.admit

        def recorded(meeting: str, requests: Sequence[TranslationRequest], *, account: str) -> list[Ticket]:
            admitted.append((account, requests))
            return admit(meeting, requests, account=account)

        gateway.gateway.scheduler.admit = recorded  # type: ignore[method-assign, assignment]
        await translate(client, {**FROM_TO, "texts": ["a", "b"]})
        await translate(client, {**FROM_TO, "text": "a"})
    assert [account for account, _ in admitted] == ["127.0.0.1"] * 2
    ids = [request.id for _, requests in admitted for request in requests]
    assert len(set(ids)) == 3
    assert all(name.startswith("http-") for name in ids)


# ---------------------------------------------------------------- streams


async def test_stream_shows_tokens_and_ends_with_done() -> None:
    async with serving() as (_, client):
        response = await translate(client, {**FROM_TO, "texts": ["one two", "line\nbreak\r\n «…»"]}, **STREAMED)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-accel-buffering"] == "no"
    received = events(response.text)
    assert received[-1] == ("done", {**FROM_TO, "warnings": []})
    for index, expected in enumerate(["[ja] one two", "[ja] line\n[ja] break\r\n «…»"]):
        mine = [(name, data) for name, data in received[:-1] if data["index"] == index]
        *deltas, (last, final) = mine
        assert {name for name, _ in deltas} == {"translation.delta"}
        assert "".join(data["committed"] for _, data in deltas) == expected
        assert last == "translation.final"
        assert final["translation"] == expected
        assert {*final} == {"index", "translation", "tokens", "truncated", "timings"}
    assert sum(name == "translation.delta" for name, _ in received) > 2


async def test_accept_decides_between_stream_and_json() -> None:
    accepted = {
        "*/*": False,
        "application/json": False,
        "text/event-stream": True,
        "Text/Event-Stream; q=0.5": True,
        "application/json, text/event-stream": True,
        "application/json, text/event-stream;q=0.9": False,
        "text/event-stream;q=0": False,
        "text/event-stream;q=much": True,
        "application/json;q=0.1, text/event-stream;level=1;q=0.2": True,
    }
    async with serving() as (_, client):
        for accept, streamed in accepted.items():
            response = await translate(client, {**FROM_TO, "text": "hi"}, Accept=accept)
            assert response.headers["content-type"].startswith("text/event-stream") is streamed, accept


# ---------------------------------------------------------------- clients that leave


@pytest.mark.parametrize("abrupt", [False, True], ids=["close", "abort"])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_leaving_client_ends_its_generations(accept: str, abrupt: bool) -> None:
    body = json.dumps({**FROM_TO, "texts": ["STALL for ever", "LONG text"] * 15}).encode()
    head = (
        f"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: {accept}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    async with running() as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(head.encode() + body)
        if accept == "text/event-stream":
            await reader.readuntil(b"translation.delta")
        while not gateway.gateway.engine.capacity().running:
            await asyncio.sleep(0.005)
        assert gateway.gateway.scheduler.waiting > 0
        if abrupt:
            writer.transport.abort()
        else:
            writer.close()
        await until_idle(gateway)
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", verify=NO_TLS) as client:
            assert (await translate(client, {**FROM_TO, "text": "after"})).status_code == 200


async def test_client_leaving_mid_body_is_no_error() -> None:
    async with running() as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(
            b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        await writer.drain()
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("accept", [b"application/json", b"text/event-stream"])
async def test_cancelled_call_leaves_nothing_behind(accept: bytes) -> None:
    async with running() as gateway:
        scheduler = gateway.gateway.scheduler
        admit = scheduler.admit

        def admit_and_cancel(
            meeting: str, requests: Sequence[TranslationRequest], *, account: str
        ) -> list[Ticket]:
            calling.cancel()  # arrives at the call's next suspension
            return admit(meeting, requests, account=account)

        scheduler.admit = admit_and_cancel  # type: ignore[method-assign, assignment]
        body = json.dumps({**FROM_TO, "texts": ["STALL for ever"] * 40}).encode()
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/translate",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"accept", accept)],
        }

        bodies = [body]

        async def receive() -> dict[str, Any]:
            if not bodies:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def send(_message: Any) -> None:
            await asyncio.sleep(0)  # as a socket may: the cancellation arrives here, before any text is begun

        calling = asyncio.ensure_future(gateway.gateway.app(scope, receive, send))
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert (scheduler.running, scheduler.waiting) == (0, 0)
        await until_idle(gateway)


async def test_failed_text_has_its_error_beside_translations() -> None:
    async with serving() as (gateway, client):
        response = await translate(client, {**FROM_TO, "texts": ["one", "FAIL", " ", "two"]})
        assert response.status_code == 200
        found = response.json()["translations"]
        assert [item["translation"] for item in found] == ["[ja] one", None, None, "[ja] two"]
        assert [item.get("error") for item in found] == [
            None,
            {"code": "engine_failed", "message": "The script says that this text fails."},
            {"code": "invalid_value", "message": "The text is empty."},
            None,
        ]
        await until_idle(gateway)


async def test_when_every_text_fails_the_call_does() -> None:
    async with serving() as (_, client):
        check_problem(await translate(client, {**FROM_TO, "text": "FAIL"}), 502, "engine_failed", "text")
        check_problem(
            await translate(client, {**FROM_TO, "texts": ["FAIL", ""]}), 502, "engine_failed", "texts[0]"
        )
        check_problem(await translate(client, {**FROM_TO, "texts": ["", " "]}), 422, "invalid_value", "texts[0]")


# ---------------------------------------------------------------- several languages


async def test_several_languages_in_one_call() -> None:
    body = {"source_lang": "en", "target_langs": ["ja", "de-AT", "de"], "texts": ["hi", "FAIL"]}
    async with serving() as (_, client):
        answer = (await translate(client, body)).json()
        one = (await translate(client, {**body, "texts": ["hi"], "target_langs": ["fr"]})).json()
    assert (answer["source_lang"], answer["target_langs"], answer["warnings"]) == ("en", ["ja", "de"], [])
    assert [{lang: item["translation"] for lang, item in text.items()} for text in answer["translations"]] == [
        {"ja": "[ja] hi", "de": "[de] hi"},
        {"ja": None, "de": None},
    ]
    assert answer["translations"][1]["de"]["error"]["code"] == "engine_failed"
    assert one["translations"][0]["fr"]["translation"] == "[fr] hi"


async def test_a_stream_of_several_languages_names_them() -> None:
    body = {"source_lang": "en", "target_langs": ["ja", "de"], "texts": ["one two", "FAIL"]}
    async with serving() as (_, client):
        received = events((await translate(client, body, **STREAMED)).text)
    for lang in ("ja", "de"):
        mine = [(name, data) for name, data in received[:-1] if (data["index"], data["target_lang"]) == (0, lang)]
        assert "".join(data.get("committed", "") for _, data in mine) == f"[{lang}] one two"
        assert mine[-1][1]["translation"] == f"[{lang}] one two"
        assert any(
            name == "translation.failed" and data["target_lang"] == lang and data["index"] == 1
            for name, data in received
        )
    assert received[-1] == ("done", {"source_lang": "en", "target_langs": ["ja", "de"], "warnings": []})


# ---------------------------------------------------------------- languages that are detected


async def test_the_language_of_a_text_is_detected() -> None:
    text = "Wir verschieben die Besprechung auf Freitag."
    async with serving() as (_, client):
        for source in ({}, {"source_lang": None}, {"source_lang": "AUTO"}):
            body = {**source, "target_lang": "en", "text": text}
            answer = (await translate(client, body)).json()
            assert (answer["source_lang"], answer["translation"]) == ("de", f"[en] {text}"), source
        done = events((await translate(client, body, **STREAMED)).text)
    assert done[-1][1]["source_lang"] == done[-2][1]["source_lang"] == "de"


async def test_each_text_of_a_batch_has_its_own_language() -> None:
    texts = ["Können wir am Freitag anfangen?", "金曜日なら大丈夫です。", "We start on Friday.", "42 %"]
    async with serving() as (_, client):
        answer = (await translate(client, {"texts": texts, "target_lang": "en"})).json()
    found = [(item["source_lang"], item["translation"]) for item in answer["translations"]]
    assert answer["source_lang"] == "auto"
    assert found == [
        ("de", f"[en] {texts[0]}"),
        ("ja", f"[en] {texts[1]}"),
        ("en", texts[2]),
        # Without words there is nothing to translate.
        ("und", texts[3]),
    ]


# ---------------------------------------------------------------- unknown fields


async def test_unknown_fields_are_named() -> None:
    body = {**FROM_TO, "text": "hi", "tone": 1, "x" * 200: 2, "model": None}
    async with serving() as (_, client):
        warnings = (await translate(client, body)).json()["warnings"]
        many = {**FROM_TO, "text": "hi", **{f"field{n:02}": n for n in range(50)}}
        named = [item["field"] for item in (await translate(client, many)).json()["warnings"]]
    assert [(item["code"], item["field"]) for item in warnings] == [
        ("unknown_field", "model"),
        ("unknown_field", "tone"),
        ("unknown_field", "x" * 64),
    ]
    assert warnings[1]["message"] == "There is no field 'tone'; it is ignored."
    assert named == [f"field{n:02}" for n in range(8)]


async def test_non_text_field_is_refused_without_a_place() -> None:
    body = b'{"text": "hi", "source_lang": "en", "target_lang": "ja", "\xff": 1}'
    async with serving() as (gateway, client):
        response = await client.post("/v1/translate", content=body, headers={"Content-Type": "application/json"})
        check_problem(response, 400, "invalid_message", None)
        assert (gateway.gateway.scheduler.running, gateway.gateway.scheduler.waiting) == (0, 0)


# ---------------------------------------------------------------- refusals


REFUSED: list[tuple[Any, int, str, str | None]] = [
    (FROM_TO, 400, "invalid_message", "text"),
    ({**FROM_TO, "text": "a", "texts": ["b"]}, 400, "invalid_message", "text"),
    ({**FROM_TO, "text": None}, 400, "invalid_message", "text"),
    ({**FROM_TO, "text": 1}, 400, "invalid_message", "text"),
    ({**FROM_TO, "texts": ["a", 1]}, 400, "invalid_message", "texts[1]"),
    ({"text": "a", "source_lang": "en"}, 400, "invalid_message", "target_lang"),
    ({**FROM_TO, "text": "a", "formality": "rude"}, 400, "invalid_message", "formality"),
    ([], 400, "invalid_message", None),
    ({**FROM_TO, "texts": []}, 422, "invalid_value", "texts"),
    ({**FROM_TO, "texts": ["\n"]}, 422, "invalid_value", "texts[0]"),
    ({**FROM_TO, "text": "a", "target_langs": ["de"]}, 400, "invalid_message", "target_lang"),
    ({"text": "a", "source_lang": "en", "target_langs": []}, 422, "invalid_value", "target_langs"),
    ({"text": "a", "target_langs": ["de", "tlh"]}, 422, "unsupported_language", "target_langs[1]"),
    ({"text": "a", "target_langs": ["de"] * 9}, 422, "limit_exceeded", "target_langs"),
    ({**FROM_TO, "text": "a", "glossary": {"a": " "}}, 422, "invalid_value", "glossary"),
    (
        {"text": "a", "source_lang": "tlh", "target_lang": "en"},
        422,
        "unsupported_language",
        "source_lang",
    ),
    ({"text": "a", "source_lang": "en", "target_lang": ""}, 422, "unsupported_language", "target_lang"),
    ({**FROM_TO, "text": "a" * 21}, 422, "limit_exceeded", "text"),
    ({**FROM_TO, "texts": ["a" * 21]}, 422, "limit_exceeded", "texts[0]"),
    ({**FROM_TO, "texts": ["a"] * 65}, 422, "limit_exceeded", "texts"),
    ({**FROM_TO, "text": "a", "context": "c" * 31}, 422, "limit_exceeded", "context"),
    (
        {**FROM_TO, "text": "a", "glossary": {"a": "b", "c": "d", "e": "f"}},
        422,
        "limit_exceeded",
        "glossary",
    ),
    ({**FROM_TO, "text": "a", "glossary": {"a": "b" * 11}}, 422, "limit_exceeded", "glossary"),
]


async def test_what_cannot_be_used_is_named() -> None:
    limits = Limits(text_chars=20, context_chars=30, glossary_terms=2, term_chars=10)
    async with serving(settings=Settings(limits=limits)) as (_, client):
        for body, status, code, field in REFUSED:
            problem = check_problem(await translate(client, body), status, code, field)
            meaning = (await client.get(problem["type"])).json()
            assert (meaning["code"], meaning["status"]) == (code, status)
            assert meaning["retryable"] is problem["retryable"]


async def test_what_is_exactly_at_the_limits_is_taken() -> None:
    limits = Limits(text_chars=5, context_chars=6, glossary_terms=1, term_chars=4)
    body = {**FROM_TO, "texts": ["a" * 5] * 64, "context": "c" * 6, "glossary": {"t" * 4: "u" * 4}}
    async with serving(settings=Settings(limits=limits)) as (_, client):
        assert (await translate(client, body)).status_code == 200


@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
async def test_large_body_is_not_read_to_its_end(chunked: bool) -> None:
    content = b" " * (BODY_BYTES + 1)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 65_536):
            yield content[start : start + 65_536]

    async with serving() as (_, client):
        headers = {"Content-Type": "application/json"}
        response = await client.post("/v1/translate", content=chunks() if chunked else content, headers=headers)
        check_problem(response, 413, "message_too_large")
        fits = json.dumps({**FROM_TO, "text": "hi"}).encode().rjust(BODY_BYTES)
        response = await client.post("/v1/translate", content=fits, headers=headers)
        assert response.status_code == 200


async def test_full_queue_refuses_the_whole_call() -> None:
    script = Script(max_running=1, rules=(Rule("STALL", stall_after=0),))
    async with serving(settings=Settings(max_waiting=4), script=script) as (gateway, client):
        # One place in the engine, two of lookahead, two to wait.
        response = await translate(client, {**FROM_TO, "texts": ["STALL"] * 6})
        problem = check_problem(response, 503, "overloaded")
        assert problem["retryable"]
        assert 1_000 <= problem["retry_after_ms"] <= 1_500
        assert int(response.headers["retry-after"]) in (1, 2)
        assert (gateway.gateway.scheduler.running, gateway.gateway.scheduler.waiting) == (0, 0)
        assert (await translate(client, {**FROM_TO, "texts": ["fine"] * 5})).status_code == 200


async def test_full_queue_refuses_before_reading() -> None:
    script = Script(max_running=1, rules=(Rule("STALL", stall_after=0),))
    async with serving(settings=Settings(max_waiting=4), script=script) as (gateway, client):
        # One place in the engine, two of lookahead, two to wait.
        others = [asyncio.create_task(translate(client, {**FROM_TO, "text": "STALL"})) for _ in range(5)]
        while gateway.gateway.scheduler.waiting < 2:
            await asyncio.sleep(0.01)
        response = await client.post("/v1/translate", content=b"{", headers={"Content-Type": "application/json"})
        check_problem(response, 503, "overloaded")
        for other in others:
            other.cancel()
        await asyncio.wait(others)


async def test_errors_and_outcomes_are_counted() -> None:
    def errors(code: str) -> float:
        return REGISTRY.get_sample_value("gateway_errors_total", {"code": code}) or 0.0

    def outcomes(outcome: str) -> float:
        labels = {"outcome": outcome, "lang": "de"}
        return REGISTRY.get_sample_value("gateway_translations_total", labels) or 0.0

    codes = ("engine_failed", "not_found", "invalid_value")
    before = [errors(code) for code in codes]
    ended = [outcomes(outcome) for outcome in ("final", "engine_failed", "cancelled")]
    to_german = {"source_lang": "en", "target_lang": "de"}
    async with serving() as (_, client):
        await translate(client, {**to_german, "texts": ["FAIL", "fine"]}, **STREAMED)
        await translate(client, {**to_german, "texts": ["FAIL", "fine"]})
        await translate(client, {**to_german, "text": " "})
        await client.get("/v1/nothing")
        page = (await client.get("/metrics")).text
    assert [errors(code) - was for code, was in zip(codes, before, strict=True)] == [2, 1, 1]
    now = [outcomes(outcome) for outcome in ("final", "engine_failed", "cancelled")]
    assert [new - old for new, old in zip(now, ended, strict=True)] == [2, 2, 0]
    assert 'gateway_errors_total{code="not_found"}' in page


# ---------------------------------------------------------------- health, readiness, languages


class UnknownEngine(SimulatedEngine):
    """Does not know what its model can do before it is loaded."""

    def profile(self) -> EngineProfile:
        self._life.check()
        return super().profile()


async def test_while_the_engine_loads() -> None:
    async with serving(engine=UnknownEngine(Script(load_s=3_600))) as (_, client):
        assert (await client.get("/healthz")).json() == {"status": "alive"}
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "starting")
        assert "loading" in ready.json()["reason"]
        for response in (
            await translate(client, {**FROM_TO, "text": "hi"}),
            await client.get("/v1/languages"),
        ):
            problem = check_problem(response, 503, "engine_unavailable")
            assert problem["retryable"]
            assert int(response.headers["retry-after"]) * 1_000 == problem["retry_after_ms"]


async def test_readiness_follows_the_engines_state() -> None:
    settings = Settings(engine=EngineSettings(max_restarts=1, restart_backoff_s=3_600))
    async with serving(settings=settings) as (gateway, client):
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()) == (
            200,
            {"status": "ready", "reason": "", "running": 0, "waiting": 0, "auth": "none"},
        )
        gateway.kill_engine("out of memory")
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "restarting")
        assert "is being started again" in ready.json()["reason"]
        await gateway.gateway.engine.stop()
        assert (await client.get("/readyz")).json()["status"] == "draining"
        assert (await client.get("/healthz")).status_code == 200


async def test_when_the_engine_died_too_often() -> None:
    async with serving(settings=Settings(engine=EngineSettings(max_restarts=0))) as (gateway, client):
        gateway.kill_engine("out of memory")
        while gateway.gateway.engine.health().state is not EngineState.FAILED:
            await asyncio.sleep(0.005)
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "failed")
        assert "in a row" in ready.json()["reason"]


@swiftly
async def test_late_text_is_named() -> None:
    async with serving(settings=Settings(utterance_deadline_s=1)) as (_, client):
        answer = (await translate(client, {**FROM_TO, "texts": ["a", "STALL"]})).json()
        assert answer["translations"][1]["error"]["code"] == "deadline_exceeded"
        check_problem(await translate(client, {**FROM_TO, "text": "STALL"}), 504, "deadline_exceeded", "text")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/translate", {**FROM_TO, "text": "one two three"}),
        ("/v2/translate", {"source_lang": "EN", "target_lang": "JA", "text": ["one two three"]}),
        ("/translate", {"source": "en", "target": "ja", "q": "one two three"}),
    ],
)
async def test_text_beyond_the_window_names_it(path: str, body: dict[str, Any]) -> None:
    async with serving(script=Script(first_token_s=0, token_s=0, max_text_tokens=3)) as (_, client):
        answer = await client.post(path, json=body)
    assert answer.status_code == 413
    assert "longer than 3 tokens" in answer.text
    if path == "/v1/translate":
        check_problem(answer, 413, "text_too_long", "text")


async def test_draining_gateway_finishes_and_takes_no_more() -> None:
    async with serving() as (gateway, client):
        taken = asyncio.ensure_future(translate(client, {**FROM_TO, "text": "SLOW text"}))
        while not gateway.gateway.scheduler.running:
            await asyncio.sleep(0.005)
        draining = asyncio.ensure_future(gateway.gateway.drain())
        while not gateway.gateway.scheduler.draining:
            await asyncio.sleep(0.005)
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "draining")
        response = await translate(client, {**FROM_TO, "text": "late"})
        check_problem(response, 503, "draining")
        assert response.headers["retry-after"] == "1"
        assert (await taken).json()["translation"] == "[ja] SLOW text"
        await draining


class EnglishIntoFew(SimulatedEngine):
    """Translates only from English into German and Japanese, and from German into English."""

    def profile(self) -> EngineProfile:
        return replace(super().profile(), pairs=frozenset({("en", "ja"), ("en", "de"), ("de", "en")}))


async def test_which_languages_are_possible_from_those_spoken() -> None:
    async with serving(engine=EnglishIntoFew(SCRIPT)) as (_, client):
        assert (await client.get("/v1/languages")).json()["targets"] == {"en": ["ja", "de"], "de": ["en"]}
        body = {"text": "hi", "source_lang": "de"}
        assert (await translate(client, {**body, "target_lang": "en"})).status_code == 200
        refused = await translate(client, {**body, "target_lang": "ja"})
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["field"]) == (422, "unsupported_language", "target_lang")
    assert problem["detail"] == (
        "Nothing here translates German into Japanese; languages into which German is translated: en."
    )


async def test_languages() -> None:
    script = Script(languages=("en", "zh-hant", "xx"), options=frozenset({"glossary", "context"}))
    async with serving(script=script) as (_, client):
        assert (await client.get("/v1/languages")).json() == {
            "languages": [
                {"tag": "en", "name": "English"},
                {"tag": "zh-hant", "name": "Traditional Chinese"},
                {"tag": "xx", "name": "xx"},
            ],
            "options": ["context", "glossary"],
            "model": "simulated",
            "family": "simulated",
            "limits": msgspec.to_builtins(Limits()),
        }
