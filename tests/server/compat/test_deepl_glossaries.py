"""DeepL's glossaries with DeepL's own clients, for Python and for Node, against gateways on a socket."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import deepl
import pytest
from deepl import util
from deepl.api_data import MultilingualGlossaryDictionaryEntries, MultilingualGlossaryInfo
from hypothesis import given
from hypothesis import strategies as st

from gateway.config import AuthSettings, EventLogSettings, Settings, StoreSettings
from gateway.domain.errors import GatewayError
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits
from gateway.server.compat.deepl_glossaries import MOST_ENTRIES, Format, read_entries, tab_separated
from tests.gateways import Running, running
from tests.keys import Keyring
from tests.over_http import serving
from tests.redis_server import shared_server, shared_urls
from tests.server.compat.test_deepl import asked, node

SCRIPT = Script(options=frozenset({"glossary"}))
TERMS = {"launch": "Start", "Team A": "Mannschaft A"}


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    async with running(script=SCRIPT) as gateway:
        yield gateway


def a_store() -> StoreSettings:
    """An empty one that gateways share."""
    return StoreSettings(url=shared_server().url, prefix=f"{secrets.token_hex(4)}:")


def noted_terms(gateway: Running) -> list[dict[str, str]]:
    """Grows with the terms of every text that the gateway translates."""
    terms: list[dict[str, str]] = []
    admit = gateway.gateway.scheduler.admit

    def noted(meeting: str, requests: Any, **more: Any) -> Any:
        terms.extend(dict(request.options.glossary) for request in requests)
        return admit(meeting, requests, **more)

    gateway.gateway.scheduler.admit = noted  # type: ignore[method-assign]
    return terms


async def test_a_glossary_from_its_creation_to_its_end(gateway: Running) -> None:
    made = await asked(gateway, lambda client: client.create_glossary("Words", "EN", "DE", TERMS))
    assert (made.name, made.source_lang, made.target_lang, made.entry_count, made.ready) == (
        "Words",
        "EN",
        "DE",
        2,
        True,
    )
    (listed,) = await asked(gateway, lambda client: client.list_glossaries())
    assert str(listed) == str(made)
    found = await asked(gateway, lambda client: client.get_glossary(made.glossary_id))
    assert found.creation_time == made.creation_time
    assert await asked(gateway, lambda client: client.get_glossary_entries(made)) == TERMS
    await asked(gateway, lambda client: client.delete_glossary(made))
    for call in ("get_glossary", "get_glossary_entries", "delete_glossary"):
        with pytest.raises(deepl.GlossaryNotFoundException):
            await asked(gateway, lambda client, call=call: getattr(client, call)(made.glossary_id))  # type: ignore[misc]
    assert await asked(gateway, lambda client: client.list_glossaries()) == []


async def test_its_terms_go_with_texts_in_which_they_occur(gateway: Running) -> None:
    terms = noted_terms(gateway)
    made = await asked(gateway, lambda client: client.create_glossary("Words", "EN", "DE", TERMS))

    def ask(text: str, **more: Any) -> Any:
        more = {"source_lang": "EN", "target_lang": "DE", "glossary": made, **more}
        return asked(gateway, lambda client: client.translate_text(text, **more))

    assert (await ask("The Launch is on Friday.")).text == "[de] The Launch is on Friday."
    await ask("Nothing of it.")
    await ask("<p>team a</p>", tag_handling="html")
    assert terms == [{"launch": "Start"}, {}, {"Team A": "Mannschaft A"}]
    with pytest.raises(deepl.DeepLException, match="No dictionary found for language pair en to fr"):
        await ask("hi", glossary=made.glossary_id, target_lang="FR")
    with pytest.raises(deepl.DeepLException, match="no glossary"):
        await ask("hi", glossary="unknown")


async def test_terms_are_looked_for_in_threads_and_short_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_in: list[tuple[int, bool]] = []

    def noted(terms: dict[str, str], texts: list[str]) -> dict[str, str]:
        looked_in.append((len(texts[0]), threading.current_thread() is threading.main_thread()))
        return terms

    monkeypatch.setattr("gateway.server.compat.deepl_glossaries._occurring", noted)
    async with serving(script=SCRIPT) as (_, client):
        new = {"name": "n", "source_lang": "en", "target_lang": "de", "entries": "a\tb"}
        id = (await client.post("/v2/glossaries", json=new)).json()["glossary_id"]
        call = {"source_lang": "en", "target_lang": "de", "glossary_id": id}
        for text, more, status in [
            ("a", {}, 200),
            ("a" * 2_001, {}, 400),
            ("a" * 65_537, {"tag_handling": "xml"}, 400),
        ]:
            answer = await client.post("/v2/translate", json=call | more | {"text": [text]})
            assert answer.status_code == status
    assert looked_in == [(1, False)]


async def test_the_pairs_are_those_of_the_model(gateway: Running) -> None:
    pairs = await asked(gateway, lambda client: client.get_glossary_languages())
    assert ("EN", "JA") in {(pair.source_lang.upper(), pair.target_lang.upper()) for pair in pairs}
    assert len(pairs) == 30


async def test_several_dictionaries(gateway: Running) -> None:
    def entries(source: str, target: str, **terms: str) -> MultilingualGlossaryDictionaryEntries:
        return MultilingualGlossaryDictionaryEntries(source, target, terms)

    def infos(glossary: MultilingualGlossaryInfo) -> set[tuple[str, str, int]]:
        return {(each.source_lang, each.target_lang, each.entry_count) for each in glossary.dictionaries}

    def steps(client: deepl.DeepLClient) -> None:
        made = client.create_multilingual_glossary(
            "Words", [entries("EN", "DE", launch="Start"), entries("DE", "EN", Start="launch", Team="team")]
        )
        id = made.glossary_id
        assert infos(made) == {("EN", "DE", 1), ("DE", "EN", 2)}
        assert [each.glossary_id for each in client.list_multilingual_glossaries()] == [id]
        # Version 2 of the API knows glossaries of one pair.
        assert client.list_glossaries() == []
        with pytest.raises(deepl.GlossaryNotFoundException):
            client.get_glossary(id)
        renamed = client.update_multilingual_glossary_name(id, "New")
        assert (renamed.name, infos(renamed)) == ("New", infos(made))
        merged = client.update_multilingual_glossary_dictionary(id, entries("EN", "DE", launch="Anfang", a="b"))
        assert infos(merged) == {("EN", "DE", 2), ("DE", "EN", 2)}
        replaced = client.replace_multilingual_glossary_dictionary(id, entries("DE", "EN", Ende="end"))
        assert (replaced.source_lang, replaced.entry_count) == ("DE", 1)
        (read,) = client.get_multilingual_glossary_entries(id, "EN", "DE").dictionaries
        assert str(read.entries) == "launch\tAnfang\na\tb"
        client.delete_multilingual_glossary_dictionary(id, source_lang="EN", target_lang="DE")
        assert infos(client.get_multilingual_glossary(id)) == {("DE", "EN", 1)}
        with pytest.raises(deepl.GlossaryNotFoundException):
            client.get_multilingual_glossary_entries(id, "EN", "DE")
        client.delete_multilingual_glossary(id)
        assert client.list_multilingual_glossaries() == []

    await asked(gateway, steps)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"source_lang": "tlh"}, "Value for 'source_lang' not supported. "),
        ({"target_lang": "en"}, "English"),
        ({"entries": "a"}, "two terms"),
        ({"entries_format": "xls"}, "entries_format"),
        ({"name": ""}, "name"),
        ({"entries": None}, "Value for 'entries' not supported"),
    ],
)
async def test_what_cannot_be_kept_is_said(body: dict[str, Any], said: str) -> None:
    given = {"name": "n", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
    async with serving(script=SCRIPT) as (_, client):
        answer = await client.post("/v2/glossaries", json=given | body)
        assert (answer.status_code, [*answer.json()]) == (400, ["message"])
        assert said in answer.json()["message"]
        assert (await client.get("/v2/glossaries")).json() == {"glossaries": []}


async def test_dictionaries_that_do_not_do() -> None:
    dictionaries = [{"source_lang": "en", "target_lang": "de", "entries": "a\tb"}] * 2
    async with serving(script=SCRIPT) as (_, client):
        answer = await client.post("/v3/glossaries", json={"name": "n", "dictionaries": dictionaries})
    assert answer.status_code == 400
    assert "Two dictionaries" in answer.json()["message"]


async def test_glossary_may_begin_without_dictionaries(gateway: Running) -> None:
    def steps(client: deepl.DeepLClient) -> None:
        made = client.create_multilingual_glossary("Words", [])
        assert made.dictionaries == []
        assert client.list_glossaries() == []
        entries = MultilingualGlossaryDictionaryEntries("EN", "DE", {"launch": "Start"})
        client.replace_multilingual_glossary_dictionary(made, entries)
        assert client.get_glossary_entries(made.glossary_id) == {"launch": "Start"}

    await asked(gateway, steps)


async def test_list_of_one_glossary_is_used(gateway: Running) -> None:
    terms = noted_terms(gateway)
    made = await asked(gateway, lambda client: client.create_glossary("Words", "EN", "DE", TERMS))
    await asked(
        gateway,
        lambda client: client.translate_text(
            "launch", source_lang="EN", target_lang="DE", glossary_ids=[made.glossary_id]
        ),
    )
    assert terms == [{"launch": "Start"}]


async def test_none_is_made_where_the_model_takes_none() -> None:
    """What other gateways of the store can use is there all the same, to be read and deleted."""
    settings = Settings(store=a_store())
    pair = {"source_lang": "en", "target_lang": "de", "entries": "a\tb"}
    new = {"name": "n", "dictionaries": [pair]}
    async with serving(settings=settings, script=SCRIPT) as (_, client):
        made = (await client.post("/v3/glossaries", json=new)).json()
    async with serving(settings=settings) as (_, client):
        path = f"/v3/glossaries/{made['glossary_id']}"
        for answer in (
            await client.post("/v2/glossaries", json={"name": "n", **pair}),
            await client.post("/v3/glossaries", json=new),
            await client.post("/v3/glossaries", json={"name": "n"}),
            await client.patch(path, json=new),
            await client.put(f"{path}/dictionaries", json=pair),
        ):
            said = {"message": "The model simulated takes no glossaries (dictionaries)."}
            assert (answer.status_code, answer.json()) == (400, said)
        assert (await client.get("/v3/glossaries")).json() == {"glossaries": [made]}
        assert (await client.get(f"{path}/entries", params=pair)).json()["dictionaries"][0]["entries"] == "a\tb"
        assert (await client.delete(path)).status_code == 204


async def test_changes_at_the_same_time_are_all_kept() -> None:
    async with serving(settings=Settings(store=a_store()), script=SCRIPT) as (_, client):
        first = {"source_lang": "en", "target_lang": "de", "entries": "a\tb"}
        made = (await client.post("/v3/glossaries", json={"name": "n", "dictionaries": [first]})).json()
        path = f"/v3/glossaries/{made['glossary_id']}"
        others = [{"dictionaries": [first | {"target_lang": lang}]} for lang in ("ja", "fr", "es", "zh")]
        answers = await asyncio.gather(*(client.patch(path, json=other) for other in others))
        assert {answer.status_code for answer in answers} == {200}
        assert len((await client.get(path)).json()["dictionaries"]) == 5


async def test_glossaries_are_their_tenants_and_changes_are_recorded(tmp_path: Path) -> None:
    keys, file = Keyring(tmp_path), tmp_path / "audit.jsonl"
    auth = AuthSettings(keys_file=str(keys.path), audit_file=str(file))
    async with running(Settings(auth=auth), script=SCRIPT) as gateway:
        with pytest.raises(deepl.AuthorizationException):
            await asked(gateway, lambda client: client.list_glossaries(), "wrong")
        with pytest.raises(deepl.AuthorizationException, match="API key"):
            await asked(gateway, lambda client: client.list_glossaries(), keys.token())
        made = await asked(gateway, lambda client: client.create_glossary("n", "EN", "DE", TERMS), keys.api_key)
        text = await asked(
            gateway,
            lambda client: client.translate_text("launch", source_lang="EN", target_lang="DE", glossary=made),
            keys.token(),
        )
        assert isinstance(text, deepl.TextResult)
        await asked(gateway, lambda client: client.delete_glossary(made), keys.api_key)
    entries = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [(each["action"], each["outcome"], each["tenant"], each["detail"]) for each in entries] == [
        ("glossary", "unauthenticated", None, None),
        ("glossary", "forbidden", "acme", None),
        ("glossary", "ok", "acme", made.glossary_id),
        ("glossary", "ok", "acme", made.glossary_id),
    ]


async def test_they_outlive_a_restart(tmp_path: Path) -> None:
    settings = Settings(event_log=EventLogSettings(handover_file=str(tmp_path / "handover")))
    async with running(settings, script=SCRIPT) as gateway:
        made = await asked(gateway, lambda client: client.create_glossary("n", "EN", "DE", TERMS))
        await gateway.gateway.drain()
    async with running(settings, script=SCRIPT) as gateway:
        assert await asked(gateway, lambda client: client.get_glossary_entries(made)) == TERMS


async def test_order_of_store_urls_does_not_matter() -> None:
    urls, prefix = shared_urls(2), f"{secrets.token_hex(4)}:"
    orders = [urls, " ".join(reversed(urls.split()))]
    one, other = (Settings(store=StoreSettings(url=each, prefix=prefix)) for each in orders)
    async with running(one, script=SCRIPT) as here, running(other, script=SCRIPT) as there:
        for maker, reader in ((here, there), (there, here)):
            made = await asked(maker, lambda client: client.create_glossary("n", "EN", "DE", TERMS))
            assert await asked(reader, lambda client, made=made: client.get_glossary_entries(made)) == TERMS  # type: ignore[misc]


NODE = """
import * as deepl from "deepl-node";

