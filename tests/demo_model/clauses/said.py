"""Who and what the tests of composed sentences speak of, and how a sentence is said."""

from __future__ import annotations

from dataclasses import replace

from demo_model.clauses.linearize import sentences
from demo_model.clauses.syntax import Clause, Phrase, Tense, Utterance
from demo_model.patterns import written

SHE = Phrase(1, pronoun="she")
REPORT = Phrase(2, noun="document:report", det="the")
CUSTOMER = Phrase(3, noun="person:customer", det="the")
SEND = {"S": SHE, "O": REPORT, "T": CUSTOMER}


def texts(said: Utterance | Clause) -> dict[str, str]:
    """In every language."""
    said = Utterance(said) if isinstance(said, Clause) else said
    return {language: written(each, language).text for language, each in sentences(said).items()}


def send(**changes: object) -> dict[str, str]:
    """She sends the report to the customer, but for the changes."""
    return texts(replace(Clause("send", 4, SEND), **changes))  # type: ignore[arg-type]


def read(who: Phrase, tense: Tense = Tense.PAST, **changes: object) -> Clause:
    """Somebody reads the report."""
    return Clause("read", 9, {"S": who, "O": REPORT}, tense, **changes)  # type: ignore[arg-type]
