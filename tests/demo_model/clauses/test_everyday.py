"""How long something has gone on or lasted, why and what for it is done, at what time of day."""

from __future__ import annotations

from dataclasses import replace

from demo_model import LANGUAGES
from demo_model.clauses.compose import Composer
from demo_model.clauses.languages.clock import clock
from demo_model.clauses.lexicon import load_words
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.grammar import Value
from demo_model.sampling import Sampler, Split
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SHE, read, texts

I = Phrase(1, pronoun="i")  # noqa: E741
WE = Phrase(1, pronoun="we")
HE = Phrase(1, pronoun="he")
YOU = Phrase(1, pronoun="you")
WEATHER = Phrase(1, pronoun="weather")
HOURS = Adverbial(15, "for {duration} (until now)", values=(("duration", (2, "hours")),))
MONDAY = Adverbial(15, "since {weekday}", values=(("weekday", "Monday"),))


def ongoing(frame: str, time: Adverbial = HOURS, mark: int = 8, **roles: Phrase) -> dict[str, str]:
    return texts(Clause(frame, mark, roles, Tense.ONGOING, adverbials=(time,)))


def at(hour: int, minute: int, casual: bool = True) -> dict[str, str]:
    return {language: clock(hour, minute, language, casual=casual).replace("*", "") for language in LANGUAGES}


def test_the_time_of_day_in_words() -> None:
    assert at(15, 0) == {
        "en": "three",
        "ja": "3時",
        "es": "las tres",
        "de": "drei",
        "fr": "trois heures",
        "zh": "三点",
    }
    assert at(13, 0, casual=False)["de"] == "ein Uhr"
    assert at(13, 0)["de"] == "eins"
    assert at(9, 30) == {
        "en": "half past nine",
        "ja": "9時半",
        "es": "las nueve y media",
        "de": "halb zehn",
        "fr": "neuf heures et demie",
        "zh": "九点半",
    }
    assert at(12, 30)["de"] == "halb eins"
    assert at(12, 30)["fr"] == "midi et demi"
    assert at(12, 45) == {
        "en": "quarter to one",
        "ja": "12時45分",
        "es": "la una menos cuarto",
        "de": "Viertel vor eins",
        "fr": "une heure moins le quart",
        "zh": "十二点三刻",
    }


def test_a_chinese_weekday_and_an_hour_are_told_apart() -> None:
    values: tuple[tuple[str, Value], ...] = (("weekday", "Tuesday"), ("clock", (12, 0)))
    noon = Adverbial(15, "on {weekday} at {clock}", values=values)
    called = Clause("call", 8, {"S": SHE, "O": CUSTOMER}, Tense.FUTURE, adverbials=(noon,))
    assert texts(called)["zh"] == "她星期二中午十二点要给客户打电话。"
    values = (("weekday", "Tuesday"), ("clock", (15, 0)))
    assert (
        texts(replace(called, adverbials=(replace(noon, values=values),)))["zh"] == "她星期二三点要给客户打电话。"
    )


def test_by_five() -> None:
    five = Adverbial(15, "by {clock}", values=(("clock", (17, 0)),))
    please = Clause("call", 8, {"S": YOU, "O": CUSTOMER}, Tense.FUTURE, mood=Mood.IMPERATIVE, adverbials=(five,))
    assert texts(please) == {
        "en": "Please call the customer by five.",
        "ja": "5時までにお客様に電話してください。",
        "es": "Por favor, llame al cliente antes de las cinco.",
        "de": "Bitte rufen Sie den Kunden bis fünf an.",
        "fr": "Appelez le client avant cinq heures, s'il vous plaît.",
        "zh": "请五点之前给客户打个电话。",
    }


def test_from_nine_to_five() -> None:
    hours: tuple[tuple[str, Value], ...] = (("clock", (8, 0)), ("until", (17, 0)))
    office = Adverbial(14, "from {clock} to {until}", values=hours)
    assert texts(Clause("work_home", 8, {"S": SHE}, Tense.FUTURE, adverbials=(office,))) == {
        "en": "She'll work from home from eight to five.",
        "ja": "彼女は8時から5時まで在宅勤務をします。",
        "es": "Ella trabajará desde casa de ocho a cinco.",
        "de": "Sie arbeitet von acht bis fünf von zu Hause.",
        "fr": "Elle travaillera à domicile de huit heures à dix-sept heures.",
        "zh": "她从八点到五点要在家工作。",
    }


