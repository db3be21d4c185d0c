"""`/asyncapi.json` and `/openapi.json`: they say all there is, and what they say is true."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import httpx
import msgspec
import pytest
from jsonschema import Draft202012Validator
from starlette.routing import Route

from gateway.domain.engine import EngineProfile
from gateway.engines.simulated import SimulatedEngine
from gateway.protocol.limits import Limits
from gateway.protocol.messages import (
    SessionStart,
    TranslationFinal,
    UtteranceFinal,
)
from gateway.server.guard.audit import Audit
from gateway.server.guard.identity import Identity
from gateway.server.http import admin, tokens, usage
from gateway.server.http.bodies import (
    HTTP_ERRORS,
    HTTP_STATUSES,
    QR_ERRORS,
    TRANSCRIPT_ERRORS,
    TRANSLATE_ERRORS,
)
from gateway.server.http.openapi import openapi
from gateway.server.http.request_bodies import BODY_BYTES, decoded
from gateway.server.http.transcripts import MEDIA_TYPES
from gateway.server.http.translate_request import TRANSLATE_BODY, asked
from gateway.server.translate.plan import plan
from tests.documents import ASYNCAPI, nodes, resolve, validator
from tests.gateways import running
from tests.over_http import serving
from tests.server.http.api_routes import api_routes

OPENAPI = openapi(limits=Limits(), batch_texts=64, body_bytes=1_000)

DOCUMENTS = [ASYNCAPI, OPENAPI]

TRANSCRIPT = "/v1/meetings/{meeting}/transcript.{format}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=["asyncapi", "openapi"])
def test_a_document_is_plain_json_whose_references_resolve(document: Any) -> None:
    assert json.loads(msgspec.json.encode(document)) == json.loads(json.dumps(document))
    refs = [node["$ref"] for node in nodes(document) if "$ref" in node]
    assert refs
    for ref in refs:
        assert resolve(document, ref) is not None
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
        assert schema["description"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=["asyncapi", "openapi"])
def test_every_schema_of_a_document_is_used(document: Any) -> None:
    refs = {node["$ref"] for node in nodes(document) if "$ref" in node}
    assert {f"#/components/schemas/{name}" for name in document["components"]["schemas"]} <= refs


# ---------------------------------------------------------------- OpenAPI


def test_without_keys_a_token_may_be_left_out() -> None:
    document = openapi(limits=Limits(), batch_texts=64, body_bytes=1_000, has_keys=False)

    def security(document: Any) -> set[str]:
        return {json.dumps(node["security"]) for node in nodes(document["paths"]) if "security" in node}

    assert security(document) == {'[{}, {"bearer": []}]'}
    assert security(OPENAPI) == {'[{"bearer": []}]'}


def test_ids_and_tags_have_their_form_in_the_schemas() -> None:
    languages = next(each for each in OPENAPI["paths"][TRANSCRIPT]["get"]["parameters"] if each["name"] == "lang")
    check = Draft202012Validator(languages["schema"])
    assert check.is_valid(["en", "zh-Hant"])
    assert not check.is_valid([""])
    token = validator(OPENAPI, "#/components/schemas/TokenBody")
    assert token.is_valid({"sub": "ana", "meeting": "standup"})
    assert not token.is_valid({"sub": "ana", "meeting": ""})
    assert "404" in OPENAPI["paths"]["/metrics"]["get"]["responses"]


def test_every_route_is_documented_and_no_other() -> None:
    engine = SimulatedEngine()
    routes = api_routes(engine)
    routes += [
        *admin.routes(admin.own_metrics(engine)),
        *tokens.routes(cast(Any, None), Identity(), None, Audit()),
    ]
    routes += usage.routes(Identity(), Audit(), cast(Any, None))
    served = {route.path for route in routes if isinstance(route, Route)}
    assert served - {"/v1/stream", "/v1/{rest:path}"} == set(OPENAPI["paths"])


def test_the_limits_of_this_gateway_are_in_the_schema() -> None:
    limits = Limits(text_chars=3, context_chars=4, glossary_terms=1, term_chars=2)
    document = openapi(limits=limits, batch_texts=2, body_bytes=77)
    assert "77 bytes" in document["paths"]["/v1/translate"]["post"]["description"]
    check = validator(document, "#/components/schemas/TranslateBody")
    base = {"source_lang": "en", "target_lang": "ja"}
    for fits in (
        {"text": "abc"},
        {"texts": ["abc", "abc"], "context": "abcd", "glossary": {"ab": "cd"}, "formality": "formal"},
        {"text": "a", "context": None, "glossary": None, "formality": None},
    ):
        check.validate({**base, **fits})
        asked(decoded(TRANSLATE_BODY, json.dumps({**base, **fits}).encode()))
    refused: list[dict[str, Any]] = [
        {},
        {"text": "a", "texts": ["a"]},
        {"text": "abcd"},
        {"text": ""},
        {"texts": []},
        {"texts": ["abcd"]},
        {"texts": ["a", "b", "c"]},
        {"text": "a", "context": "abcde"},
        {"text": "a", "glossary": {"a": "b", "c": "d"}},
        {"text": "a", "glossary": {"abc": "d"}},
        {"text": "a", "glossary": {"a": "bcd"}},
        {"text": "a", "formality": "rude"},
        {"text": "a", "target_langs": ["de"]},
    ]
    for wrong in refused:
        assert not check.is_valid({**base, **wrong}), wrong


def test_the_examples_can_be_sent() -> None:
    content = OPENAPI["paths"]["/v1/translate"]["post"]["requestBody"]["content"]["application/json"]
    check = validator(OPENAPI, content["schema"]["$ref"])
    profile = EngineProfile("m", "f", languages=("en", "de", "ja"))
    for item in content["examples"].values():
        check.validate(item["value"])
        body = decoded(TRANSLATE_BODY, json.dumps(item["value"]).encode())
        planned = plan(
            asked(body),
            id_prefix="x",
            scope="http:1.1.1.1",
            profile=profile,
            limits=Limits(),
            batch_texts=64,
            segment_chars=120,
            detect=lambda _text, _languages: "en",
        )
        assert all(job.requests for job in planned.jobs)


async def test_real_answers_fit_their_schemas() -> None:
    base = {"source_lang": "en", "target_lang": "ja"}
    calls: list[tuple[str, str, dict[str, Any] | None, dict[str, str]]] = [
        ("post", "/v1/translate", {**base, "text": "hi", "formality": "formal"}, {}),
        ("post", "/v1/translate", {**base, "texts": ["hi", "FAIL"]}, {}),
        ("post", "/v1/translate", {"target_lang": "ja", "text": "Good morning", "tone": 1}, {}),
        ("post", "/v1/translate", {"target_langs": ["ja", "de"], "texts": ["hi", "42", ""]}, {}),
        ("post", "/v1/translate", {"target_langs": ["ja"], "texts": ["hi", ""]}, {"Accept": "text/event-stream"}),
        ("post", "/v1/translate", {**base, "text": 1}, {}),
        ("post", "/v1/translate", {**base, "text": ""}, {}),
        ("post", "/v1/translate", {**base, "text": "FAIL"}, {}),
        ("post", "/v1/translate", {**base, "texts": ["FAIL", "fine"]}, {"Accept": "text/event-stream"}),
        *(("get", path, None, {}) for path, of in OPENAPI["paths"].items() if "get" in of and path != TRANSCRIPT),
        ("post", "/v1/tokens", {"sub": "ana"}, {}),
        ("post", "/v1/revocations", {"all": True}, {}),
        ("get", "/errors/overloaded", None, {}),
        ("get", "/qr.svg?link=https://example.org/", None, {}),
        *(
            ("get", f"/v1/meetings/{meeting}/transcript.{format}?lang=ja,de", None, {})
            for meeting in ("standup", "nobody-came")
            for format in MEDIA_TYPES
        ),
    ]
    seen = set()
    async with serving() as (gateway, client):
        async with gateway.peer() as peer:
            await peer.send(SessionStart(reads=["ja"], speaks="en", meeting="standup", name="Ana"))
            await peer.send(UtteranceFinal("1", 1, "hi"))
            await peer.until(TranslationFinal)
        for method, path, body, headers in calls:
            response = await client.request(method, path, json=body, headers=headers)
            address = re.sub("(?<=^/errors/).*", "{code}", path)
            is_transcript = address.startswith("/v1/meetings/") and "/transcript." in address
            address = TRANSCRIPT if is_transcript else address.partition("?")[0]
            documented = OPENAPI["paths"][address][method]
            content = documented["responses"][str(response.status_code)]["content"]
            media_type = response.headers["content-type"].partition(";")[0]
            seen.add((response.status_code, media_type))
            schema = content[media_type].get("schema")
            if media_type == "text/event-stream":
                for block in response.text.removesuffix("\n\n").split("\n\n"):
                    name, data = block.split("\n")
                    ref = content[media_type]["x-events"][name.removeprefix("event: ")]["$ref"]
                    validator(OPENAPI, ref).validate(json.loads(data.removeprefix("data: ")))
            elif "json" in media_type and schema is not None:
                Draft202012Validator({**OPENAPI, **schema}).validate(response.json())
    assert seen == {
        (200, "application/json"),
        (200, "text/event-stream"),
        (200, "text/plain"),
        (200, "text/vtt"),
        (200, "application/x-subrip"),
        (200, "image/svg+xml"),
        (400, "application/problem+json"),
        (404, "application/problem+json"),
        (422, "application/problem+json"),
        (502, "application/problem+json"),
    }


def test_every_error_code_of_http_is_listed() -> None:
    listed = {item["code"]: item["status"] for item in OPENAPI["x-error-codes"]}
    assert listed.items() >= {cls.code: cls.http_status for cls in HTTP_ERRORS}.items()
    assert sorted(listed.values()) == sorted([*(cls.http_status for cls in HTTP_ERRORS), *HTTP_STATUSES])
    for operation, errors, of_http in (
        (OPENAPI["paths"]["/v1/translate"]["post"], TRANSLATE_ERRORS, {415}),
        (OPENAPI["paths"][TRANSCRIPT]["get"], TRANSCRIPT_ERRORS, {404}),
        (OPENAPI["paths"]["/qr.svg"]["get"], QR_ERRORS, set[int]()),
        (OPENAPI["paths"]["/qr.svg"]["post"], QR_ERRORS, set[int]()),
    ):
        described = operation["responses"]
        assert {int(status) for status in described} == {200, *of_http, *(cls.http_status for cls in errors)}
        for cls in errors:
            assert f"`{cls.code}`" in described[str(cls.http_status)]["description"]


async def test_the_documents_are_served_with_the_limits_in_force() -> None:
    async with running() as gateway, httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}") as client:
        assert (await client.get("/asyncapi.json")).json() == json.loads(json.dumps(ASYNCAPI))
        limits = gateway.gateway.settings.limits
        expected = openapi(limits=limits, batch_texts=64, body_bytes=BODY_BYTES, has_keys=False)
        assert (await client.get("/openapi.json")).json() == json.loads(json.dumps(expected))
