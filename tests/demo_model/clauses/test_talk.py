"""Questions about which and how many, things together, and short answers: agreement, particles, counters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import REPORT, SHE, texts

YOU = Phrase(1, pronoun="you")
INVOICE = Phrase(3, noun="document:invoice", det="the")
CUSTOMER = Phrase(4, noun="person:customer", det="the")
BANK = Phrase(5, noun="group:bank", det="the")


def asked(frame: str, role: str, wanted: Phrase, **roles: Phrase) -> dict[str, str]:
    return texts(Clause(frame, 9, {**roles, role: wanted}, Tense.PAST, mood=Mood.WH, asked=role))


def together(link: str, *members: Phrase) -> Phrase:
    return Phrase(8, members=members, link=link, plural=link in ("and", "both", "etc"))


def test_which_comes_first_with_its_preposition() -> None:
    assert asked("send", "T", replace(CUSTOMER, det="which"), S=YOU, O=REPORT) == {
        "en": "Which customer did you send the report to?",
        "ja": "どのお客様に報告書を送りましたか？",
        "es": "¿A qué cliente le envió usted el informe?",
        "de": "Welchem Kunden haben Sie den Bericht geschickt?",
        "fr": "À quel client est-ce que vous avez envoyé le rapport ?",
        "zh": "您把报告发给了哪位客户？",
    }


def test_who_is_asked_for_with_its_preposition() -> None:
    said = asked("talk_to", "O", Phrase(2, pronoun="who"), S=YOU)
    assert said["en"] == "Who did you talk to?"
    assert said["de"] == "Mit wem haben Sie gesprochen?"
    assert said["es"] == "¿Con quién habló usted?"
    assert said["ja"] == "誰と話しましたか？"


def test_a_french_participle_agrees_with_what_is_asked_for() -> None:
    which = asked("pay", "O", replace(INVOICE, det="which", plural=True), S=YOU)
    assert which["fr"] == "Quelles factures est-ce que vous avez payées ?"
    kind = asked("buy", "O", Phrase(2, noun="motor:car", det="what_kind"), S=YOU)
    assert kind["fr"] == "Quel genre de voiture est-ce que vous avez acheté ?"
    assert kind["de"] == "Was für ein Auto haben Sie gekauft?"


def test_how_many_is_counted_as_each_language_counts() -> None:
    said = asked("read", "O", replace(REPORT, det="how_many", plural=True), S=YOU)
    assert said["ja"] == "報告書を何件読みましたか？"
    assert said["zh"] == "您看了几份报告？"
    assert said["es"] == "¿Cuántos informes leyó usted?"
    shoes = asked("buy", "O", Phrase(2, noun="clothes:shoe", det="how_many", plural=True), S=YOU)
    assert (shoes["ja"], shoes["zh"]) == ("靴を何足買いましたか？", "您买了几只鞋？")
    whom = asked("help", "O", replace(CUSTOMER, det="how_many", plural=True), S=YOU)
    assert whom["ja"] == "お客様を何人サポートしましたか？"
    assert whom["de"] == "Wie vielen Kunden haben Sie geholfen?"
    who = asked("help", "S", replace(CUSTOMER, det="how_many", plural=True), O=SHE)
    assert who["en"] == "How many customers helped her?"
    assert who["ja"] == "何人のお客様が彼女を手伝いましたか？"
    assert who["zh"] == "有多少客户帮了她？"


def test_whose_is_a_clause_of_its_own_in_spanish_and_french() -> None:
    said = asked("read", "O", replace(INVOICE, det="whose"), S=SHE)
    assert said["de"] == "Wessen Rechnung hat sie gelesen?"
    assert said["es"] == "¿De quién es la factura que ella leyó?"
    assert said["fr"] == "De qui est la facture qu'elle a lue ?"


def test_an_indirect_question_keeps_the_order_of_a_statement() -> None:
    inner = Clause("read", 9, {"S": SHE, "O": replace(REPORT, det="which")}, Tense.PAST, mood=Mood.WH, asked="O")
    said = texts(Utterance(inner, "whether", speaker=Phrase(7, pronoun="i")))
    assert said["en"] == "I don't know which report she read."
    assert said["de"] == "Ich weiß nicht, welchen Bericht sie gelesen hat."
    assert said["es"] == "No sé qué informe leyó."


def test_how_long_and_how_often() -> None:
    long = texts(Clause("wait_for", 9, {"S": YOU, "O": CUSTOMER}, Tense.PAST, mood=Mood.WH, asked="how_long"))
    assert (long["ja"], long["zh"]) == ("どのくらいお客様を待ちましたか？", "您等客户等了多久？")
    often = texts(Clause("call", 9, {"S": YOU, "O": CUSTOMER}, mood=Mood.WH, asked="how_often"))
    assert often["zh"] == "您多久给客户打一次电话？"
    assert often["es"] == "¿Con qué frecuencia llama usted al cliente?"


def test_members_of_an_object_each_have_their_preposition_and_their_case() -> None:
    said = texts(Clause("send", 9, {"S": SHE, "O": REPORT, "T": together("and", CUSTOMER, BANK)}, Tense.PAST))
    assert said["en"] == "She sent the report to the customer and the bank."
    assert said["es"] == "Les envió el informe al cliente y al banco."
    assert said["fr"] == "Elle a envoyé le rapport au client et à la banque."
    assert said["de"] == "Sie hat dem Kunden und der Bank den Bericht geschickt."
    assert said["ja"] == "彼女はお客様と銀行に報告書を送りました。"
    other = texts(Clause("discuss_with", 9, {"S": SHE, "O": REPORT, "T": together("and", CUSTOMER, BANK)}))
    assert other["zh"] == "她和客户以及银行讨论报告。"


def test_members_of_a_subject_agree_with_the_verb() -> None:
    i = Phrase(7, pronoun="i")
    said = texts(Clause("pay", 9, {"S": together("and", CUSTOMER, i), "O": INVOICE}, Tense.FUTURE))
    assert said["es"] == "El cliente y yo pagaremos la factura."
    assert said["fr"] == "Le client et moi, nous payerons la facture."
    assert said["de"] == "Der Kunde und ich werden die Rechnung bezahlen."
    assert said["zh"] == "我和客户会支付发票。"


@pytest.mark.parametrize(
    ("link", "names", "spanish"),
    [
        ("and", ("Ana", "Ingrid"), "Ana e Ingrid"),
        ("and", ("Ana", "Hiroshi"), "Ana e Hiroshi"),
        ("and", ("Ana", "Yasmin"), "Ana y Yasmin"),
        ("or", ("Ana", "Oscar"), "Ana u Oscar"),
        ("or", ("Ana", "Horacio"), "Ana u Horacio"),
        ("and", ("Ana", "Luis", "Eva"), "Ana, Luis y Eva"),
    ],
)
def test_spanish_says_e_before_i_and_u_before_o(link: str, names: tuple[str, ...], spanish: str) -> None:
    members = [Phrase(index, name=name) for index, name in enumerate(names)]
    said = texts(Clause("pay", 9, {"S": together(link, *members), "O": INVOICE}, Tense.FUTURE))
    assert said["es"].startswith(spanish + " paga")


def test_both() -> None:
    subject = texts(Clause("pay", 9, {"S": together("both", CUSTOMER, BANK), "O": INVOICE}, Tense.PAST))
    assert subject["fr"] == "Le client et la banque ont tous les deux payé la facture."
    assert subject["ja"] == "お客様も銀行も請求書を支払いました。"
    assert subject["zh"] == "客户和银行都支付了发票。"
    women = together("both", BANK, Phrase(6, noun="group:company", det="the"))
    assert texts(Clause("pay", 9, {"S": women, "O": INVOICE}, Tense.PAST))["fr"].startswith(
        "La banque et l'entreprise ont toutes les deux payé"
    )
    both = texts(Clause("read", 9, {"S": SHE, "O": together("both", REPORT, INVOICE)}, Tense.PAST))
    assert both["de"] == "Sie hat sowohl den Bericht als auch die Rechnung gelesen."
    assert both["ja"] == "彼女は報告書も請求書も読みました。"
    assert both["zh"] == "报告和发票，她都看了。"


def test_what_is_named_among_others_and_what_is_one_of_two() -> None:
    bread, cheese = (Phrase(2, noun="staple:bread", det="bare"), Phrase(3, noun="staple:cheese", det="bare"))
    said = texts(Clause("buy_food", 9, {"S": SHE, "O": together("etc", bread, cheese)}, Tense.PAST))
    assert said["en"] == "She bought bread, cheese and so on."
    assert said["ja"] == "彼女はパンやチーズなどを買いました。"
    assert said["fr"] == "Elle a acheté du pain, du fromage et ainsi de suite."
    one = texts(Clause("read", 9, {"S": together("either", CUSTOMER, BANK), "O": REPORT}, Tense.PAST))
    assert one["ja"] == "お客様か銀行のどちらかが報告書を読みました。"
    assert one["de"] == "Entweder der Kunde oder die Bank hat den Bericht gelesen."
    came = texts(Clause("come_office", 9, {"S": together("either", CUSTOMER, BANK)}, Tense.PAST))
    assert came["fr"] == "Soit le client, soit la banque est venue au bureau."


def test_two_things_that_are_alike_agree_with_the_adjective() -> None:
    new = Predicate(6, adjective="new")
    said = texts(Clause("be", 9, {"S": together("and", INVOICE, BANK)}, predicate=new))
    assert said["es"] == "La factura y el banco son nuevos."
    assert said["fr"] == "La facture et la banque sont nouvelles."


@pytest.mark.parametrize(
    ("link", "changes", "english", "german", "japanese", "chinese"),
    [
        ("yes", {}, "Yes, we did.", "Ja, haben wir.", "はい、送りました。", "发了。"),
        ("no", {}, "No, we didn't.", "Nein, haben wir nicht.", "いいえ、送りませんでした。", "没有。"),
        ("not_yet", {}, "No, not yet.", "Nein, noch nicht.", "いいえ、まだです。", "还没有。"),
        (
            "no",
            {"modal": Modal.CAN, "tense": Tense.HABIT},
            "No, we can't.",
            "Nein, können wir nicht.",
            "いいえ、送れません。",
            "不能。",
        ),
    ],
)
def test_a_short_answer_follows_its_question(
    link: str, changes: dict[str, object], english: str, german: str, japanese: str, chinese: str
) -> None:
    roles = {"S": YOU, "O": REPORT, "T": CUSTOMER}
    question = replace(Clause("send", 9, roles, Tense.PAST, mood=Mood.YES_NO), **changes)  # type: ignore[arg-type]
    we = replace(question, roles={"S": Phrase(7, pronoun="we")}, mood=Mood.STATEMENT, negative=link != "yes")
    said = texts(Utterance(question, link, we))
    assert said["en"].endswith(f"? {english}")
    assert said["de"].endswith(f"? {german}")
    assert said["ja"].endswith(f"？{japanese}")
    assert said["zh"].endswith(f"？{chinese}")


def test_one_agrees_with_the_auxiliary_of_what_was_said() -> None:
    first = Clause("read", 9, {"S": SHE, "O": REPORT}, Tense.DONE, negative=True)
    we = replace(first, roles={"S": Phrase(7, pronoun="we")})
    said = texts(Utterance(first, "neither", we))
    assert said["en"] == "She hasn't read the report yet. Neither have we."
    assert said["es"] == "Todavía no ha leído el informe. Nosotros tampoco."
    assert said["fr"] == "Elle n'a pas encore lu le rapport. Nous non plus."
    assert said["zh"] == "她还没看报告。我们也没有。"
    need = Clause("need", 9, {"S": SHE, "O": REPORT}, negative=True)
    needed = texts(Utterance(need, "neither", replace(need, roles={"S": Phrase(7, pronoun="we")})))
    assert needed["zh"] == "她不需要报告。我们也不需要。"
