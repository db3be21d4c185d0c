"""The sentences that people wrote: whole, unlike each other and the corpus, and scored as they should be."""

from __future__ import annotations

import ast
import itertools
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from demo_model import DIRECTIONS, LANGUAGES
from demo_model.clauses.compose import Composer
from demo_model.clauses.linearize import linearizers
from demo_model.clauses.marks import finished
from demo_model.grammar import Slot, Template
from demo_model.lexicon import load_lexicon
from demo_model.own import KINDS, SETS, OwnSentence, own_sentences
from demo_model.pattern_check import check_text
from demo_model.patterns import Pattern, load_patterns, written
from demo_model.sampling import Sampler, Split

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


def test_each_sentence_is_in_all_languages_and_of_a_length_that_people_say() -> None:
    for sentence in EVERY:
        assert tuple(sentence.texts) == LANGUAGES, sentence
        assert 4 <= len(sentence.texts["en"].split()) <= 22, sentence


def test_no_sentence_occurs_twice_in_any_language() -> None:
    for language in LANGUAGES:
        texts = [plain(sentence.texts[language]) for sentence in EVERY]
        assert len(set(texts)) == len(texts), language


def test_development_sentences_are_not_test_sentences_in_other_words() -> None:
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
        without_thousands = re.sub(r"(?<=\d),(?=\d{3})", "", text)
        assert list(check_text(without_thousands, Template((without_thousands,)), language)) == [], text
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


def english(part: str | Slot) -> str:
    """A regular expression of this part of a pattern. Names, numbers and codes begin with a capital or a digit."""
    if isinstance(part, str):
        return f"(?i:{re.escape(part)})"
    words = load_lexicon().entries.get(part.kind)
    if words and part.kind != "duration":
        return f"(?i:(?:an? )?(?:{'|'.join(map(re.escape, words))}))"
    return r"[A-Z0-9$]\S*(?: \S+)?"


def made(pattern: Pattern, texts: Sequence[str]) -> list[str]:
    """Those of `texts` that the pattern makes."""
    parts = pattern.templates["en"].parts
    first, last = (part.lower() if isinstance(part, str) else "" for part in (parts[0], parts[-1]))
    # Compiling takes long: only a pattern that begins and ends like a text is worth it.
    alike = [text for text in texts if text.lower().startswith(first) and text.lower().endswith(last)]
    return [text for text in alike if re.fullmatch("".join(map(english, parts)), text)]


def test_no_pattern_makes_one_of_the_sentences() -> None:
    finished = next(pattern for pattern in load_patterns() if pattern.id == "status_item_finished")
    some = ["The contract is finished.", "The contract is almost finished.", "Is the contract finished?"]
    assert made(finished, some) == some[:1]
    texts = [sentence.texts["en"] for sentence in EVERY]
    for pattern in load_patterns():
        assert made(pattern, texts) == [], pattern.id


def test_none_of_many_composed_sentences_is_one_of_them() -> None:
    composer, english = Composer(Sampler(1, Split.ANY)), linearizers()["en"]
    said = [composer.draw() for _ in range(2_000)]
    composed = {
        written(finished(english.opened(each), english.glue, each.values, english.rewrite), "en").text
        for each in said
    }
    assert composed & {sentence.texts["en"] for sentence in EVERY} == set()


def test_only_the_evaluation_and_the_card_read_them() -> None:
    files = sorted(DEMO_MODEL.rglob("*.py"))
    readers = {
        path.stem
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "demo_model.own"
    }
    assert readers == {"evaluate", "card"}  # `calibrate` has the development set from `evaluate`
    assert "own_sentences" not in "".join(
        path.read_text(encoding="utf-8") for path in files if path.stem not in {"own", *readers}
    )


def test_each_sentence_is_scored_into_and_out_of_english_and_in_no_other_direction() -> None:
    from demo_model.evaluate import own_items

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
    assert all(item.final for item in items)


def test_kinds_and_directions_are_scored_apart() -> None:
    pytest.importorskip("sacrebleu")
    from demo_model.evaluate import own_items, own_report, own_table

    items = own_items("development")
    answers = [item.target if item.suite == "meeting" and item.target_language != "ja" else None for item in items]
    report = own_report(items, answers)
    right = {f"{source}-{target}": 100.0 for source, target in DIRECTIONS if "en" in (source, target)}
    assert report["chrf"] == {"meeting": right | {"en-ja": 0.0}, "everyday": dict.fromkeys(right, 0.0)}
    assert report["ended"] == 0.45
    rows = own_table(report).splitlines()
    assert rows[0] == "| | ja | es | de | fr | zh | mean |"
    assert rows[2] == "| meeting, out of English | 0.0 | 100.0 | 100.0 | 100.0 | 100.0 | 80.0 |"
    assert rows[5] == "| everyday, into English | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 |"


@pytest.mark.slow
def test_the_command_scores_own_sentences_alone_and_keeps_the_rest_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("sacrebleu")
    from demo_model import evaluate

    torch.set_num_threads(1)

    def two(name: str) -> tuple[OwnSentence, ...]:
        return own_sentences(name)[:1] + own_sentences(name)[-1:]

    monkeypatch.setattr(evaluate, "own_sentences", two)
    out = tmp_path / "training.json"
    out.write_text('{"curve": [1], "scores": {"suites": {"unseen": 2}, "own": {"test": 3}}}', encoding="utf-8")
    model = DEMO_MODEL / "small_model"
    monkeypatch.setattr(
        sys, "argv", ["evaluate", str(model), "--device", "cpu", "--suite", "development", "--out", str(out)]
    )
    evaluate.main()
    kept = json.loads(out.read_text(encoding="utf-8"))
    own = kept["scores"]["own"].pop("development")
    assert kept == {"curve": [1], "scores": {"suites": {"unseen": 2}, "own": {"test": 3}}}
    assert [len(own["chrf"][kind]) for kind in KINDS] == [10, 10]
    assert 0 < own["chrf"]["meeting"]["en-de"] < 100
    assert "| meeting, out of English |" in capsys.readouterr().out
