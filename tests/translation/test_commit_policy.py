"""What of a growing translation is shown, and what for good: where texts may be cut, and when they are."""

from __future__ import annotations

import itertools
import unicodedata
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.text import units as text_units
from gateway.text.units import UNSPACED, Units, units
from gateway.translation import commit_policy
from gateway.translation.commit_policy import CommitPolicy

# The series of revisions below are written for these; which values are best is measured, not tested.
SPAN, MASK = 2, 4


def agreed(one: str, other: str, lang: str) -> str:
    """The longest common beginning that ends with a unit of both."""
    return "".join(commit_policy._shared(units(one, lang), units(other, lang)))


@pytest.fixture(autouse=True, scope="module")
def constants() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_policy, "SPAN", SPAN)
        patch.setattr(commit_policy, "MASK", MASK)
        yield


@pytest.mark.parametrize(
    ("lang", "one", "other", "shared"),
    [
        ("de", "", "", ""),
        ("de", "Ich", "", ""),
        ("de", "Ich gehe", "Ich gehe", "Ich gehe"),
        ("de", "Ich gehe", "Ich gehe heim", "Ich gehe"),
        ("de", "Ich geh", "Ich gehe heim", "Ich"),
        ("de", "Es kostet 5", "Es kostet 5,500", "Es kostet"),
        ("fr", "J'ai 5 euros", "J'ai 5 500 euros", "J'ai"),
        ("fr", "l", "l'homme", ""),
        ("en", "cafe", "cafe\u0301", ""),
        ("fa", "می", "می\u200cخواهم", ""),
        ("en", "👩", "👩\u200d💻", ""),
        ("ja", "今日は晴れ", "今日は雨", "今日は"),
        ("ja", "か", "か\u3099", ""),
        ("ja", "vLL", "vLLM", ""),
        ("th", "ที่นี", "ที่นี่", "ที่"),
        # One is the beginning of the other, and its last character is taken into the word before it.
        ("zh", "支持团", "支持团队批准", ""),
        ("zh", "支持", "支持团队批准", "支持"),
        ("ja", "今日は天", "今日は天気が", "今日は"),
        ("en", "a  b", "a b", "a"),
    ],
)
def test_agreed_ends_with_a_unit_of_both(lang: str, one: str, other: str, shared: str) -> None:
    assert agreed(one, other, lang) == shared
    assert agreed(other, one, lang) == shared


# ------------------------------------------------------------ what is never cut


@pytest.mark.parametrize(
    ("lang", "text", "shown"),
    [
        ("de", "Es kostet 5", "Es kostet"),
        ("hi", "कीमत १२", "कीमत"),
        ("fr", "Il y en a 25 000", "Il y en a"),
        ("en", "it is 1.5 2", "it is"),
        ("en", "one (", "one"),
        ("de", "er sagt „", "er sagt"),
        ("fr", "il dit « ", "il dit"),
        ("es", "Pues ¿", "Pues"),
        ("es", "Pues ¡", "Pues"),
        ("es", "Pues ¿(", "Pues"),
        ("ja", "彼は「", "彼は"),
        ("ja", "今年は2026", "今年は"),
        ("en", "rock '", "rock"),
        ("en", "rock -", "rock"),
        ("en", "one ", "one"),
        ("en", "5", ""),
        ("fa", "می\u200c", ""),
        # A number may go on behind its first separator, a date behind its dot.
        ("de", "am 3.", "am"),
        ("de", "am 3. ", "am"),
        ("en", "it costs 5,", "it costs"),
        ("en", "at 10:", "at"),
        ("en", "on 21/", "on"),
        ("hi", "कीमत १२.", "कीमत"),
        ("ja", "今年は2026.", "今年は"),
        # So may a number in Chinese characters.
        ("ja", "重要な五", "重要な"),
        ("zh", "大约三十", "大约"),
        ("zh-hant", "大約兩億", "大約"),
        ("ja", "人口は約〇", "人口は"),
        # What an apostrophe or a hyphen is attached to may be the first half of a word.
        ("fr", "je mange l'", "je mange"),
        ("fr", "je mange l’", "je mange"),
        ("en", "very well-", "very"),
        ("de", "im Nord‑", "im"),
        ("ja", "私はvLLM-", "私は"),
        ("en", "rock-", ""),
        # Closed, and therefore shown.
        ("en", "it is 5%", "it is 5%"),
        ("en", "the 20th", "the 20th"),
        ("en", "one (two)", "one (two)"),
        ("es", "¿Qué?", "¿Qué?"),
        ("ja", "「はい」", "「はい」"),
        ("en", "it is 5%.", "it is 5%."),
        ("en", "it is so.", "it is so."),
        ("de", "er sagt:", "er sagt:"),
        ("en", "either/", "either/"),
        ("ja", "五つ", "五つ"),
    ],
)
def test_text_is_not_cut_behind_open_ends(lang: str, text: str, shown: str) -> None:
    policy = CommitPolicy("en", lang)
    policy.take_hypothesis("a", text)
    policy.take_hypothesis("a b", text)
    assert (policy.committed, policy.tentative) == ("", shown)
    policy.take_hypothesis("a b c", text)
    assert (policy.committed, policy.tentative) == (shown, "")
    assert policy.draft == text.removeprefix(shown)


