"""Japanese: topics, reasons, whose it is, favours, what one can and should do."""

from __future__ import annotations

from dataclasses import replace

from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SEND, SHE, send, texts

I = Phrase(1, pronoun="i")  # noqa: E741


def test_japanese_names_what_a_reason_is_about() -> None:
    """The clause with the reason comes first, so it says what is expensive, and the other one leaves it out."""
    buy = Clause("buy", 4, {"S": SHE, "O": Phrase(2, noun="clothes:coat", det="the")}, Tense.PAST, negative=True)
    it = Phrase(5, pronoun="it", noun="clothes:coat", refers="O")
    dear = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="expensive"))
    assert texts(Utterance(buy, "because", dear))["ja"] == "高いコートだったので、彼女は買いませんでした。"
    assert texts(Utterance(buy, "although", dear))["ja"] == "そのコートは高かったですが、彼女は買いませんでした。"
    rest = Clause("rest", 4, {"S": SHE}, Tense.PAST)
    tired = Clause("be", 6, {"S": replace(SHE, mark=5, refers="S")}, predicate=Predicate(7, adjective="tired"))
    tired = replace(tired, tense=Tense.PAST)
    assert texts(Utterance(rest, "because", tired))["ja"] == "彼女は疲れていたので、休憩しました。"


def test_japanese_joins_what_the_same_person_does() -> None:
    first = Clause("write", 4, {"S": SHE, "O": REPORT}, Tense.PAST)
    it = Phrase(5, pronoun="it", noun="document:report", refers="O")
    again = Clause("send", 6, {"S": SHE, "O": it, "T": CUSTOMER}, Tense.PAST)
    assert texts(Utterance(first, "and", again))["ja"] == "彼女は報告書を書いて、顧客に送りました。"
    cold = Clause("catch_cold", 6, {"S": SHE})
    stay = Clause("stay_home", 4, {"S": SHE}, Tense.FUTURE)
    assert texts(Utterance(stay, "if", cold))["ja"] == "彼女は風邪を引いたら家にいます。"


def test_japanese_says_for_whom_a_favour_is_done_and_whose_family_it_is() -> None:
    to_me = {"S": SHE, "O": REPORT, "T": I}
    assert send(roles=to_me, tense=Tense.PAST)["ja"] == "彼女は私に報告書を送ってくれました。"
    mother = Phrase(2, noun="family:mother", det="i")
    assert texts(Utterance(Clause("call_family", 4, {"S": I, "O": mother}, Tense.PAST)))["ja"].startswith("私は母")
    assert "私の母" in texts(Utterance(Clause("call_family", 4, {"S": SHE, "O": mother}, Tense.PAST)))["ja"]
    yours = Clause("rest", 4, {"S": replace(mother, det="you")}, Tense.PAST, mood=Mood.YES_NO)
    assert texts(Utterance(yours))["ja"] == "お母さんは休憩しましたか？"
    vests = Phrase(2, noun="document:report", det="num", plural=True, count=3)
    assert texts(Utterance(Clause("read", 4, {"S": I, "O": vests}, Tense.PAST)))["ja"] == (
        "私は報告書を3件読みました。"
    )


def test_japanese_has_one_topic_for_what_one_needs_and_does() -> None:
    need = Clause("need_rest", 6, {"S": SHE})
    leave = Clause("take_day_off", 4, {"S": SHE}, Tense.FUTURE)
    assert texts(Utterance(need))["ja"].startswith("彼女には")
    assert texts(Utterance(leave, "if", need))["ja"].startswith("彼女は")


def test_japanese_leaves_out_whose_it_is_and_says_what_one_can_and_should_do() -> None:
    own = SEND | {"O": replace(REPORT, det="she")}
    assert send(roles=own, tense=Tense.PAST)["ja"] == "彼女は顧客に報告書を送りました。"
    his = SEND | {"O": replace(REPORT, det="he")}
    assert "彼の報告書" in send(roles=his, tense=Tense.PAST)["ja"]
    uncle = Clause("call_family", 4, {"S": Phrase(1, name="Eli"), "O": Phrase(2, noun="family:uncle", det="he")})
    assert texts(Utterance(replace(uncle, tense=Tense.PAST)))["ja"] == "Eliさんは叔父に電話しました。"
    asked = send(modal=Modal.SHOULD, mood=Mood.WH, asked="when")
    assert asked["ja"] == "彼女はいつ顧客に報告書を送ればいいですか？"
    assert send(tense=Tense.PAST, mood=Mood.WH, asked="why")["ja"] == "彼女はなぜ顧客に報告書を送ったのですか？"


def test_a_japanese_reason_stands_before_the_thing_and_the_main_clause_names_it_again() -> None:
    app = Phrase(2, noun="product:calendar app", det="a")
    it = Phrase(5, pronoun="it", noun=app.noun, refers="O")
    reliable = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="reliable"))
    chose = Clause("choose", 4, {"S": SHE, "O": app}, Tense.PAST)
    assert texts(Utterance(chose, "because", reliable))["ja"] == (
        "信頼できるカレンダーアプリだったので、彼女はそれを選びました。"
    )


def test_japanese_says_after_what_happened_but_when_of_states_and_the_weather() -> None:
    photos = Clause("take_picture", 4, {"S": SHE}, Tense.PAST)
    snow = Clause("snow", 6, {"S": Phrase(5, pronoun="weather")}, Tense.PAST)
    assert texts(Utterance(photos, "when", snow))["ja"] == "雪が降ったとき、彼女は写真を撮りました。"
    crash = Clause("crash", 6, {"S": Phrase(5, noun="product:app", det="the")}, Tense.PAST)
    assert texts(Utterance(photos, "when", crash))["ja"] == "アプリがクラッシュした後、彼女は写真を撮りました。"
    fever = Clause("have_fever", 6, {"S": SHE}, Tense.PAST)
    assert texts(Utterance(photos, "when", fever))["ja"] == "彼女は熱があるとき、写真を撮りました。"
