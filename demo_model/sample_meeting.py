"""The sample meeting of the page: a scripted conversation that the bundled model translates well.

    python -m demo_model.sample_meeting > web_demo/page/samples/sample_meeting_script.js

Every utterance is a sentence of a trained pattern, with its slots filled. It comes as a recogniser hears it: it
grows, is sometimes misheard, and gets its punctuation at the end. Deterministic. Must not know the page.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from itertools import accumulate, pairwise

from demo_model.grammar import Value
from demo_model.patterns import bundled_patterns, fill, written
from demo_model.prefixes import word_ends

SPEAKERS = (("Ana", "en"), ("Kenji", "ja"), ("Lucía", "es"), ("Jonas", "de"), ("Camille", "fr"))
_ANA, _KENJI, _LUCIA, _JONAS, _CAMILLE = range(len(SPEAKERS))

# Speaking rate, about 150 words a minute: time of a word, plus time of each of its characters.
_WORD_MS = 160
_LETTER_MS = 48
_KANA_MS = 135
_PACE_JITTER = 0.25

# Time between two revisions.
_REVISION_MS = (260, 420)
# Time from the last revision to the final text.
_LAST_WORD_MS = (300, 500)
# Time from there to the next speaker.
_PAUSE_MS = (500, 1300)

_PUNCTUATION = " ,.?!;:。、？！"


@dataclass(frozen=True)
class Line:
    """One line of the script: who says which pattern."""

    speaker: int
    pattern: str
    values: dict[str, Value]
    # A word, and what the recogniser hears instead at first.
    misheard: tuple[str, str] | None = None
    # How long before the end of the previous utterance it begins, in ms.
    over: int = 0


@dataclass(frozen=True)
class Revision:
    """One change of the recognised text."""

    # Time since the previous revision.
    after_ms: int
    # Characters removed at the end.
    dropped: int
    # Text added at the end.
    appended: str


@dataclass(frozen=True)
class Utterance:
    """One utterance of the sample meeting."""

    speaker: int
    # From the last word of the previous utterance to the beginning of this one; negative if they overlap.
    gap_ms: int
    revisions: tuple[Revision, ...]


def _line(
    speaker: int, pattern: str, /, heard: tuple[str, str] | None = None, over: int = 0, **values: Value
) -> Line:
    return Line(speaker, pattern, values, heard, over)


SCRIPT = (
    _line(_ANA, "opening_good_morning"),
    _line(_LUCIA, "opening_hello_everyone"),
    _line(_KENJI, "opening_hear_me"),
    _line(_JONAS, "opening_we_hear_you"),
    _line(_ANA, "opening_own_language"),
    _line(_CAMILLE, "back_perfect", over=500),
    _line(_ANA, "agenda_n_topics", n=2),
    _line(_ANA, "agenda_first_then", ("pricing", "price in"), topic="product quality", topic2="pricing"),
    _line(_ANA, "status_quick_update", ("Polaris", "polar is"), name="Kenji", product="Polaris"),
    _line(_KENJI, "status_fixed_yesterday", ("修正", "習性"), n=6, product="Polaris"),
    _line(_KENJI, "status_tests_fail", n=3, version="2.4"),
    _line(_LUCIA, "support_complaints_since_version", ("quejas", "cejas"), n=14, version="2.3"),
    _line(_CAMILLE, "support_complaints_topic", topic="performance"),
    _line(_JONAS, "questions_ticket_status", ticket="PAY-142"),
    _line(_KENJI, "status_ticket_in_progress", ticket="PAY-142"),
    _line(_ANA, "status_ticket_by_date", (" 14", " 40"), name="Kenji", ticket="PAY-142", date=(3, 14)),
    _line(_KENJI, "status_more_testing", duration=(3, "days")),
    _line(_JONAS, "back_makes_sense", over=400),
    _line(_LUCIA, "sales_delivery_month", month="March"),
    _line(
        _JONAS,
        "decisions_push_back_event",
        ("Markteinführung", "Marktführung"),
        event="launch",
        duration=(2, "weeks"),
    ),
    _line(
        _CAMILLE,
        "disagreement_lose_time_if_move",
        ("le lancement", "l'avancement"),
        event="launch",
        duration=(2, "weeks"),
    ),
    _line(_ANA, "decisions_test_product_then_decide", product="Polaris", duration=(5, "days")),
    _line(_KENJI, "back_good_idea", over=300),
    _line(_ANA, "decisions_objections"),
    _line(_JONAS, "back_fine_with_me"),
    _line(_CAMILLE, "decisions_note_in_minutes"),
    _line(_ANA, "agenda_move_on_to", topic="pricing"),
    _line(_LUCIA, "sales_product_price_users", ("1.200", "1.000"), product="Polaris", money=1200, n=50),
    _line(_CAMILLE, "sales_margin", product="Polaris", percent="12"),
    _line(_JONAS, "numbers_active_users", ("12.500", "12.000"), product="Polaris", bign=12500),
    _line(_KENJI, "back_what_do_you_think", name="Camille"),
    _line(_CAMILLE, "sales_offer_percent_off", percent="15", weekday="Friday"),
    _line(_LUCIA, "sales_call_customer_time", time=(15, 30), item="quote"),
    _line(_ANA, "closing_summarize_tasks"),
    _line(_ANA, "closing_name_sends_item", name="Jonas", item="quote", dept="sales", weekday="Friday"),
    _line(_ANA, "closing_next_event", event="meeting", date=(3, 21), time=(10, 30)),
    _line(_JONAS, "closing_thats_all"),
    _line(_ANA, "closing_thanks_time"),
    _line(_KENJI, "back_thank_you_very_much"),
    _line(_LUCIA, "smalltalk_nice_day"),
)


def sentence(line: Line, language: str | None = None) -> str:
    """The sentence of a line, in the speaker's language or another. Raises ValueError for a pattern that the
    bundled model was not trained with."""
    language = language or SPEAKERS[line.speaker][1]
    pattern = next((pattern for pattern in bundled_patterns() if pattern.id == line.pattern), None)
    if pattern is None:
        raise ValueError(f"the bundled model was not trained with {line.pattern}")
    return written(fill(pattern.templates[language], line.values, language), language).text


def utterances() -> list[Utterance]:
    rng = random.Random("sample meeting")
    made: list[Utterance] = []
    for line in SCRIPT:
        gap_ms = -line.over if line.over else rng.randint(*_PAUSE_MS)
        made.append(Utterance(line.speaker, gap_ms, tuple(_revisions(line, rng))))
    return made


def _revisions(line: Line, rng: random.Random) -> list[Revision]:
    text = sentence(line)
    heard = [*_heard(text, SPEAKERS[line.speaker][1], line.misheard, rng)]
    heard.append((heard[-1][0] + rng.randint(*_LAST_WORD_MS), text))
    revisions: list[Revision] = []
    for (before_ms, before), (at_ms, now) in pairwise([(0, ""), *heard]):
        same = next((end for end in range(len(before), 0, -1) if now.startswith(before[:end])), 0)
        revisions.append(Revision(at_ms - before_ms, len(before) - same, now[same:]))
    return revisions


def _heard(
    text: str, language: str, misheard: tuple[str, str] | None, rng: random.Random
) -> list[tuple[int, str]]:
    """Pairs (ms after the beginning, text recognised so far), without the punctuation at the end."""
    ends = word_ends(text, language)
    said_ms = list(accumulate(_duration_ms(text[start:end], language, rng) for start, end in pairwise([0, *ends])))
    revisions: list[tuple[int, str]] = []
    at_ms = 0
    mistakes = 2
    while at_ms < said_ms[-1]:
        at_ms += rng.randint(*_REVISION_MS)
        end = max((end for end, end_ms in zip(ends, said_ms, strict=True) if end_ms <= at_ms), default=0)
        now = text[:end].rstrip(_PUNCTUATION)
        if misheard is not None and misheard[0] in now and mistakes:
            now = now.replace(*misheard)
            mistakes -= 1
        if now and (not revisions or now != revisions[-1][1]):
            revisions.append((at_ms, now))
    return revisions


def _duration_ms(word: str, language: str, rng: random.Random) -> float:
    letters = len(word.strip(_PUNCTUATION))
    mean = _KANA_MS * letters if language == "ja" else _WORD_MS + _LETTER_MS * letters
    return mean * rng.uniform(1 - _PACE_JITTER, 1 + _PACE_JITTER)


# The types of the module, for the checker of the page's scripts.
_TYPES = (
    "/**",
    " * - A revision: ms after the one before, how many characters are removed, text that is appended. The last",
    " *   revision is final.",
    " * - An utterance: its speaker, ms between the end of the one before and its beginning (negative if they",
    " *   overlap), its revisions.",
    " * @typedef {[number, number, string]} Revision",
    " * @typedef {{speakers: {name: string, lang: string}[], utterances: [number, number, Revision[]][]}} Script",
    " */",
)


def javascript() -> str:
    """The module that the page loads."""
    rows = [
        [said.speaker, said.gap_ms, [[step.after_ms, step.dropped, step.appended] for step in said.revisions]]
        for said in utterances()
    ]
    speakers = [{"name": name, "lang": lang} for name, lang in SPEAKERS]
    return "\n".join(
        (
            "// The sample meeting, as a speech recogniser hears it. Generated by `demo_model/sample_meeting.py`.",
            "",
            *_TYPES,
            "",
            "/** @type {Script} */",
            "export const SAMPLE_MEETING = {",
            f"  speakers: {_json(speakers)},",
            "  utterances: [",
            *(f"    {_json(row)}," for row in rows),
            "  ],",
            "};",
            "",
        )
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    sys.stdout.write(javascript())
