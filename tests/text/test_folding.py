"""Texts as they are typed and recognised, and what a model gets of them. With the real model: `tests/e2e`."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
import regex

from gateway.text.folding import Fold, Folded, Unfolding, fold, is_doubtful_copy, plain
from gateway.text.units import SPOKEN

ALL = frozenset(Fold)
KNOWN = {"friday": 3, "Friday": 1, "NASA": 1, "nasa": 3}


def strangeness(word: str) -> int:
    return KNOWN.get(word, 1 if word.islower() else 2)


def folded(text: str, lang: str = "en", *, final: bool = True) -> Folded:
    return fold(text, lang, ALL, final=final, strangeness=strangeness)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is done.", "It is done."),
        (unicodedata.normalize("NFD", "Évidemment."), "Évidemment."),
        ("\ufeffIt\u00a0is\u202fdone\t now.\u3000", "It is done now."),
        ("It is \u200bdo\u00adne\u2060.\u200e", "It is done."),
        ("one \r\n\r\n two\u2028three", "one\ntwo\nthree"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("no\u200cn", "non"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("“It’s” – 5…", "“It’s” – 5…"),
    ],
)
def test_every_model_gets_plain_text(text: str, expected: str) -> None:
    assert plain(text) == expected
    assert fold(text, "en") == Folded(expected)


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("ja", "ﾛｰﾝﾁを金曜日に。", "ローンチを金曜日に。"),
        ("en", "Ｌｅｔ　ｕｓ　ｇｏ　２０２６！", "Let us go 2026!"),
        ("ja", "ＡＢＣですか？", "ABCですか？"),
        ("en", "It’s the teams` plan.", "It's the teams' plan."),
        ("en", "He said “yes”, really?!", "He said yes, really?"),
        ("en", "Stop it now please!!!", "Stop it now please."),
        ("en", "We need 2 people – not 3.", "We need 2 people, not 3."),
        ("en", "From 3–5, Mon‑Fri.", "From 3-5, Mon-Fri."),
        ("en", "We have 10 – 20 people.", "We have 10-20 people."),
        ("en", "It ended 5 - 3 for us.", "It ended 5-3 for us."),
        ("de", "Von 8:00 – 17:00 Uhr, 5 % — 7 %.", "Von 8:00-17:00 Uhr, 5 %-7 %."),
        ("en", "It costs $10 – $20, 5 km – 7 km away.", "It costs $10-$20, 5 km-7 km away."),
        ("ja", "10時 – 12時です。", "10時-12時です。"),
        ("en", "We need 3 – that is all.", "We need 3, that is all."),
        ("en", "well... that is it for today…", "well that is it for today"),
        ("en", "Good morning。", "Good morning."),
        ("zh", "早上好,你们能听到吗?", "早上好，你们能听到吗？"),
        ("ja", "30は多い,少しも.", "30は多い、少しも。"),
        ("en", "LET US MEET ON FRIDAY. IT IS NASA.", "Let us meet on Friday. It is NASA."),
        ("de", "DAS IST GUT", "Das ist gut."),
        ("en", "NASA said so to all of us", "NASA said so to all of us"),
        ("en", "good morning\nthank you all", "good morning thank you all"),
        ("en", "yes", "Yes."),
        ("en", "i agree", "I agree."),
        ("fr", "pourquoi", "Pourquoi?"),
        ("ja", "はい", "はい。"),
        ("ja", "皆さんこちらの声が聞こえていますか", "皆さんこちらの声が聞こえていますか？"),
        ("zh", "线上的各位能听到我的声音吗", "线上的各位能听到我的声音吗？"),
        ("en", "let us move the launch", "let us move the launch"),
        ("en", "Yes!", "Yes!"),
    ],
)
def test_a_model_of_plain_sentences_gets_them(lang: str, text: str, expected: str) -> None:
    assert folded(text, lang) == Folded(expected)


@pytest.mark.parametrize(
    ("text", "before", "core", "after"),
    [
        (">> ANNA: Good morning.", ">> ANNA: ", "Good morning.", ""),
        (">>Good morning.", ">>", "Good morning.", ""),
        ("– Good morning.", "– ", "Good morning.", ""),
        ("“Good morning.”", "“", "Good morning.", "”"),
        ("«\u202fBonjour.\u202f»", "« ", "Bonjour.", " »"),
        (">> Anna: “Good morning.", ">> Anna: “", "Good morning.", ""),
        ("♪ Good morning ♪", "♪ ", "Good morning.", " ♪"),
        ('"Yes" and "no" are fine.', "", "Yes and no are fine.", ""),
        (">> Anna:", ">> ", "Anna:", ""),
        (">> Dr. Anna O’Neil: Hello all.", ">> Dr. Anna O’Neil: ", "Hello all.", ""),
        (">> We meet at 10:30 on Friday.", ">> ", "We meet at 10:30 on Friday.", ""),
        (">> So the question is: what now?", ">> ", "So the question is: what now?", ""),
        (">> Two Of Us Agree: it works.", ">> ", "Two Of Us Agree: it works.", ""),
        (">> Speaker 2: it works.", ">> ", "Speaker 2: it works.", ""),
        (">> See C:Temp for it.", ">> ", "See C:Temp for it.", ""),
        ("-5 is cold here.", "", "-5 is cold here.", ""),
    ],
)
def test_what_stands_around_the_words_stays(text: str, before: str, core: str, after: str) -> None:
    found = folded(text)
    assert (found.before, found.text, found.after) == (before, core, after)
    answer = Unfolding(found)
    assert answer.add("Gut") + answer.add("en Tag.", last=True) == f"{before}Guten Tag.{after}"


KEPT = [
    *("{date}", "{{name}}", "${total}", "#{n}", "%1$s", "%s", "%(name)s"),
    *("https://example.com/a?b=(c)&d", "www.example.com", "anna.k+x@mail.example.com"),
    *("2026-11-29", "12.05.2026", "5/12/26"),
]


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_what_a_model_cannot_say_comes_back(kept: str, size: int) -> None:
    found = folded(f"We have {kept} here, and {kept}.")
    ((name, original),) = found.kept
    assert original == kept
    assert found.text == f"We have {name} here, and {name}."
    said, answer = f"Hier {name}, {name} O.", Unfolding(found)
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    assert "".join(map(answer.add, pieces)) + answer.add("", last=True) == f"Hier {kept}, {kept} O."
    assert answer.is_complete


def test_each_kept_part_has_its_own_name() -> None:
    found = folded(" ".join(f"{{{n}}}" for n in range(9)) + " are here OK")
    assert len(dict(found.kept)) == len(set(dict(found.kept).values())) == 6
    assert folded("OPS-4821 is {n}.").kept == ()
    lost = Unfolding(folded("It is {n}."))
    assert (lost.add("Es ist", last=True), lost.is_complete) == ("Es ist", False)


@pytest.mark.parametrize("text", ["50 % des gens", "100%", "1,200 people", "at 10:30", "v2.7.1", "a {", "5 km/h"])
def test_what_a_model_can_say_is_not_kept(text: str) -> None:
    assert folded(text).kept == ()


# What may still become something else: the last word, with the groups of digits before it.
OPEN = regex.compile(r"(?:[$€£¥]?(?:[\d.,]+ )*[^\s\p{Han}\p{Hiragana}\p{Katakana}]*|\p{Katakana})\Z")


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("en", ">> ANNA: “Let us move the launch to Friday, please.”"),
        ("en", ">> We meet at 10:30 on Friday: all of us."),
        ("en", '"Yes" she said, and "no" to it.'),
        ("en", "‘Yes’ she said"),
        ("en", "♪ La la ♪ and so on ♪"),
        ("en", "LET US MOVE THE LAUNCH TO FRIDAY, PLEASE. then we go on"),
        ("en", "NASA said so to ALL of us"),
        ("en", "A - 5 - B here, and I am C"),
        ("en", "A B C are what we have"),
        ("en", "See https://example.com/a, and {name} or {{name}} – on 2026-11-29…"),
        ("en", "We paid $1,250.5 for 10 – 20 people, or $1,25 each, or $1,250 in 2026."),
        ("fr", "Cela coûte 1 200,50 € ou 49,90 € ou 3,5% par an – non ?!"),
        ("en", "Mail anna@example.com.au, 12.05.2026 or 5/12/26, at 3.5, or 3.5.1 or 5%s"),
        ("ja", "ABC 5. ﾊﾞｽは3.5%です,そして10時 – 12時「会議」に行く,5人!"),
    ],
)
def test_what_grows_is_folded_alike(lang: str, text: str) -> None:
    drafts = [folded(text[:size], lang, final=False) for size in range(1, len(text) + 1)]
    for size, (one, other) in enumerate(pairwise(drafts), 1):
        said = OPEN.sub("", one.text).rstrip(" .,、。-")
        # Capitals are known as such from the fourth word on.
        if SPOKEN.search(said) and (not text[:size].isupper() or len(text[:size].split()) > 4):
            assert (other.before.startswith(one.before), other.text.startswith(said)) == (True, True), (one, other)
        assert one.after == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LET US MOVE", "LET US MOVE"),
        ("LET US MOVE TO NASA", "Let us move to NASA"),
        ("A B C are what", "A B C are what"),
        ("A - 5 - B here", "A, 5, B here"),
    ],
)
def test_capitals_are_known_from_the_fourth_word(text: str, expected: str) -> None:
    assert folded(text, final=False).text == expected


def test_an_end_mark_would_end_an_unfinished_text() -> None:
    assert folded("yes", final=False).text == "yes"


@pytest.mark.parametrize("text", ["$1,200.50", "49,90 €", "3.5%", "12.5 kilos"])
def test_amounts_are_the_models_to_write(text: str) -> None:
    """Each language has a form of its own for them, and a ticket's name in place of one lost it."""
    assert folded(f"It is {text} today.").kept == ()