# ------------------------------------------------------------ series of revisions

# What was heard, its translation, and what is shown then: for good, and behind it.
Step = tuple[str, str, str, str]


def play(policy: CommitPolicy, steps: list[Step]) -> None:
    for source, hypothesis, committed, tentative in steps:
        policy.take_hypothesis(source, hypothesis)
        assert (policy.committed, policy.tentative) == (committed, tentative), source
        assert policy.committed + policy.draft == hypothesis


SERIES: dict[str, tuple[str, str, list[Step]]] = {
    "english to german": (
        "en",
        "de",
        [
            ("I", "Ich", "", ""),
            ("I would", "Ich würde", "", "Ich"),
            ("I would like", "Ich möchte gern", "Ich", ""),
            ("I would like to", "Ich möchte gern", "Ich", " möchte gern"),
            ("I would like to go", "Ich möchte gern gehen", "Ich möchte gern", ""),
            ("I would like to go home", "Ich möchte gern nach Hause gehen", "Ich möchte gern", ""),
            ("I would like to go home now", "Ich möchte gern jetzt nach Hause gehen", "Ich möchte gern", ""),
            (
                "I would like to go home now please",
                "Ich möchte gern jetzt nach Hause gehen, bitte",
                "Ich möchte gern",
                " jetzt nach Hause gehen",
            ),
        ],
    ),
    "english to french": (
        "en",
        "fr",
        [
            ("the", "le", "", ""),
            ("the man", "l'homme", "", ""),
            ("the man eats", "l'homme mange", "", "l'homme"),
            ("the man eats 25", "l'homme mange 25", "l'homme", " mange"),
            ("the man eats 25 thousand", "l'homme mange 25 000", "l'homme mange", ""),
            ("the man eats 25 thousand apples", "l'homme mange 25 000 pommes", "l'homme mange", ""),
            (
                "the man eats 25 thousand apples today",
                "l'homme mange 25 000 pommes aujourd'hui",
                "l'homme mange",
                " 25 000 pommes",
            ),
            (
                "the man eats 25 thousand apples today again",
                "l'homme mange 25 000 pommes aujourd'hui encore",
                "l'homme mange 25 000 pommes",
                " aujourd'hui",
            ),
        ],
    ),
    # A particle belongs to the word before it: 今日は and 今日の share nothing.
    "english to japanese": (
        "en",
        "ja",
        [
            ("today", "今日", "", ""),
            ("today the", "今日は", "", ""),
            ("today the weather", "今日の天気", "", ""),
            ("today the weather is", "今日の天気は", "", "今日の"),
            ("today the weather is nice", "今日の天気は良い", "今日の", "天気は"),
            ("today the weather is nice in", "今日の天気は京都で", "今日の天気は", ""),
        ],
    ),
    # A word of the source and its particle count as one word does.
    "japanese to english": (
        "ja",
        "en",
        [
            ("今日", "Today", "", ""),
            ("今日は", "Today", "", "Today"),
            ("今日は天", "Today is heaven", "", "Today"),
            ("今日は天気", "Today the weather", "", "Today"),
            ("今日は天気が", "Today the weather", "", "Today the weather"),
            ("今日は天気がいい", "Today the weather is nice", "Today", " the weather"),
            ("今日は天気がいいです", "Today the weather is nice", "Today", " the weather is nice"),
            ("今日は天気がいいです。私", "Today the weather is nice. I", "Today the weather", " is nice"),
        ],
    ),
    # The recogniser takes `can` back a word later: nothing of its translation was shown for good.
    "the last word is corrected late": (
        "en",
        "de",
        [
            ("this is", "das ist", "", ""),
            ("this is the", "das ist die", "", "das ist"),
            ("this is the can", "das ist die Dose", "das ist", " die"),
            ("this is the cat", "das ist die Katze", "das ist", " die"),
            ("this is the cat and", "das ist die Katze und", "das ist die", " Katze"),
            ("this is the cat and the", "das ist die Katze und der", "das ist die Katze", " und"),
        ],
    ),
    "a number that grows is shown once it is whole": (
        "en",
        "de",
        [
            ("it costs", "es kostet", "", ""),
            ("it costs 5", "es kostet 5", "", "es kostet"),
            ("it costs 5,500", "es kostet 5.500", "", "es kostet"),
            ("it costs 5,500 euros", "es kostet 5.500 Euro", "es kostet", ""),
            ("it costs 5,500 euros now", "es kostet 5.500 Euro jetzt", "es kostet", " 5.500 Euro"),
            ("it costs 5,500 euros now or", "es kostet 5.500 Euro jetzt oder", "es kostet 5.500 Euro", " jetzt"),
        ],
    ),
    "a source that gets shorter has to grow again": (
        "en",
        "de",
        [
            ("a b c d", "x", "", ""),
            ("a b", "x y", "", "x"),
            ("a b c", "x y", "", "x y"),
            ("a b c d", "x y z", "x y", ""),
        ],
    ),
    "what stays does so behind what is committed": (
        "en",
        "de",
        [
            ("a", "eins zwei drei", "", ""),
            ("a b", "eins zwei drei", "", "eins zwei drei"),
            ("a b c", "eins vier", "eins", " zwei drei"),
            ("a b c d", "eins vier", "eins", " vier"),
        ],
    ),
    "the same text again says nothing new": (
        "en",
        "de",
        [
            ("we go", "wir gehen", "", ""),
            *[("we go", "wir gehen", "", "wir gehen")] * 40,
            ("we go home", "wir gehen heim", "", "wir gehen"),
            ("we go home now", "wir gehen heim jetzt", "wir gehen", " heim"),
            *[("we go home now", "wir gehen heim jetzt", "wir gehen", " heim jetzt")] * 3,
        ],
    ),
    "another hypothesis altogether commits nothing": (
        "en",
        "de",
        [
            ("a", "eins zwei", "", ""),
            ("a b", "uno dos", "", ""),
            ("a b c", "un deux", "", ""),
            ("a b c d", "eins zwei", "", ""),
            ("a b c d e", "un deux", "", ""),
        ],
    ),
    # One in between that says something else is enough against it.
    "what all hypotheses over the span share is committed": (
        "en",
        "de",
        [
            ("a", "eins zwei drei", "", ""),
            ("a b", "eins zwo drei", "", "eins"),
            ("a b c", "eins zwei drei", "eins", ""),
        ],
    ),
}


