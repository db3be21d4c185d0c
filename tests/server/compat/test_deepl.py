"""DeepL's API with DeepL's own clients, for Python and for Node, against a gateway on a socket."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import deepl
import httpx
import pytest
from deepl.api_data import ModelType

from gateway.config import AuthSettings, Settings
from gateway.domain.engine import TranslationOptions
from gateway.domain.quotas import Quota
from gateway.engines.simulated import Rule, Script
from gateway.protocol.limits import Limits
from gateway.server.compat import requests
from gateway.server.compat.tagged import Tagged
from tests.gateways import SCRIPT, Running, running
from tests.keys import Keyring
from tests.over_http import serving
from tests.server.http.test_usage import Acme

ROOT = Path(__file__).parents[3]
OPTIONS = frozenset({"context", "formality"})

_Result = TypeVar("_Result")


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    async with running() as gateway:
        yield gateway


async def asked(gateway: Running, call: Callable[[deepl.DeepLClient], _Result], key: str = "any") -> _Result:
    """What a call of DeepL's client gives, which blocks."""

    def ask() -> _Result:
        with closing(deepl.DeepLClient(key, server_url=f"http://127.0.0.1:{gateway.port}")) as client:
            return call(client)

    return await asyncio.to_thread(ask)


async def node(gateway: Running, script: str) -> Any:
    """What a script with DeepL's client for Node writes, whose argument is the gateway's address."""
    process = await asyncio.create_subprocess_exec(
        *(str(ROOT / ".venv" / "bin" / "node"), "--input-type=module", "--eval", script),
        f"http://127.0.0.1:{gateway.port}",
        cwd=ROOT / ".venv" / "node",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return json.loads(said)


# ---------------------------------------------------------------- texts


async def test_one_text_and_several(gateway: Running) -> None:
    one = await asked(gateway, lambda client: client.translate_text("hi", source_lang="EN", target_lang="JA"))
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang, one.billed_characters) == ("[ja] hi", "EN", 2)
    texts = ["one", "", "two"]
    several = await asked(gateway, lambda client: client.translate_text(texts, source_lang="EN", target_lang="DE"))
    assert isinstance(several, list)
    assert [result.text for result in several] == ["[de] one", "", "[de] two"]


async def test_fifty_texts_pass_a_slow_engine() -> None:
    script = Script(first_token_s=0.01, token_s=0.001, max_running=1)
    texts = [f"text {n}" for n in range(50)]
    async with running(Settings(max_queue_s=0.1), script=script) as gateway:
        # After the first call it is known how slow the engine is.
        for _ in range(2):
            said = await asked(
                gateway, lambda client: client.translate_text(texts, source_lang="EN", target_lang="JA")
            )
            assert isinstance(said, list)
            assert [result.text for result in said] == [f"[ja] {text}" for text in texts]


async def test_the_source_language_is_detected(gateway: Running) -> None:
    texts = ["Können wir am Freitag anfangen?", "金曜日なら大丈夫です。", "We start on Friday."]
    found = await asked(gateway, lambda client: client.translate_text(texts, target_lang="EN-US"))
    assert isinstance(found, list)
    assert [(result.detected_source_lang, result.text) for result in found] == [
        ("DE", f"[en] {texts[0]}"),
        ("JA", f"[en] {texts[1]}"),
        ("EN", texts[2]),
    ]


@pytest.mark.parametrize(
    ("formality", "said"),
    [
        ("more", "formal"),
        ("prefer_more", "formal"),
        ("less", "informal"),
        ("prefer_less", "informal"),
        ("default", None),
    ],
)
async def test_context_and_formality_reach_the_engine(formality: str, said: str | None) -> None:
    async with running(script=Script(options=OPTIONS)) as gateway:
        options: list[TranslationOptions] = []
        admit = gateway.gateway.scheduler.admit

        def noted(meeting: str, requests: Any, **more: Any) -> Any:
            options.extend(request.options for request in requests)
            return admit(meeting, requests, **more)

        gateway.gateway.scheduler.admit = noted  # type: ignore[method-assign]
        await asked(
            gateway,
            lambda client: client.translate_text(
                "hi", source_lang="EN", target_lang="DE", context="we met", formality=formality
            ),
        )
    assert [(option.context, option.formality) for option in options] == [(("we met",), said)]


