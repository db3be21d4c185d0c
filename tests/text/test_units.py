"""Texts in units."""

from __future__ import annotations

import pytest

from gateway.text.units import units


@pytest.mark.parametrize(
    ("lang", "pieces"),
    [
        ("en", []),
        ("ja", []),
        ("en", [" "]),
        ("ja", [" \n\t"]),
        ("en", ["Hello", ",", " world", "!"]),
        ("en", ["  two", "   spaces", " "]),
        ("en", ["Wait", ".", ".", ".", " what", "?", "!"]),
        ("en", ["I", " don't", " know", "."]),
        ("fr", ["Aujourd’hui", ",", " l'homme", " arrive"]),
        ("en", ["a", " well-known", " e-mail"]),
        ("de", ["Nord-Süd-Gefälle"]),
        ("en", ["e.g", ".", " v0.26"]),
        # Numbers, whatever is around them.
        ("en", ["costs", " $", "5,500.25", "."]),
        ("en", ["at", " 10:30", "."]),
        ("de", ["10.000,50", " €"]),
        ("de", ["1’000’000", " Franken"]),
        ("fr", ["25 000", " habitants"]),
        ("fr", ["1\u202f000\u00a0000,5", " %"]),
        ("en", ["3", " 45", " people"]),
        ("en", ["the", " 20th", " of", " 12kg"]),
        ("fr", ["à", " 15h30"]),
        ("en", ["1.1.1x"]),
        ("en", ["1,234km"]),
        ("de", ["EUR1,000", " oder", " EUR1 000"]),
        ("ar", ["٣٫١٤"]),
        ("hi", ["१२,३४५", " रुपये"]),
        # Graphemes of one character and of many.
        ("en", ["Cafe\u0301", "!"]),
        ("en", ["good", " 👩‍👩‍👧", "👍🏽", "🇯🇵", "🇩🇪", " 1️⃣"]),
        ("ar", ["مرحبا", "،", " كَيْفَ", " الحال", "؟"]),
        ("he", ["שָׁלוֹם", " לְךָ", "."]),
        ("he", ["צה״ל", " צ׳יפס"]),
        ("ca", ["la", " col·lecció"]),
        ("hi", ["क्षत्रिय", " हिन्दी", "।"]),
        ("hi", ["क्\u200dष", " है"]),
        ("fa", ["می\u200cخواهم", " بروم"]),
        ("bn", ["র\u200d্যাব"]),
        ("ko", ["안녕하세요", ",", " 여러분"]),
        ("ru", ["Привет", " из-за", " тебя"]),
        # No spaces between words: in Japanese what is not written alone stays with the word before it.
        ("ja", ["今日は", "、", "晴れ"]),
        ("ja", ["これは", "vLLMです", "。"]),
        ("ja", ["5,500円と", "10", "%"]),
        ("ja", ["か\u3099く", "せいです"]),
        ("ja", ["学生ﾊﾟﾊﾟです"]),
        ("ja", ["👩‍💻", "さん"]),
        ("ja", ["「", "はい", "」", "、", "マイケル", "・", "ジョーダンは"]),
        ("zh", ["我们", "用", "vLLM"]),
        ("zh", ["增长", "3.5", "%", "，", "2026年"]),
        ("zh-hant", ["價格", "1,000", "元"]),
        ("th", ["ฉัน", "ไป", "โรงเรียน"]),
        ("th", ["ราคา", " 1,000", " บาท"]),
        # Nor is it known where a word ends.
        ("km", ["ខ្ញុំ", "ទៅ"]),
        ("my", ["မြ", "န်", "မ", "ာ"]),
    ],
)
def test_units(lang: str, pieces: list[str]) -> None:
    assert units("".join(pieces), lang) == pieces