@pytest.mark.parametrize("name", SERIES)
def test_series_of_revisions(name: str) -> None:
    source, target, steps = SERIES[name]
    play(CommitPolicy(source, target), steps)


def test_a_hypothesis_that_gets_shorter_takes_nothing_back() -> None:
    policy = CommitPolicy("en", "de")
    play(
        policy,
        [
            ("we go", "wir gehen", "", ""),
            ("we go home", "wir gehen heim", "", "wir gehen"),
            ("we go home now", "wir gehen heim jetzt", "wir gehen", " heim"),
            ("we go", "wir gehen", "wir gehen", " heim"),
            ("we go away", "wir gehen weg", "wir gehen", ""),
        ],
    )
    for shorter in ("wir", ""):
        policy.take_hypothesis("we", shorter)
        assert (policy.committed, policy.tentative, policy.draft) == ("wir gehen", "", " weg")


def test_hypothesis_without_the_prefix_changes_nothing() -> None:
    policy = CommitPolicy("en", "de")
    play(
        policy,
        [
            ("a", "eins zwei", "", ""),
            ("a b", "eins zwei drei", "", "eins zwei"),
            ("a b c", "eins zwei drei vier", "eins zwei", " drei"),
        ],
    )
    for source, hypothesis in [("a b c d", "uno dos tres"), ("a b", "eins"), ("", ""), ("x y", "eins zwo")] * 10:
        policy.take_hypothesis(source, hypothesis)
        assert (policy.committed, policy.tentative, policy.draft) == ("eins zwei", " drei", " drei vier")
    # The recogniser comes back: the next is compared with the last that was taken.
    play(policy, [("a b c d e", "eins zwei drei fünf", "eins zwei drei", "")])


def test_one_differing_hypothesis_takes_nothing_back() -> None:
    """Nor is anything of it shown; the second in a row does, and what both share is shown."""
    for second, shown in (("eins drei vier", "eins drei"), ("eins vier", "eins"), ("uno", ""), ("", "")):
        play(
            CommitPolicy("en", "de"),
            [
                ("a", "eins zwei", "", ""),
                ("a", "eins zwei drei", "", "eins zwei"),
                ("a", "eins drei", "", "eins zwei"),
                ("a", second, "", shown),
            ],
        )


def test_interrupted_run_is_only_a_draft() -> None:
    policy = CommitPolicy("en", "de")
    play(policy, [("a", "eins", "", ""), ("a b c", "eins zwei", "eins", "")])
    drafts = []
    for text in ("", "eins", "eins drei", "eins zwei drei", "eins zwei", "uno dos tres cuatro cinco"):
        policy.interrupted(text)
        drafts.append(policy.draft)
        assert (policy.committed, policy.tentative) == ("eins", "")
    # Only a longer guess is a better one, and only one that continues what is committed.
    assert drafts == [" zwei", " zwei", " zwei", " zwei drei", " zwei drei", " zwei drei"]
    play(policy, [("a b c d", "eins vier", "eins", "")])