async def test_a_form_works_as_json_does(gateway: Running) -> None:
    async with httpx.AsyncClient(timeout=None) as client:  # noqa: S113
        url = f"http://127.0.0.1:{gateway.port}/v2/translate"
        form = {"text": ["one", "2 & 3"], "source_lang": "EN", "target_lang": "DE", "show_billed_characters": "1"}
        answer = (await client.post(url, data=form)).json()
        plain = (
            await client.post(url, json={"text": ["hi"], "source_lang": "en", "target_lang": "zh-hans"})
        ).json()
    assert answer == {
        "translations": [
            {"detected_source_language": "EN", "text": "[de] one", "billed_characters": 3},
            {"detected_source_language": "EN", "text": "[de] 2 & 3", "billed_characters": 5},
        ]
    }
    assert plain == {"translations": [{"detected_source_language": "EN", "text": "[zh] hi"}]}


@pytest.mark.parametrize("model_type", list(ModelType))
async def test_model_type_is_answered(gateway: Running, model_type: ModelType) -> None:
    texts = ["hi", ""]
    said = await asked(
        gateway,
        lambda client: client.translate_text(texts, source_lang="EN", target_lang="DE", model_type=model_type),
    )
    assert isinstance(said, list)
    used = "latency_optimized" if model_type is ModelType.LATENCY_OPTIMIZED else "quality_optimized"
    assert [result.model_type_used for result in said] == [used, used]
    without = await asked(gateway, lambda client: client.translate_text("hi", source_lang="EN", target_lang="DE"))
    assert isinstance(without, deepl.TextResult)
    assert without.model_type_used is None


@pytest.mark.parametrize(
    ("split_sentences", "said"),
    [
        (None, "[de] One two \n[de] three.\n\n[de] Four."),
        ("1", "[de] One two \n[de] three.\n\n[de] Four."),
        ("nonewlines", "[de] One two three.\n\n[de] Four."),
        ("0", "[de] One two three.\n\n[de] Four."),
    ],
)
async def test_wrapped_lines_are_joined_if_asked(gateway: Running, split_sentences: str | None, said: str) -> None:
    text = "One two \nthree.\n\nFour."
    result = await asked(
        gateway,
        lambda client: client.translate_text(
            text, source_lang="EN", target_lang="DE", split_sentences=split_sentences
        ),
    )
    assert isinstance(result, deepl.TextResult)
    assert (result.text, result.billed_characters) == (said, len(text))


@pytest.mark.parametrize("missing", ["text", "target_lang"])
async def test_missing_parameter_is_named(missing: str) -> None:
    async with serving() as (_, client):
        given = {"text": ["hi"], "target_lang": "DE"}
        given.pop(missing)
        answer = await client.post("/v2/translate", json=given)
    assert (answer.status_code, answer.json()) == (400, {"message": f"Parameter '{missing}' not specified."})


# ---------------------------------------------------------------- tags


async def test_xml_keeps_placeholders_and_tag_rules(gateway: Running) -> None:
    def ask(client: deepl.DeepLClient) -> Any:
        return client.translate_text(
            ["<d><t>One</t><s>Two</s>Hello <x>Ana</x> and <y/> others <i>here</i></d>", "1 <x>a</x>"],
            source_lang="EN",
            target_lang="DE",
            tag_handling="xml",
            ignore_tags=["x"],
            splitting_tags="s,t",
            non_splitting_tags=["d"],
            outline_detection=False,
        )

    assert [result.text for result in await asked(gateway, ask)] == [
        "<d><t>[de] One</t><s>[de] Two</s>[de] Hello <x>Ana</x> and <y/> others <i>here</i></d>",
        "1 <x>a</x>",
    ]
    placed = await asked(
        gateway,
        lambda client: client.translate_text(
            "Hello <x>Ana</x> and <y/> others",
            source_lang="EN",
            target_lang="DE",
            tag_handling="xml",
            ignore_tags="x",
        ),
    )
    assert isinstance(placed, deepl.TextResult)
    assert placed.text == "[de] Hello <x>Ana</x> and <y/> others"


async def test_parts_are_translated_where_tags_have_no_place_in_the_whole() -> None:
    # Said twice, what is to be kept could be either.
    async with running(script=Script(rules=(Rule(match="Ana and", repeat=2),))) as gateway:
        found = await asked(
            gateway,
            lambda client: client.translate_text(
                ["Hello <x>Ana</x> and 'others", 'He said <b>"Hello</b> to me"'],
                target_lang="DE",
                source_lang="EN",
                tag_handling="xml",
                ignore_tags="x",
            ),
        )
    assert isinstance(found, list)
    assert [result.text for result in found] == [
        "[de] Hello <x>Ana</x> [de] and 'others",
        '[de] He said "<b>Hello</b> to me"',
    ]


