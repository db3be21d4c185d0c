"""The sentences that people wrote: whole, unlike each other and the corpus, and scored as they should be."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

from demo_model import DIRECTIONS, LANGUAGES
from demo_model.corpus.sets import SetKind, load_sets, read_sentence
from demo_model.own import KINDS, SETS, own_items, own_sentences

DEMO_MODEL = Path(__file__).parents[2] / "demo_model"
EVERY = [sentence for name in SETS for sentence in own_sentences(name)]
SCRIPTS = {
    "ja": re.compile("[\u3041-\u309f]"),  # hiragana, which Chinese never has
    "zh": re.compile("[\u4e00-\u9fff]"),
    "fr": re.compile("[a-zàâçéèêëîïôûùœ]"),
}
KANA = re.compile("[\u3040-\u30ff]")
CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uff00-\uff60\u3000-\u303f]")


def plain(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()


@pytest.mark.parametrize(("name", "of_each"), [("test", 100), ("development", 60)])
def test_a_set_has_as_many_sentences_of_each_kind(name: str, of_each: int) -> None:
    kinds = [sentence.kind for sentence in own_sentences(name)]
    assert {kind: kinds.count(kind) for kind in KINDS} == dict.fromkeys(KINDS, of_each)


def test_sentences_exist_in_all_languages_at_spoken_length() -> None:
    for sentence in EVERY:
        assert tuple(sentence.texts) == LANGUAGES, sentence
        assert 4 <= len(sentence.texts["en"].split()) <= 22, sentence


def test_no_sentence_occurs_twice_in_any_language() -> None:
    for language in LANGUAGES:
        texts = [plain(sentence.texts[language]) for sentence in EVERY]
        assert len(set(texts)) == len(texts), language


def test_development_and_test_sentences_differ() -> None:
    test, development = ([set(plain(s.texts["en"]).split()) for s in own_sentences(name)] for name in SETS)
    for one, other in itertools.product(test, development):
        assert len(one & other) / len(one | other) < 0.5, (one, other)


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_written_as_the_corpus_writes_them(language: str) -> None:
    """Script, polite register, punctuation and spaces."""
    for sentence in EVERY:
        text = sentence.texts[language]
        assert bool(CJK.search(text)) is (language in ("ja", "zh")), text
        assert SCRIPTS.get(language, re.compile("[a-z]")).search(text), text
        if language == "zh":
            assert not KANA.search(text), text
        assert language in ("ja", "zh") or text.lstrip("¿¡")[0].isupper(), text


def test_every_language_has_the_names_and_numbers() -> None:
    for sentence in EVERY:
        english = sentence.texts["en"]
        for number in re.findall(r"(?<![\d:])\d{1,3}(?:,\d{3})+|\$\d+|\b\d{2,}%?(?! [AP]M)(?![\d:])", english):
            for language, text in sentence.texts.items():
                digits = re.sub(r"(?<=\d)[., ](?=\d{3})", "", text)
                assert number.replace(",", "").strip("$%") in digits, (number, language, text)
        for name in {"Maria", "Tom", "Kevin", "Sarah", "Paul", "Julia"} & set(re.findall(r"\w+", english)):
            assert all(name in text for text in sentence.texts.values()), sentence


def test_no_set_of_the_corpus_is_one_of_them() -> None:
    own = {plain(sentence.texts["en"]) for sentence in EVERY}
    for kind in SetKind:
        english = (line.split("\t")[0] for line in load_sets(kind).lines)
        assert not own & {plain(read_sentence(text).text) for text in english}, kind


def test_only_training_and_evaluation_read_them() -> None:
    files = sorted(DEMO_MODEL.rglob("*.py"))
    readers = {
        path.stem
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "demo_model.own"
    }
    assert readers == {"calibrate", "evaluate", "train"}  # `train` scores, and looks at the development set's loss
    assert "own_sentences" not in "".join(
        path.read_text(encoding="utf-8") for path in files if path.stem not in {"own", *readers}
    )


def test_sentences_are_scored_only_with_english() -> None:
    """They are scored into and out of English, and in no other direction."""
    items = own_items("test")
    directions = [(item.source_language, item.target_language) for item in items]
    assert {one: directions.count(one) for one in directions} == {one: 200 for one in DIRECTIONS if "en" in one}
    sentence = own_sentences("test")[0]
    sides = {(item.source, item.target) for item in items[:10]}
    assert sides == {
        (sentence.texts[source], sentence.texts[target])
        for source, target in DIRECTIONS
        if "en" in (source, target)
    }