def test_what_has_gone_on_for_hours() -> None:
    assert ongoing("wait_for", S=WE, O=Phrase(6, pronoun="she")) == {
        "en": "We've been waiting for her for two hours.",
        "ja": "私たちは2時間前から彼女を待っています。",
        "es": "Llevamos dos horas esperándola.",
        "de": "Wir warten seit zwei Stunden auf sie.",
        "fr": "Nous l'attendons depuis deux heures.",
        "zh": "我们已经等了她两个小时了。",
    }
    assert ongoing("rain", S=WEATHER) == {
        "en": "It's been raining for two hours.",
        "ja": "2時間前から雨が降っています。",
        "es": "Lleva dos horas lloviendo.",
        "de": "Es regnet seit zwei Stunden.",
        "fr": "Il pleut depuis deux heures.",
        "zh": "已经下了两个小时雨了。",
    }
    assert ongoing("read", S=SHE, O=REPORT)["zh"] == "她看报告已经看了两个小时了。"
    assert ongoing("be_in_meeting", S=SHE)["zh"] == "她已经开了两个小时会了。"


def test_a_state_that_has_lasted_is_told_in_the_present_or_the_english_perfect() -> None:
    years = Adverbial(15, "for three years (until now)")
    assert ongoing("know_person", years, S=I, O=CUSTOMER) == {
        "en": "I've known the customer for three years.",
        "ja": "3年前からお客様を知っています。",
        "es": "Conozco al cliente desde hace tres años.",
        "de": "Ich kenne den Kunden seit drei Jahren.",
        "fr": "Je connais le client depuis trois ans.",
        "zh": "我已经认识客户三年了。",
    }
    ill = Clause("be", 8, {"S": SHE}, Tense.ONGOING, predicate=Predicate(7, adjective="ill"), adverbials=(HOURS,))
    assert texts(ill)["es"] == "Lleva dos horas enferma."
    assert texts(ill)["en"] == "She's been ill for two hours."
    assert texts(ill)["zh"] == "她已经病了两个小时了。"


def test_since_when() -> None:
    assert ongoing("learn", MONDAY, S=SHE, O=Phrase(6, noun="skill:French", det="bare")) == {
        "en": "She's been learning French since Monday.",
        "ja": "彼女は月曜日からフランス語を習っています。",
        "es": "Lleva aprendiendo francés desde el lunes.",
        "de": "Sie lernt seit Montag Französisch.",
        "fr": "Elle apprend le français depuis lundi.",
        "zh": "她从星期一起就一直在学法语。",
    }
    what = Predicate(7, adjective="ill")
    ill = texts(Clause("be", 11, {"S": SHE}, Tense.ONGOING, predicate=what, adverbials=(MONDAY,)))
    assert ill["es"] == "Está enferma desde el lunes."
    assert ill["de"] == "Sie ist schon seit Montag krank."
    assert ill["zh"] == "她从星期一起就病了。"


def test_how_long_one_has_been_doing_it() -> None:
    asked = Clause("wait_for", 8, {"S": YOU, "O": CUSTOMER}, Tense.ONGOING, mood=Mood.WH, asked="how_long")
    assert texts(asked) == {
        "en": "How long have you been waiting for the customer?",
        "ja": "どのくらい前からお客様を待っていますか？",
        "es": "¿Cuánto tiempo lleva usted esperando al cliente?",
        "de": "Wie lange warten Sie schon auf den Kunden?",
        "fr": "Depuis combien de temps est-ce que vous attendez le client ?",
        "zh": "您等了客户多久了？",
    }
    known = texts(replace(asked, frame="know_person"))
    assert known["es"] == "¿Desde cuándo conoce usted al cliente?"
    assert known["ja"] == "どのくらい前からお客様を知っていますか？"
    assert known["zh"] == "您认识客户多久了？"