@pytest.mark.parametrize(
    ("hypotheses", "committed", "draft"),
    [
        # What two hypotheses share, which live readers see.
        (["eins zwei drei", "eins zwei vier"], "eins zwei", " vier"),
        # Live readers keep what one hypothesis does not have.
        (["eins zwei", "eins zwei drei", "eins vier fünf"], "eins zwei", ""),
        # Nothing is shared: the newest, without its end.
        (["eins zwei", "zwei drei vier fünf sechs sieben acht"], "zwei drei vier", " fünf sechs sieben acht"),
        (["Ja."], "Ja.", ""),
        (["um 10"], "um", " 10"),
        ([""], "", ""),
        ([], "", ""),
    ],
)
def test_overdue_text_is_committed(hypotheses: list[str], committed: str, draft: str) -> None:
    policy = CommitPolicy("en", "de")
    for hypothesis in hypotheses:
        policy.take_hypothesis("a", hypothesis)
    assert policy.commit_overdue() == (committed != "")
    assert (policy.committed, policy.tentative, policy.draft) == (committed, "", draft)


@pytest.mark.parametrize(
    ("hypotheses", "shown"),
    [
        # They see the newest without its end already.
        (
            ["eins zwei drei vier fünf", "eins zwei sechs sieben acht neun zehn"],
            "eins zwei sechs sieben acht neun zehn",
        ),
        (["eins zwei", "eins zwei drei"], "eins zwei drei"),
        # It says something else than what they see.
        (["eins zwei", "eins zwei drei", "eins vier fünf"], "eins vier fünf"),
        # They see all of it.
        (["eins zwei", "eins zwei"], None),
        (["um 10"], "um"),
        ([""], None),
        ([], None),
    ],
)
def test_overdue_text_is_shown(hypotheses: list[str], shown: str | None) -> None:
    policy = CommitPolicy("en", "de")
    for hypothesis in hypotheses:
        policy.take_hypothesis("a", hypothesis)
    before = policy.shown
    assert policy.show_overdue() == (shown is not None)
    assert (policy.committed, policy.shown) == ("", before if shown is None else shown)


def test_overdue_text_is_continued() -> None:
    policy = CommitPolicy("en", "de")
    play(policy, [("a", "eins zwei", "", ""), ("a", "eins zwei drei", "", "eins zwei")])
    assert policy.commit_overdue()
    policy.take_hypothesis("a b", "eins drei vier")
    play(policy, [("a b", "eins zwei fünf", "eins zwei", ""), ("a b c d", "eins zwei fünf", "eins zwei fünf", "")])


@pytest.mark.parametrize(
    ("source", "same", "one_more"),
    [
        ("en", "we go home", "we go home, and"),
        ("en", "we go home, ", "we go home, and"),
        ("en", "we go home...!?", "we go home... 5"),
        ("en", "we go home 🙂 — ", "we go home 🙂 — and"),
        ("fr", "nous allons chez « ", "nous allons chez « toi"),
        ("ja", "家に帰る", "家に帰る。私"),
        ("ja", "家に帰る、。！", "家に帰る、。！5"),
    ],
)
def test_punctuation_is_nothing_that_was_heard(source: str, same: str, one_more: str) -> None:
    """A span is counted in units in which something is said."""
    policy = CommitPolicy(source, "de")
    first = {"en": "we go", "fr": "nous allons", "ja": "家"}[source]
    policy.take_hypothesis(first, "wir gehen")
    for revision in (same, f"{same}.", f"{same}.. -", f"!{same}?"):
        policy.take_hypothesis(revision, "wir gehen")
        assert (policy.committed, policy.tentative) == ("", "wir gehen"), revision
    policy.take_hypothesis(one_more, "wir gehen")
    assert (policy.committed, policy.tentative) == ("wir gehen", "")


def test_no_text_outlives_the_utterance() -> None:
    class Text(str):
        """One that can be referred to weakly."""

    said = Text("we go home")
    gone = weakref.ref(said)
    CommitPolicy("en", "de").take_hypothesis(said, "wir gehen heim")
    del said
    assert gone() is None


def test_letter_by_letter_source_is_committed() -> None:
    """One word of it fills more revisions than most utterances have."""
    words = ["Donaudampfschifffahrtsgesellschaft", "Bundesausbildungsförderungsgesetz", "Rindfleischetikettierung"]
    heard = " ".join([*words, "Grundstücksverkehrsgenehmigung", "gilt"])
    said = ["one", "two", "three", "four", "five"]
    assert len(heard) > 120
    policy = CommitPolicy("de", "en")
    committed: list[str] = []
    for end in range(1, len(heard) + 1):
        source = heard[:end]
        policy.take_hypothesis(source, " ".join(said[: len(source.split())]))
        if not committed or policy.committed != committed[-1]:
            committed.append(policy.committed)
    assert committed == ["", "one", "one two", "one two three"]


