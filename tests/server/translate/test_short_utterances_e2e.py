"""Short things that people say, through the real detector and the rules for what is spoken."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.languages import UNDETERMINED
from gateway.server.translate.detection import Detector
from gateway.translation.spoken_language import SpokenLanguages

SIX = ("en", "ja", "es", "de", "fr", "zh")

BEFORE = {
    "en": "We should move the launch to Friday because the tests are late.",
    "de": "Wir sollten den Start auf Freitag verschieben, weil die Tests spät dran sind.",
    "es": "Deberíamos mover el lanzamiento al viernes porque las pruebas van tarde.",
    "fr": "On devrait décaler le lancement à vendredi car les tests sont en retard.",
    "ja": "テストが遅れているので、ローンチを金曜日に延期しましょう。",
    "zh": "测试推迟了，所以我们应该把发布改到星期五。",
}

# Only Chinese characters → the languages that are written with all of them.
KANJI = {
    text: langs
    for langs, texts in (
        (("ja",), ("会議", "賛成", "来週金曜日", "議事録", "開発環境")),
        (("zh",), ("会议", "开始", "谢谢", "没问题", "预算", "项目进度")),
        (("ja", "zh"), ("東京", "了解", "明日", "予算確認", "進捗報告", "同意", "北京", "下周五", "大家好")),
    )
    for text in texts
}
SHORT = {
    "en": ("OK", "Yes", "Hello", "Thank you", "Sounds good", "Zoom", "Deadline"),
    "de": ("Ja", "Hallo", "Genau", "Danke", "Guten Morgen"),
    "es": ("Hola", "Gracias", "Vale", "Claro"),
    "fr": ("Oui", "Bonjour", "Merci", "D'accord"),
}
LATIN = [text for texts in SHORT.values() for text in texts]
MORE = {
    "en": ("See you tomorrow", "I agree", "No problem", "Five minutes", "Next slide please", "Right"),
    "de": ("Bis morgen", "Ich stimme zu", "Kein Problem", "Fünf Minuten", "Nächste Folie bitte", "Richtig"),
    "es": ("Hasta mañana", "Estoy de acuerdo", "No hay problema", "Cinco minutos", "La siguiente", "Correcto"),
    "fr": ("À demain", "Je suis d'accord", "Pas de problème", "Cinq minutes", "Diapo suivante", "Exact"),
    "ja": ("また明日", "賛成です", "問題ありません", "五分", "次のスライド", "正解"),
    "zh": ("明天见", "我同意", "没问题", "五分钟", "下一页", "对"),
}


@pytest.fixture(scope="module")
def detector() -> Detector:
    detector = Detector()
    asyncio.run(detector.load())
    return detector


def spoken(detector: Detector, *texts: str, told: str | None = None) -> str:
    """The language of the last of these finals."""
    languages, found = SpokenLanguages(), ""
    if told is not None:
        languages.set_told(told)
    for number, text in enumerate(texts):
        found = languages.final(str(number), text, detector.rank(text, SIX), SIX)
    return found


@pytest.mark.parametrize("before", [None, *SIX])
def test_chinese_characters_are_in_a_language_that_has_them(detector: Detector, before: str | None) -> None:
    said = [BEFORE[before]] if before else []
    wrong = {text: lang for text in KANJI if (lang := spoken(detector, *said, text)) not in KANJI[text]}
    assert wrong == {}


@pytest.mark.parametrize("lang", ["ja", "zh"])
def test_what_two_languages_write_is_in_the_last(detector: Detector, lang: str) -> None:
    both = [text for text, langs in KANJI.items() if len(langs) == 2]
    found = [spoken(detector, BEFORE[lang], text) for text in both]
    # All but a greeting that the detector is sure of.
    assert found.count(lang) >= len(both) - 1


@pytest.mark.parametrize("before", ["ja", "zh"])
@pytest.mark.parametrize("text", LATIN)
def test_latin_letters_are_in_no_language_without(detector: Detector, before: str, text: str) -> None:
    assert spoken(detector, BEFORE[before], text) not in ("ja", "zh")


@pytest.mark.parametrize(("lang", "text"), [(lang, text) for lang, texts in SHORT.items() for text in texts])
def test_the_language_before_the_last_counts(detector: Detector, lang: str, text: str) -> None:
    assert spoken(detector, BEFORE[lang], BEFORE["ja"], text) == lang
    # And what the session was told, where nothing is known.
    assert spoken(detector, text, told=lang) == lang


@pytest.mark.parametrize(("lang", "text"), [(lang, text) for lang, texts in MORE.items() for text in texts])
def test_a_speaker_who_does_not_change(detector: Detector, lang: str, text: str) -> None:
    assert spoken(detector, BEFORE[lang], text) == lang


@pytest.mark.parametrize("text", ["Hola", "Hallo", "Ja", "OK", "Hello", "Merci"])
def test_nothing_known_is_not_the_first_language(detector: Detector, text: str) -> None:
    assert spoken(detector, text) == UNDETERMINED


@pytest.mark.parametrize("text", ["ภาษาไทย", "Добрый день", "안녕하세요"])
def test_letters_of_no_language_here(detector: Detector, text: str) -> None:
    assert detector.detect(text, SIX) is None
    assert spoken(detector, BEFORE["de"], text) == UNDETERMINED


@pytest.mark.parametrize(
    ("said", "lang"),
    [
        ((BEFORE["de"], "Bonjour", "Ja, genau"), "de"),
        ((BEFORE["de"], "Thank you", "Ja"), "de"),
        ((BEFORE["en"], "Gracias", "OK"), "en"),
        ((BEFORE["ja"], "Sounds good", "了解"), "ja"),
    ],
)
def test_a_word_of_another_language_does_not_stick(detector: Detector, said: tuple[str, ...], lang: str) -> None:
    assert spoken(detector, *said) == lang
