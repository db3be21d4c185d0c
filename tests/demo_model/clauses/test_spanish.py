"""Composed Spanish: who is named and who is not, the imperative with its pronouns, what "dijo" does to a tense."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo_model.clauses.languages.spanish_forms import with_clitics
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SHE, read, texts

YOU = Phrase(1, pronoun="you")
HE = Phrase(1, pronoun="he")
THEY = Phrase(1, pronoun="they")


def spanish(said: Utterance | Clause) -> str:
    return texts(said)["es"]


def test_a_pronoun_is_said_only_where_the_verb_could_speak_of_another_one() -> None:
    call = Clause("call", 8, {"S": SHE, "O": CUSTOMER}, Tense.PAST, embedded=True)
    customer = Clause("call", 8, {"S": CUSTOMER, "O": THEY}, Tense.PAST, embedded=True)
    mother = replace(customer, roles={"S": Phrase(3, noun="family:mother", det="i"), "O": THEY})
    assert spanish(read(THEY)) == "Leyeron el informe."
    assert spanish(read(SHE, mood=Mood.YES_NO)) == "¿Leyó ella el informe?"
    asked = read(THEY, mood=Mood.WH, asked="when")
    assert spanish(asked) == "¿Cuándo leyeron el informe?"
    assert (
        spanish(Utterance(asked, "whether", speaker=CUSTOMER)) == "El cliente no sabe cuándo leyeron el informe."
    )
    call_me = Clause("call", 8, {"S": YOU, "O": Phrase(4, pronoun="i")}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    assert spanish(Utterance(call_me, "when", read(HE, Tense.HABIT, embedded=True))) == (
        "Por favor, llámeme cuando él lea el informe."
    )
    assert spanish(Utterance(read(THEY), "because", call)) == "Leyeron el informe porque llamó al cliente."
    assert spanish(Utterance(read(HE), "because", mother)) == "Él leyó el informe porque mi madre los llamó."
    assert spanish(Utterance(read(HE), "because", customer)) == "Leyó el informe porque el cliente los llamó."
    rain = Clause("rain", 8, {"S": Phrase(4, pronoun="weather")}, Tense.PAST, embedded=True)
    assert spanish(Utterance(read(SHE), "because", rain)) == "Leyó el informe porque llovió."
    said = Utterance(read(HE, embedded=True), "say", speaker=SHE)
    assert spanish(said).endswith("ijo que él había leído el informe.")


@pytest.mark.parametrize(
    ("form", "clitics", "written_as"),
    [
        ("llame", ["me"], "llámeme"),
        ("dé", ["le"], "dele"),
        ("dé", ["me", "lo"], "démelo"),
        ("envíe", ["lo"], "envíelo"),
        ("averigüe", ["lo"], "averígüelo"),
        ("traiga", ["lo"], "tráigalo"),
        ("pague", ["la"], "páguela"),
        ("reúna", ["los"], "reúnalos"),
        ("llame", [], "llame"),
    ],
)
def test_the_imperative_keeps_its_stress(form: str, clitics: list[str], written_as: str) -> None:
    assert with_clitics(form, clitics) == written_as


def test_please_and_let_us() -> None:
    me = {"S": YOU, "O": Phrase(2, pronoun="i")}
    assert spanish(Clause("help", 9, me, Tense.FUTURE, mood=Mood.IMPERATIVE)) == "Por favor, ayúdeme."
    we = Phrase(1, pronoun="we")
    assert spanish(read(we, Tense.FUTURE, mood=Mood.LETS)) == "Vamos a leer el informe."
    assert spanish(read(we, Tense.FUTURE, mood=Mood.LETS, negative=True)) == "No leamos el informe."


@pytest.mark.parametrize(
    ("tense", "text"),
    [(Tense.FUTURE, "leerían"), (Tense.DONE, "ya habían leído"), (Tense.NOW, "estaban leyendo")],
)
def test_what_somebody_said_is_in_the_past(tense: Tense, text: str) -> None:
    assert spanish(Utterance(read(THEY, tense, embedded=True), "say", speaker=CUSTOMER)) == (
        f"El cliente dijo que {text} el informe."
    )


def test_might_is_not_could() -> None:
    """ "Podríamos leerlo" would propose it."""
    might = read(CUSTOMER, Tense.HABIT, modal=Modal.MIGHT)
    assert spanish(might) == "Puede que el cliente lea el informe."
    assert (
        spanish(replace(might, roles=might.roles | {"S": Phrase(1, pronoun="we")}))
        == "Puede que leamos el informe."
    )
    assert spanish(replace(might, roles=might.roles | {"S": SHE})) == "Puede que ella lea el informe."


def test_might_not_is_not_could_not() -> None:
    assert spanish(read(CUSTOMER, Tense.HABIT, modal=Modal.MIGHT, negative=True)) == (
        "Puede que el cliente no lea el informe."
    )


def test_the_subject_stands_between_two_verbs() -> None:
    asked = read(CUSTOMER, Tense.HABIT, modal=Modal.MUST, mood=Mood.WH, asked="when")
    assert spanish(asked) == "¿Cuándo tiene el cliente que leer el informe?"


def test_an_opinion_stands_before_a_noun_of_several_words() -> None:
    plan = Phrase(2, noun="document:action plan template", det="the", adjective="useful")
    assert spanish(Clause("read", 9, {"S": THEY, "O": plan}, Tense.PAST)) == (
        "Leyeron la útil plantilla del plan de acción."
    )
    report = Phrase(2, noun="document:report", det="the", adjective="useful")
    assert spanish(Clause("read", 9, {"S": THEY, "O": report}, Tense.PAST)) == "Leyeron el informe útil."


def test_one_has_sleep_and_what_is_lent_agrees() -> None:
    sleepy = Predicate(5, adjective="sleepy", degree="very")
    assert spanish(Clause("be", 9, {"S": THEY}, Tense.PAST, predicate=sleepy)) == "Tenían mucho sueño."
    novel = Phrase(2, noun="text:novel", det="the")
    assert spanish(Clause("borrow_book", 9, {"S": THEY, "O": novel}, Tense.PAST)) == "Tomaron prestada la novela."


def test_not_yet_answers_a_perfect_and_a_state_is_a_reason() -> None:
    asked = read(THEY, mood=Mood.YES_NO)
    assert spanish(Utterance(asked, "not_yet", asked)) == "¿Ya han leído el informe? No, todavía no."
    hungry = Clause("be_hungry", 8, {"S": THEY}, Tense.PAST, embedded=True)
    assert spanish(Utterance(read(CUSTOMER), "when", hungry)) == "Como tenían hambre, el cliente leyó el informe."


def test_none_was_written() -> None:
    letter = Phrase(2, noun="text:letter", det="a")
    said = Clause("write_text", 9, {"S": THEY, "O": letter}, Tense.PAST, negative=True)
    assert spanish(said) == "No escribieron ninguna carta."


def test_regularly_follows_the_verb() -> None:
    often = (Adverbial(7, "regularly"),)
    assert spanish(read(CUSTOMER, Tense.HABIT, adverbials=often)) == "El cliente lee regularmente el informe."


def test_a_company_is_bought_as_a_thing_is() -> None:
    startup = Phrase(2, noun="group:startup", det="the")
    assert spanish(Clause("buy_company", 9, {"S": THEY, "O": startup}, Tense.PAST)) == (
        "Adquirieron la empresa emergente."
    )


def test_what_somebody_did_is_told_in_the_pluperfect() -> None:
    said = Utterance(read(THEY, embedded=True), "say", speaker=CUSTOMER)
    assert spanish(said) == "El cliente dijo que habían leído el informe."
    need = Clause("need", 9, {"S": THEY, "O": REPORT}, Tense.PAST, embedded=True)
    assert spanish(Utterance(need, "say", speaker=CUSTOMER)) == "El cliente dijo que necesitaban el informe."


def test_the_object_usted_is_named() -> None:
    said = Clause("send", 9, {"S": THEY, "O": REPORT, "T": YOU}, Tense.PAST)
    assert spanish(said) == "Le enviaron a usted el informe."
    thanks = Clause("thank", 9, {"S": THEY, "O": YOU}, Tense.PAST)
    assert spanish(thanks) == "Le dieron las gracias a usted."


def test_a_short_time_does_not_wait_until_the_end() -> None:
    who, soon = Clause("read", 9, {"O": REPORT}, Tense.FUTURE, mood=Mood.WH, asked="S"), (Adverbial(6, "soon"),)
    assert spanish(replace(who, adverbials=soon)) == "¿Quién leerá pronto el informe?"
    english = replace(who, roles={"S": YOU}, asked="O", adverbials=(Adverbial(7, "in English"), *soon))
    assert spanish(english) == "¿Qué leerá usted pronto en inglés?"
    sent = Clause("send", 9, {"S": CUSTOMER, "O": REPORT, "T": Phrase(5, name="Ana")}, Tense.PAST)
    assert spanish(replace(sent, adverbials=(Adverbial(6, "yesterday"),))) == (
        "Ayer el cliente le envió el informe a Ana."
    )
    late = read(CUSTOMER, Tense.FUTURE, negative=True, adverbials=(Adverbial(6, "tomorrow"),))
    assert spanish(late) == "Mañana el cliente no leerá el informe."
    smoke = Clause("quit_smoking", 9, {}, Tense.FUTURE, mood=Mood.WH, asked="S", adverbials=soon)
    assert spanish(smoke) == "¿Quién dejará de fumar pronto?"


def test_a_state_is_estar_and_a_way_is_ir() -> None:
    for adjective, text in (("happy", "contentos"), ("dark", "oscuros"), ("complete", "completos")):
        assert (
            spanish(Clause("be", 9, {"S": THEY}, predicate=Predicate(5, adjective=adjective))) == f"Están {text}."
        )
    assert spanish(Clause("go_theatre", 9, {"S": CUSTOMER}, Tense.NOW)) == "El cliente va de camino al teatro."
    waits = Clause("look_forward", 9, {"S": THEY, "O": Phrase(2, noun="event:seminar", det="the")}, Tense.NOW)
    assert spanish(waits) == "Esperan con ilusión el seminario."


def test_people_and_pets_take_a() -> None:
    cat = Phrase(2, noun="animal:cat", det="the")
    assert spanish(Clause("adopt", 9, {"S": THEY, "O": cat}, Tense.PAST)) == "Adoptaron al gato."
    assert spanish(Clause("adopt", 9, {"S": THEY, "O": replace(cat, det="a")}, Tense.PAST)) == "Adoptaron un gato."
    two = replace(CUSTOMER, det="num", count=2, plural=True)
    assert spanish(Clause("hire", 9, {"S": THEY, "O": two}, Tense.PAST)) == "Contrataron a dos clientes."


def test_pronouns_follow_the_infinitive_if_the_subject_stands_before_it() -> None:
    ask = Clause("send", 9, {"S": CUSTOMER, "O": REPORT, "T": Phrase(5, pronoun="i")}, modal=Modal.SHOULD)
    asked = replace(ask, mood=Mood.WH, asked="when")
    assert spanish(asked) == "¿Cuándo debería el cliente enviarme el informe?"
    it = Phrase(6, pronoun="it", noun="document:report")
    both = replace(asked, roles={**ask.roles, "O": it})
    assert spanish(both) == "¿Cuándo debería enviármelo el cliente?"


def test_how_long_one_does_something() -> None:
    rest = Clause("rest", 9, {"S": CUSTOMER}, Tense.PAST, mood=Mood.WH, asked="how_long")
    assert spanish(rest) == "¿Durante cuánto tiempo hizo una pausa el cliente?"
    assert spanish(replace(rest, frame="have_lunch")) == "¿Cuánto tiempo almorzó el cliente?"


def test_a_problem_is_grave_and_yes_is_enough() -> None:
    problem = Phrase(2, noun="problem:problem", det="the")
    assert (
        spanish(Clause("be", 9, {"S": problem}, predicate=Predicate(5, adjective="big")))
        == "El problema es grave."
    )
    asked = read(CUSTOMER, mood=Mood.YES_NO)
    assert spanish(Utterance(asked, "yes", read(CUSTOMER))) == "¿El cliente leyó el informe? Sí."


def test_what_is_eaten_up() -> None:
    it = Phrase(2, pronoun="it", noun="food:cake")
    assert spanish(Clause("eat", 9, {"S": Phrase(1, pronoun="we"), "O": it}, Tense.PAST)) == "Nos lo comimos."
    cake = replace(it, pronoun="", det="the")
    assert spanish(Clause("eat", 9, {"S": CUSTOMER, "O": cake}, Tense.PAST)) == "El cliente comió el pastel."


MOTHER = Phrase(5, noun="family:mother", det="he")
TODAY = (Adverbial(7, "this morning"),)


@pytest.mark.parametrize(
    ("subject", "mood", "text"),
    [
        (SHE, Mood.STATEMENT, "Llamó a la madre de él."),
        (HE, Mood.STATEMENT, "Llamó a su madre."),
        (Phrase(1, pronoun="i"), Mood.STATEMENT, "Llamé a su madre."),
        (Phrase(1, name="Anna"), Mood.STATEMENT, "Anna llamó a la madre de él."),
        (Phrase(1, name="Marie"), Mood.STATEMENT, "Marie llamó a su madre."),
        (YOU, Mood.YES_NO, "¿Llamó usted a la madre de él?"),
        (HE, Mood.YES_NO, "¿Llamó él a su madre?"),
    ],
)
def test_su_is_said_only_where_it_is_clear_whose(subject: Phrase, mood: Mood, text: str) -> None:
    clause = Clause("call", 8, {"S": subject, "O": MOTHER}, Tense.PAST, mood=mood)
    assert spanish(clause).removeprefix("Ella ").removeprefix("Él ").capitalize() == text.capitalize()


def test_somebody_elses_mother_is_named_as_hers() -> None:
    call = Clause("call", 8, {"S": MOTHER, "O": CUSTOMER}, Tense.PAST)
    assert spanish(call) == "Su madre llamó al cliente."
    assert spanish(replace(call, mood=Mood.YES_NO)) == "¿La madre de él llamó al cliente?"
    said = replace(call, embedded=True)
    assert spanish(Utterance(said, "whether", speaker=SHE)).endswith("sabe si la madre de él llamó al cliente.")
    assert spanish(Utterance(said, "whether", speaker=HE)).endswith("sabe si su madre llamó al cliente.")


def test_who_asks_for_the_owner() -> None:
    key = Phrase(2, noun="small:key", det="he")
    asked = Clause("lose", 8, {"O": key}, Tense.PAST, mood=Mood.WH, asked="S")
    assert spanish(asked) == "¿Quién perdió su llave?"
    assert spanish(replace(asked, frame="call", roles={"O": MOTHER})) == "¿Quién llamó a la madre de él?"


def test_those_who_answer_with_we_are_asked_as_several() -> None:
    asked, answer = read(YOU, mood=Mood.YES_NO), read(Phrase(3, pronoun="we"))
    assert spanish(Utterance(asked, "no", answer)) == "¿Leyeron ustedes el informe? No."
    assert spanish(Utterance(asked, "no", read(Phrase(3, pronoun="i")))) == "¿Leyó usted el informe? No."


def test_what_was_done_today_is_in_the_perfect() -> None:
    assert spanish(read(CUSTOMER, adverbials=TODAY)) == "El cliente ha leído el informe esta mañana."
    it = Phrase(4, noun="document:report", pronoun="it", refers="O")
    signed = Clause("sign", 8, {"S": THEY, "O": it}, Tense.PAST)
    assert spanish(Utterance(read(THEY, adverbials=TODAY), "and", signed)) == (
        "Han leído el informe esta mañana y lo han firmado."
    )
    yesterday = read(CUSTOMER, adverbials=(Adverbial(7, "yesterday"),))
    assert spanish(yesterday) == "El cliente leyó el informe ayer."


def test_earlier_today_is_not_only_today() -> None:
    earlier = read(CUSTOMER, adverbials=(Adverbial(7, "earlier today"),))
    assert spanish(earlier) == "Hace un rato el cliente ha leído el informe."


def test_what_one_can_do_oneself_is_not_what_can_be_done() -> None:
    """ "No se pudo ir": nobody could."""
    left = Clause("go_holiday", 8, {"S": HE}, Tense.PAST, True, Modal.CAN)
    assert spanish(left) in ("No pudo irse de vacaciones.", "Él no pudo irse de vacaciones.")
    assert spanish(replace(left, roles={"S": Phrase(1, pronoun="i")})) == "No me pude ir de vacaciones."
    wants = replace(left, modal=Modal.WANT, tense=Tense.HABIT, negative=False, roles={"S": THEY})
    assert spanish(wants) == "Quieren irse de vacaciones."


def test_for_what_reason_it_was_changed() -> None:
    costs = (Adverbial(7, "because of the high costs"),)
    assert spanish(read(CUSTOMER, adverbials=costs)) == "El cliente leyó el informe por los altos costes."
    changed = Clause("change", 8, {"S": THEY, "O": REPORT}, Tense.PAST, adverbials=costs)
    assert spanish(changed) == "Cambiaron el informe debido a los altos costes."


def test_who_is_introduced_to_whom() -> None:
    said = Clause("introduce_family", 8, {"S": THEY, "O": MOTHER, "T": CUSTOMER}, Tense.PAST)
    said = replace(said, roles={**said.roles, "O": replace(MOTHER, det="i")})
    assert spanish(said) == "Le presentaron mi madre al cliente."
    assert spanish(replace(said, roles={**said.roles, "O": SHE})) == "Se la presentaron al cliente."


def test_a_meeting_that_is_over_was_so() -> None:
    boring = Predicate(6, adjective="boring")
    meeting = Phrase(2, noun="event:meeting", det="the")
    was = Clause("be", 9, {"S": meeting}, Tense.PAST, predicate=boring)
    assert spanish(was) == "La reunión fue aburrida."
    because = Utterance(read(CUSTOMER), "because", replace(was, embedded=True))
    assert spanish(because).endswith("porque la reunión era aburrida.")


def test_a_form_of_two_persons_has_its_subject() -> None:
    assert spanish(read(SHE, Tense.HABIT, modal=Modal.SHOULD)) == "Ella debería leer el informe."
    assert spanish(Utterance(read(SHE, Tense.HABIT, modal=Modal.SHOULD, embedded=True), "that's why")) == (
        "Por eso ella debería leer el informe."
    )
    hoped = Utterance(read(SHE, Tense.FUTURE, embedded=True), "hope", speaker=Phrase(3, pronoun="i"))
    assert spanish(hoped) == "Espero que ella lea el informe."


def test_one_has_no_cello() -> None:
    cello = Phrase(2, noun="instrument:cello", det="a")
    have = Clause("have_thing", 9, {"S": THEY, "O": cello}, negative=True)
    assert spanish(have) == "No tienen violonchelo."
    assert spanish(replace(have, negative=False)) == "Tienen un violonchelo."


def test_one_is_allergic_to_all_of_it() -> None:
    mustard = Phrase(2, noun="ingredient:mustard", det="bare")
    assert spanish(Clause("allergic", 9, {"S": THEY, "O": mustard})) == "Son alérgicos a la mostaza."


def test_spanish_names_whom_a_report_is_about_if_it_is_not_who_speaks() -> None:
    said = Utterance(read(SHE, embedded=True), "say", speaker=Phrase(8, name="Quentin"))
    assert spanish(said) == "Quentin dijo que ella había leído el informe."
    assert spanish(replace(said, speaker=CUSTOMER)) == "El cliente dijo que ella había leído el informe."
    assert spanish(replace(said, speaker=Phrase(8, name="Anna"))) == "Anna dijo que había leído el informe."
    assert spanish(replace(said, speaker=Phrase(8, name="Kelly"))) == "Kelly dijo que había leído el informe."


def test_spanish_asks_with_the_verb_first_what_something_is_like() -> None:
    closed = Clause("be", 4, {"S": REPORT}, mood=Mood.YES_NO, predicate=Predicate(7, adjective="available"))
    assert spanish(closed) == "¿Está disponible el informe?"
    clear = replace(closed, predicate=Predicate(7, adjective="clear"), tense=Tense.PAST)
    assert spanish(clear) == "¿Era claro el informe?"


def test_one_contacts_with_somebody_and_what_tastes_good_is_good() -> None:
    assert spanish(Clause("contact", 9, {"S": HE, "O": CUSTOMER}, Tense.PAST)).endswith("ontactó con el cliente.")
    me = Clause("contact", 9, {"S": YOU, "O": Phrase(2, pronoun="i")}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    assert spanish(me) == "Por favor, contacte conmigo."
    soup = Phrase(2, noun="food:soup", det="the")
    assert spanish(Clause("taste_good", 9, {"S": soup})) == "La sopa está buena."
    assert spanish(Clause("taste_good", 9, {"S": soup}, Tense.PAST)) == "La sopa estaba buena."