@pytest.mark.parametrize(
    ("lang", "text", "shown"),
    [
        ("de", "eins zwei drei vier", ""),
        ("de", "eins zwei drei vier fünf", "eins"),
        ("de", "eins 2 drei vier fünf sechs", "eins"),
        ("ja", "会議は明日の午後三時に", ""),
        ("ja", "会議は明日の午後三時に始まります", "会議は"),
        ("zh", "支持团队批准政策", ""),
        ("zh", "支持团队批准政策了", "支持"),
    ],
)
def test_live_readers_see_a_masked_first_hypothesis(lang: str, text: str, shown: str) -> None:
    policy = CommitPolicy("en", lang)
    policy.take_hypothesis("a", text)
    assert (policy.committed, policy.tentative) == ("", shown)


# ------------------------------------------------------------ real sentences without spaces

CHINESE = ("支持", "团队", "批准", "政策", "了", "吗", "？")
JAPANESE = ("Majaさんは", "2月26日に", "デザインチームに", "加わりました", "。")


def grown(lang: str, text: str) -> tuple[list[str], list[str]]:
    """All that is shown, for good and at all, of a text that grows by a character with each word heard."""
    policy = CommitPolicy("en", lang)
    committed, seen = [""], [""]
    for end in range(1, len(text) + 1):
        policy.take_hypothesis("word " * end, text[:end])
        committed.append(policy.committed)
        seen.append(policy.committed + policy.tentative)
    return list(dict.fromkeys(committed)), list(dict.fromkeys(seen))


def test_chinese_words_are_not_cut() -> None:
    text = "".join(CHINESE)
    assert units(text, "zh") == list(CHINESE)
    committed, seen = grown("zh", text)
    # At the end of a text 支持团 is one word still, so the first word is agreed upon with the second.
    assert committed == ["", "支持团队", "支持团队批准", "支持团队批准政策", "支持团队批准政策了"]
    assert seen == [*committed, "支持团队批准政策了吗"]


def test_japanese_words_are_not_cut() -> None:
    """Nor the name, the number and the date in the middle of them."""
    text = "".join(JAPANESE)
    assert units(text, "ja") == list(JAPANESE)
    committed, seen = grown("ja", text)
    assert committed == ["", "Majaさんは", "Majaさんは2月26日に", "Majaさんは2月26日にデザインチームに"]
    assert seen == [*committed, "Majaさんは2月26日にデザインチームに加わりました"]


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("zh", "".join(CHINESE)),
        ("zh", "我们今天讨论了vLLM的性能，增长3.5%。"),
        ("zh-hant", "支持團隊批准政策了嗎？會議明天下午三點開始。"),
        ("ja", "".join(JAPANESE)),
        ("ja", "会議は明日の午後三時に始まります。今日は天気がいいですね。"),
        ("th", "ฉันไปโรงเรียนวันนี้อากาศดีมาก"),
    ],
)
def test_what_follows_moves_no_cut_but_at_the_end(lang: str, text: str) -> None:
    """The model looks three characters ahead, so what is agreed upon is never far behind what is said alike."""
    whole = borders(units(text, lang))
    for end in range(len(text) + 1):
        part = borders(units(text[:end], lang))
        settled = {cut for cut in whole if cut <= end - 3} | {0}
        assert {cut for cut in part if cut <= end - 3} | {0} == settled
        assert len(agreed(text[:end], text, lang)) >= max(settled)


# ------------------------------------------------------------ for all texts

WORDS = (
    *("the", "I", "Ich", "gehe", "über", "l'homme", "aujourd’hui", "well-known", "don't", "e.g", "col·lecció"),
    *("שָׁלוֹם", "צה״ל", "مرحبا", "كَيْفَ", "می\u200cخواهم", "क्षत्रिय", "हिन्दी", "क्\u200dष", "র\u200d্যাব"),
    *("今日", "は", "晴れ", "か\u3099", "ﾊﾟ", "vLLM", "我用", "ที่นี่", "น้ำ", "ខ្ញុំ", "안녕하세요"),
    *("Cafe\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇯🇵", "🇩🇪", "1️⃣"),
    *("5", "5,500", "25 000", "1\u202f000,5", "1’000", "10:30", "20th", "12kg", "EUR1,000", "٣٫١٤", "१२,३४५"),
)
MARKS = (" ", " ", " ", "  ", "\n", "\u00a0", *",.!?…'’-‐‑\"„“«»()[]「」、。¿¡،؟", "\u0301", "\u200d", "\u200c")
# Those whose words are found by a model.
SEGMENTED = ("ja", "zh", "zh-hant", "th")
LANGUAGES = ("en", "de", "fr", "es", "ar", "he", "fa", "hi", *SEGMENTED, "km", "my")

