"""Texts as they are typed and recognised, and what a model gets of them. With the real model: `tests/e2e`."""

from __future__ import annotations

import unicodedata

import pytest

from gateway.text.folding import Fold, Folded, Unfolding, fold, is_doubtful_copy, plain

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
        (">> Anna:", "", ">> Anna:", ""),
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
    *("2026-11-29", "12.05.2026", "5/12/26", "$1,200.50", "49,90 €", "3.5%"),
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


def test_of_much_that_is_kept_each_has_a_name_of_its_own() -> None:
    found = folded(" ".join(f"{{{n}}}" for n in range(9)) + " are here OK")
    assert len(dict(found.kept)) == len(set(dict(found.kept).values())) == 6
    assert folded("OPS-4821 is {n}.").kept == ()
    lost = Unfolding(folded("It is {n}."))
    assert (lost.add("Es ist", last=True), lost.is_complete) == ("Es ist", False)


@pytest.mark.parametrize("text", ["50 % des gens", "100%", "1,200 people", "at 10:30", "v2.7.1", "a {", "5 km/h"])
def test_what_a_model_can_say_is_not_kept(text: str) -> None:
    assert folded(text).kept == ()


@pytest.mark.parametrize(
    "text",
    [
        ">> ANNA: “Let us move the launch to Friday, please.”",
        "LET US MOVE THE LAUNCH TO FRIDAY, PLEASE.",
        "See https://example.com/a and {name} – on 2026-11-29…",
    ],
)
def test_an_unfinished_text_is_folded_alike_while_it_grows(text: str) -> None:
    words = text.split()
    drafts = [folded(" ".join(words[:count]), final=False) for count in range(3, len(words) + 1)]
    assert {each.before for each in drafts} == {drafts[-1].before}
    first = drafts[0].text.rstrip(".,")
    assert all(each.text.startswith(first) for each in drafts)
    # An end mark would say something else.
    assert folded("yes", final=False).text == "yes"


@pytest.mark.parametrize(
    ("prefix", "draft", "begun"),
    [
        ("", "", ("", "")),
        ("", "- Am {d} um", ("", "Am OPS-4821 um")),
        ("- Am {d}", " um", ("Am OPS-4821", " um")),
        ("-", " Am", ("", "Am")),
        ("- Am {", "d} um", ("Am ", "")),
        ("Am", "", None),
    ],
)
def test_what_was_shown_is_what_the_model_said(prefix: str, draft: str, begun: tuple[str, str] | None) -> None:
    assert folded("- On {d} at noon.").begun(prefix, draft) == begun


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
