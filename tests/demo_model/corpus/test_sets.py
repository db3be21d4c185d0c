"""The frozen corpus and its lines."""

from __future__ import annotations

import pytest

from demo_model import LANGUAGES
from demo_model.corpus.sets import Sentence, SetKind, Span, load_sets, read_line, read_sentence


def test_a_slot_is_read_with_its_place() -> None:
    said = read_sentence("Ask ⟦1!:Anna⟧ about ⟦2?:the⟧ bill.")
    assert said == Sentence(
        "Ask Anna about the bill.", (Span(4, 8, "1", True, True), Span(15, 18, "2", False, False))
    )


def test_a_line_without_spoken_forms_says_what_it_writes() -> None:
    drawn = read_line("\t".join("abcdef") + "\n", SetKind.COMPOSED)
    assert drawn.kind is SetKind.COMPOSED
    assert drawn.said == drawn.written
    assert drawn.written["zh"].text == "f"


def test_spoken_forms_are_sources() -> None:
    drawn = read_line("\t".join("abcdefABCDEF"), SetKind.PATTERN)
    assert (drawn.written["en"].text, drawn.said["en"].text) == ("a", "A")


@pytest.mark.parametrize("line", ["a\tb\tc\td\te", "a\tb\tc\td\te\t", "a\tb\tc\td\te\tf\tg"])
def test_a_wrong_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_line(line, SetKind.WRITTEN)


def test_the_corpus_is_whole() -> None:
    for kind in SetKind:
        found = load_sets(kind)
        assert found
        for each in found[:: max(1, len(found) // 500)]:
            assert all(each.written[language].text.strip() for language in LANGUAGES)
            slots = {span.slot for span in each.written["en"].spans}
            assert all("⟦" not in sentence.text for sentence in each.written.values())
            assert len(slots) <= 20
    written = load_sets(SetKind.WRITTEN)
    assert 0 < sum(each.held_out for each in written) < len(written) / 20