@pytest.mark.parametrize("text", ["on 12.05.20", "see www.a.example.c", "say %s"])
def test_what_may_grow_is_not_kept_yet(text: str) -> None:
    assert folded(text, final=False).kept == ()
    assert folded(f"{text} or so", final=False).kept


@pytest.mark.parametrize(
    ("originals", "said", "named"),
    [
        (("5,5",), "5,55 und 15,5 und 5,5.", "5,55 und 15,5 und A."),
        (("5,5",), "5,5,5 und 1.5,5", "5,5,5 und 1.5,5"),
        (("3.5", "3.5%"), "3.5% und 3.5", "B und A"),
        (("www.a.de", "www.a.de/b"), "www.a.de/b, www.a.de/bc, www.a.de", "B, A/bc, A"),
        (("{n}", "A1,5"), "{n}{n}です", "AAです"),
        (("3.5",), "3.5です", "Aです"),
    ],
)
def test_only_what_is_kept_is_named(originals: tuple[str, ...], said: str, named: str) -> None:
    kept = tuple(zip("AB", originals, strict=False))
    assert Folded("", kept=kept).begun(f"{said} ", "") == (f"{named} ", "")


@pytest.mark.parametrize(
    ("asks", "texts"),
    [
        (
            True,
            "いいですか 行きますか 来ましたか どうでしょうか 始めましょうか 本当なのか 何をするのか 来るか 行くか "
            "見たか 終わったか できたか いいか 高くないか 行きたいか 行こうか 話そうか 学生だったか そうだろうか "
            "ありませんか 読んだか 待つか 飲むか 誰でしたか",
        ),
        (
            False,
            "静か 確か わずか 僅か 明らか 豊か 愚か 遥か はるか 微か 密か ほのか 朗らか 穏やか 鮮やか 滑らか "
            "ゆたか いつか どこか 何か 誰か いくつか ばか まさか しか ほか またか なんだか 何だか どうか "
            "というか とか そうか あしたか ほんの僅か",
        ),
    ],
)
def test_only_ka_behind_a_verb_asks(asks: bool, texts: str) -> None:
    wrong = [text for text in texts.split() if folded(text, "ja").text.endswith("？") is not asks]
    assert wrong == []


