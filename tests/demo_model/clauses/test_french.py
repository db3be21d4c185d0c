"""French clitics, tenses, questions and requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SHE, texts

I = Phrase(1, pronoun="i")  # noqa: E741
WE = Phrase(1, pronoun="we")
YOU = Phrase(0, pronoun="you")
THEM = Phrase(6, pronoun="they")
IT = Phrase(6, pronoun="it", noun="document:report")
SEND = Clause("send", 4, {"S": SHE, "O": REPORT, "T": CUSTOMER}, Tense.PAST)


def french(said: Utterance | Clause) -> str:
    return texts(said)["fr"]


def test_a_request_is_an_imperative_with_its_pronouns_after_it() -> None:
    please = replace(SEND, roles={"S": YOU, "O": IT, "T": I}, mood=Mood.IMPERATIVE)
    assert french(please) == "Envoyez-le-moi, s'il vous plaît."
    call = Clause("call", 4, {"S": YOU, "O": THEM}, mood=Mood.IMPERATIVE)
    late = Clause("be", 7, {"S": SHE}, predicate=Predicate(8, adjective="tired"))
    assert french(Utterance(call, "if", late)) == "Appelez-les si elle est fatiguée, s'il vous plaît."


def test_a_pronoun_is_not_contracted_with_the_preposition_before_it() -> None:
    lets = Clause("congratulate", 4, {"S": WE, "O": THEM}, mood=Mood.LETS)
    assert french(lets) == "Félicitons-les."
    now = Clause("read", 4, {"S": SHE, "O": IT}, Tense.NOW)
    assert french(now) == "Elle est en train de le lire."
    must = Clause("write", 4, {"S": SHE, "O": IT}, modal=Modal.MUST, negative=True)
    assert french(must) == "Elle n'a pas besoin de l'écrire."


def test_everyday_things_are_proposed_with_a_question() -> None:
    cake = Phrase(2, noun="food:cake", det="a")
    assert french(Clause("eat", 4, {"S": WE, "O": cake}, mood=Mood.LETS)) == "Et si on mangeait un gâteau ?"


def test_what_somebody_said_is_told_from_then() -> None:
    he = Phrase(7, pronoun="he")
    done = Utterance(replace(SEND, tense=Tense.DONE), "say", speaker=he)
    assert french(done) == "Il a dit qu'elle avait déjà envoyé le rapport au client."
    later = Utterance(replace(SEND, tense=Tense.FUTURE), "say", speaker=he)
    assert french(later) == "Il a dit qu'elle enverrait le rapport au client."


def test_what_one_had_to_do_and_what_one_understood() -> None:
    assert french(replace(SEND, modal=Modal.MUST)) == "Elle a dû envoyer le rapport au client."
    assert french(Clause("understand", 4, {"S": SHE, "O": REPORT}, Tense.PAST)) == "Elle a compris le rapport."


def test_on_the_way_is_the_present() -> None:
    assert french(Clause("go_home", 4, {"S": SHE}, Tense.NOW)) == "Elle rentre à la maison."


def test_what_is_near_is_said_with_aller() -> None:
    near = replace(SEND, tense=Tense.FUTURE, adverbials=(Adverbial(8, "in half an hour"),))
    assert french(near) == "Elle va envoyer le rapport au client dans une demi-heure."
    assert french(replace(near, adverbials=())) == "Elle enverra le rapport au client."


def test_what_has_just_been_done() -> None:
    just = replace(SEND, adverbials=(Adverbial(8, "just now"),))
    assert french(just) == "Elle vient d'envoyer le rapport au client."


def test_what_may_not_happen_is_not_what_cannot_happen() -> None:
    might = replace(SEND, tense=Tense.HABIT, modal=Modal.MIGHT, negative=True)
    assert french(might) == "Elle n'enverra peut-être pas le rapport au client."


def test_one_event_while_a_state_lasted() -> None:
    hungry = Clause("be_hungry", 8, {"S": SHE}, Tense.PAST)
    assert french(Utterance(SEND, "when", hungry)) == "Comme elle avait faim, elle a envoyé le rapport au client."
    called = Clause("call", 8, {"S": SHE, "O": THEM}, Tense.PAST)
    assert french(Utterance(SEND, "when", called)).startswith("Quand elle les a appelés, ")


def test_how_often_and_who_one_writes_to() -> None:
    often = Clause("call", 4, {"S": SHE, "O": CUSTOMER}, mood=Mood.WH, asked="how_often")
    assert french(often) == "À quelle fréquence est-ce qu'elle appelle le client ?"
    whom = Clause("write_to", 4, {"S": SHE, "O": Phrase(6, pronoun="who")}, Tense.NOW, mood=Mood.WH, asked="O")
    assert french(whom) == "À qui est-ce qu'elle écrit ?"


@pytest.mark.parametrize(
    ("modal", "tense", "link", "answer"),
    [
        (Modal.NONE, Tense.PAST, "yes", "Oui, c'est fait."),
        (Modal.NONE, Tense.FUTURE, "yes", "Oui."),
        (Modal.NONE, Tense.PAST, "no", "Non."),
        (Modal.MUST, Tense.HABIT, "yes", "Oui, il le faut."),
        (Modal.WANT, Tense.HABIT, "yes", "Oui, elle veut bien."),
        (Modal.CAN, Tense.HABIT, "no", "Non, elle ne peut pas."),
    ],
)
def test_short_answers(modal: Modal, tense: Tense, link: str, answer: str) -> None:
    asked = replace(SEND, modal=modal, tense=tense, mood=Mood.YES_NO)
    said = Utterance(asked, link, replace(asked, roles={"S": SHE}, mood=Mood.STATEMENT, negative=link == "no"))
    assert french(said).endswith(f"? {answer}")


def test_a_pronoun_of_a_second_verb_stands_before_that_verb() -> None:
    fetch = Clause("pick_up_guest", 4, {"S": SHE, "O": THEM}, Tense.PAST)
    assert french(fetch) == "Elle est allée les chercher."


def test_whom_something_is_from_and_whom_one_apologizes_to() -> None:
    got = Clause("get_from", 4, {"S": SHE, "O": REPORT, "T": THEM}, Tense.PAST)
    assert french(got) == "Elle a reçu le rapport de leur part."
    none = replace(got, negative=True, roles={"S": SHE, "O": replace(REPORT, det="a"), "T": CUSTOMER})
    assert french(none) == "Elle n'a pas reçu de rapport de la part du client."
    sorry = Clause("apologize", 4, {"S": SHE, "O": I}, Tense.PAST)
    assert french(sorry) == "Elle s'est excusée auprès de moi."


def test_a_comparative_of_its_own() -> None:
    other = Phrase(5, noun="document:invoice", det="this")
    newer = Predicate(8, "new", degree="more", than=other)
    invoice = Phrase(2, noun="document:invoice", det="the")
    assert french(Clause("be", 4, {"S": invoice}, predicate=newer)) == (
        "La facture est plus récente que cette facture."
    )
    fit = Predicate(8, "healthy (person)", degree="more", than=Phrase(5, noun="family:brother", det="i"))
    assert french(Clause("be", 4, {"S": SHE}, predicate=fit)) == ("Elle est en meilleure santé que mon frère.")


def test_what_one_makes_happen_does_not_agree() -> None:
    potato = Phrase(6, pronoun="it", noun="food:potato")
    assert french(Clause("boil", 4, {"S": SHE, "O": potato}, Tense.PAST)) == "Elle l'a fait bouillir."


def test_at_once_stands_after_the_verb() -> None:
    quickly = replace(SEND, adverbials=(Adverbial(8, "immediately"),))
    assert french(quickly) == "Elle a envoyé immédiatement le rapport au client."
    care = replace(SEND, adverbials=(Adverbial(8, "carefully"),))
    assert french(care) == "Elle a envoyé le rapport au client avec soin."


def test_what_is_delicious_is_not_very_delicious() -> None:
    soup = Phrase(2, noun="food:soup", det="the")
    very = Predicate(8, "delicious", degree="very")
    assert french(Clause("be", 4, {"S": soup}, predicate=very)) == "La soupe est délicieuse."


def test_the_reason_against_a_thing_that_there_is_not() -> None:
    first = replace(replace(SEND, frame="write"), negative=True, roles={"S": SHE, "O": replace(REPORT, det="a")})
    it = Phrase(6, pronoun="it", noun="document:report", refers="O")
    boring = Clause("be", 7, {"S": it}, Tense.PAST, predicate=Predicate(8, adjective="boring"))
    assert french(Utterance(first, "because", boring)) == (
        "Elle n'a pas écrit de rapport parce que c'était ennuyeux."
    )


def test_a_thing_after_de_or_sur_is_en_or_y() -> None:
    it = Phrase(2, pronoun="it", noun="document:report")
    talk = Clause("discuss_with", 9, {"S": SHE, "O": it, "T": Phrase(5, pronoun="he")}, Tense.PAST)
    assert french(talk) == "Elle en a discuté avec lui."
    assert french(Clause("work_on", 9, {"S": SHE, "O": it}, Tense.HABIT)) == "Elle y travaille."


def test_either_is_said_before_the_preposition() -> None:
    report, boss = Phrase(2, noun="document:report", det="the"), Phrase(3, noun="document:contract", det="the")
    which = Phrase(7, members=(report, boss), link="either")
    assert french(Clause("work_on", 9, {"S": SHE, "O": which}, Tense.FUTURE)) == (
        "Elle travaillera soit sur le rapport, soit sur le contrat."
    )


def test_what_somebody_said_is_in_the_past() -> None:
    need = Clause("need", 9, {"S": SHE, "O": Phrase(2, noun="document:report", det="the")}, embedded=True)
    boss = Phrase(3, noun="person:boss", det="the")
    assert french(Utterance(need, "say", speaker=boss)) == "Le chef a dit qu'elle avait besoin du rapport."
    can = Clause("smile", 9, {"S": SHE}, modal=Modal.CAN, embedded=True)
    assert french(Utterance(can, "say", speaker=boss)) == "Le chef a dit qu'elle pouvait sourire."


def test_what_has_to_be_over_first() -> None:
    boss = Phrase(3, noun="person:boss", det="the")
    arrive = Clause("come_office", 9, {"S": SHE})
    call = Clause("call", 8, {"S": boss, "O": Phrase(4, pronoun="i")}, Tense.FUTURE)
    assert french(Utterance(call, "when", arrive)) == "Quand elle sera venue au bureau, le chef m'appellera."


def test_one_has_hunger_and_waits_with_impatience() -> None:
    hungry = Predicate(5, adjective="hungry", degree="very")
    assert french(Clause("be", 9, {"S": SHE}, Tense.PAST, predicate=hungry)) == "Elle avait très faim."
    seminar = Phrase(2, noun="event:seminar", det="the")
    assert french(Clause("look_forward", 9, {"S": SHE, "O": seminar}, Tense.NOW)) == (
        "Elle attend le séminaire avec impatience."
    )


def test_let_us_is_an_imperative() -> None:
    lets = replace(SEND, roles={**SEND.roles, "S": WE}, mood=Mood.LETS)
    assert french(lets) == "Envoyons le rapport au client."
    assert french(replace(lets, negative=True)) == "N'envoyons pas le rapport au client."
    assert french(replace(lets, roles={"S": WE, "O": IT, "T": THEM})) == "Envoyons-le-leur."


def test_an_amount_after_de_and_a() -> None:
    sauce = Phrase(2, noun="ingredient:soy sauce", det="bare")
    assert french(Clause("need_thing", 9, {"S": THEM, "O": sauce})) == "Ils ont besoin de sauce soja."
    assert french(Clause("allergic", 9, {"S": THEM, "O": sauce})) == "Ils sont allergiques à la sauce soja."


def test_as_soon_as_and_although() -> None:
    call = Clause("call", 4, {"S": Phrase(1, pronoun="you"), "O": THEM}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    send = replace(SEND, mark=8, tense=Tense.HABIT)
    assert french(Utterance(call, "when", send)) == (
        "Appelez-les dès qu'elle aura envoyé le rapport au client, s'il vous plaît."
    )
    tired = Clause("be", 7, {"S": SHE}, Tense.PAST, predicate=Predicate(8, adjective="tired"))
    assert french(Utterance(SEND, "although", tired)) == (
        "Elle a envoyé le rapport au client alors qu'elle était fatiguée."
    )
    assert french(Utterance(send, "although", replace(tired, tense=Tense.HABIT))) == (
        "Elle envoie le rapport au client même si elle est fatiguée."
    )


def test_a_day_is_not_confirmed_with_cest_fait() -> None:
    yesterday = (Adverbial(7, "yesterday"),)
    asked = replace(SEND, mood=Mood.YES_NO, adverbials=yesterday)
    assert french(Utterance(asked, "yes", SEND)).endswith(" ? Oui.")
    assert french(Utterance(replace(asked, adverbials=()), "yes", SEND)).endswith(" ? Oui, c'est fait.")


def test_what_has_to_be_over_first_is_une_fois_que() -> None:
    repair = Clause(
        "repair", 6, {"S": Phrase(7, pronoun="they"), "O": Phrase(5, noun="device:computer", det="the")}
    )
    test = Clause("test", 9, {"S": YOU, "O": Phrase(2, noun="device:printer", det="the")}, Tense.FUTURE)
    assert french(Utterance(replace(test, mood=Mood.IMPERATIVE), "after", repair)) == (
        "Testez l'imprimante une fois qu'ils auront réparé l'ordinateur, s'il vous plaît."
    )
    must = replace(test, roles=test.roles | {"S": Phrase(1, pronoun="i")}, tense=Tense.HABIT, modal=Modal.MUST)
    assert "je devrai tester" in french(Utterance(must, "after", repair)).lower()
    assert french(must) == "Je dois tester l'imprimante."


def test_a_proposal_is_rejected_a_cake_made_and_a_soup_good() -> None:
    boss = Phrase(1, noun="person:boss", det="the")
    proposal = Phrase(2, noun="plan:proposal", det="the")
    assert french(Clause("reject", 9, {"S": boss, "O": proposal})) == "Le chef rejette la proposition."
    cake = Phrase(2, noun="food:cake", det="a")
    assert french(Clause("bake", 9, {"S": boss, "O": cake}, Tense.PAST)) == "Le chef a fait un gâteau."
    soup = Phrase(2, noun="food:soup", det="the")
    assert french(Clause("taste_good", 9, {"S": soup})) == "La soupe est bonne."
    minutes = Phrase(2, noun="document:meeting minutes", det="the")
    assert french(Clause("read", 9, {"S": boss, "O": minutes})) == "Le chef lit le compte rendu de réunion."
    query = Phrase(2, noun="code:query", det="the")
    faulty = Clause("be", 9, {"S": query}, predicate=Predicate(5, adjective="faulty"))
    assert french(faulty) == "La requête est erronée."
