"""Transcripts over HTTP: which meeting, which languages, which format; and a log that changes while it is read."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from gateway.domain.engine import Confidence, EngineProfile, OnEvent, TranslationRequest
from gateway.domain.errors import EngineUnavailable, LogUnavailable
from gateway.domain.log import (
    LoggedEvent,
    Page,
    Publication,
    Said,
    Timings,
    Title,
    Translated,
    Untranslated,
    Utterance,
)
from gateway.domain.ports import Engine, EventLog
from gateway.engines.simulated import Script, SimulatedEngine
from gateway.protocol.limits import Limits
from gateway.server.http import transcripts
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.logs import append, nothing
from tests.over_http import check_problem
from tests.server.http.api_routes import api_routes
from tests.usual import usual

FORMATS = {
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "srt": "application/x-subrip",
    "vtt": "text/vtt; charset=utf-8",
}
BEGAN_S = 1_767_607_200.0


def said(n: int, text: str, lang: str = "en", participant: str = "a1a1a1a1", **times: Any) -> Said:
    name = {"a1a1a1a1": "Ana", "b2b2b2b2": "Kenji"}[participant]
    return Said(Utterance(str(n), 1, text, lang, participant, name, final=True, **times))


def translated(n: int, text: str, lang: str = "ja") -> Translated:
    return Translated("a1a1a1a1", str(n), "Ana", lang, 1, text, Timings(0, 1, 2), tokens=2)


STANDUP: tuple[LoggedEvent, ...] = (
    said(1, "Good morning.", start_ms=400, end_ms=1_400),
    translated(1, "おはよう。"),
    said(2, "金曜日。", "ja", "b2b2b2b2"),
    Untranslated("a1a1a1a1", "1", "Ana", "de", 1, "engine_failed", "It failed."),
)


async def log_of(*events: LoggedEvent, meeting: str = "standup", **bounds: Any) -> MemoryEventLog:
    """A log in which a second passes before each event."""
    seconds = itertools.count(-1)  # the store looks at its clock once before
    store = usual(MemoryStore, wall_clock=lambda: BEGAN_S + next(seconds), **bounds)
    for event in events:
        store.logs.append(meeting, event)
    return MemoryEventLog(store)


@contextlib.asynccontextmanager
async def serving(
    log: EventLog, engine: Engine | None = None, limits: Limits | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    if engine is None:
        engine = SimulatedEngine(Script(languages=("en", "ja", "de", "zh-hant")))
        await engine.start()
    routes = api_routes(engine, log, limits)
    transport = httpx.ASGITransport(Starlette(routes=routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway/v1/meetings") as client:
        yield client


# ---------------------------------------------------------------- what is asked for


@pytest.mark.parametrize("format", FORMATS)
async def test_a_file_says_what_it_is(format: str) -> None:
    async with serving(await log_of(*STANDUP)) as client:
        response = await client.get(f"/standup/transcript.{format}")
        in_two = await client.get(f"/standup/transcript.{format}?lang=ja,zh-TW")
    assert response.status_code == 200
    assert response.headers["content-type"] == FORMATS[format]
    assert response.headers["content-disposition"] == f'inline; filename="standup.{format}"'
    assert in_two.headers["content-disposition"] == f'inline; filename="standup.ja-zh-hant.{format}"'
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "Good morning." in response.content.decode()


async def test_json_has_everything_by_language() -> None:
    async with serving(await log_of(*STANDUP)) as client:
        answer = (await client.get("/standup/transcript.json", params={"lang": "ja, de,en_US"})).json()
    assert len(answer.pop("epoch")) > 0
    assert answer == {
        "meeting": "standup",
        "from_offset": 1,
        "to_offset": 4,
        "complete": True,
        "languages": ["ja", "de", "en"],
        "utterances": [
            {
                "participant": "a1a1a1a1",
                "utterance": "1",
                "speaker": "Ana",
                "lang": "en",
                "rev": 1,
                "text": "Good morning.",
                "at_ms": BEGAN_S * 1_000,
                "start_ms": 400,
                "end_ms": 1_400,
                "translations": {
                    "ja": {"status": "translated", "text": "おはよう。", "code": None},
                    "de": {"status": "failed", "text": None, "code": "engine_failed"},
                    "en": {"status": "original", "text": "Good morning.", "code": None},
                },
                "offset": 1,
            },
            {
                "participant": "b2b2b2b2",
                "utterance": "2",
                "speaker": "Kenji",
                "lang": "ja",
                "rev": 1,
                "text": "金曜日。",
                "at_ms": BEGAN_S * 1_000 + 2_000,
                "start_ms": None,
                "end_ms": None,
                "translations": {
                    "ja": {"status": "original", "text": "金曜日。", "code": None},
                    "de": {"status": "missing", "text": None, "code": None},
                    "en": {"status": "missing", "text": None, "code": None},
                },
                "offset": 3,
            },
        ],
    }


async def test_without_a_language_everything_is_as_it_was_said() -> None:
    async with serving(await log_of(*STANDUP)) as client:
        text = (await client.get("/standup/transcript.txt")).text
        answer = (await client.get("/standup/transcript.json")).json()
    assert text == "[00:00:00] Ana: Good morning.\n[00:00:02] Kenji: 金曜日。\n"
    # For programs, everything that is kept.
    assert answer["languages"] == ["de", "ja"]
    for utterance in answer["utterances"]:
        assert utterance["translations"].keys() == {"de", "ja"}


async def test_unsure_translations_are_marked() -> None:
    doubtful = replace(translated(1, "?"), confidence=Confidence(0.1, unsure=True))
    async with serving(await log_of(STANDUP[0], doubtful)) as client:
        answer = (await client.get("/standup/transcript.json?lang=ja")).json()
        text, quiet, marked = [
            (await client.get(f"/standup/transcript.{end}")).text
            for end in ("txt?lang=ja", "srt?lang=ja", "srt?lang=ja&mark=unsure")
        ]
        refused = [await client.get(f"/standup/transcript.{end}") for end in ("vtt?mark=all", "json?mark=unsure")]
    assert answer["utterances"][0]["translations"]["ja"]["unsure"] is True
    assert text == "[00:00:00] Ana: (?) ?\n"
    assert quiet.endswith("Ana: ?\n")
    assert marked.endswith("Ana: (?) ?\n")
    for each in refused:
        check_problem(each, 422, "invalid_value", "mark")


async def test_a_note_in_webvtt_names_meeting_and_languages() -> None:
    async with serving(await log_of(*STANDUP)) as client:
        as_said = (await client.get("/standup/transcript.vtt")).text
        in_two = (await client.get("/standup/transcript.vtt?lang=ja&lang=en")).text
    assert as_said.startswith("WEBVTT\n\nNOTE Meeting standup, as it was said\n\n")
    assert in_two.startswith("WEBVTT\n\nNOTE Meeting standup, ja, en\n\n")


@pytest.mark.parametrize(
    ("lang", "code"),
    [
        ("", "invalid_value"),
        ("ja,", "invalid_value"),
        ("ja;q=1", "invalid_value"),
        ('ja"\r\nX: y', "invalid_value"),
        ("日本語", "invalid_value"),
        ("a" * 9, "invalid_value"),
        ("*", "invalid_value"),
        ("tlh", "unsupported_language"),
        ("en,fr", "unsupported_language"),
        ("en,ja,de,zh-hant", "limit_exceeded"),
    ],
)
async def test_what_is_no_language_is_refused(lang: str, code: str) -> None:
    async with serving(await log_of(*STANDUP), limits=Limits(languages=3)) as client:
        response = await client.get("/standup/transcript.txt", params={"lang": lang})
        check_problem(response, 422, code, "lang")
        # Each counts once.
        assert (await client.get("/standup/transcript.txt?lang=en,EN,en-GB,ja,de")).status_code == 200


class LoadingEngine(SimulatedEngine):
    """Does not know what its model can do."""

    def profile(self) -> EngineProfile:
        raise EngineUnavailable("The engine is loading.", retry_after_ms=2_000)

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        raise NotImplementedError


async def test_loading_engine_allows_any_language() -> None:
    async with serving(await log_of(*STANDUP), engine=LoadingEngine()) as client:
        text = (await client.get("/standup/transcript.txt?lang=tlh")).text
    assert text == "[00:00:00] Ana: […]\n[00:00:02] Kenji: […]\n"


# ---------------------------------------------------------------- which meeting


@pytest.mark.parametrize("meeting", ["retro", "...", "a b", "a%00b", "a%22b", "%E4%BC%9A", "STANDUP"])
@pytest.mark.parametrize("format", FORMATS)
async def test_a_meeting_that_is_not_kept(meeting: str, format: str) -> None:
    async with serving(await log_of(*STANDUP)) as client:
        problem = check_problem(await client.get(f"/{meeting}/transcript.{format}"), 404, "unknown_meeting")
    assert problem["type"] == "/errors/unknown_meeting"


@pytest.mark.parametrize("format", FORMATS)
async def test_a_meeting_that_is_not_recorded_says_so(format: str) -> None:
    log = await log_of()
    async with log.subscribe("board", nothing, record=False), serving(log) as client:
        await append(log, "board", said(1, "Kept for seconds only."))
        problem = check_problem(await client.get(f"/board/transcript.{format}"), 404, "not_recorded")
    assert "not recorded" in problem["detail"]


@pytest.mark.parametrize("meeting", ["a b", "..."])
async def test_what_could_be_no_id_is_not_looked_up(meeting: str) -> None:
    async with serving(await log_of(*STANDUP, meeting=meeting)) as client:
        check_problem(await client.get(f"/{meeting}/transcript.txt"), 404, "unknown_meeting")


async def test_a_meeting_whose_log_has_expired() -> None:
    async with serving(await log_of(*STANDUP, keep_s=5)) as client:
        for _ in range(2):  # a second passes with each
            assert (await client.get("/standup/transcript.txt")).status_code == 200
        for _ in range(5):
            response = await client.get("/standup/transcript.txt")
        check_problem(response, 404, "unknown_meeting")


@pytest.mark.parametrize("format", FORMATS)
async def test_a_meeting_in_which_nothing_was_said(format: str) -> None:
    log = await log_of()
    async with log.subscribe("standup", lambda _: None), serving(log) as client:
        response = await client.get(f"/standup/transcript.{format}")
    assert response.status_code == 200
    if format == "json":
        assert response.json() | {"epoch": ""} == {
            "meeting": "standup",
            "epoch": "",
            "from_offset": 1,
            "to_offset": 0,
            "complete": True,
            "languages": [],
            "utterances": [],
        }
    elif format == "vtt":
        assert response.text == "WEBVTT\n\nNOTE Meeting standup, as it was said\n"
    else:
        assert response.content == b""


@pytest.mark.parametrize("path", ["transcript.pdf", "transcript.", "transcript.JSON", "transcript.json/"])
async def test_an_address_that_is_no_transcript(path: str) -> None:
    async with serving(await log_of(*STANDUP)) as client:
        check_problem(await client.get(f"/standup/{path}"), 404, "not_found")


# ---------------------------------------------------------------- the log while it is read


async def test_a_long_meeting_is_read_to_its_end() -> None:
    log = await log_of(*(said(n, f"text {n}") for n in range(1_234)))
    async with serving(log) as client:
        answer = (await client.get("/standup/transcript.json")).json()
    assert [utterance["text"] for utterance in answer["utterances"]] == [f"text {n}" for n in range(1_234)]
    assert (answer["from_offset"], answer["to_offset"]) == (1, 1_234)


async def test_a_trimmed_meeting_says_so() -> None:
    log = await log_of(*STANDUP, max_publications=3)
    async with serving(log) as client:
        answer = (await client.get("/standup/transcript.json?lang=ja")).json()
    assert (answer["from_offset"], answer["to_offset"], answer["complete"]) == (2, 4, False)
    assert [utterance["text"] for utterance in answer["utterances"]] == ["金曜日。"]


class ScriptedLog(MemoryEventLog):
    """Gives these pages, one for each reading."""

    def __init__(self, *pages: Page) -> None:
        super().__init__(usual(MemoryStore))
        self._pages = iter(pages)
        self.asked: list[int] = []

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        self.asked.append(after)
        return next(self._pages)


def page(first: int, last: int, *offsets: int, epoch: str = "e1") -> Page:
    held = (Publication(n, n, said(n, f"text {n}")) for n in offsets)
    return Page(epoch, first, last, tuple(held))


async def read_of(*pages: Page) -> tuple[Any, list[int]]:
    log = ScriptedLog(*pages)
    async with serving(log) as client:
        return (await client.get("/standup/transcript.json")).json(), log.asked


async def test_appends_while_reading_do_not_prolong_it() -> None:
    answer, asked = await read_of(page(1, 4, 1, 2), page(1, 9, 3, 4, 5))
    assert asked == [0, 2]
    assert (answer["from_offset"], answer["to_offset"]) == (1, 5)
    assert len(answer["utterances"]) == 5


async def test_trimming_while_reading_leaves_no_gap() -> None:
    answer, asked = await read_of(page(1, 4, 1, 2), page(4, 6, 4, 5))
    assert asked == [0, 2]
    assert [utterance["text"] for utterance in answer["utterances"]] == ["text 4", "text 5"]
    assert (answer["from_offset"], answer["to_offset"], answer["complete"]) == (4, 5, False)
    answer, _ = await read_of(page(1, 4, 1, 2), page(8, 7))
    assert (answer["from_offset"], answer["to_offset"], answer["complete"]) == (8, 7, False)
    assert answer["utterances"] == []


async def test_log_renewed_while_read_asks_for_a_retry() -> None:
    answer, _ = await read_of(page(1, 4, 1, 2), page(1, 3, 3, epoch="e2"))
    assert (answer["code"], answer["retryable"], answer["retry_after_ms"]) == ("log_unavailable", True, 1_000)


class BrokenLog(MemoryEventLog):
    """Cannot be reached."""

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        raise LogUnavailable("The log does not answer.", retry_after_ms=3_000)


async def test_a_log_that_does_not_answer() -> None:
    async with serving(BrokenLog(usual(MemoryStore))) as client:
        response = await client.get("/standup/transcript.json")
    check_problem(response, 503, "log_unavailable")
    assert response.headers["retry-after"] == "3"


# ---------------------------------------------------------------- how many at a time


async def test_one_address_gets_a_few_transcripts_at_once() -> None:
    waiting = asyncio.Event()

    class Slow(MemoryEventLog):
        async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
            await waiting.wait()
            return await super().read(meeting, after, limit)

    store = usual(MemoryStore)
    store.logs.append("standup", STANDUP[0])
    log = Slow(store)
    async with serving(log) as client:
        asked = [asyncio.create_task(client.get("/standup/transcript.json")) for _ in range(4)]
        await asyncio.sleep(0.01)
        while (refusal := await client.get("/nobody/transcript.txt")).status_code != 429:
            asked.append(asyncio.create_task(client.get("/standup/transcript.json")))
        check_problem(refusal, 429, "rate_limited")
        waiting.set()
        assert {(await answer).status_code for answer in asked} == {200}
        check_problem(await client.get("/nobody/transcript.txt"), 404, "unknown_meeting")


# ---------------------------------------------------------------- parts


def sentences(count: int, first: int = 1) -> list[LoggedEvent]:
    """Utterances, each with its translation two positions behind it: 1 2 [1] 3 [2] 4 [3] …"""
    events: list[LoggedEvent] = []
    for n in range(first, first + count):
        events.append(said(n, f"Sentence {n}."))
        if n > first:
            events.append(translated(n - 1, f"[ja] {n - 1}"))
    return [*events, translated(first + count - 1, f"[ja] {first + count - 1}")]


async def part_of(client: httpx.AsyncClient, query: str) -> tuple[list[tuple[str, str | None]], dict[str, Any]]:
    """Its utterances with their translations, oldest first, and the answer without them."""
    response = await client.get(f"/standup/transcript.json?lang=ja&{query}")
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    utterances = answer.pop("utterances")
    return [(each["utterance"], each["translations"]["ja"]["text"]) for each in utterances], answer


async def test_parts_lead_from_the_newest_to_the_beginning() -> None:
    # More than one page of the log, in parts that do not go into it evenly.
    async with serving(await log_of(*sentences(700))) as client:
        whole, head = await part_of(client, "")
        seen: list[tuple[str, str | None]] = []
        before = ""
        while True:
            got = await client.get(f"/standup/transcript.json?last=150{before}")
            offset = got.json()["utterances"][0]["offset"]
            part, about = await part_of(client, f"last=150{before}")
            assert about == head
            seen = [*part, *seen]
            if len(part) < 150:
                break
            before = f"&before={offset}"
        beyond, _ = await part_of(client, "last=1&before=1")
        from_the_end, _ = await part_of(client, "last=1&before=999999")
    assert len(whole) == 700
    assert seen == whole
    assert beyond == []
    assert from_the_end == whole[-1:]


async def test_part_has_translations_from_just_beyond_it() -> None:
    late = 1_001
    chatter = [said(n, "Well.") for n in range(2, late + 1)]
    async with serving(await log_of(said(1, "One."), *chatter, translated(1, "[ja] 1"))) as client:
        near, _ = await part_of(client, "last=1&before=3")
        far, _ = await part_of(client, "last=1&before=2")
    assert near == [("2", None)]
    assert far == [("1", None)]
    async with serving(await log_of(said(1, "One."), *chatter[:-1], translated(1, "[ja] 1"))) as client:
        within, _ = await part_of(client, "last=1&before=2")
    assert within == [("1", "[ja] 1")]


async def test_parts_of_a_trimmed_log_end_where_it_begins() -> None:
    log = await log_of(*sentences(100), max_publications=100)
    async with serving(log) as client:
        whole, head = await part_of(client, "")
        part, about = await part_of(client, "last=200")
    assert not head["complete"]
    assert about == head
    assert part == whole != []


@pytest.mark.parametrize(
    ("format", "query", "code", "field"),
    [
        ("json", "last=0", "invalid_value", "last"),
        ("json", "last=-1", "invalid_value", "last"),
        ("json", "last=ten", "invalid_value", "last"),
        ("json", "last=", "invalid_value", "last"),
        ("json", "last=201", "limit_exceeded", "last"),
        ("json", "last=10&before=0", "invalid_value", "before"),
        ("json", "last=10&before=9999999999999999", "invalid_value", "before"),
        ("json", "before=10", "invalid_value", "before"),
        ("srt", "last=10", "invalid_value", "last"),
    ],
)
async def test_what_is_no_part(format: str, query: str, code: str, field: str) -> None:
    async with serving(await log_of(*STANDUP)) as client:
        response = await client.get(f"/standup/transcript.{format}?{query}")
    check_problem(response, 422, code, field)


async def test_part_of_a_renewed_log_asks_for_a_retry() -> None:
    log = ScriptedLog(page(1, 4, 1), page(1, 4, 1, 2, 3, 4, epoch="e2"))
    async with serving(log) as client:
        response = await client.get("/standup/transcript.json?last=5")
    check_problem(response, 503, "log_unavailable")


async def test_trimmed_part_has_the_rest() -> None:
    log = ScriptedLog(page(1, 4, 1), page(4, 6, 4, 5, 6), page(4, 6))
    async with serving(log) as client:
        part, _ = await part_of(client, "last=5&before=5")
    assert [utterance for utterance, _ in part] == ["4"]


def corrected(n: int, text: str, *replaces: int) -> Said:
    return said(n, text, replaces=tuple(map(str, replaces)))


async def test_corrections_stand_in_their_place_whatever_the_parts() -> None:
    events = [*sentences(60), corrected(201, "Better 10.", 10), corrected(202, "", 20), *sentences(60, first=61)]
    events += [corrected(203, "Best 10.", 201), translated(203, "[ja] Best 10."), corrected(204, "Better 61.", 61)]
    async with serving(await log_of(*events, max_publications=1_000)) as client:
        whole, _ = await part_of(client, "")
        seen: list[tuple[str, str | None]] = []
        before = ""
        while True:
            got = await client.get(f"/standup/transcript.json?lang=ja&last=7{before}")
            utterances = got.json()["utterances"]
            seen = [*((each["utterance"], each["translations"]["ja"]["text"]) for each in utterances), *seen]
            if len(utterances) < 7:
                break
            before = f"&before={utterances[0]['offset']}"
        (answer,) = [
            each
            for each in (await client.get("/standup/transcript.json")).json()["utterances"]
            if each["utterance"] == "203"
        ]
    assert seen == whole
    assert [id for id, _ in whole] == [{10: "203", 61: "204"}.get(n, str(n)) for n in range(1, 121) if n != 20]
    assert (answer["text"], answer["replaces"]) == ("Best 10.", ["10", "201"])


async def test_a_correction_of_what_was_trimmed_is_in_the_part_where_it_was_said() -> None:
    events = [said(1, "Wrong."), said(2, "Two."), corrected(3, "Right.", 1), said(4, "Four."), said(5, "Five.")]
    async with serving(await log_of(*events, max_publications=4)) as client:
        whole, _ = await part_of(client, "")
        part, _ = await part_of(client, "last=3")
        earlier, _ = await part_of(client, "last=3&before=3")
    assert [id for id, _ in whole] == ["2", "3", "4", "5"]
    assert [id for id, _ in part] == ["3", "4", "5"]
    assert [id for id, _ in earlier] == ["2"]


@pytest.mark.parametrize("format", ["json", "txt", "vtt"])
def test_title_stands_at_the_head(format: str) -> None:
    page = Page("e1", 1, 0, title=Title("Weekly", "Ana"))
    text = transcripts._content(format, "standup", page, [], False, None).decode()
    head = {
        "json": '"title":"Weekly","held_by":"Ana"',
        "txt": "Weekly · Ana\n",
        "vtt": "Meeting standup, Weekly · Ana",
    }
    assert head[format] in text


def test_name_of_the_file_begins_with_the_title() -> None:
    named = transcripts._disposition("standup", Title("週次: 1/2"), ["ja", "txt"])
    assert named == ("inline; filename=\"standup.ja.txt\"; filename*=UTF-8''%E9%80%B1%E6%AC%A1%201%202.ja.txt")
    assert transcripts._disposition("standup", Title(), ["txt"]) == 'inline; filename="standup.txt"'