def test_a_state_that_is_over() -> None:
    length = Adverbial(15, "for {duration}", values=(("duration", (2, "hours")),))
    server = Phrase(6, noun="device:server", det="the")
    assert texts(Clause("be_down", 8, {"S": server}, Tense.PAST, adverbials=(length,))) == {
        "en": "The server was down for two hours.",
        "ja": "サーバーは2時間ダウンしていました。",
        "es": "El servidor estuvo fuera de servicio durante dos horas.",
        "de": "Der Server war zwei Stunden lang nicht erreichbar.",
        "fr": "Le serveur a été en panne pendant deux heures.",
        "zh": "服务器瘫痪了两个小时。",
    }
    week = Adverbial(15, "for a week")
    ill = Clause("be", 8, {"S": SHE}, Tense.PAST, predicate=Predicate(7, adjective="ill"), adverbials=(week,))
    assert texts(ill)["es"] == "Ella estuvo enferma durante una semana."
    assert texts(ill)["fr"] == "Elle a été malade pendant une semaine."
    assert texts(ill)["zh"] == "她病了一个星期。"
    shop = Phrase(6, noun="amenity:bakery", det="the")
    closed = replace(ill, roles={"S": shop}, predicate=Predicate(7, adjective="closed"))
    assert texts(closed)["zh"] == "面包店关了一个星期门。"


def test_a_reason_that_is_no_clause() -> None:
    noise = Adverbial(14, "because of the noise")
    could_not = Clause("sleep", 8, {"S": I}, Tense.PAST, True, Modal.CAN, adverbials=(replace(noise, mark=13),))
    assert texts(could_not) == {
        "en": "I couldn't sleep because of the noise.",
        "ja": "うるさくて寝られませんでした。",
        "es": "No pude dormir por el ruido.",
        "de": "Ich konnte wegen des Lärms nicht schlafen.",
        "fr": "Je n'ai pas pu dormir à cause du bruit.",
        "zh": "我因为太吵没睡着。",
    }
    due = replace(could_not, adverbials=(replace(noise, mark=15),))
    assert texts(due)["en"] == "I couldn't sleep due to the noise."
    first = texts(
        Clause(
            "close",
            8,
            {"S": SHE, "O": Phrase(6, noun="opening:window", det="the")},
            Tense.PAST,
            adverbials=(noise,),
        )
    )
    assert first["en"] == "Because of the noise, she closed the window."
    assert first["es"] == "Debido al ruido, cerró la ventana."
    assert first["de"] == "Wegen des Lärms hat sie das Fenster geschlossen."
    assert first["zh"] == "因为太吵，她关上了窗户。"


def test_what_for() -> None:
    cancels = Clause("cancel", 9, {"S": replace(SHE, mark=8), "O": Phrase(7, noun="event:meeting", det="the")})
    assert texts(Utterance(Clause("call", 8, {"S": SHE, "O": CUSTOMER}, Tense.PAST), "to", cancels)) == {
        "en": "She called the customer to cancel the meeting.",
        "ja": "彼女は会議をキャンセルするために、お客様に電話しました。",
        "es": "Llamó al cliente para cancelar la reunión.",
        "de": "Sie hat den Kunden angerufen, um die Besprechung abzusagen.",
        "fr": "Elle a appelé le client pour annuler la réunion.",
        "zh": "为了取消会议，她给客户打了电话。",
    }
    shop = Phrase(6, noun="amenity:supermarket", det="the")
    buys = Clause("buy_food", 9, {"S": replace(SHE, mark=8), "O": Phrase(7, noun="staple:bread", det="bare")})
    goes = texts(Utterance(Clause("go_to_shop", 8, {"S": SHE, "T": shop}, Tense.PAST), "to", buys))
    assert goes["ja"] == "彼女はパンを買いにスーパーに行きました。"
    assert goes["zh"] == "她去超市买面包了。"


def test_so_that_somebody_else_can() -> None:
    it = Phrase(7, pronoun="it", noun="document:report", refers="O")
    checks = Clause("check", 9, {"S": Phrase(8, pronoun="he"), "O": it}, Tense.PAST, modal=Modal.CAN)
    sent = Clause("send", 8, {"S": I, "O": REPORT, "T": Phrase(3, pronoun="he")}, Tense.PAST)
    assert texts(Utterance(sent, "so that", checks)) == {
        "en": "I sent him the report so that he could check it.",
        "ja": "彼が確認できるように、報告書を送りました。",
        "es": "Le envié el informe para que lo pudiera revisar.",
        "de": "Ich habe ihm den Bericht geschickt, damit er ihn überprüfen konnte.",
        "fr": "Je lui ai envoyé le rapport pour qu'il puisse le vérifier.",
        "zh": "我把报告发给了他，好让他检查一下。",
    }
    later = texts(Utterance(replace(sent, tense=Tense.FUTURE), "so that", replace(checks, tense=Tense.HABIT)))
    assert later["en"] == "I'll send him the report so that he can check it."
    assert later["es"] == "Le enviaré el informe para que lo pueda revisar."


