"""What the six linearizers share: filling templates, and the parts of a clause in named places."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.clock import clock
from demo_model.clauses.lexicon import Noun, load_words
from demo_model.clauses.marks import marked, phrase
from demo_model.clauses.syntax import ANSWERS, FIXED_FRAMES, Adverbial, Clause, Phrase, Tense, Utterance
from demo_model.grammar import Slot, inflect
from demo_model.recogniser import NUMBER_WORDS

_HOLE = re.compile(r"\{([a-z]+|P)(?:[:.]([^{}]*))?\}")
_INTENDED = 4
_WORDS = 12
"""Up to here a duration is a word in each second sentence: two hours, 2 hours."""


class Linearizer(ABC):
    """Writes utterances in one language: words separated by spaces, with their marks (see marks.py)."""

    language: str
    glue = " "
    comma = ","
    stop = "."
    joins: ClassVar[dict[str, tuple[str, str, str, str]]]
    """How members are joined: what stands before the first, between others, before the last and at the end."""

    def __init__(self) -> None:
        self.words = load_words()
        self.irregular = self.words.irregular.get(self.language, {})

    def opened(self, said: Utterance) -> str:
        """The sentence with what is said before it and what is answered."""
        before = answer = ""
        if said.opener:
            kind, _, key = said.opener.partition(":")
            before = phrase(self.words.openers[kind][key][self.language], self.opener_end(key))
        if said.answer:
            answer = self.words.openers["answer"][said.answer][self.language]
        elif said.link in ANSWERS and said.second is not None:
            answer = self.answered(said.link, said.second)
            said = replace(said, link="", second=None)
        if answer:
            answer = phrase(answer[0].upper() + answer[1:], self.stop)
        if said.link == "that's why":
            first = phrase(self.utterance(replace(said, link="", second=None))) if said.second else ""
            return phrase(
                before, first, self.concluded(replace(said.second or said.first, embedded=True)), self.stop
            )
        return phrase(before, self.utterance(said), answer)

    def opener_end(self, key: str) -> str:
        """What stands between an opener and the sentence."""
        return self.comma

    @abstractmethod
    def answered(self, link: str, clause: Clause) -> str:
        """The short answer, without the stop. clause: what the answer would be at full length."""

    @abstractmethod
    def concluded(self, clause: Clause) -> str:
        """ "That's why …", without the stop."""

    @abstractmethod
    def utterance(self, said: Utterance) -> str:
        """The sentence with its final punctuation."""

    @abstractmethod
    def noun_phrase(self, np: Phrase, case: str) -> str:
        """The words of a noun phrase, with its marks. case: what the language needs to know of its place."""

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        """Two neighbouring words that change each other, or None."""
        return None

    def noun(self, np: Phrase) -> Noun:
        return self.words.nouns[np.noun]

    def name(self, np: Phrase) -> str:
        return np.name.replace(" ", "\u2060")

    def joined(self, np: Phrase, words: Callable[[Phrase], str]) -> str:
        """The words of the members and what joins them."""
        first, comma, last, after = self.joins[np.link]
        *most, end = (words(each) for each in np.members)
        start = phrase(first, *(phrase(comma if index else "", each) for index, each in enumerate(most)))
        return phrase(start, last, end, after)

    def adverbial(self, each: Adverbial) -> str:
        template = self.words.adverbials[each.key][self.language]
        values = dict(each.values)

        def fill(match: re.Match[str]) -> str:
            kind, form = match.group(1), match.group(2) or ""
            if kind == "P":
                assert each.phrase is not None  # noqa: S101
                return " " + self.noun_phrase(each.phrase, form) + " "
            match kind, values[kind]:
                case "clock" | "until", (int(hour), int(minute)):
                    form = form or kind
                    casual = each.mark % 2 > 0 or "until" in values
                    return clock(hour, minute, self.language, form, casual)
            text = inflect(Slot(kind, kind, form), values[kind], self.language)
            match kind, values[kind]:
                case "duration", (int(count), _) if (
                    each.mark % 2 and self.language != "ja" and 2 <= count <= _WORDS
                ):
                    text = text.replace(str(count), NUMBER_WORDS[self.language][count - 2])
            return text.replace(" ", "\u2060")

        return marked(_HOLE.sub(fill, template), each.mark)

    def kind(self, each: Adverbial) -> str:
        return self.words.adverbial_kinds[each.key].split("_")[0]

    def about(self, first: Clause, second: Clause) -> Clause:
        """The reason: "because that is expensive" if it is said of a thing that there is not."""
        thing, subject = first.roles.get("O"), second.roles.get("S")
        unknown = first.negative and thing is not None and (thing.det == "a" or (not thing.det and thing.plural))
        if not unknown or subject is None or subject.pronoun != "it" or subject.refers != "O":
            return second
        return replace(second, roles={**second.roles, "S": Phrase(subject.mark, pronoun="that")})

    def same_subject(self, said: Utterance) -> bool:
        """Whether who does what is said in the second clause is the one of the first."""
        if said.second is None or "S" not in said.second.roles or "S" not in said.first.roles:
            return False
        other = said.second.roles["S"]
        return bool(other.refers == "S" or (other.pronoun and other.pronoun == said.first.roles["S"].pronoun))

    def in_order(self, said: Utterance, early: bool) -> tuple[Clause, Clause]:
        """Both clauses of "before" and "after": a thing is named in the one that is said first, "it" in the other.

        early: the second is said first.
        """
        first, second = said.first, said.second
        assert second is not None  # noqa: S101
        thing, again = first.roles.get("O"), second.roles.get("O")
        if not early or thing is None or again is None or again.refers != "O":
            return first, second
        named, it = replace(thing, mark=again.mark), replace(again, mark=thing.mark)
        return (
            replace(first, roles={**first.roles, "O": it}),
            replace(second, roles={**second.roles, "O": named}),
        )

    def places(self, clause: Clause, *kinds: str) -> str:
        """The adverbials of these kinds, in the order of the kinds."""
        return phrase(
            *(self.adverbial(each) for kind in kinds for each in clause.adverbials if self.kind(each) == kind)
        )

    def fronted(self, clause: Clause) -> Adverbial | None:
        """The time that begins a statement, in every sixth clause, or the reason, in every second."""
        for each in () if clause.embedded else clause.adverbials:
            often = self.kind(each) == "cause" or (self.kind(each) in ("time", "since") and clause.mark % 3 == 0)
            if often and each.mark % 2 == 0:
                return each
        return None

    def without(self, clause: Clause, front: Adverbial | None) -> Clause:
        """The clause whose adverbial `front` has been said."""
        if front is None:
            return clause
        return replace(clause, adverbials=tuple(each for each in clause.adverbials if each is not front))

    def complements(self, clause: Clause) -> tuple[str, list[tuple[str, str, Phrase | None]]]:
        """The verb of the frame's cell, and (role, the preposition with its case, phrase) for what it takes.

        A complement without a role is a fixed word: role "", phrase None.
        """
        verb, *rest = self.words.frames[clause.frame].cells[self.language].split()
        out: list[tuple[str, str, Phrase | None]] = []
        for each in rest:
            head, _, case = each.partition(".")
            preposition, _, role = head.rpartition(":")
            if role in ("O", "T"):
                if role in clause.roles:
                    out.append((role, f"{preposition.replace('_', ' ')}.{case}", clause.roles[role]))
            else:
                out.append(("", each.replace("_", " "), None))
        return verb, out

    def lasted(self, clause: Clause) -> bool:
        """Whether a state was over after a time: she was ill for a week."""
        return clause.tense is Tense.PAST and any(self.kind(each) == "length" for each in clause.adverbials)

    def intended(self, clause: Clause) -> bool:
        """Whether it is "going to" be, va a or va: every fourth future."""
        free = not clause.embedded and clause.frame not in FIXED_FRAMES
        return free and clause.tense is Tense.FUTURE and clause.mark % _INTENDED == _INTENDED - 1

    def settled(self, clause: Clause) -> Clause:
        """What is settled is said in the present in other languages: ich treffe sie morgen."""
        return replace(clause, tense=Tense.HABIT) if clause.tense is Tense.PLANNED else clause

    def stative(self, clause: Clause) -> bool:
        return clause.frame in ("be", "exist") or "stative" in self.words.frames[clause.frame].tags