async def test_tags_are_read_and_placed_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    class Noted(Tagged):
        def __init__(self, *given: Any) -> None:
            threads.append(threading.current_thread().name)
            super().__init__(*given)

        def translated(self, *given: Any) -> tuple[str, list[str]]:
            threads.append(threading.current_thread().name)
            return super().translated(*given)

    monkeypatch.setattr("gateway.server.compat.requests.Tagged", Noted)
    async with serving() as (_, client):
        asked_for = {"text": ["<b>hi</b>"], "source_lang": "en", "target_lang": "de", "tag_handling": "xml"}
        assert (await client.post("/v2/translate", json=asked_for)).status_code == 200
    assert len(threads) == 2
    assert threading.main_thread().name not in threads


# ---------------------------------------------------------------- languages, usage


@pytest.mark.parametrize(
    ("roles", "quota", "status", "outcome"),
    [
        ({"read"}, Quota(), 403, "forbidden"),
        ({"speak"}, Quota(), 403, "forbidden"),
        ({"speak", "read"}, Quota(characters=0), 456, "daily_quota_exceeded"),
    ],
)
@pytest.mark.parametrize("path", ["/v2/translate", "/translate"])
async def test_refused_calls_are_not_looked_into(
    path: str,
    roles: set[str],
    quota: Quota,
    status: int,
    outcome: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(requests, "Tagged", lambda text, _: looked.append(text))
    keys, file = Keyring(tmp_path), tmp_path / "audit.jsonl"
    settings = Settings(auth=AuthSettings(keys_file=str(keys.path), audit_file=str(file)))
    call = {"text": ["a <x/>" * 9_000], "target_lang": "DE", "source_lang": "EN", "tag_handling": "xml"}
    if path == "/translate":
        call = {"q": "a <x/>" * 9_000, "source": "en", "target": "de", "format": "html"}
        status = 429 if status == 456 else status
    async with serving(settings=settings) as (gateway, client):
        monkeypatch.setattr(gateway.gateway.quotas, "quota_of", lambda _: quota)
        answer = await client.post(path, json=call, headers=keys.bearer(roles=frozenset(roles)))
    assert answer.status_code == status, answer.text
    assert looked == []
    assert [json.loads(line)["outcome"] for line in file.read_text().splitlines()] == [outcome]


async def test_norwegian_has_one_code_wherever_it_comes_from() -> None:
    """DeepL's own tests ask with `NB`."""
    async with running(script=Script(languages=("en", "nb"))) as gateway:
        sources = await asked(gateway, lambda client: client.get_source_languages())
        text = await asked(
            gateway, lambda client: client.translate_text("hei", source_lang="NB", target_lang="EN-US")
        )
    assert [language.code for language in sources] == ["EN", "NB"]
    assert not isinstance(text, list)
    assert text.detected_source_lang == "NB"


async def test_languages() -> None:
    async with running(script=Script(languages=("en", "de", "zh-hant"), options=OPTIONS)) as gateway:
        sources = await asked(gateway, lambda client: client.get_source_languages())
        targets = await asked(gateway, lambda client: client.get_target_languages())
        pairs = await asked(gateway, lambda client: client.get_glossary_languages())
    assert [(item.code, item.name) for item in sources] == [
        ("EN", "English"),
        ("DE", "German"),
        ("ZH-HANT", "Traditional Chinese"),
    ]
    assert [(item.code, item.name, item.supports_formality) for item in targets] == [
        ("EN-GB", "English (GB)", True),
        ("EN-US", "English (US)", True),
        ("DE", "German", True),
        ("ZH-HANT", "Traditional Chinese", True),
    ]
    assert pairs == []


async def test_usage_and_keys(tmp_path: Path) -> None:
    acme = Acme(tmp_path)
    acme.allow(characters=5)
    async with running(acme.settings()) as gateway:
        with pytest.raises(deepl.AuthorizationException):
            await asked(gateway, lambda client: client.get_usage())
        with pytest.raises(deepl.AuthorizationException):
            await asked(gateway, lambda client: client.translate_text("hi", target_lang="DE"), "wrong")
        before = await asked(gateway, lambda client: client.get_usage(), acme.api_key)
        assert (before.character.count, before.character.limit) == (0, 5)
        await asked(
            gateway,
            lambda client: client.translate_text("12345", source_lang="EN", target_lang="DE"),
            acme.api_key,
        )
        after = await asked(gateway, lambda client: client.get_usage(), acme.api_key)
        assert after.character.limit_reached
        with pytest.raises(deepl.QuotaExceededException, match="quota"):
            await asked(
                gateway,
                lambda client: client.translate_text("more", source_lang="EN", target_lang="DE"),
                acme.api_key,
            )
        await acme.allow_in(gateway)
        unlimited = await asked(gateway, lambda client: client.get_usage(), acme.api_key)
        assert (unlimited.character.count, unlimited.character.limit) == (5, 1_000_000_000_000)


async def test_wrong_key_is_audited_for_every_call(tmp_path: Path) -> None:
    keys, file = Keyring(tmp_path), tmp_path / "audit.jsonl"
    settings = Settings(auth=AuthSettings(keys_file=str(keys.path), audit_file=str(file)))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("translate", {"text": [" "]}),
        ("translate", {"text": []}),
        ("languages", {}),
        ("usage", {}),
    ]
    async with serving(settings=settings) as (_, client):
        for path, fields in calls:
            for header in ("DeepL-Auth-Key wrong", "Basic abc"):
                answer = await client.post(
                    f"/v2/{path}", json={"target_lang": "DE", **fields}, headers={"Authorization": header}
                )
                assert (answer.status_code, [*answer.json()]) == (403, ["message"])
    entries = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [(entry["action"], entry["outcome"]) for entry in entries] == [
        *[("translate", "unauthenticated")] * 6,
        *[("usage", "unauthenticated")] * 2,
    ]


