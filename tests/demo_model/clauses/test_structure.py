"""Before and after: order, tense and mood of two clauses, and how long something lasts."""

from __future__ import annotations

from dataclasses import replace

from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Tense, Utterance
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SHE, read, texts

ME = Phrase(5, pronoun="i")
HE = Phrase(5, pronoun="he")
IT = Phrase(6, pronoun="it", noun="document:report", refers="O")


def call(who: Phrase, mark: int = 13, tense: Tense = Tense.PAST) -> Clause:
    return Clause("call", mark, {"S": who, "O": CUSTOMER}, tense)


def test_after_of_the_same_subject() -> None:
    assert texts(Utterance(call(SHE), "after", read(SHE))) == {
        "en": "She called the customer after reading the report.",
        "ja": "彼女は報告書を読んでから、お客様に電話しました。",
        "es": "Llamó al cliente después de leer el informe.",
        "de": "Sie hat den Kunden angerufen, nachdem sie den Bericht gelesen hatte.",
        "fr": "Elle a appelé le client après avoir lu le rapport.",
        "zh": "她看完报告之后，给客户打了电话。",
    }


def test_after_of_another_subject_may_begin_the_sentence() -> None:
    assert texts(Utterance(call(HE, 14), "after", replace(read(SHE), mark=10))) == {
        "en": "After she had read the report, he called the customer.",
        "ja": "彼女が報告書を読んだ後、彼はお客様に電話しました。",
        "es": "Después de que ella leyera el informe, él llamó al cliente.",
        "de": "Nachdem sie den Bericht gelesen hatte, hat er den Kunden angerufen.",
        "fr": "Après qu'elle a lu le rapport, il a appelé le client.",
        "zh": "她看完报告之后，他给客户打了电话。",
    }


def test_before_something_that_will_be() -> None:
    must = Clause("read", 13, {"S": ME, "O": REPORT}, modal=Modal.MUST)
    sends = Clause("send", 9, {"S": ME, "O": IT, "T": CUSTOMER})
    assert texts(Utterance(must, "before", sends)) == {
        "en": "I have to read the report before sending it to the customer.",
        "ja": "お客様に報告書を送る前に、読まなければなりません。",
        "es": "Tengo que leer el informe antes de enviárselo al cliente.",
        "de": "Ich muss den Bericht lesen, bevor ich ihn dem Kunden schicke.",
        "fr": "Je dois lire le rapport avant de l'envoyer au client.",
        "zh": "我把报告发给客户之前，得先看一遍。",
    }
    others = replace(sends, roles={**sends.roles, "S": HE}, mark=10)
    assert texts(Utterance(must, "before", others)) == {
        "en": "I have to read the report before he sends it to the customer.",
        "ja": "彼がお客様に報告書を送る前に、読まなければなりません。",
        "es": "Tengo que leer el informe antes de que se lo envíe al cliente.",
        "de": "Ich muss den Bericht lesen, bevor er ihn dem Kunden schickt.",
        "fr": "Je dois lire le rapport avant qu'il l'envoie au client.",
        "zh": "他把报告发给客户之前，我得看一遍。",
    }


def test_before_something_that_was() -> None:
    called = replace(call(HE), mark=10)
    said = texts(Utterance(read(SHE), "before", called))
    assert said["es"] == "Ella leyó el informe antes de que él llamara al cliente."
    assert said["fr"] == "Elle a lu le rapport avant qu'il appelle le client."
    assert said["de"] == "Sie hat den Bericht gelesen, bevor er den Kunden angerufen hat."
    assert said["zh"] == "他给客户打电话之前，她看了报告。"


def test_one_is_asked_to_do_something_first() -> None:
    you = Phrase(5, pronoun="you")
    please = Clause("read", 13, {"S": you, "O": REPORT}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    said = texts(Utterance(please, "before", Clause("sign", 10, {"S": you, "O": IT})))
    assert said == {
        "en": "Please read the report before you sign it.",
        "ja": "報告書に署名する前に、読んでください。",
        "es": "Por favor, lea el informe antes de firmarlo.",
        "de": "Bitte lesen Sie den Bericht, bevor Sie ihn unterschreiben.",
        "fr": "Lisez le rapport avant de le signer, s'il vous plaît.",
        "zh": "签署报告之前，请先看一下。",
    }


def test_what_lasted() -> None:
    lasted = Adverbial(14, "for {duration}", values=(("duration", (2, "hours")),))
    assert texts(Clause("watch_tv", 10, {"S": SHE}, Tense.PAST, adverbials=(lasted,))) == {
        "en": "She watched television for 2 hours.",
        "ja": "彼女は2時間テレビを見ました。",
        "es": "Vio la televisión durante 2 horas.",
        "de": "Sie hat 2 Stunden lang ferngesehen.",
        "fr": "Elle a regardé la télé pendant 2 heures.",
        "zh": "她看了2个小时电视。",
    }
    waited = texts(Clause("wait_for", 10, {"S": SHE, "O": CUSTOMER}, Tense.PAST, adverbials=(lasted,)))
    assert waited["de"] == "Sie hat 2 Stunden lang auf den Kunden gewartet."
    assert waited["zh"] == "她等了客户2个小时。"


def test_a_small_duration_is_a_word_in_half_of_the_sentences() -> None:
    def ago(mark: int, count: int) -> dict[str, str]:
        time = Adverbial(mark, "{duration} ago", values=(("duration", (count, "hours")),))
        return texts(read(SHE, adverbials=(time,)))

    assert ago(15, 3) == {
        "en": "She read the report three hours ago.",
        "ja": "彼女は3時間前に報告書を読みました。",
        "es": "Leyó el informe hace tres horas.",
        "de": "Sie hat den Bericht vor drei Stunden gelesen.",
        "fr": "Elle a lu le rapport il y a trois heures.",
        "zh": "她三个小时前看了报告。",
    }
    assert ago(16, 3)["en"] == "She read the report 3 hours ago."
    assert ago(15, 15)["de"] == "Sie hat den Bericht vor 15 Stunden gelesen."
