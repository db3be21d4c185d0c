"""Composed sentences: deterministic, complete in six languages, and right where a rule can tell."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from demo_model import LANGUAGES
from demo_model.clauses.__main__ import main
from demo_model.clauses.checks import composed, problems, sentence_problems, word_problems
from demo_model.clauses.compose import Composer
from demo_model.clauses.languages import german_forms
from demo_model.clauses.linearize import sentences
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.generate import Kind, PairSource
from demo_model.prefixes import cut_target
from demo_model.sampling import Sampler, Split, is_test_name
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SHE, send, texts

I = Phrase(1, pronoun="i")  # noqa: E741


def test_a_statement_about_the_past_in_six_languages() -> None:
    assert send(tense=Tense.PAST) == {
        "en": "She sent the report to the customer.",
        "ja": "彼女はお客様に報告書を送りました。",
        "es": "Le envió el informe al cliente.",
        "de": "Sie hat dem Kunden den Bericht geschickt.",
        "fr": "Elle a envoyé le rapport au client.",
        "zh": "她把报告发给了客户。",
    }


def test_what_has_not_been_done_yet() -> None:
    assert send(tense=Tense.DONE, negative=True) == {
        "en": "She hasn't sent the report to the customer yet.",
        "ja": "彼女はまだお客様に報告書を送っていません。",
        "es": "Todavía no le ha enviado el informe al cliente.",
        "de": "Sie hat dem Kunden den Bericht noch nicht geschickt.",
        "fr": "Elle n'a pas encore envoyé le rapport au client.",
        "zh": "她还没把报告发给客户。",
    }


@pytest.mark.parametrize(
    ("modal", "german", "japanese"),
    [
        (Modal.CAN, "Sie kann dem Kunden den Bericht schicken.", "報告書を送れます。"),
        (Modal.MUST, "Sie muss dem Kunden den Bericht schicken.", "報告書を送らなければなりません。"),
        (Modal.WANT, "Sie möchte dem Kunden den Bericht schicken.", "報告書を送りたいと思っています。"),
        (Modal.SHOULD, "Sie sollte dem Kunden den Bericht schicken.", "報告書を送った方がいいです。"),
    ],
)
def test_modal_verbs(modal: Modal, german: str, japanese: str) -> None:
    said = send(modal=modal)
    assert (said["de"], said["ja"]) == (german, "彼女はお客様に" + japanese)


def test_a_question_with_a_question_word() -> None:
    without = {"S": SHE, "T": CUSTOMER}
    said = texts(Utterance(Clause("send", 4, without, Tense.FUTURE, mood=Mood.WH, asked="O")))
    assert said["en"] == "What will she send to the customer?"
    assert said["de"] == "Was wird sie dem Kunden schicken?"
    assert said["fr"] == "Qu'est-ce qu'elle enverra au client ?"
    assert said["zh"] == "她要给客户发什么？"


def test_a_separable_verb_is_split_in_a_main_clause_and_whole_in_a_subordinate_one() -> None:
    cancel = Clause("cancel", 4, {"S": SHE, "O": Phrase(2, noun="event:meeting", det="the")})
    assert texts(Utterance(cancel))["de"] == "Sie sagt die Besprechung ab."
    late = Clause("be", 6, {"S": I}, predicate=Predicate(7, adjective="busy"))
    assert (
        texts(Utterance(late, "because", cancel))["de"] == "Ich bin beschäftigt, weil sie die Besprechung absagt."
    )


def test_a_relative_clause() -> None:
    lost = Clause("send", 5, {"S": SHE, "T": CUSTOMER}, Tense.PAST, gap="O")
    invoice = Phrase(2, noun="document:invoice", det="the", relative=lost)
    said = texts(Utterance(Clause("pay", 4, {"S": I, "O": invoice}, Tense.PAST)))
    assert said["de"] == "Ich habe die Rechnung bezahlt, die sie dem Kunden geschickt hat."
    assert said["fr"] == "J'ai payé la facture qu'elle a envoyée au client."
    assert said["ja"] == "彼女がお客様に送った請求書を支払いました。"
    assert said["zh"] == "我支付了她给客户发的那张发票。"


def test_a_comparison() -> None:
    other = Phrase(3, noun="document:contract", det="this")
    said = texts(
        Utterance(Clause("be", 4, {"S": REPORT}, predicate=Predicate(5, "important", degree="more", than=other)))
    )
    assert said["en"] == "The report is more important than this contract."
    assert said["ja"] == "その報告書はこの契約書より重要です。"
    assert said["zh"] == "这份报告比这份合同更重要。"


def test_a_time_comes_where_each_language_has_it() -> None:
    said = send(tense=Tense.PAST, adverbials=(Adverbial(5, "yesterday"),))
    assert said["de"] == "Sie hat dem Kunden gestern den Bericht geschickt."
    assert said["zh"] == "她昨天把报告发给了客户。"
    assert said["ja"] == "彼女は昨日お客様に報告書を送りました。"


def test_the_words_are_complete() -> None:
    assert list(word_problems()) == []


def test_no_sentence_breaks_a_rule() -> None:
    assert problems(seed=7, count=600) == []


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I saw a apple."),
        ("de", "Ich weiß, dass sie hat den Bericht geschickt von."),
        ("fr", "Elle dit que il vient."),
        ("es", "El informe de el cliente."),
        ("ja", "私 は行きます。"),
        ("zh", "我买了了书。"),
        ("zh", "她向向我们道歉的客户介绍了报告。"),
        ("es", "Leyó la acta de la reunión."),
        ("en", "Two  spaces."),
    ],
)
def test_the_checks_find_a_mistake(language: str, text: str) -> None:
    assert list(sentence_problems(language, text))


def test_a_seed_gives_the_same_sentences_and_another_seed_others() -> None:
    assert list(composed(1, 40)) == list(composed(1, 40))
    assert list(composed(1, 40)) != list(composed(2, 40))


def test_most_sentences_are_as_long_as_speech_and_every_kind_occurs() -> None:
    said = list(composed(3, 1200))
    lengths = [len(text["en"].split()) for _, text in said]
    assert sum(4 <= length <= 12 for length in lengths) > 0.7 * len(said)
    firsts = [utterance.first for utterance, _ in said]
    assert {clause.mood for clause in firsts} == set(Mood)
    assert {clause.modal for clause in firsts} == set(Modal)
    assert {clause.tense for clause in firsts} == set(Tense) - {Tense.PRIOR}
    links = Counter(utterance.link for utterance, _ in said)
    assert {
        "because",
        "if",
        "when",
        "although",
        "before",
        "after",
        "and",
        "but",
        "so",
        "think",
        "say",
        "whether",
    } <= set(links)


def test_a_word_belongs_to_the_same_constituent_in_every_language() -> None:
    composer = Composer(Sampler(5, Split.ANY))
    for _ in range(200):
        said = sentences(composer.draw())
        for sentence in said.values():
            for span in sentence.spans:
                assert 0 <= span.start < span.end <= len(sentence.text)
                if span.slot.kind == "name":
                    assert str(span.value) in sentence.text[span.start : span.end]


def test_pairs_are_composed_only_if_asked_for() -> None:
    plain = list(itertools.islice(PairSource(1), 50))
    assert plain == list(itertools.islice(PairSource(1, composed=0.0), 50))
    english = {text["en"] for _, text in composed(1, 1)}
    assert english
    for kind in (Kind.FULL, Kind.RECOGNISED, Kind.PREFIX, Kind.JOINED, Kind.OPENED):
        pairs = PairSource(2, composed=1.0).draw([("en", "de"), ("ja", "en")], kind)
        assert len(pairs) == 2
        assert all(pair.source for pair in pairs)


def test_names_of_the_test_are_never_composed_for_training() -> None:
    composer = Composer(Sampler(0, Split.TRAINING))
    for _ in range(300):
        for kind, name in composer.draw().values.values():
            assert kind != "name" or not is_test_name(str(name).split()[0])


def test_the_command_prints_the_languages_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "3", "--seed", "4", "--lang", "de"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("de  ") for line in lines)
    assert set(LANGUAGES) >= {"de"}


@pytest.mark.parametrize(
    ("word", "gender", "many"),
    [
        ("Handbuch", "n", "Handbücher"),
        ("Roadmap", "f", "Roadmaps"),
        ("Rechnung", "f", "Rechnungen"),
        ("Moderator", "m", "Moderatoren"),
        ("Formular", "n", "Formulare"),
    ],
)
def test_german_plurals_by_rule(word: str, gender: str, many: str) -> None:
    assert german_forms.plural(word, gender, "") == many


def test_french_contracts_and_elides_before_the_noun() -> None:
    guest = Phrase(3, noun="person:guest", det="the")
    list_ = Phrase(2, noun="document:list", det="the", of=guest)
    said = texts(Utterance(Clause("send", 4, {"S": SHE, "O": list_, "T": CUSTOMER}, Tense.PAST)))
    assert said["fr"] == "Elle a envoyé la liste de l'invité au client."


def test_a_spanish_clitic_is_part_of_the_infinitive_in_a_request() -> None:
    asked = Clause("call", 4, {"S": Phrase(0, pronoun="you"), "O": SHE}, mood=Mood.REQUEST)
    assert texts(Utterance(asked))["es"] == "¿Podría llamarla?"


def test_a_prefix_does_not_wait_for_what_its_language_leaves_out() -> None:
    asked = Clause("call", 4, {"S": Phrase(1, pronoun="you"), "O": CUSTOMER}, Tense.FUTURE, mood=Mood.YES_NO)
    said = sentences(Utterance(asked))
    assert cut_target(said["ja"], len("お客様に電話"), said["en"], "en").startswith("will you")


def test_the_same_thing_is_a_pronoun_the_second_time() -> None:
    """The gender is that of the noun in each language; French me la, but la lui."""
    first = Clause("write", 4, {"S": SHE, "O": REPORT}, Tense.PAST)
    it = Phrase(5, pronoun="it", noun="document:report", refers="O")
    again = Clause("send", 6, {"S": SHE, "O": it, "T": CUSTOMER}, Tense.PAST)
    said = texts(Utterance(first, "and", again))
    assert said["en"] == "She wrote the report and sent it to the customer."
    assert said["de"] == "Sie hat den Bericht geschrieben und dem Kunden geschickt."
    assert said["es"] == "Escribió el informe y se lo envió al cliente."
    letter = Phrase(5, pronoun="it", noun="document:invoice", refers="O")
    to_me = Clause("send", 6, {"S": SHE, "O": letter, "T": I}, Tense.PAST)
    assert texts(Utterance(to_me))["fr"] == "Elle me l'a envoyée."


def test_the_weather_has_no_subject_where_none_is_said() -> None:
    rain = Clause("rain", 2, {"S": Phrase(1, pronoun="weather")}, Tense.PAST)
    assert texts(Utterance(rain, opener="statement:by the way")) == {
        "en": "By the way, it rained.",
        "ja": "ちなみに、雨が降りました。",
        "es": "Por cierto, llovió.",
        "de": "Übrigens hat es geregnet.",
        "fr": "Au fait, il a plu.",
        "zh": "对了，下雨了。",
    }


def test_what_may_happen() -> None:
    said = send(modal=Modal.MIGHT, negative=True)
    assert said["en"] == "She might not send the report to the customer."
    assert said["ja"] == "彼女はお客様に報告書を送らないかもしれません。"
    assert said["de"] == "Sie schickt dem Kunden den Bericht vielleicht nicht."
    assert said["zh"] == "她可能不会把报告发给客户。"


def test_what_one_likes_is_all_of_its_kind() -> None:
    coffee = Phrase(2, noun="drink:coffee", det="bare")
    said = texts(Utterance(Clause("like", 4, {"S": SHE, "O": coffee}, negative=True)))
    assert (said["fr"], said["es"]) == ("Elle n'aime pas le café.", "A ella no le gusta el café.")


def test_a_german_verb_is_not_inflected_as_another_one_in_it() -> None:
    prepare = Clause("prepare", 4, {"S": SHE, "O": REPORT}, Tense.PAST)
    assert texts(Utterance(prepare))["de"] == "Sie hat den Bericht vorbereitet."


@pytest.mark.parametrize(
    ("frame", "german", "french"),
    [
        ("have_time", "Sie hat keine Zeit.", "Elle n'a pas le temps."),
        ("need_help", "Sie braucht keine Hilfe.", "Elle n'a pas besoin d'aide."),
        ("have_fever", "Sie hat kein Fieber.", "Elle n'a pas de fièvre."),
    ],
)
def test_what_one_does_not_have(frame: str, german: str, french: str) -> None:
    said = texts(Utterance(Clause(frame, 4, {"S": SHE}, negative=True)))
    assert (said["de"], said["fr"]) == (german, french)


def test_an_english_possessor_is_a_word_of_its_own_and_a_french_elision_is_not() -> None:
    evening = Phrase(2, noun="event:parents' evening", det="the")
    said = texts(Utterance(Clause("postpone", 4, {"S": I, "O": evening}, Tense.PAST)))
    assert said["en"] == "I postponed the parents' evening."
    assert said["fr"].startswith("J'ai ")
