"""The sample meeting of the page: a scripted conversation that the bundled model translates well.

    python -m demo_model.sample_meeting > web_demo/page/samples/sample_meeting_script.js

Every utterance comes as a recogniser hears it: it grows, is sometimes misheard, and gets its punctuation at the
end. Deterministic. Must not know the page.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from itertools import accumulate, pairwise

from demo_model.corpus.prefixes import word_ends

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
    """One line of the script: who says what, in a language of their own."""

    speaker: int
    text: str
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


SCRIPT = (
    Line(_ANA, "Good morning, everyone."),
    Line(_LUCIA, "Hola a todos."),
    Line(_KENJI, "私の声は聞こえますか？"),
    Line(_JONAS, "Ja, wir hören Sie gut."),
    Line(_ANA, "You can speak in your own language today."),
    Line(_CAMILLE, "Parfait.", over=500),
    Line(_ANA, "We have 2 topics on the agenda today."),
    Line(_ANA, "We'll cover product quality first and then pricing.", misheard=("pricing", "price in")),
    Line(_ANA, "Kenji, could you give us a quick update on Polaris?", misheard=("Polaris", "polar is")),
    Line(_KENJI, "昨日はPolarisのバグを6件修正しました。", misheard=("修正", "習性")),
    Line(_KENJI, "バージョン2.4では、まだ3件のテストが失敗しています。"),
    Line(_LUCIA, "Hemos recibido 14 quejas desde que salió la versión 2.3.", misheard=("quejas", "cejas")),
    Line(_CAMILLE, "La plupart des plaintes des clients concernent la performance."),
    Line(_JONAS, "Wie ist der Stand bei PAY-142?"),
    Line(_KENJI, "PAY-142はまだ対応中です。"),
    Line(_ANA, "Kenji, will PAY-142 be done by March 14?", misheard=(" 14", " 40")),
    Line(_KENJI, "テストにあと3日必要です。"),
    Line(_JONAS, "Das ergibt Sinn.", over=400),
    Line(_LUCIA, "El cliente espera la entrega en marzo."),
    Line(
        _JONAS,
        "Ich schlage vor, die Markteinführung um 2 Wochen zu verschieben.",
        misheard=("Markteinführung", "Marktführung"),
    ),
    Line(
        _CAMILLE,
        "Si nous déplaçons le lancement, nous perdrons 2 semaines.",
        misheard=("le lancement", "l'avancement"),
    ),
    Line(_ANA, "Let's test Polaris for 5 days and then decide."),
    Line(_KENJI, "いい考えですね。", over=300),
    Line(_ANA, "Are there any objections?"),
    Line(_JONAS, "Das ist für mich in Ordnung."),
    Line(_CAMILLE, "Merci de noter cette décision dans le compte rendu."),
    Line(_ANA, "Now let's move on to pricing."),
    Line(_LUCIA, "Polaris cuesta 1.200 dólares al mes para 50 usuarios.", misheard=("1.200", "1.000")),
    Line(_CAMILLE, "Notre marge sur Polaris n'est que de 12 %."),
    Line(_JONAS, "Polaris hat jetzt 12.500 aktive Nutzer.", misheard=("12.500", "12.000")),
    Line(_KENJI, "Camilleさんはどう思われますか？"),
    Line(_CAMILLE, "Nous pouvons leur accorder 15 % de remise s'ils signent d'ici vendredi."),
    Line(_LUCIA, "Llamaré al cliente a las 15:30 y le preguntaré qué opina sobre la oferta."),
    Line(_ANA, "Let me quickly summarize the action items."),
    Line(_ANA, "Jonas will send the quote to the sales team by Friday."),
    Line(_ANA, "Our next meeting is on March 21 at 10:30 AM."),
    Line(_JONAS, "Das war's für heute."),
    Line(_ANA, "Thank you all for your time."),
    Line(_KENJI, "どうもありがとうございます。"),
    Line(_LUCIA, "Que tengan todos un buen día."),
)


def utterances() -> list[Utterance]:
    rng = random.Random("sample meeting")
    made: list[Utterance] = []
    for line in SCRIPT:
        gap_ms = -line.over if line.over else rng.randint(*_PAUSE_MS)
        made.append(Utterance(line.speaker, gap_ms, tuple(_revisions(line, rng))))
    return made


def _revisions(line: Line, rng: random.Random) -> list[Revision]:
    text = line.text
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
