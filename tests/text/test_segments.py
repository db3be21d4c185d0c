"""Where a text is divided: by its marks, language by language, and by its length where it has none."""

from __future__ import annotations

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.text import segments as text_segments
from gateway.text.segments import cut, segments, sentences


@pytest.mark.parametrize(
    ("lang", "pieces"),
    [
        ("en", []),
        ("en", ["  "]),
        ("en", ["Good morning. ", "Can you hear me? ", "Yes!"]),
        # Abbreviations, initials, numbers, addresses.
        ("en", ["Good morning, Mr. Smith. ", "It costs 3.5 million."]),
        ("en", ["Dr. No talked to J. R. R. Tolkien. ", "Then he left."]),
        ("en", ["See www.example.com. ", "Or write to a.b@example.org. ", "Bye."]),
        ("en", ["We meet at 5 p.m. then go home. ", "At ten."]),
        ("en", ['He said "Stop." ', "Then he left."]),
        ("en", ["Wait... what? ", "Next one."]),
        ("de", ["Am 3. Oktober um 8.30 Uhr. ", "Das sind ca. 1.000,50 Euro. ", "Ende."]),
        ("fr", ["M. Dupont est là. ", "Comment ça va ? ", "Bien !"]),
        ("it", ["Il Sig. Rossi. ", "Ciao."]),
        ("es", ["¿Cómo estás? ", "¡Hola!"]),
        # Other scripts.
        ("ja", ["おはよう。", "えっ！？", "本当ですか？", "はい。"]),
        ("ja", ["「そうです。」と言いました。", "はい。"]),
        ("zh", ["你好。", "我们三点开会！", "好吗？"]),
        ("zh-hant", ["你好。", "好嗎？"]),
        ("ar", ["مرحبا. ", "كيف حالك؟ ", "نعم"]),
        ("hi", ["नमस्ते। ", "आप कैसे हैं? ", "ठीक है।"]),
        ("my", ["မင်္ဂလာပါ။ ", "နေကောင်းလား။"]),
        ("km", ["សួស្តី។ ", "អ្នក"]),
        ("xx", ["Hello there. ", "Who are you?"]),
        # Lines; what says nothing belongs to what is beside it.
        ("en", ["Good morning.\n\n  ", "thank you\n", "- item\r\n", "end"]),
        ("en", ["... Hello. ... ", "Hi. 👍"]),
    ],
)
def test_sentences_of_many_languages(lang: str, pieces: list[str]) -> None:
    assert list(sentences("".join(pieces), lang)) == pieces


@pytest.mark.parametrize(
    ("lang", "longest", "pieces"),
    [
        # Twice as much may be together.
        ("en", 15, ["we saw the best of times, ", "and the worst of times too"]),
        ("en", 30, ["we saw the best of times and ", "the worst"]),
        ("en", 26, ["we saw that it has about ", "25 000 people"]),
        ("en", 18, ["we met ", "Anna Maria Smith ", "today"]),
        ("en", 24, ["now go to ", "https://example.com/a/b ", "please"]),
        ("en", 4, ["xxxx", "xxxx", "xx"]),
        ("ja", 20, ["今日は会議をしますのでみなさん三時までに", "www.example.jp会議室に", "集まってください"]),
        ("th", 14, ["สวัสดีครับวัน", "นี้เป็นอย่างไร", "บ้างผมสบายดี"]),
        ("hi", 1, ["न", "म", "स्ते"]),
    ],
)
def test_without_an_end_length_cuts(lang: str, longest: int, pieces: list[str]) -> None:
    assert segments("".join(pieces), lang, longest) == pieces


_TEXTS = st.text(st.sampled_from("aB3 .,。?！\n「」mrxいと的กิ́👍-/:"), max_size=120)


@example(text="3\n \u03013", lang="en", longest=1)
@given(text=_TEXTS, lang=st.sampled_from(["en", "ja", "th", "km", "hi"]), longest=st.integers(1, 40))
def test_segments_join_and_none_is_long(text: str, lang: str, longest: int) -> None:
    pieces = segments(text, lang, longest)
    assert "".join(pieces) == text
    assert all(pieces)
    graphemes = regex.findall(r"\X", text)
    for piece in pieces:
        assert len(piece.strip()) <= max([2 * longest, *map(len, graphemes)])
    # No grapheme is cut, whatever is around it.
    assert [g for piece in pieces for g in regex.findall(r"\X", piece)] == graphemes


@pytest.mark.parametrize(
    ("longest", "pieces"),
    [
        (40, ["One. ", "Two. ", "Three."]),
        (40, ["One. Two. Three. Four. ", "The customer wants an answer by Monday. ", "Yes."]),
        (14, ["One. Two. ", "Three. Four. ", "Five. ", "Six."]),
        (40, ["はい。", "いいえ。", "そうですか。", "わかりました。"]),
        (40, ["1. a\n2. b\n3. c\n4. d\n", "The customer wants an answer by Monday."]),
    ],
)
def test_very_short_sentences_are_joined(longest: int, pieces: list[str]) -> None:
    assert segments("".join(pieces), "en", longest, joins=True) == pieces


def test_a_text_is_read_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[tuple[str, str]] = []
    real = text_segments._is_end

    def counted(before: str, after: str) -> bool:
        ends.append((before, after))
        return real(before, after)

    monkeypatch.setattr(text_segments, "_is_end", counted)
    assert next(sentences("We go. " * 200, "en")) == "We go. "
    assert len(ends) == 2
    # Numbers with a full stop end no sentence: what is looked at for each is near it.
    ends.clear()
    assert len(segments("1. " * 600, "en", 120)) > 1
    assert max(len(before) + len(after) for before, after in ends) <= 200


def test_long_texts_are_read_in_parts() -> None:
    text = "。".join(["今日は会議をします"] * 3_000)
    assert len(list(sentences(text, "ja"))) == 3_000
    assert cut("word " * 100_000, "en", 21) == 20