languages = st.sampled_from(LANGUAGES)
texts = st.lists(st.sampled_from((*WORDS, *MARKS)), max_size=16).map("".join)

GRAPHEME = regex.compile(r"\X")
LATIN = regex.compile(r"\p{Latin}[\p{Latin}\p{M}]*")
# Groups with spaces are not looked for in languages without spaces between words.
NUMBER = regex.compile(r"\p{N}+(?:[.,:'’٫٬]\p{N}+)*")
GROUPS = regex.compile(r"(?<!\p{N}[ \u00a0\u202f.,:'’٫٬]?)\p{N}+(?:[ \u00a0\u202f]\p{N}{3}(?!\p{N}))+")


def borders(pieces: list[str]) -> set[int]:
    """Where each of them ends in the text that they join to; so does nothing at all, at 0."""
    found, position = {0}, 0
    for piece in pieces:
        position += len(piece)
        found.add(position)
    return found


def may_go_on(text: str) -> bool:
    """Whether a text ends with what belongs to what follows: told from the categories of its last character."""
    last, before = text[-1:] or "a", text[-2:-1] or "a"
    if last in ".,:/":
        return unicodedata.category(before).startswith("N")
    if last.isspace() or last in "'’-‐‑¿¡\u200c\u200d〇零一二三四五六七八九十百千万萬億亿兆":
        return True
    return unicodedata.category(last) in ("Ps", "Pi") or unicodedata.category(last).startswith("N")


def spoken(text: str, lang: str) -> int:
    """How many of its units hold a letter or a number: told from the categories of their characters."""
    return sum(any(unicodedata.category(char)[0] in "LN" for char in unit) for unit in units(text, lang))


@given(text=texts | st.text(max_size=40), lang=languages)
def test_units_join_to_the_text_and_split_no_grapheme(text: str, lang: str) -> None:
    pieces = units(text, lang)
    assert "".join(pieces) == text
    assert all(pieces)
    assert borders(pieces) <= borders(GRAPHEME.findall(text))


@given(revisions=st.lists(texts | st.text(max_size=20), max_size=6), lang=languages)
@example(revisions=["in 5 ", "000 Fällen", ",5 und 1 000", " 000"], lang="fr")
def test_units_are_the_same_whatever_was_said_before(revisions: list[str], lang: str) -> None:
    read = Units(lang)
    for text in itertools.chain(revisions, itertools.accumulate(revisions)):
        assert read.divide(text) == units(text, lang)


@given(text=texts, lang=languages)
def test_units_split_no_number(text: str, lang: str) -> None:
    cuts = borders(units(text, lang))
    for pattern in (NUMBER,) if lang in UNSPACED else (NUMBER, GROUPS):
        for number in pattern.finditer(text):
            assert not cuts & set(range(number.start() + 1, number.end())), number


@given(text=texts, lang=languages)
def test_units_split_no_latin_word(text: str, lang: str) -> None:
    """Nor one inside a text of another script."""
    cuts = borders(units(text, lang))
    for word in LATIN.finditer(text):
        assert not cuts & set(range(word.start() + 1, word.end())), word


@given(text=texts, lang=st.sampled_from(SEGMENTED))
def test_punctuation_is_a_unit_of_its_own(text: str, lang: str) -> None:
    """Whatever words the model finds around it; only what joins a Latin word or a number is inside of one."""
    for unit in units(text, lang):
        if any(mark in unit for mark in '!?…"„“«»()[]「」、。¿¡،؟'):
            assert len(GRAPHEME.findall(unit.lstrip())) == 1
        elif any(unicodedata.category(char)[0] in "LN" for char in unit):
            assert not unicodedata.category(unit[-1]).startswith("P")


@given(one=texts, other=texts, shared=texts, lang=languages)
def test_agreed_is_the_longest_common_beginning_in_units(one: str, other: str, shared: str, lang: str) -> None:
    """In both it is cut alike: the model looks ahead, so what follows may move where the same words are cut."""
    one, other = shared + one, shared + other
    common = agreed(one, other, lang)
    assert common == agreed(other, one, lang)
    assert one.startswith(common)
    assert other.startswith(common)
    mine, theirs = borders(units(one, lang)), borders(units(other, lang))
    ends = [end for end in mine & theirs if one[:end] == other[:end]]
    assert len(common) == max(end for end in ends if not any(cut < end for cut in mine ^ theirs))
    # Without a model the same words are cut alike whatever follows.
    assert lang in SEGMENTED or len(common) == max(ends)


@dataclass
class Heard:
    """A hypothesis that was taken: how much of the source it knew, and where it may be cut."""

    source_units: int
    text: str
    borders: set[int]


