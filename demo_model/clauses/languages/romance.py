"""What Spanish and French share: the plan of a phrase, a clause and a sentence. Words and negation are theirs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.marks import marked, phrase
from demo_model.clauses.syntax import FIXED_FRAMES, PURPOSES, Clause, Mood, Phrase, Predicate, Tense, Utterance


@dataclass
class Parts:
    """A clause in pieces: what stands before the verb as clitics, and what follows it."""

    verb: str
    clitics: list[str]
    rest: list[str]
    fixed: list[str]
    """The first of `rest`: words that belong to the verb (dar las gracias)."""


class Romance(Linearizer):
    people_take_a = False
    subjects: ClassVar[dict[str, str]]
    """Pronoun → I, we …; `tonics`: after a preposition; `clitics`: direct and indirect object."""
    tonics: ClassVar[dict[str, str]]
    clitics: ClassVar[dict[str, tuple[str, str]]]
    links: ClassVar[dict[str, str]]
    arounds: ClassVar[dict[tuple[str, bool], tuple[str, str]]]
    """(before or after, whether the subject is the same) → the word and the mood that follows."""
    question_words: ClassVar[dict[str, str]]
    during: ClassVar[str]
    """What asks for how long one did something: durante, pendant."""
    why: ClassVar[str]
    """That's why."""
    of_it: ClassVar[dict[str, str]] = {}
    """Preposition → what stands for it and a thing: en, y."""
    graver: ClassVar[dict[str, str]] = {}
    """Adjective → what is said in its place if a problem is it."""
    degrees: ClassVar[dict[str, str]]
    """very, too, more → the word before an adjective."""

    @abstractmethod
    def it(self, np: Phrase) -> str:
        """What stands for a thing as the subject."""

    @abstractmethod
    def described(self, np: Phrase) -> str:
        """The determiner, the noun and the adjective."""

    @abstractmethod
    def relative(self, np: Phrase, clause: Clause) -> str: ...

    @abstractmethod
    def adjective(self, key: str, agreement: str) -> str: ...

    @abstractmethod
    def ended(self, base: str, agreement: str) -> str:
        """An adjective or a participle in its gender and number."""

    @abstractmethod
    def better(self, key: str, agreement: str) -> str:
        """The comparative of an adjective that has one of its own, or nothing."""

    @abstractmethod
    def job(self, np: Phrase) -> Phrase:
        """A predicate noun without the article that a job does not have."""

    @abstractmethod
    def clause(self, clause: Clause, order: str, mood: str = "") -> str: ...

    @abstractmethod
    def main(self, clause: Clause) -> str: ...

    @abstractmethod
    def reported(self, said: Utterance, speaker: Phrase) -> str: ...

    @abstractmethod
    def subordinate(self, said: Utterance, second: Clause) -> str:
        """The clause after "if", "when", "because" or "although"."""

    def ends(self, clause: Clause) -> tuple[str, str]:
        """What stands before and after the sentence."""
        return "", "."

    def idiom(self, what: Predicate) -> str:
        """What is said in place of an adjective, or nothing."""
        return ""

    def continued(self, first: Clause, second: Clause) -> Clause:
        """The clause after "and", "but" or "so"."""
        return second

    def aspect(self, first: Clause) -> str:
        """The mood of a past that follows `first`, or nothing."""
        return ""

    def noun_phrase(self, np: Phrase, case: str) -> str:
        if np.members:
            own = case if self.people_take_a else ""  # Anna y yo, but Anna et moi
            return self.joined(np, lambda each: self.noun_phrase(each, own))
        if np.pronoun == "it" and case != "after":
            return self.it(np)
        if np.pronoun == "it":
            who = "they" if np.plural else "she" if self.agreement(np)[0] == "f" else "he"
            return marked(self.tonics[who], np.mark)
        if np.pronoun:
            return marked((self.subjects if case == "S" else self.tonics)[np.pronoun], np.mark)
        if np.name:
            return marked(self.name(np), np.mark)
        words = self.described(np)
        if np.of is not None:
            words = phrase(words, "de", self.noun_phrase(np.of, "after"))
        words = marked(words, np.mark)
        return phrase(words, self.relative(np, np.relative)) if np.relative is not None else words

    def clitic(self, np: Phrase, case: str) -> str:
        """The clitic pronoun: me, le, lo."""
        pronoun = np.pronoun
        if pronoun == "it":
            pronoun = "she" if self.agreement(np)[0] == "f" else "he"
        return marked(self.clitics[pronoun][case == "dat"], np.mark)

    def predicate(self, what: Predicate, subject: Phrase | None) -> str:
        if what.adjective:
            if subject is not None and subject.noun and self.noun(subject).type.endswith("problem"):
                what = replace(what, adjective=self.graver.get(what.adjective, what.adjective))
            agreement = self.agreement(subject)
            word = phrase(self.degrees.get(what.degree, ""), self.adjective(what.adjective, agreement))
            if what.degree == "more":
                word = self.better(what.adjective, agreement) or word
            words = marked(self.idiom(what) or word, what.mark)
            return phrase(words, "que", self.noun_phrase(what.than, "S")) if what.than else words
        if what.phrase is not None:
            np = what.phrase
            return self.noun_phrase(self.job(np) if np.det == "a" and not np.adjective else np, "")
        return self.adverbial(what.place) if what.place else ""

    def link(self, said: Utterance) -> str:
        """The word that joins the clauses: como, comme, of how it was when something was done."""
        first, second = said.first, said.second
        if said.link == "when" and second is not None and first.mood is Mood.STATEMENT:
            was = second.tense is Tense.PAST and self.stative(second) and not self.lasted(second)
            if was and first.tense is Tense.PAST and not self.stative(first):
                return self.links["as"]
        return self.links[said.link]

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        if said.speaker is not None:
            return self.reported(said, said.speaker)
        start, mark = self.ends(first)
        if second is None:
            return phrase(start, self.main(first), mark)
        if said.link in PURPOSES:
            return phrase(start, self.main(first), self.around(said, second), mark)
        if said.link in ("before", "after"):
            first, second = self.in_order(said, said.early)
            other = self.around(said, second)
            if said.early:
                return phrase(other, ",", start, self.clause(first, ""), mark)
            return phrase(start, self.main(first), other, mark)
        word = self.link(said)
        if said.link in ("and", "but", "so"):
            comma = "" if said.link == "and" else ","
            return phrase(
                start,
                self.main(first),
                comma,
                word,
                self.clause(self.continued(first, second), "", self.aspect(first)),
                mark,
            )
        other = phrase(word, self.subordinate(said, second))
        if said.link in ("because", "although") or first.mood is not Mood.STATEMENT:
            return phrase(start, self.main(first), other, mark)
        return phrase(other, ",", self.clause(first, ""), mark)

    def concluded(self, clause: Clause) -> str:
        return phrase(self.why, self.clause(clause, ""))

    def around(self, said: Utterance, second: Clause) -> str:
        """Before, after, in order to: an infinitive if the subject is the same."""
        same = said.link == "to" or (said.link != "so that" and self.same_subject(said))
        word, mood = self.arounds[said.link, same]
        return phrase(word, self.clause(replace(second, gap="S") if same else second, "", mood))

    def agreement(self, np: Phrase | None) -> str:
        """m, f, mp or fp."""
        if np is None:
            return "m"
        if np.members and not np.plural:
            return self.agreement(np.members[-1])
        if np.members:
            return ("f" if all(self.agreement(each)[0] == "f" for each in np.members) else "m") + "p"
        if np.noun:
            return self.noun(np).genders[self.language] + ("p" if np.plural else "")
        if np.pronoun == "she":
            return "f"
        return "mp" if np.pronoun in ("we", "they") else "m"

    def parts(self, clause: Clause) -> Parts:
        verb, complements = self.complements(clause)
        clitics: list[str] = []
        rest: list[str] = []
        for role, how, np in complements:
            if np is None:
                rest.append(how)
                continue
            if role == clause.asked:
                continue
            preposition, _, case = how.partition(".")
            personal = np.pronoun not in ("", "that")
            if np.pronoun == "it" and preposition in self.of_it:
                clitics.append("y:" + marked(self.of_it[preposition], np.mark))
            elif personal and case == "dat":
                clitics.append("d:" + self.clitic(np, "dat"))
            elif personal and not preposition:
                clitics.append("o:" + self.clitic(np, "acc"))
            else:
                rest.append(self.governed(preposition, np, clause.frame))
        head, _, tail = verb.removeprefix("se_").partition("_")
        reflexive = "se_" if verb.startswith("se_") or (self.people_take_a and head.endswith("se")) else ""
        verb, fixed = head, [tail.replace("_", " ")] if tail else []
        if self.people_take_a and reflexive:
            verb = verb.removesuffix("se")
        if verb in ("ser", "estar", "être") and fixed and fixed[0].isalpha():  # not en réunion
            rest[:0] = fixed = [self.ended(fixed[0], self.agreement(clause.roles.get("S")))]
            return Parts(verb, clitics, rest, fixed)
        return Parts(reflexive + verb, clitics, [*fixed, *rest], fixed)

    def governed(self, preposition: str, np: Phrase, frame: str) -> str:
        """A phrase with its preposition; "to" and "of" are said before each of its members."""
        if np.members and (np.link == "either" or preposition in ("", "a", "à", "de", "en")):
            return self.joined(np, lambda each: self.governed(preposition, each, frame))
        if not preposition and self.people_take_a and self.is_person(np, frame):
            preposition = "a"
        return phrase(preposition, self.noun_phrase(np, "after" if preposition else ""))

    def question(self, clause: Clause) -> str:
        """What a question begins with: with which customer."""
        for role, how, np in self.complements(clause)[1] if clause.frame != "exist" else ():
            if np is not None and role == clause.asked:
                return self.governed(how.partition(".")[0], np, clause.frame)
        word = self.noun_phrase(clause.wanted, "") if clause.wanted else self.question_words[clause.asked]
        if clause.tense is Tense.ONGOING:
            return self.question_words["since" if self.stative(clause) else "so_far"]
        lasting = clause.asked == "how_long" and clause.frame not in FIXED_FRAMES and not self.stative(clause)
        return phrase(self.during, word) if lasting and any(self.parts(clause).rest) else word

    def is_person(self, np: Phrase, frame: str) -> bool:
        if np.name or np.pronoun == "who":
            return True
        if np.noun and self.noun(np).type in ("animal", "dog"):
            return np.det not in ("", "a", "num", "many", "bare") and frame not in ("buy", "sell", "draw")
        return (
            bool(np.noun)
            and frame not in ("own_company", "buy_company")
            and self.noun(np).type in ("person", "family", "group", "profession")
            and (
                np.det not in ("a", "num", "many")
                or (frame not in ("look_for", "need") and self.noun(np).type != "group")
            )
        )

    def ending(self, clause: Clause) -> str:
        kinds = ("manner", "companion", "place", "length", "span", "time", "since", "deadline", "cause")
        return self.places(clause, *kinds)

    def may_front(self, clause: Clause) -> bool:
        return clause.mood is Mood.STATEMENT and not clause.gap and not clause.asked