async def test_nothing_is_translated_if_one_text_cannot_be() -> None:
    async with serving(settings=Settings(limits=Limits(text_chars=20))) as (running, client):
        admitted: list[Any] = []
        running.gateway.scheduler.admit = lambda *args, **more: admitted.append(args)  # type: ignore[method-assign,assignment]
        body = {"text": ["fine", "a" * 21], "source_lang": "EN", "target_lang": "DE"}
        answer = await client.post("/v2/translate", json=body)
    assert (answer.status_code, admitted) == (400, [])


async def test_meeting_token_translates_and_learns_no_usage(tmp_path: Path) -> None:
    acme = Acme(tmp_path)
    async with running(acme.settings()) as gateway:
        with pytest.raises(deepl.AuthorizationException, match="API key"):
            await asked(gateway, lambda client: client.get_usage(), acme.token())
        with pytest.raises(deepl.AuthorizationException, match="'de'"):
            await asked(
                gateway,
                lambda client: client.translate_text("hi", source_lang="EN", target_lang="DE"),
                acme.token(langs=frozenset({"ja"})),
            )


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target_lang": "XX"}, "Value for 'target_lang' not supported"),
        ({"source_lang": "XX"}, "Value for 'source_lang' not supported"),
        ({"tag_handling": "xml", "text": "a <b>"}, "tag_handling.*mismatched tag"),
        ({"tag_handling": "json"}, "tag_handling"),
        ({"tag_handling": "html", "text": "<b>" + "a" * 21}, "21 characters"),
        ({"tag_handling": "html", "text": "".join(f"<br>a{n}" for n in range(257))}, "limit is 256"),
        ({"tag_handling": "html", "text": "<" * 65_537}, "limit is 65536"),
        ({"glossary": "an id"}, "takes no glossaries"),
        ({"formality": "more"}, "Target language 'DE' doesn't support formality"),
        ({"formality": "invalid"}, "Value for 'formality' not supported"),
        ({"split_sentences": "invalid"}, "Value for 'split_sentences' not supported"),
        ({"extra_body_parameters": {"preserve_formatting": "maybe"}}, "Value for 'preserve_formatting' not"),
        ({"extra_body_parameters": {"model_type": "best"}}, "Value for 'model_type' not supported"),
        ({"tag_handling": "xml", "tag_handling_version": "v3"}, "Value for 'tag_handling_version' not supported"),
        ({"extra_body_parameters": {"style_id": "an id"}}, "style_id"),
        ({"translation_memory": "an id"}, "translation_memory_id"),
        ({"custom_instructions": ["be brief"]}, "custom_instructions"),
        ({"glossary_ids": ["one", "two"]}, "glossary_ids"),
        ({"context": "c" * 31}, "context has 31 characters"),
        ({"text": "a" * 21}, "21 characters"),
        ({"text": ["fine", "FAIL"]}, "this text fails"),
        ({"text": ["a"] * 65}, "65 texts"),
    ],
)
async def test_what_cannot_be_done_is_said_in_deepls_form(fields: dict[str, Any], message: str) -> None:
    given = {"text": "hi", "source_lang": "EN", "target_lang": "DE", **fields}
    async with running(Settings(limits=Limits(text_chars=20, context_chars=30))) as gateway:
        with pytest.raises(deepl.DeepLException, match=message) as caught:
            await asked(gateway, lambda client: client.translate_text(**given))
    # DeepL's clients would ask again after any status from 500 on.
    assert caught.value.http_status_code == 400