@dataclass
class Watched:
    """A policy, and what must hold after each thing that happens to it."""

    source: str
    target: str
    policy: CommitPolicy = field(init=False)
    taken: list[Heard] = field(default_factory=list)
    shown: str = ""

    def __post_init__(self) -> None:
        self.policy = CommitPolicy(self.source, self.target)

    def take(self, source: str, hypothesis: str) -> None:
        before = (self.policy.committed, self.policy.tentative, self.policy.draft)
        now = Heard(spoken(source, self.source), hypothesis, borders(units(hypothesis, self.target)))
        self._do(lambda: self.policy.take_hypothesis(source, hypothesis))
        if not hypothesis.startswith(before[0]):
            assert (self.policy.committed, self.policy.tentative, self.policy.draft) == before
            return
        committed = self.policy.committed
        assert hypothesis == committed + self.policy.draft
        if committed != before[0]:
            self._was_agreed(committed, now)
        if self.policy.tentative and not self._stays(before[0] + before[1], now):
            self._was_seen(committed + self.policy.tentative, now)
        self.taken.append(now)

    def interrupted(self, hypothesis: str) -> None:
        before = (self.policy.committed, self.policy.tentative)
        self._do(lambda: self.policy.interrupted(hypothesis))
        assert (self.policy.committed, self.policy.tentative) == before

    def overdue(self) -> None:
        before = self.policy.committed + self.policy.tentative
        self._do(lambda: self.policy.commit_overdue())
        assert self.policy.committed.startswith(before)
        assert not self.policy.tentative

    def unseen(self) -> None:
        before = self.policy.shown
        self._do(lambda: self.policy.show_overdue())
        assert self.policy.shown == before or not before.startswith(self.policy.shown)

    def _do(self, happens: Callable[[], object]) -> None:
        before = self.policy.committed
        happens()
        committed, tentative = self.policy.committed, self.policy.tentative
        assert committed.startswith(before)
        assert not committed or not may_go_on(committed)
        assert not tentative or not may_go_on(committed + tentative)

    def _was_agreed(self, committed: str, now: Heard) -> None:
        """By the newest, by one that knew a span less, and by all between them."""
        span = SPAN
        for earlier in (now, *reversed(self.taken)):
            assert earlier.text.startswith(committed)
            assert len(committed) in earlier.borders
            if earlier is not now and earlier.source_units <= now.source_units - span:
                return
        pytest.fail("nothing agreed with it over the span")

    def _stays(self, shown: str, now: Heard) -> bool:
        """It was shown, is shown, and not both of the newest two say something else."""
        still = self.policy.committed + self.policy.tentative == shown
        return still and any(heard.text.startswith(shown) for heard in (now, *self.taken[-1:]))

    def _was_seen(self, shown: str, now: Heard) -> None:
        """In the newest two, or in front of what is masked."""
        assert now.text.startswith(shown)
        assert len(shown) in now.borders
        unmasked = sorted(now.borders)[:-MASK]
        twice = self.taken and self.taken[-1].text.startswith(shown) and len(shown) in self.taken[-1].borders
        assert twice or len(shown) in unmasked


@st.composite
def series(draw: st.DrawFn) -> tuple[str, str, list[tuple[str, str, str]]]:
    """Languages, and what happens: (what, source, hypothesis), where many hypotheses begin alike."""
    source, target = draw(languages), draw(languages)
    words = draw(st.lists(st.sampled_from((*WORDS, *MARKS)), min_size=1, max_size=20))
    heard = draw(st.lists(st.sampled_from(WORDS), min_size=4, max_size=12))
    events = []
    for _ in range(draw(st.integers(1, 12))):
        what = draw(st.sampled_from(("take", "take", "take", "take", "interrupted", "overdue", "unseen")))
        kept = draw(st.integers(0, len(words)))
        tail = draw(st.just("") | texts)
        said = draw(st.sampled_from((" ", ", ", " - "))).join(heard[: draw(st.integers(0, len(heard)))])
        events.append((what, said, "".join(words[:kept]) + tail))
    return source, target, events


@given(happens=series(), continues=st.lists(st.booleans(), min_size=12, max_size=12))
def test_whatever_happens_nothing_is_taken_back(
    happens: tuple[str, str, list[tuple[str, str, str]]], continues: list[bool]
) -> None:
    source, target, events = happens
    watched, guesses = Watched(source, target), {""}
    for (what, said, text), goes_on in zip(events, continues, strict=False):
        policy = watched.policy
        # As the engine does, which is asked to begin with what is committed; or not.
        hypothesis = policy.committed + text[len(policy.committed) :] if goes_on else text
        guesses.add(hypothesis)
        match what:
            case "take":
                watched.take(said, hypothesis)
            case "overdue":
                watched.overdue()
            case "unseen":
                watched.unseen()
            case _:
                watched.interrupted(hypothesis)
        newest = [heard.text for heard in watched.taken[-2:]]
        assert not policy.tentative or any(said.startswith(policy.committed + policy.tentative) for said in newest)
        # The next request begins with what is committed, and guesses what some hypothesis said behind it, if any.
        assert not policy.draft or policy.committed + policy.draft in guesses