@pytest.mark.parametrize(
    ("prefix", "draft", "begun"),
    [
        ("", "", ("", "")),
        ("", "- Am {d} um", ("", "Am OPS-4821 um")),
        ("- Am {d}", " um", ("Am OPS-4821", " um")),
        ("-", " Am", ("", "Am")),
        ("- Am {", "d} um", ("Am ", "")),
        ("Am", "", None),
        ("- Am {d}", "", ("Am OPS-4821", "")),
    ],
)
def test_what_was_shown_is_what_the_model_said(prefix: str, draft: str, begun: tuple[str, str] | None) -> None:
    assert folded("- On {d} at noon.").begun(prefix, draft) == begun


def test_word_is_not_cut_for_its_ending() -> None:
    assert folded("See https://a.example or {d}.").begun("Ich", " bin") == ("Ich", " bin")


def test_no_answer_has_the_character_that_breaks_control_tokens() -> None:
    assert Unfolding(fold("<b>", "en"), "\u2060").add("<\u2060b>", last=True) == "<b>"


@pytest.mark.parametrize(
    ("source", "answer", "doubtful"),
    [
        ("It’s done.", "It's done.", True),
        ("yes", "Yes.", True),
        ("LET US GO", "Let us go.", True),
        ("こんにちは", "こんにちは。", True),
        ("Anna Schmidt", "Anna Schmidt.", False),
        ("OK.", "OK.", False),
        ("東京", "東京", False),
        ("42", "42", False),
        ("See https://example.com/x", "See https://example.com/x", False),
        ("see https://example.com/x", "see https://example.com/x", True),
        ("It is done.", "Es ist fertig.", False),
        ("…", "…", False),
    ],
)
def test_a_copy_that_is_no_name_is_doubtful(source: str, answer: str, doubtful: bool) -> None:
    assert is_doubtful_copy(source, answer) is doubtful