async def test_what_the_gateway_does_not_have(gateway: Running) -> None:
    missing: list[Callable[[deepl.DeepLClient], Any]] = [
        lambda client: client.get_all_style_rules(),
        lambda client: client.rephrase_text("hi", target_lang="DE"),
        lambda client: client.translate_document_upload(b"hi", filename="a.txt", target_lang="DE"),
    ]
    for call in missing:
        with pytest.raises(deepl.DeepLException, match="no such part of DeepL's API") as caught:
            await asked(gateway, call)
        assert caught.value.http_status_code == 404


async def test_retryable_error_is_503_with_the_wait() -> None:
    script = Script(max_running=1, rules=SCRIPT.rules)
    async with serving(settings=Settings(max_waiting=2), script=script) as (_, client):
        body = {"text": ["STALL"] * 6, "source_lang": "EN", "target_lang": "DE"}
        answer = await client.post("/v2/translate", json=body)
        assert (answer.status_code, [*answer.json()]) == (503, ["message"])
        assert int(answer.headers["retry-after"]) >= 1


async def test_a_tenant_that_has_too_much_waiting_is_429(tmp_path: Path) -> None:
    acme = Acme(tmp_path)
    acme.allow(waiting=0)
    async with serving(settings=acme.settings(), script=Script(max_running=1, rules=SCRIPT.rules)) as (_, client):
        body = {"text": ["STALL"] * 6, "source_lang": "EN", "target_lang": "DE"}
        header = {"Authorization": f"DeepL-Auth-Key {acme.api_key}"}
        assert (await client.post("/v2/translate", json=body, headers=header)).status_code == 429
        basic = await client.post("/v2/translate", json=body, headers={"Authorization": "Basic abc"})
        assert basic.status_code == 403


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"[]", "application/json"),
        (b"{", "application/json"),
        (b'{"text": "not a list", "target_lang": "DE"}', "application/json"),
        (b"text=%ff&target_lang=DE", "application/x-www-form-urlencoded"),
        (b"&".join([b"text=a"] * 1_001), "application/x-www-form-urlencoded"),
        (b"", "application/json"),
        (b'{"text": [], "target_lang": "DE"}', "application/json"),
    ],
)
async def test_a_body_that_is_none(content: bytes, media_type: str) -> None:
    async with serving() as (_, client):
        answer = await client.post("/v2/translate", content=content, headers={"Content-Type": media_type})
    assert (answer.status_code, [*answer.json()]) == (400, ["message"])


# ---------------------------------------------------------------- Node

NODE = """
import * as deepl from "deepl-node";

const client = new deepl.DeepLClient("any", { serverUrl: process.argv[1], maxRetries: 0, minTimeout: 600_000 });
const one = await client.translateText("Guten Morgen zusammen", null, "en-US");
const several = await client.translateText(["one", "two"], "en", "ja");
const languages = await client.getTargetLanguages();
const usage = await client.getUsage();
const html = await client.translateText("<p>hi <x>Ana</x></p>", "en", "de", {
  tagHandling: "html",
  ignoreTags: ["x", "y"],
});
const broken = client.translateText("<p>hi", "en", "de", { tagHandling: "xml" });
const refused = await broken.catch((error) => error.message);
console.log(JSON.stringify({
  one: [one.text, one.detectedSourceLang, one.billedCharacters],
  several: several.map((result) => result.text),
  languages: languages.map((language) => language.code),
  usage: usage.character.count >= 0,
  html: html.text,
  refused,
}));
"""


async def test_the_client_for_node(gateway: Running) -> None:
    found = await node(gateway, NODE)
    assert "tag_handling" in found.pop("refused")
    assert found == {
        "one": ["[en] Guten Morgen zusammen", "de", 21],
        "several": ["[ja] one", "[ja] two"],
        "languages": ["en-GB", "en-US", "ja", "es", "de", "fr", "zh", "zh-HANS"],
        "usage": True,
        "html": "<p>[de] hi <x>Ana</x></p>",
    }
