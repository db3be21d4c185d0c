"""The page's own words: every message in every language, with the same gaps to fill, and none in the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "web_demo" / "page"
WORDS = PAGE / "words"

Message = dict[str, str]

# `"key": "text",` or `"key": { one: "text", other: "text" },`
_MESSAGE = re.compile(r'^  ("[a-z_.]+"): (?:("(?:[^"\\]|\\.)*")|\{ (.*) \}),$', re.MULTILINE)
_FORM = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*")')
_GAP = re.compile(r"\{(\w+)\}")
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$| // .*?$", re.DOTALL | re.MULTILINE)
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
# A capital and small letters, or two words: what people read, unless it is code.
_WORDS = re.compile(r"^[^A-Za-z]*[A-Z][a-z]+|[a-z]{2,} [a-z]{2,}")
_CODE = re.compile(
    r"^(Enter|Escape|Arrow(Left|Right)|Authorization|Bearer .*|Content-Type|AbortError)$"
    r"|[#@={}<>()$]|^until reconnected$|The page has no"
)
# Samples are in languages of their own.
ELSEWHERE = {"samples/sample_meeting_script.js", "samples/sample_sentences.js"}


def messages(lang: str) -> dict[str, Message]:
    """Key → plural form → text; a message without a count has the form `other` alone."""
    found: dict[str, Message] = {}
    source = (WORDS / f"{lang}.js").read_text()
    for key, text, forms in _MESSAGE.findall(source):
        found[json.loads(key)] = (
            {"other": json.loads(text)}
            if text
            else {form: json.loads(each) for form, each in _FORM.findall(forms)}
        )
    # A line that is not understood here would be left out in silence.
    assert len(found) == sum(line.startswith('  "') for line in source.splitlines())
    return found


LANGUAGES = sorted(path.stem for path in WORDS.glob("*.js") if path.stem != "words")
SCRIPTS = sorted(path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*.js") if path.parent != WORDS)


def test_the_page_speaks_the_languages_of_the_bundled_model() -> None:
    assert {"en", "de", "es", "fr", "ja", "zh"} <= set(LANGUAGES)
    loaded = re.findall(r"^  (\w+): async", (WORDS / "words.js").read_text(), re.MULTILINE)
    assert sorted(loaded) == LANGUAGES


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_message_is_there_with_the_same_gaps(lang: str) -> None:
    english, own = messages("en"), messages(lang)
    assert own.keys() == english.keys()
    for key, forms in own.items():
        assert "other" in forms, key
        gaps = set(_GAP.findall(english[key]["other"]))
        for text in forms.values():
            assert set(_GAP.findall(text)) == gaps, f"{key}: {text}"
            assert text.strip(), key


@pytest.mark.parametrize("lang", [lang for lang in LANGUAGES if lang != "en"])
def test_hardly_anything_is_left_in_english(lang: str) -> None:
    english, own = messages("en"), messages(lang)
    same = {key for key in english if own[key] == english[key]}
    assert len(same) <= 12, same
    assert not {key for key in same if len(english[key]["other"].split()) > 2}


def test_the_offline_page_speaks_them_all() -> None:
    source = (PAGE.parent / "offline" / "offline_words.js").read_text()
    blocks = dict(re.findall(r"^  (\w+): \{\n(.*?)^  \},", source, re.DOTALL | re.MULTILINE))
    assert sorted(blocks) == LANGUAGES
    document = (PAGE.parent / "offline" / "offline.html").read_text()
    for lang, block in blocks.items():
        words = dict(re.findall(r'^    (\w+): "(.+)",$', block, re.MULTILINE))
        assert set(words) == set(re.findall(r'id="(\w+)"', document))
        assert lang == "en" or not any(f'"{each}"' in blocks["en"] for each in words.values())


def test_every_message_is_used() -> None:
    code = "".join((PAGE / script).read_text() for script in SCRIPTS)
    assert [key for key in messages("en") if f'"{key}"' not in code] == []


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script not in ELSEWHERE])
def test_no_words_are_in_the_code(script: str) -> None:
    code = _COMMENT.sub("", (PAGE / script).read_text())
    lines = [
        line
        for line in code.splitlines()
        if not re.search(r"matchMedia|className|new Error\(|^import |\} from ", line)
    ]
    found = []
    for line in lines:
        for quoted, template in _TEXT.findall(line):
            text = quoted or template
            # Names of classes may be several, and stand beside the element.
            is_class = re.search(rf'(element|make|testable|box|checkbox|button)\([^)]*"{re.escape(text)}"', line)
            if _WORDS.search(text) and not _CODE.search(text) and not (is_class and text == text.lower()):
                found.append(text)
    assert found == []