@given(happens=series(), cuts=st.lists(st.floats(0, 1), max_size=4))
def test_interruption_changes_nothing_shown(
    happens: tuple[str, str, list[tuple[str, str, str]]], cuts: list[float]
) -> None:
    source, target, events = happens
    whole, chunked = CommitPolicy(source, target), CommitPolicy(source, target)
    for _, said, text in events:
        hypothesis = whole.committed + text[len(whole.committed) :]
        for cut in cuts:
            chunked.interrupted(hypothesis[: round(cut * len(hypothesis))])
        whole.take_hypothesis(said, hypothesis)
        chunked.take_hypothesis(said, hypothesis)
        assert (chunked.committed, chunked.tentative) == (whole.committed, whole.tentative)
        assert chunked.draft == whole.draft


# ------------------------------------------------------------ cost

HOSTILE = {
    "number that is none": "1." * 5_000 + "x",
    "apostrophes": "a'" * 5_000,
    "hyphens": "a-" * 5_000,
    "digits": "1" * 10_000,
    "digits before a letter": "1" * 10_000 + "x",
    "groups": "1" + " 000" * 2_500,
    "almost groups": "1" + " 0000" * 2_000,
    "colons": "1:" * 5_000,
    "combining marks": "\u0301" * 2_000,
    "marks on a letter": "a" + "\u0301" * 2_000,
    "spaces": " " * 10_000,
    "spaces before a word": " " * 10_000 + "x",
    "spaces and marks": " \u0301" * 5_000,
    "joiners": "👩\u200d" * 3_000,
    "conjuncts": "क्" * 3_000,
    "flags": "🇩" * 2_000,
    "brackets": "(" * 10_000,
}


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_end(text: str, lang: str) -> None:
    policy = CommitPolicy(lang, lang)
    assert "".join(units(text, lang)) == text
    for _ in range(3):
        policy.take_hypothesis(text, text)
    assert text.startswith(policy.committed + policy.tentative)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many units were looked at each time two hypotheses were compared."""
    found: list[int] = []
    real = commit_policy._shared

    def counted(one: list[str], other: list[str]) -> list[str]:
        shared = real(one, other)
        found.append(len(shared) + 1)
        return shared

    monkeypatch.setattr(commit_policy, "_shared", counted)
    return found


@pytest.mark.parametrize("grows", [True, False])
def test_a_revision_costs_what_its_text_is_long(
    monkeypatch: pytest.MonkeyPatch, compared: list[int], grows: bool
) -> None:
    """300 revisions of 2,000 characters: what is new is read, and compared with a bounded number of others."""
    read: list[int] = []
    real = text_units._read

    def counted(text: str, lang: str, begin: int) -> list[str]:
        read.append(len(text) - begin)
        return real(text, lang, begin)

    monkeypatch.setattr(text_units, "_read", counted)
    policy = CommitPolicy("en", "de")
    words = [f"w{'abcdefghij'[n % 10]}xyz.a" for n in range(350)]
    # Itself with the newest, and those back to one that is as old as the span.
    most = (SPAN if grows else commit_policy._KEPT) + 1
    for revision in range(1, 301):
        text = " ".join(words[: 50 + revision] if grows else words)
        read.clear()
        compared.clear()
        policy.take_hypothesis(text, text)
        # Some words of source and translation.
        assert sum(read) <= 2 * (len(text) if revision == 1 else 40)
        assert len(compared) <= most
        assert sum(compared) <= most * (len(words) + 1)
    assert bool(policy.committed) is grows


def test_what_is_older_than_the_span_is_forgotten() -> None:
    policy = CommitPolicy("en", "de")
    for revision in range(1, 60):
        policy.take_hypothesis(" ".join("a" * revision), "eins zwei")
        assert len(policy._hypotheses) <= SPAN + 1
    assert policy.committed == "eins zwei"


def test_unchanged_source_keeps_a_bounded_number(compared: list[int]) -> None:
    policy = CommitPolicy("en", "de")
    for _ in range(commit_policy._KEPT + 50):
        compared.clear()
        policy.take_hypothesis("the same words", "dieselben Wörter")
    assert len(policy._hypotheses) == commit_policy._KEPT
    assert len(compared) == commit_policy._KEPT + 1


def test_latin_words_in_japanese_are_words() -> None:
    assert units("これはvLLM 0.26です。", "ja") == ["これは", "vLLM", " 0.26です", "。"]
    policy = CommitPolicy("ja", "en")
    said = ["so", "let", "us", "look", "at", "the", "new", "road", "map"]
    for count in range(1, len(said) + 1):
        policy.take_hypothesis(" ".join(said[:count]), " ".join(said[:count]))
    assert policy.committed.startswith("so let us look at the new")
