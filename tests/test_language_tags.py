"""Tags as recognisers write them, at each door that a tag comes in by."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.cli.flags.command import languages as flag
from gateway.domain.engine import EngineProfile
from gateway.domain.languages import normalised
from gateway.domain.pairs import PairPattern
from gateway.engines.prompting.families import detect
from gateway.protocol.checks import check_language_tag, supported_language
from gateway.server.compat.deepl_glossaries import supported_code
from gateway.server.http.transcripts import languages as wanted
from tests.sessions.talk import Talk

KNOWN = ("zh", "no", "tl", "he", "id", "zh-hant")
TAGS = {"cmn-Hans-CN": "zh", "nb-NO": "no", "fil-PH": "tl", "iw-IL": "he", "in-ID": "id", "zh-Hant": "zh-hant"}


def spoken(tag: str) -> str | None:
    talk = Talk(profile=EngineProfile(model="m", family="f", languages=KNOWN)).started(speaks=tag, reads=[])
    return talk.session.speaks


DOORS: dict[str, Callable[[str], object]] = {
    "WebSocket": spoken,
    "HTTP": lambda tag: supported_language(tag, KNOWN, "source_lang"),
    "transcript": lambda tag: wanted([tag], known=KNOWN, most=1)[0],
    "DeepL": lambda tag: supported_code(tag, EngineProfile("m", "f", KNOWN), "source_lang"),
    "CLI": lambda tag: flag(tag)[0],
    "token": lambda tag: next(iter(normalised([tag]) or ())),
    "model": lambda tag: detect({"translation_gateway": {"prompt": "chat", "languages": [tag]}}, "m").languages[0],
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_is_known_at_every_door(door: str, tag: str) -> None:
    check_language_tag(tag, "lang")
    assert DOORS[door](tag) == TAGS[tag]


def test_a_pair_is_known_by_its_aliases() -> None:
    assert PairPattern.parse("nb-fil") == PairPattern("no", "tl")
    assert PairPattern.parse("iw-*") == PairPattern("he", None)