const client = new deepl.DeepLClient("any", { serverUrl: process.argv[1], maxRetries: 0, minTimeout: 600_000 });
const entries = (terms) => new deepl.GlossaryEntries({ entries: terms });
const one = await client.createGlossary("Words", "en", "de", entries({ launch: "Start" }));
const listed = await client.listGlossaries();
const back = await client.getGlossaryEntries(one);
const text = await client.translateText("The launch", "en", "de", { glossary: one });
await client.deleteGlossary(one);
const several = await client.createMultilingualGlossary("More", [
  { sourceLangCode: "en", targetLangCode: "de", entries: entries({ launch: "Start" }) },
  { sourceLangCode: "en", targetLangCode: "fr", entries: entries({ launch: "lancement" }) },
]);
const french = await client.getMultilingualGlossaryDictionaryEntries(several, "en", "fr");
await client.updateMultilingualGlossaryName(several, "New");
const after = await client.getMultilingualGlossary(several.glossaryId);
await client.deleteMultilingualGlossary(several);
const gone = await client.getMultilingualGlossary(several.glossaryId).catch((error) => error.message);
console.log(JSON.stringify({
  listed: listed.map((each) => [each.name, each.entryCount]),
  back: back.entries(),
  text: text.text,
  french: french.entries.entries(),
  after: [after.name, after.dictionaries.length],
  gone: gone.includes("no glossary"),
}));
"""


async def test_the_client_for_node(gateway: Running) -> None:
    assert await node(gateway, NODE) == {
        "listed": [["Words", 1]],
        "back": {"launch": "Start"},
        "text": "[de] The launch",
        "french": {"launch": "lancement"},
        "after": ["New", 2],
        "gone": True,
    }


# ---------------------------------------------------------------- entries


WORDS = st.text(st.characters(categories=["L", "N", "P"], include_characters=" "), min_size=1, max_size=20).filter(
    lambda term: term.strip() == term
)


@given(st.dictionaries(WORDS, WORDS, min_size=1))
def test_entries_are_written_as_deepls_client_reads(terms: dict[str, str]) -> None:
    assert read_entries(util.convert_dict_to_tsv(terms), "tsv", Limits()) == terms
    assert util.convert_tsv_to_dict(tab_separated(terms)) == terms


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("a b\tc\nd\te", "tsv"),
        (" a b \tc\r\n\r\nd\te\r\n", "tsv"),
        ('"a b",c\nd,e\n', "csv"),
        ("a b,c,en,de\r\nd,e,en,de\r\n", "csv"),
    ],
)
def test_both_formats(text: str, format: Format) -> None:
    assert read_entries(text, format, Limits()) == {"a b": "c", "d": "e"}


@pytest.mark.parametrize(
    ("text", "format", "said"),
    [
        ("", "tsv", "needs an entry"),
        ("a", "tsv", "Line 1"),
        ("a\tb\nc\td\te", "tsv", "Line 2"),
        ("a,b,c", "csv", "Line 1"),
        ("a\tb\na\tc", "tsv", "Entry 2: 'a' is there twice"),
        ("a\t", "tsv", "empty"),
        ("a\tb\x07", "tsv", "printed"),
        ("a\t" + "b" * 81, "tsv", "81 characters"),
        ("a," + "b" * 200_000, "csv", "CSV"),
        ("\n".join(f"{n}\tb" for n in range(MOST_ENTRIES + 1)), "tsv", "5001 entries"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, format: Format, said: str) -> None:
    with pytest.raises(GatewayError, match=said) as caught:
        read_entries(text, format, Limits())
    assert caught.value.field == "entries"
