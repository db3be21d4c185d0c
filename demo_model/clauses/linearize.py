"""One utterance in all six languages, as sentences with spans."""

from __future__ import annotations

from functools import cache

from demo_model.clauses.languages.chinese import Chinese
from demo_model.clauses.languages.english import English
from demo_model.clauses.languages.french import French
from demo_model.clauses.languages.german import German
from demo_model.clauses.languages.japanese import Japanese
from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.languages.spanish import Spanish
from demo_model.clauses.marks import finished
from demo_model.clauses.syntax import Utterance
from demo_model.patterns import Sentence


@cache
def linearizers() -> dict[str, Linearizer]:
    return {each.language: each for each in (English(), Japanese(), Spanish(), German(), French(), Chinese())}


def sentences(utterance: Utterance) -> dict[str, Sentence]:
    """Language → the sentence, without its initial capital (see `demo_model.patterns.written`)."""
    return {
        language: finished(each.opened(utterance), each.glue, utterance.values, each.rewrite)
        for language, each in linearizers().items()
    }
