"""What Spanish and French share: the plan of a clause. The words, the clitics and the negation are theirs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.marks import phrase
from demo_model.clauses.syntax import Clause, Mood, Phrase, Predicate


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
    dative_preposition = "a"

    @abstractmethod
    def clitic(self, np: Phrase, case: str) -> str:
        """The clitic pronoun: me, le, lo."""

    @abstractmethod
    def predicate(self, what: Predicate, subject: Phrase | None) -> str: ...

    def agreement(self, np: Phrase | None) -> str:
        """m, f, mp or fp."""
        if np is None:
            return "m"
        if np.noun:
            return self.noun(np).genders[self.language] + ("p" if np.plural else "")
        if np.pronoun == "she":
            return "f"
        return "mp" if np.pronoun in ("we", "they") else "m"

    def parts(self, clause: Clause) -> Parts:
        verb, complements = self.complements(clause)
        clitics: list[str] = []
        rest: list[str] = []
        for _, how, np in complements:
            if np is None:
                rest.append(how)
                continue
            preposition, _, case = how.partition(".")
            personal = np.pronoun not in ("", "that")
            if personal and case == "dat":
                clitics.append("d:" + self.clitic(np, "dat"))
            elif personal and not preposition:
                clitics.append("o:" + self.clitic(np, "acc"))
            else:
                if not preposition and self.people_take_a and self.is_person(np):
                    preposition = "a"
                rest.append(phrase(preposition, self.noun_phrase(np, "after" if preposition else "")))
        reflexive = "se_" if verb.startswith("se_") or (self.people_take_a and verb.endswith("se")) else ""
        verb, *fixed = verb.removeprefix("se_").split("_")
        if self.people_take_a and reflexive:
            verb = verb.removesuffix("se")
        return Parts(reflexive + verb, clitics, [*fixed, *rest], fixed)

    def is_person(self, np: Phrase) -> bool:
        if np.name:
            return True
        return (
            bool(np.noun)
            and self.noun(np).type in ("person", "family", "group", "profession")
            and np.det not in ("a", "num", "many")
        )

    def ending(self, clause: Clause) -> str:
        return self.places(clause, "manner", "companion", "place", "time", "deadline", "length", "cause")

    def without(self, clause: Clause, front: object) -> Clause:
        return replace(clause, adverbials=tuple(each for each in clause.adverbials if each is not front))

    def may_front(self, clause: Clause) -> bool:
        return clause.mood is Mood.STATEMENT and not clause.gap and not clause.asked