def test_that_is_why() -> None:
    postponed = Clause("postpone", 8, {"S": WE, "O": Phrase(7, noun="event:meeting", det="the")}, Tense.PAST)
    assert texts(Utterance(postponed, "that's why")) == {
        "en": "That's why we postponed the meeting.",
        "ja": "それで、私たちは会議を延期したんです。",
        "es": "Por eso aplazamos la reunión.",
        "de": "Deshalb haben wir die Besprechung verschoben.",
        "fr": "C'est pour cela que nous avons reporté la réunion.",
        "zh": "所以我们推迟了会议。",
    }
    ill = Clause("have_fever", 8, {"S": HE}, Tense.PAST)
    assert texts(Utterance(ill, "that's why", postponed))["de"] == (
        "Er hatte Fieber. Deshalb haben wir die Besprechung verschoben."
    )


def test_what_is_settled_is_no_progressive_elsewhere() -> None:
    tomorrow = Adverbial(15, "tomorrow at {clock}", values=(("clock", (15, 0)),))
    assert texts(Clause("meet", 8, {"S": I, "O": CUSTOMER}, Tense.PLANNED, adverbials=(tomorrow,))) == {
        "en": "I'm meeting the customer tomorrow at three.",
        "ja": "明日の3時にお客様に会います。",
        "es": "Me reúno con el cliente mañana a las tres.",
        "de": "Ich treffe den Kunden morgen um drei.",
        "fr": "Je rencontre le client demain à trois heures.",
        "zh": "我明天三点要和客户见面。",
    }


def test_every_fourth_future_is_going_to() -> None:
    calls = Clause("call", 7, {"S": I, "O": CUSTOMER}, Tense.FUTURE)
    assert texts(calls) == {
        "en": "I'm going to call the customer.",
        "ja": "お客様に電話します。",
        "es": "Voy a llamar al cliente.",
        "de": "Ich werde den Kunden anrufen.",
        "fr": "Je vais appeler le client.",
        "zh": "我会给客户打电话。",
    }
    assert texts(replace(calls, roles={"S": WE, "O": CUSTOMER}))["es"] == "Llamaremos al cliente."
    so_is_she = replace(calls, roles={"S": SHE}, embedded=True)
    assert texts(Utterance(calls, "too", so_is_she))["en"].endswith("So is she.")


def test_what_was_over_when_something_else_was_done() -> None:
    mention = Clause("mention", 8, {"S": WE}, Tense.PRIOR, gap="O")
    said = texts(replace(read(SHE), roles={"S": SHE, "O": replace(REPORT, relative=mention)}))
    assert said["en"] == "She read the report that we had mentioned."
    assert said["es"] == "Leyó el informe que habíamos mencionado."
    assert said["de"] == "Sie hat den Bericht gelesen, den wir erwähnt hatten."
    assert said["fr"] == "Elle a lu le rapport que nous avions mentionné."


def test_when_the_weather_was_so() -> None:
    hot = Clause("weather_hot", 8, {"S": WEATHER}, Tense.PAST)
    assert texts(Utterance(read(SHE), "when", hot)) == {
        "en": "When it was very hot, she read the report.",
        "ja": "とても暑かったので、彼女は報告書を読みました。",
        "es": "Como hacía mucho calor, leyó el informe.",
        "de": "Als es sehr heiß war, hat sie den Bericht gelesen.",
        "fr": "Comme il faisait très chaud, elle a lu le rapport.",
        "zh": "天气热的时候她看了报告。",
    }


def test_german_verbs_in_el() -> None:
    assert texts(Clause("play_chess", 8, {"S": I}))["de"] == "Ich spiele Schach."
    figures = Phrase(6, noun="data:figure", det="the", plural=True)
    assert texts(Clause("collect", 8, {"S": I, "O": figures}))["de"] == "Ich sammle die Zahlen."


def test_nobody_shows_himself_the_invoice_that_is_meant() -> None:
    """The invoice I had shown me."""
    composer = Composer(Sampler(3, Split.ANY))
    invoice = load_words().nouns["document:invoice"]
    for _ in range(400):
        clause = composer._relative(Phrase(90, noun=invoice.key, det="the"), invoice, "pay", True)
        assert clause is not None
        people = [np.pronoun for np in clause.roles.values() if np.pronoun]
        assert len(people) == len(set(people))
        assert not {"i", "we"} <= set(people)
