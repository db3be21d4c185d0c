"""German word order, tenses and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SHE, texts

BOSS = Phrase(5, noun="person:boss", det="the")
WRITE = Clause("write", 4, {"S": SHE, "O": REPORT}, Tense.PAST)
SEND = Clause("send", 4, {"S": SHE, "O": REPORT, "T": CUSTOMER})


def german(said: Utterance | Clause) -> str:
    return texts(said)["de"]


def test_what_is_known_stands_before_schon_and_what_is_new_after_it() -> None:
    assert german(replace(WRITE, tense=Tense.DONE)) == "Sie hat den Bericht schon geschrieben."
    new = replace(WRITE, tense=Tense.DONE, roles={"S": SHE, "O": replace(REPORT, det="a")})
    assert german(new) == "Sie hat schon einen Bericht geschrieben."
    both = replace(SEND, tense=Tense.DONE, roles={**SEND.roles, "O": replace(REPORT, det="a")})
    assert german(both) == "Sie hat dem Kunden schon einen Bericht geschickt."
    pair = Phrase(9, members=(REPORT, Phrase(6, noun="document:invoice", det="the")), link="both")
    assert german(Clause("read", 4, {"S": SHE, "O": pair}, Tense.DONE)) == (
        "Sie hat schon sowohl den Bericht als auch die Rechnung gelesen."
    )
    late = replace(both, tense=Tense.PAST, adverbials=(Adverbial(6, "yesterday"),))
    assert german(late) == "Sie hat dem Kunden gestern einen Bericht geschickt."


def test_a_place_stands_before_what_is_new_and_after_what_is_known() -> None:
    there = (Adverbial(6, "in the office"),)
    assert german(replace(WRITE, adverbials=there)) == "Sie hat den Bericht im Büro geschrieben."
    new = {"S": SHE, "O": replace(REPORT, det="a")}
    assert german(replace(WRITE, roles=new, adverbials=there)) == "Sie hat im Büro einen Bericht geschrieben."


def test_what_will_be_is_in_the_present_once_the_time_is_said() -> None:
    tomorrow = replace(SEND, tense=Tense.FUTURE, adverbials=(Adverbial(6, "tomorrow"),))
    assert german(tomorrow) == "Sie schickt dem Kunden morgen den Bericht."
    assert german(replace(SEND, tense=Tense.FUTURE)) == "Sie wird dem Kunden den Bericht schicken."
    late = replace(tomorrow, negative=True)
    assert german(late) == "Sie schickt dem Kunden den Bericht morgen nicht."
    call = Clause("call", 7, {"S": BOSS, "O": CUSTOMER}, Tense.FUTURE)
    assert german(Utterance(call, "if", replace(WRITE, tense=Tense.HABIT))) == (
        "Wenn sie den Bericht schreibt, ruft der Chef den Kunden an."
    )
    assert german(Utterance(WRITE, "so", call)) == (
        "Sie hat den Bericht geschrieben, deshalb ruft der Chef den Kunden an."
    )


def test_a_second_clause_leaves_out_what_both_share() -> None:
    it = Phrase(6, pronoun="it", noun="document:report", refers="O")
    read = Clause("read", 7, {"S": SHE, "O": it}, Tense.PAST)
    assert german(Utterance(WRITE, "and", read)) == "Sie hat den Bericht geschrieben und gelesen."
    other = replace(read, roles={"S": BOSS, "O": it})
    assert german(Utterance(WRITE, "and", other)) == (
        "Sie hat den Bericht geschrieben und der Chef hat ihn gelesen."
    )
    missed = Clause("miss_deadline", 4, {"S": SHE, "O": Phrase(2, noun="term:deadline", det="the")}, Tense.PAST)
    called = Clause("call", 7, {"S": SHE, "O": CUSTOMER}, Tense.PAST)
    assert german(Utterance(missed, "and", called)) == (
        "Sie hat die Frist nicht eingehalten und sie hat den Kunden angerufen."
    )
    home = Clause("go_home", 7, {"S": SHE}, Tense.PAST)
    assert german(Utterance(WRITE, "and", home)) == (
        "Sie hat den Bericht geschrieben und ist nach Hause gegangen."
    )


def test_an_object_pronoun_comes_before_a_noun_unless_it_could_be_the_subject() -> None:
    inform = Clause("inform", 7, {"S": BOSS, "O": Phrase(6, pronoun="we")}, Tense.PAST, mood=Mood.YES_NO)
    assert german(inform) == "Hat uns der Chef informiert?"
    her = replace(inform, roles={"S": BOSS, "O": Phrase(6, pronoun="she")})
    assert german(her) == "Hat der Chef sie informiert?"


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        ("need", "Sie brauchte den Bericht."),
        ("know_person", "Sie kannte den Bericht."),
        ("understand", "Sie hat den Bericht verstanden."),
    ],
)
def test_the_past_of_a_state(frame: str, text: str) -> None:
    assert german(replace(WRITE, frame=frame)) == text


def test_things_lie_and_people_are() -> None:
    table = Predicate(6, place=Adverbial(8, "on the table"))
    assert german(Clause("be", 4, {"S": REPORT}, Tense.PAST, predicate=table)) == "Der Bericht lag auf dem Tisch."
    new = replace(REPORT, det="a")
    assert german(Clause("exist", 4, {"S": new}, predicate=table)) == "Auf dem Tisch liegt ein Bericht."
    cup = Phrase(2, noun="dishes:cup", det="the")
    assert german(Clause("be", 4, {"S": cup}, predicate=table)) == "Die Tasse steht auf dem Tisch."
    assert german(Clause("be", 4, {"S": replace(cup, noun="dishes:knife")}, predicate=table)) == (
        "Das Messer liegt auf dem Tisch."
    )
    bag = Predicate(6, place=Adverbial(8, "in the bag"))
    assert german(Clause("be", 4, {"S": cup}, predicate=bag)) == "Die Tasse ist in der Tasche."
    office = Predicate(6, place=Adverbial(8, "in the office"))
    assert german(Clause("be", 4, {"S": BOSS}, predicate=office)) == "Der Chef ist im Büro."


def test_how_one_goes_stands_before_where_one_goes() -> None:
    assert german(Clause("drive_to", 4, {"S": SHE, "T": Phrase(2, noun="city:Berlin")}, Tense.PAST)) == (
        "Sie ist mit dem Auto nach Berlin gefahren."
    )
    bear = Phrase(2, noun="wild:bear", det="the")
    assert german(Clause("be_afraid", 4, {"S": SHE, "O": bear})) == "Sie hat Angst vor dem Bären."


def test_what_may_not_happen_is_not_what_cannot_happen() -> None:
    might = replace(SEND, modal=Modal.MIGHT)
    assert german(might) == "Sie schickt vielleicht dem Kunden den Bericht."
    assert german(replace(might, negative=True)) == "Sie schickt dem Kunden den Bericht vielleicht nicht."


def test_an_article_is_said_in_full_before_the_clause_that_says_which() -> None:
    plan = Phrase(2, noun="plan:plan", det="the")
    work = Clause("work_on", 4, {"S": SHE, "O": plan}, Tense.PAST)
    assert german(work) == "Sie hat am Plan gearbeitet."
    which = replace(plan, relative=Clause("change", 7, {"S": BOSS}, Tense.PAST, gap="O"))
    assert german(replace(work, roles={"S": SHE, "O": which})) == (
        "Sie hat an dem Plan gearbeitet, den der Chef geändert hat."
    )


def test_a_preposition_is_said_with_each_of_two_things_to_choose_from() -> None:
    who = Phrase(9, members=(CUSTOMER, BOSS), link="either")
    talk = Clause("talk_to", 4, {"S": SHE, "O": who}, Tense.PAST)
    assert german(talk) == "Sie hat entweder mit dem Kunden oder mit dem Chef gesprochen."


def test_what_one_plays_has_no_article() -> None:
    harp, piano = (Phrase(2, noun=f"instrument:{each}", det="the") for each in ("harp", "piano"))
    both = Phrase(9, members=(harp, piano), link="and")
    assert german(Clause("play_instrument", 4, {"S": SHE, "O": both}, Tense.PAST)) == (
        "Sie hat Harfe und Klavier gespielt."
    )
    never = Clause("play_instrument", 4, {"S": SHE, "O": piano}, Tense.PAST, negative=True)
    assert german(never) == "Sie hat kein Klavier gespielt."


def test_what_is_proposed_says_uns_once() -> None:
    we = Phrase(1, pronoun="we")
    cake = Phrase(2, noun="food:cake", det="a")
    assert german(Clause("bake", 4, {"S": we, "O": cake}, mood=Mood.LETS)) == "Lassen Sie uns einen Kuchen backen."
    assert german(Clause("relax", 4, {"S": we}, mood=Mood.LETS)) == "Wollen wir uns entspannen?"


def test_what_somebody_owns() -> None:
    julien, max_ = Phrase(6, name="Julien"), Phrase(6, name="Max")
    owned = replace(REPORT, of=julien, adjective="new")
    assert german(replace(WRITE, roles={"S": SHE, "O": owned})) == "Sie hat Juliens neuen Bericht geschrieben."
    other = replace(owned, of=max_)
    assert german(replace(WRITE, roles={"S": SHE, "O": other})) == (
        "Sie hat den neuen Bericht von Max geschrieben."
    )


def test_they_in_a_short_answer_is_not_taken_for_you() -> None:
    they = replace(WRITE, roles={"S": Phrase(6, pronoun="they")})
    assert german(Utterance(WRITE, "too", they)).endswith(" Die auch.")


def test_the_reason_against_a_thing_that_there_is_not() -> None:
    first = replace(WRITE, negative=True, roles={"S": SHE, "O": replace(REPORT, det="a")})
    it = Phrase(6, pronoun="it", noun="document:report", refers="O")
    boring = Clause("be", 7, {"S": it}, Tense.PAST, predicate=Predicate(8, adjective="boring"))
    assert german(Utterance(first, "because", boring)) == (
        "Sie hat keinen Bericht geschrieben, weil das langweilig war."
    )


def test_what_is_known_stands_before_the_time_and_the_place() -> None:
    there = (Adverbial(6, "tomorrow"), Adverbial(7, "in the office"))
    assert (
        german(replace(WRITE, adverbials=there[1:], tense=Tense.NOW)) == "Sie schreibt gerade den Bericht im Büro."
    )
    ask = replace(WRITE, mood=Mood.YES_NO, adverbials=(Adverbial(6, "yesterday"),))
    assert german(ask) == "Hat sie gestern den Bericht geschrieben?"
    assert german(replace(SEND, tense=Tense.FUTURE, adverbials=there)) == (
        "Sie schickt dem Kunden morgen im Büro den Bericht."
    )
    every = replace(WRITE, roles={"S": SHE, "O": replace(REPORT, det="all", plural=True)}, adverbials=there[1:])
    assert german(every) == "Sie hat im Büro alle Berichte geschrieben."
    assert german(replace(every, negative=True)) == "Sie hat im Büro nicht alle Berichte geschrieben."
    often = replace(WRITE, tense=Tense.HABIT, adverbials=(Adverbial(6, "often"),))
    assert german(often) == "Sie schreibt oft den Bericht."


def test_what_has_to_be_over_first_is_told_in_the_perfekt() -> None:
    call = Clause("call", 7, {"S": BOSS, "O": CUSTOMER}, Tense.FUTURE)
    assert german(Utterance(call, "when", replace(WRITE, tense=Tense.HABIT))) == (
        "Sobald sie den Bericht geschrieben hat, ruft der Chef den Kunden an."
    )
    hungry = Clause("be_hungry", 7, {"S": SHE})
    assert german(Utterance(call, "when", hungry)) == "Wenn sie Hunger hat, ruft der Chef den Kunden an."


def test_where_one_goes_and_what_one_plans() -> None:
    assert german(Clause("go_theatre", 4, {"S": SHE}, Tense.NOW)) == "Sie ist gerade auf dem Weg ins Theater."
    assert german(Clause("go_walk", 4, {"S": SHE}, Tense.NOW)) == "Sie geht gerade spazieren."
    assert german(Clause("fly", 4, {"S": SHE, "T": Phrase(2, noun="city:Berlin")}, Tense.FUTURE)) == (
        "Sie fliegt nach Berlin."
    )
    seminar = Phrase(2, noun="event:seminar", det="the")
    assert (
        german(Clause("look_forward", 4, {"S": SHE, "O": seminar}, Tense.NOW)) == "Sie freut sich auf das Seminar."
    )


def test_a_name_is_weak_but_for_its_genitive() -> None:
    name = Phrase(2, noun="credential:username", det="the")
    assert german(Clause("change", 4, {"S": SHE, "O": name}, Tense.PAST)) == "Sie hat den Benutzernamen geändert."
    owner = replace(REPORT, of=name)
    assert (
        german(replace(WRITE, roles={"S": SHE, "O": owner}))
        == "Sie hat den Bericht des Benutzernamens geschrieben."
    )


def test_falls_is_not_taken_for_when() -> None:
    asks = Clause("call", 7, {"S": Phrase(1, pronoun="you"), "O": BOSS}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    read = replace(WRITE, tense=Tense.HABIT)
    assert german(Utterance(asks, "if", read)) == "Bitte rufen Sie den Chef an, falls sie den Bericht schreibt."
    told = replace(asks, mood=Mood.STATEMENT)
    assert german(Utterance(told, "if", read)) == "Wenn sie den Bericht schreibt, rufen Sie den Chef an."


def test_the_sun_shines() -> None:
    sunny = Clause("weather_sunny", 7, {"S": Phrase(1, pronoun="weather")}, Tense.PAST)
    assert german(sunny) == "Die Sonne schien."
    assert german(Utterance(WRITE, "when", sunny)) == "Als die Sonne schien, hat sie den Bericht geschrieben."


def test_by_the_way_is_the_first_part_of_a_statement() -> None:
    assert german(Utterance(WRITE, opener="statement:by the way")) == "Übrigens hat sie den Bericht geschrieben."
    asked = replace(WRITE, mood=Mood.YES_NO)
    assert german(Utterance(asked, opener="question:by the way")) == "Übrigens, hat sie den Bericht geschrieben?"


def test_what_will_be_done_is_answered_with_das() -> None:
    asked = replace(WRITE, tense=Tense.FUTURE, mood=Mood.YES_NO)
    answer = replace(asked, mood=Mood.STATEMENT)
    assert german(Utterance(asked, "yes", answer)).endswith("? Ja, das macht sie.")
    assert german(Utterance(asked, "no", replace(answer, negative=True))).endswith("? Nein, das macht sie nicht.")


def test_one_invests_in_the_thing_itself() -> None:
    model = Phrase(2, noun="product:model", det="the")
    assert german(Clause("invest", 4, {"S": SHE, "O": model})) == "Sie investiert in das Modell."


def test_costs_are_several() -> None:
    costs = Phrase(2, noun="money:storage cost", det="the")
    high = Clause("be", 4, {"S": costs}, predicate=Predicate(5, adjective="high"))
    assert german(high) == "Die Lagerkosten sind hoch."
    reduce = Clause("reduce", 4, {"S": SHE, "O": replace(costs, adjective="high")}, Tense.PAST)
    assert german(reduce) == "Sie hat die hohen Lagerkosten gesenkt."
    it = Phrase(6, pronoun="it", noun="money:storage cost", refers="O")
    assert german(Utterance(reduce, "because", replace(high, roles={"S": it}))) == (
        "Sie hat die hohen Lagerkosten gesenkt, weil sie hoch sind."
    )


def test_one_was_jogging() -> None:
    jog = Clause("jog", 4, {"S": SHE}, Tense.PAST)
    assert german(jog) == "Sie war joggen."
    assert german(replace(jog, modal=Modal.CAN)) == "Sie konnte joggen gehen."
    assert german(Utterance(WRITE, "after", jog)) == ("Nachdem sie joggen war, hat sie den Bericht geschrieben.")


def test_what_is_famous_is_so_still() -> None:
    castle = Phrase(2, noun="sight:castle", det="a")
    it = Phrase(6, pronoun="it", noun="sight:castle", refers="O")
    famous = Clause("be", 4, {"S": it}, Tense.PAST, predicate=Predicate(5, adjective="famous"))
    assert german(Utterance(Clause("visit_sight", 4, {"S": SHE, "O": castle}, Tense.PAST), "because", famous)) == (
        "Sie hat ein Schloss besichtigt, weil es berühmt ist."
    )


def test_a_budget_is_cut_and_a_database_taken_into_service() -> None:
    budget = Phrase(2, noun="money:budget", det="the")
    assert german(Clause("reduce", 4, {"S": SHE, "O": budget}, Tense.PAST)) == "Sie hat das Budget gekürzt."
    base = Phrase(2, noun="product:database", det="the")
    assert german(Clause("launch", 4, {"S": SHE, "O": base}, Tense.PAST)) == (
        "Sie hat die Datenbank in Betrieb genommen."
    )


def test_a_bare_time_stands_before_what_is_known_and_is_done_then() -> None:
    """ "Er leitet den Workshop morgen früh" would be about when; with a preposition either is said."""
    tomorrow = replace(WRITE, tense=Tense.FUTURE, adverbials=(Adverbial(6, "tomorrow morning"),))
    assert german(tomorrow) == "Sie schreibt morgen früh den Bericht."
    noon = replace(WRITE, adverbials=(Adverbial(6, "last week"),))
    assert german(noon) == "Sie hat letzte Woche den Bericht geschrieben."
    assert german(replace(noon, negative=True)) == "Sie hat den Bericht letzte Woche nicht geschrieben."


def test_schon_does_not_stand_alone() -> None:
    since = Clause("live_city", 5, {"S": SHE, "T": Phrase(2, noun="city:Berlin")}, Tense.ONGOING)
    since = replace(since, mark=3, adverbials=(Adverbial(6, "since last year"),))
    assert german(since) == "Seit letztem Jahr wohnt sie in Berlin."


def test_furniture_stands_and_a_website_goes_live() -> None:
    desk = Phrase(2, noun="furniture:desk", det="a")
    room = Predicate(6, place=Adverbial(7, "in the conference room"))
    there = Clause("exist", 5, {"S": desk}, predicate=room)
    assert german(there) == "Im Konferenzraum steht ein Schreibtisch."
    many = replace(there, roles={"S": replace(desk, det="how_many", plural=True)}, mood=Mood.WH, asked="S")
    assert german(many) == "Wie viele Schreibtische stehen im Konferenzraum?"
    engine = Phrase(2, noun="product:search engine", det="the")
    assert (
        german(Clause("launch", 5, {"S": SHE, "O": engine}, Tense.PAST))
        == "Sie hat die Suchmaschine live geschaltet."
    )
