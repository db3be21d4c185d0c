"""What goes with what in composed sentences, and how English says it."""

from __future__ import annotations

import re
from dataclasses import replace

from demo_model.clauses.compose import Composer
from demo_model.clauses.syntax import Clause, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.grammar import Value
from demo_model.sampling import Sampler
from tests.demo_model.clauses.said import SEND, SHE, send, texts

I = Phrase(1, pronoun="i")  # noqa: E741


def test_english_says_what_was_said_one_tense_earlier_and_asks_with_yet() -> None:
    for tense, said in ((Tense.FUTURE, "would send"), (Tense.DONE, "had already sent"), (Tense.PAST, "sent")):
        told = Utterance(Clause("send", 4, SEND, tense), "say", speaker=Phrase(5, pronoun="he"))
        assert texts(told)["en"] == f"He said she {said} the report to the customer."
    asked = send(roles=SEND | {"S": Phrase(1, pronoun="you")}, tense=Tense.DONE, mood=Mood.YES_NO)
    assert asked["en"] == "Have you sent the report to the customer yet?"


def test_english_speaks_in_contractions() -> None:
    """After a pronoun that more follows; not where the verb itself is "have", nor at the end."""
    assert send(tense=Tense.FUTURE)["en"] == "She'll send the report to the customer."
    have = Clause("have_question", 4, {"S": I})
    assert texts(Utterance(have))["en"].startswith("I have ")
    busy = Clause("be", 4, {"S": I}, negative=True, predicate=Predicate(5, adjective="busy"))
    assert texts(Utterance(busy))["en"] == "I'm not busy."
    assert send(mark=5, tense=Tense.FUTURE)["en"] == "She will send the report to the customer."
    assert send(roles=SEND | {"T": I}, tense=Tense.PAST)["en"] == "She sent me the report."


def test_english_lets_people_know_and_calls_anna_back() -> None:
    anna = Phrase(2, name="Anna")
    values: dict[int, tuple[str, Value]] = {2: ("name", "Anna")}
    for frame, said in (
        ("inform", "She let Anna know."),
        ("call_back", "She called Anna back."),
        ("pick_up", "She picked Anna up."),
    ):
        told = Utterance(Clause(frame, 4, {"S": SHE, "O": anna}, Tense.PAST), values=values)
        assert texts(told)["en"] == said
    tried = Clause("turn_on", 4, {"S": SHE, "O": Phrase(2, noun="device:printer", det="the")}, Tense.PAST)
    assert texts(Utterance(tried))["en"] == "She switched on the printer."


def test_english_nouns_that_are_always_plural_or_of_which_one_has_some() -> None:
    minutes = Phrase(2, noun="document:safety instructions", det="the")
    clear = Clause("be", 4, {"S": minutes}, predicate=Predicate(5, adjective="clear"))
    assert texts(clear)["en"] == "The safety instructions are clear."
    it = Phrase(6, pronoun="it", noun="document:safety instructions", refers="O")
    outdated = Clause("be", 8, {"S": it}, predicate=Predicate(9, adjective="outdated"))
    said = Utterance(Clause("read", 7, {"S": SHE, "O": minutes}, Tense.PAST), "because", outdated)
    assert texts(said)["en"] == "She read the safety instructions because they're outdated."
    soup = Phrase(2, noun="food:soup", det="a")
    assert texts(Clause("order_food", 4, {"S": SHE, "O": soup}, Tense.PAST))["en"] == "She ordered some soup."


def test_english_me_too_answers_how_it_is_not_what_was_done() -> None:
    for tense in (Tense.PAST, Tense.FUTURE, Tense.DONE):
        first = Clause("sleep", 4, {"S": SHE}, tense)
        for mark in (5, 6):
            answer = Clause("sleep", mark, {"S": I}, tense)
            assert "Me too" not in texts(Utterance(first, "too", answer))["en"]


def test_english_has_a_colon_after_one_question() -> None:
    you = Phrase(1, pronoun="you")
    asked = Clause("send", 4, SEND | {"S": you}, Tense.PAST, mood=Mood.WH, asked="when")
    said = texts(Utterance(asked, opener="question:one question"))["en"]
    assert said == "One question: when did you send the report to the customer?"


def test_what_is_done_at_noon_or_in_the_evening_is_not_done_every_morning() -> None:
    """ "I go to lunch every afternoon." """
    composer = Composer(Sampler(63))
    for frame, other in (("go_lunch", "afternoon|morning|evening|night"), ("have_dinner", "morning|noon")):
        said = [composer.clause([frame], Mood.STATEMENT, {Tense.HABIT: 1}, False) for _ in range(300)]
        times = [each.key for clause in said for each in clause.adverbials]
        assert len(times) > 100
        assert not [key for key in times if re.search(other, key)]


def test_english_homework_is_ones_own() -> None:
    homework = Clause("do_homework", 4, {"S": Phrase(1, pronoun="we")}, Tense.PAST)
    assert texts(homework)["en"] == "We did our homework."
    son = Phrase(1, noun="family:son", det="i")
    assert texts(replace(homework, roles={"S": son}))["en"] == "My son did his homework."
    assert texts(replace(homework, roles={"S": replace(son, noun="family:daughter")}))["en"] == (
        "My daughter did her homework."
    )
    assert texts(replace(homework, roles={"S": Phrase(1, name="Kim")}))["en"] == "Kim did homework."


def test_the_minutes_are_those_of_the_meeting() -> None:
    """ "Could you send him meeting minutes immediately?" """
    composer = Composer(Sampler(3))
    minutes = composer.words.nouns["document:meeting minutes"]
    assert "a" not in {composer.noun(minutes, fresh=True).det for _ in range(200)}
