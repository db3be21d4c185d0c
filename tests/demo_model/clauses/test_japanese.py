"""Japanese: topics, reasons, whose it is, favours, what one can and should do."""

from __future__ import annotations

from dataclasses import replace

from demo_model.clauses.languages.japanese_phrases import adjective
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import CUSTOMER, REPORT, SEND, SHE, send, texts

I = Phrase(1, pronoun="i")  # noqa: E741


def test_japanese_names_what_a_reason_is_about() -> None:
    """The clause with the reason comes first, so it says what is expensive, and the other one leaves it out."""
    buy = Clause("buy", 4, {"S": SHE, "O": Phrase(2, noun="clothes:coat", det="the")}, Tense.PAST, negative=True)
    it = Phrase(5, pronoun="it", noun="clothes:coat", refers="O")
    dear = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="expensive"))
    assert texts(Utterance(buy, "because", dear))["ja"] == "コートが高かったので、彼女は買いませんでした。"
    assert (
        texts(Utterance(buy, "although", dear))["ja"] == "そのコートは高かったのですが、彼女は買いませんでした。"
    )
    some = replace(buy, roles=buy.roles | {"O": Phrase(2, noun="clothes:coat", det="a")}, negative=False)
    assert texts(Utterance(some, "although", dear))["ja"] == "高かったのですが、彼女はコートを買いました。"
    film = Phrase(2, noun="show:film", det="a")
    sad = replace(dear, roles={"S": replace(it, noun=film.noun)}, predicate=Predicate(7, adjective="sad"))
    watched = replace(some, frame="watch", roles={"S": SHE, "O": film})
    assert texts(Utterance(watched, "although", sad))["ja"] == "映画は悲しかったのですが、彼女は見ました。"
    rest = Clause("rest", 4, {"S": SHE}, Tense.PAST)
    tired = Clause("be", 6, {"S": replace(SHE, mark=5, refers="S")}, predicate=Predicate(7, adjective="tired"))
    tired = replace(tired, tense=Tense.PAST)
    assert texts(Utterance(rest, "because", tired))["ja"] == "彼女は疲れていたので、休憩しました。"


def test_japanese_joins_what_the_same_person_does() -> None:
    first = Clause("write", 4, {"S": SHE, "O": REPORT}, Tense.PAST)
    it = Phrase(5, pronoun="it", noun="document:report", refers="O")
    again = Clause("send", 6, {"S": SHE, "O": it, "T": CUSTOMER}, Tense.PAST)
    assert texts(Utterance(first, "and", again))["ja"] == "彼女は報告書を書いて、お客様に送りました。"
    cold = Clause("catch_cold", 6, {"S": SHE})
    stay = Clause("stay_home", 4, {"S": SHE}, Tense.FUTURE)
    assert texts(Utterance(stay, "if", cold))["ja"] == "彼女は風邪を引いたら、家にいます。"


def test_japanese_says_for_whom_a_favour_is_done_and_whose_family_it_is() -> None:
    to_me = {"S": SHE, "O": REPORT, "T": I}
    assert send(roles=to_me, tense=Tense.PAST)["ja"] == "彼女は私に報告書を送ってくれました。"
    mother = Phrase(2, noun="family:mother", det="i")
    assert (
        texts(Utterance(Clause("call_family", 4, {"S": I, "O": mother}, Tense.PAST)))["ja"] == "母に電話しました。"
    )
    assert "私の母" in texts(Utterance(Clause("call_family", 4, {"S": SHE, "O": mother}, Tense.PAST)))["ja"]
    yours = Clause("rest", 4, {"S": replace(mother, det="you")}, Tense.PAST, mood=Mood.YES_NO)
    assert texts(Utterance(yours))["ja"] == "お母さんは休憩しましたか？"
    vests = Phrase(2, noun="document:report", det="num", plural=True, count=3)
    assert texts(Utterance(Clause("read", 4, {"S": I, "O": vests}, Tense.PAST)))["ja"] == (
        "報告書を3件読みました。"
    )


def test_japanese_says_what_is_not_done_for_the_speaker_and_whom_a_relative_clause_is_about() -> None:
    call_back = Clause("call_back", 4, {"S": SHE, "O": I}, Tense.PAST, negative=True)
    assert texts(call_back)["ja"] == "彼女は私に折り返し電話してくれませんでした。"
    assert texts(replace(call_back, tense=Tense.DONE))["ja"].endswith("電話してくれていません。")
    waited = Clause("wait_for", 4, {"S": SHE, "O": replace(I, pronoun="we")}, Tense.PAST)
    assert texts(waited)["ja"] == "彼女は私たちを待ってくれました。"
    asked = replace(waited, roles=waited.roles | {"S": Phrase(1, pronoun="you")}, mood=Mood.REQUEST)
    assert texts(asked)["ja"] == "待っていただけますか？"
    invited = Clause("invite", 4, {"S": SHE, "O": Phrase(5, pronoun="you")}, Tense.PAST, mood=Mood.YES_NO)
    assert texts(invited)["ja"] == "彼女は招待してくれましたか？"
    inform = Clause("inform", 4, {"S": Phrase(1, pronoun="you"), "O": I}, mood=Mood.IMPERATIVE)
    assert texts(inform)["ja"] == "お知らせください。"
    assert texts(replace(inform, roles=inform.roles | {"O": CUSTOMER}))["ja"] == "お客様に連絡してください。"
    helped = Clause("help", 6, {"O": Phrase(7, pronoun="you")}, Tense.PAST, gap="S", embedded=True)
    colleague = Phrase(2, noun="person:colleague", det="the", relative=helped)
    rest = Clause("rest", 4, {"S": colleague}, Tense.PAST)
    assert texts(rest)["ja"] == "あなたを手伝った同僚は休憩しました。"


def test_japanese_tells_apart_what_is_mentioned_planned_and_asked() -> None:
    mentioned = Clause("mention", 6, {"S": SHE}, Tense.PAST, gap="O", embedded=True)
    problem = Phrase(2, noun="problem:problem", det="the", relative=mentioned)
    assert texts(Clause("solve", 4, {"S": I, "O": problem}, Tense.PAST))["ja"] == (
        "彼女が言っていた問題を解決しました。"
    )
    book = Phrase(2, noun="text:novel", det="the")
    lend = Clause("lend", 4, {"S": I, "O": book, "T": SHE}, Tense.PLANNED, adverbials=(Adverbial(5, "tomorrow"),))
    assert texts(lend)["ja"].endswith("小説を貸します。")
    question = Clause("have_question", 4, {"S": SHE})
    assert texts(question)["ja"] == "彼女は質問があります。"
    nice = Clause("weather_nice", 4, {"S": Phrase(1, pronoun="weather")}, mood=Mood.YES_NO)
    assert texts(nice)["ja"] == "天気はいいですか？"
    soon = Clause("call", 4, {"S": SHE, "O": CUSTOMER}, Tense.FUTURE, adverbials=(Adverbial(5, "soon"),))
    assert texts(soon)["ja"].startswith("彼女は近いうちに")
    assert texts(Utterance(soon, "hope", speaker=I))["ja"].startswith("彼女が早く")


def test_japanese_says_until_when_and_not_how_long() -> None:
    by_then = Clause("call", 4, {"S": I, "O": CUSTOMER}, Tense.FUTURE, adverbials=(Adverbial(5, "by tomorrow"),))
    assert texts(by_then)["ja"] == "明日までにお客様に電話します。"


def test_japanese_says_what_others_want() -> None:
    wish = Clause("rest", 4, {"S": SHE}, modal=Modal.WANT)
    assert texts(wish)["ja"] == "彼女は休憩したいと思っています。"
    assert texts(replace(wish, negative=True))["ja"] == "彼女は休憩したいと思っていません。"
    assert texts(Utterance(replace(wish, embedded=True), "say", speaker=SHE))["ja"] == (
        "彼女は休憩したいと言っていました。"
    )
    assert "休憩したがっている" in texts(Utterance(replace(wish, embedded=True), "say", speaker=I))["ja"]
    who = Clause("read", 4, {"O": REPORT}, Tense.FUTURE, mood=Mood.WH, asked="S")
    who = replace(who, adverbials=(Adverbial(5, "tomorrow"),))
    assert "明日は誰が" in texts(who)["ja"]
    assert "明日は" not in texts(Utterance(who, "whether", speaker=SHE))["ja"]


def test_japanese_says_what_others_are_going_to_do_on_some_day() -> None:
    rest = Clause("rest", 4, {"S": SHE}, Tense.FUTURE, adverbials=(Adverbial(5, "tomorrow"),))
    assert texts(rest)["ja"] == "彼女は明日、休憩する予定です。"
    assert texts(replace(rest, adverbials=(Adverbial(5, "soon"),)))["ja"] == "彼女は近いうちに休憩します。"
    assert texts(replace(rest, roles={"S": I}))["ja"] == "明日、休憩します。"
    assert texts(replace(rest, negative=True))["ja"] == "彼女は明日、休憩しません。"
    assert texts(replace(rest, frame="win", roles={"S": SHE}))["ja"].endswith("ます。")
    weather = {"S": Phrase(1, pronoun="weather")}
    assert texts(replace(rest, frame="hail", roles=weather))["ja"].endswith("ひょうが降ります。")


def test_japanese_has_one_topic_for_what_one_needs_and_does() -> None:
    need = Clause("need_rest", 6, {"S": SHE})
    leave = Clause("take_day_off", 4, {"S": SHE}, Tense.FUTURE)
    assert texts(Utterance(need))["ja"].startswith("彼女には")
    assert texts(Utterance(leave, "if", need))["ja"].startswith("彼女は")
    called = Clause("call", 4, {"S": I, "O": CUSTOMER}, Tense.FUTURE)
    assert texts(Utterance(called, "if", need))["ja"].startswith("もし彼女に少し休息が必要だったら、")


def test_japanese_leaves_out_whose_it_is_and_says_what_one_can_and_should_do() -> None:
    own = SEND | {"O": replace(REPORT, det="she")}
    assert send(roles=own, tense=Tense.PAST)["ja"] == "彼女はお客様に報告書を送りました。"
    his = SEND | {"O": replace(REPORT, det="he")}
    assert "彼の報告書" in send(roles=his, tense=Tense.PAST)["ja"]
    uncle = Clause("call_family", 4, {"S": Phrase(1, name="Eli"), "O": Phrase(2, noun="family:uncle", det="he")})
    assert texts(Utterance(replace(uncle, tense=Tense.PAST)))["ja"] == "Eliさんは叔父に電話しました。"
    hers = Clause("call", 4, {"S": CUSTOMER, "O": Phrase(5, noun="family:mother", det="she")}, Tense.PAST)
    assert texts(hers)["ja"] == "お客様は彼女のお母さんに電話しました。"
    of_eli = Phrase(5, noun="document:report", det="the", of=Phrase(6, name="Eli"))
    clear = Clause("be", 4, {"S": of_eli}, predicate=Predicate(7, adjective="clear"))
    assert texts(clear)["ja"] == "Eliさんの報告書はわかりやすいです。"
    asked = send(modal=Modal.SHOULD, mood=Mood.WH, asked="when")
    assert asked["ja"] == "彼女はいつお客様に報告書を送ればいいですか？"
    assert send(tense=Tense.PAST, mood=Mood.WH, asked="why")["ja"] == "彼女はなぜお客様に報告書を送ったんですか？"


def test_a_japanese_reason_stands_before_the_thing_and_the_main_clause_leaves_it_out() -> None:
    app = Phrase(2, noun="product:calendar app", det="a")
    it = Phrase(5, pronoun="it", noun=app.noun, refers="O")
    reliable = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="reliable"))
    chose = Clause("choose", 4, {"S": SHE, "O": app}, Tense.PAST)
    assert texts(Utterance(chose, "because", reliable))["ja"] == (
        "信頼できるという理由で、彼女はそのカレンダーアプリを選びました。"
    )
    cheap = replace(reliable, predicate=Predicate(7, adjective="cheap"))
    boss = replace(chose, roles=chose.roles | {"S": Phrase(1, noun="person:boss", det="the")})
    assert (
        texts(Utterance(boss, "because", cheap))["ja"] == "安かったので、上司はそのカレンダーアプリを選びました。"
    )
    mine = replace(chose, roles=chose.roles | {"S": I})
    assert texts(Utterance(mine, "because", cheap))["ja"] == "安かったので、そのカレンダーアプリを選びました。"
    kitten = replace(app, noun="animal:kitten")
    cute = replace(reliable, roles={"S": replace(it, noun=kitten.noun)}, predicate=Predicate(7, adjective="cute"))
    adopted = replace(chose, frame="adopt", roles={"S": SHE, "O": kitten})
    assert texts(Utterance(adopted, "because", cute))["ja"] == "かわいい子猫だったので、彼女は引き取りました。"


def test_japanese_says_the_reason_before_who_acts_and_what_of_it_is_so() -> None:
    rival = Phrase(1, noun="group:competitor", det="we")
    budget = Phrase(2, noun="money:budget", det="the")
    it = Phrase(5, pronoun="it", noun=budget.noun, refers="O")
    low = Clause("be", 6, {"S": it}, predicate=Predicate(7, adjective="low"))
    more = Clause("increase", 4, {"S": rival, "O": budget}, Tense.FUTURE)
    more = replace(more, adverbials=(Adverbial(8, "next year"),))
    assert texts(Utterance(more, "because", low))["ja"] == "予算が少ないので、競合他社は来年増やす予定です。"
    plan = Phrase(2, noun="plan:strategy", det="the")
    risky = replace(low, roles={"S": replace(it, noun=plan.noun)}, predicate=Predicate(7, adjective="risky"))
    against = Clause("reject", 4, {"S": SHE, "O": plan}, Tense.PAST)
    risky = replace(risky, tense=Tense.PAST)
    assert texts(Utterance(against, "because", risky))["ja"] == "リスクが高かったので、彼女は戦略を却下しました。"
    alone = replace(risky, roles={"S": plan}, predicate=Predicate(7, adjective="risky", degree="very"))
    assert texts(alone)["ja"] == "その戦略はリスクがとても高かったです。"


def test_japanese_names_the_thing_in_what_is_done_so_that_one_can() -> None:
    it = Phrase(5, pronoun="it", noun=REPORT.noun, refers="O")
    sent = Clause("forward", 4, {"S": Phrase(1, pronoun="you"), "O": REPORT, "T": I}, mood=Mood.IMPERATIVE)
    can = Clause("print", 6, {"S": replace(I, mark=7), "O": it}, modal=Modal.CAN)
    assert texts(Utterance(sent, "so that", can))["ja"] == "印刷できるように、報告書を転送してください。"
    hers = replace(can, roles={"S": replace(SHE, mark=7), "O": it})
    printed = Clause("print", 4, {"S": Phrase(1, pronoun="he"), "O": REPORT}, Tense.PAST)
    assert texts(Utterance(printed, "so that", replace(hers, frame="read")))["ja"] == (
        "彼女が読めるように、彼は報告書を印刷しました。"
    )


def test_japanese_answers_of_ones_own_act_and_of_plans() -> None:
    asked = Clause("read", 4, {"S": Phrase(1, pronoun="you"), "O": REPORT}, Tense.PAST, mood=Mood.YES_NO)
    assert texts(Utterance(asked, answer="probably"))["ja"] == "報告書を読みましたか？たぶん読んだと思います。"
    assert texts(Utterance(asked, answer="I'm not sure"))["ja"].endswith("？はっきり覚えていません。")
    assert texts(Utterance(asked, answer="of course"))["ja"].endswith("？もちろんです。")
    will = replace(asked, tense=Tense.FUTURE)
    assert (
        texts(Utterance(will, answer="I don't think so"))["ja"] == "報告書を読む予定ですか？読まないと思います。"
    )
    she = replace(will, roles={"S": SHE, "O": REPORT})
    assert (
        texts(Utterance(she, answer="probably"))["ja"] == "彼女は報告書を読む予定ですか？たぶんそうだと思います。"
    )
    no = Clause("read", 5, {"S": I}, Tense.FUTURE, negative=True)
    assert texts(Utterance(will, "no", no))["ja"].endswith("？いいえ、その予定はありません。")
    yes = replace(no, roles={"S": SHE}, negative=False)
    assert texts(Utterance(she, "yes", yes))["ja"].endswith("？はい、その予定です。")
    opened = Clause("open_window", 4, {"S": SHE, "O": Phrase(2, noun="opening:window", det="the")}, Tense.FUTURE)
    assert texts(replace(opened, mood=Mood.YES_NO))["ja"] == "彼女は窓を開けますか？"
    to_me = Clause("send", 4, {"S": SHE, "O": REPORT, "T": I}, Tense.FUTURE, mood=Mood.YES_NO)
    assert texts(to_me)["ja"].endswith("くれますか？")


def test_japanese_thanks_for_what_was_done_for_one() -> None:
    found = Clause("find_problem", 6, {"S": SHE, "O": Phrase(2, noun="problem:bug", det="the")}, Tense.PAST)
    thanked = Clause("thank", 4, {"S": I, "O": replace(SHE, mark=5)}, Tense.PAST)
    assert texts(Utterance(found, "so", thanked))["ja"] == "彼女がバグを見つけてくれたので、お礼を言いました。"
    boss = replace(thanked, roles={"S": replace(SHE, mark=7), "O": Phrase(5, noun="person:boss", det="the")})
    assert "見つけたので" in texts(Utterance(found, "so", boss))["ja"]
    why = texts(Utterance(found, "that's why", thanked))["ja"]
    assert why == "彼女はバグを見つけてくれました。それで、彼女にお礼を言ったんです。"
    later = replace(thanked, tense=Tense.FUTURE)
    assert "見つけてくれたら" in texts(Utterance(later, "if", replace(found, tense=Tense.HABIT)))["ja"]
    hoped = Utterance(replace(found, tense=Tense.FUTURE), "hope", speaker=I)
    assert texts(hoped)["ja"] == "彼女がバグを見つけてくれるといいのですが。"


def test_japanese_says_the_cause_after_who_but_for_what_could_be_said_of_them() -> None:
    work = Clause("work_overtime", 4, {"S": SHE}, Tense.PAST, adverbials=(Adverbial(6, "because of work"),))
    assert texts(work)["ja"].startswith("彼女は仕事で")
    dear = replace(work, adverbials=(Adverbial(5, "because of the high costs"),))
    assert texts(dear)["ja"].startswith("コストが高いため、彼女は")


def test_japanese_says_in_spite_of_a_state_and_what_one_could_not_solve() -> None:
    rest = Clause("rest", 4, {"S": SHE}, Tense.PAST, negative=True)
    tired = Clause("be", 6, {"S": replace(SHE, mark=5, refers="S")}, Tense.PAST)
    tired = replace(tired, predicate=Predicate(7, adjective="tired"))
    assert texts(Utterance(rest, "although", tired))["ja"] == "彼女は疲れていたのに、休憩しませんでした。"
    solved = Clause("solve", 4, {"S": SHE, "O": Phrase(2, noun="problem:problem", det="the")}, Tense.PAST)
    assert texts(replace(solved, negative=True))["ja"] == "彼女は問題を解決できませんでした。"
    sleepless = Clause("fall_asleep", 4, {"S": SHE}, Tense.PAST, negative=True, modal=Modal.CAN)
    assert texts(sleepless)["ja"] == "彼女は寝付けませんでした。"
    passed = Clause("pass_exam", 6, {"S": SHE, "O": Phrase(2, noun="schoolwork:exam", det="the")}, Tense.PAST)
    relaxed = Clause("relax", 4, {"S": replace(SHE, mark=7)}, Tense.PAST)
    assert texts(relaxed)["ja"] == "彼女はのんびりしました。"
    assert texts(Utterance(passed, "so", relaxed))["ja"].endswith("ので、ほっとしました。")
    assert texts(Utterance(passed, "that's why", relaxed))["ja"].endswith("ほっとしたんです。")
    away = Clause("be_on_holiday", 4, {"S": SHE}, Tense.PAST)
    assert texts(away)["ja"] == "彼女は休暇中でした。"
    weeks = replace(away, adverbials=(Adverbial(5, "for a week"),))
    assert texts(weeks)["ja"] == "彼女は1週間休暇を取っていました。"


def test_japanese_asks_what_others_want_and_speaks_of_what_is_yours() -> None:
    wish = Clause("rest", 4, {"S": SHE}, modal=Modal.WANT, mood=Mood.YES_NO)
    assert texts(wish)["ja"] == "彼女は休憩したいと言っていますか？"
    doubt = replace(wish, mood=Mood.STATEMENT, negative=True)
    assert texts(Utterance(wish, "no", doubt))["ja"].endswith("？いいえ、言っていません。")
    why = replace(wish, mood=Mood.WH, asked="why")
    assert texts(why)["ja"] == "彼女はなぜ休憩したいと言っているんですか？"
    yours = Clause("read", 4, {"S": SHE, "O": replace(REPORT, det="you")}, Tense.PAST)
    assert texts(yours)["ja"] == "彼女はそちらの報告書を読みました。"


def test_japanese_says_when_of_what_happens_to_others_and_after_of_what_one_did() -> None:
    photos = Clause("take_picture", 4, {"S": SHE}, Tense.PAST)
    snow = Clause("snow", 6, {"S": Phrase(5, pronoun="weather")}, Tense.PAST)
    assert texts(Utterance(photos, "when", snow))["ja"] == "雪が降ったとき、彼女は写真を撮りました。"
    crash = Clause("crash", 6, {"S": Phrase(5, noun="product:app", det="the")}, Tense.PAST)
    assert texts(Utterance(photos, "when", crash))["ja"] == "アプリがクラッシュしたとき、彼女は写真を撮りました。"
    fever = Clause("have_fever", 6, {"S": SHE}, Tense.PAST)
    assert texts(Utterance(photos, "when", fever))["ja"] == "彼女は熱があったとき、写真を撮りました。"


def test_japanese_does_not_say_i_where_it_is_clear_but_in_what_others_say_and_of_what_one_is() -> None:
    read = Clause("read", 4, {"S": I, "O": REPORT}, Tense.PAST)
    assert texts(read)["ja"] == "報告書を読みました。"
    assert texts(Utterance(replace(read, embedded=True), "say", speaker=SHE))["ja"] == (
        "彼女は、私が報告書を読んだと言っていました。"
    )
    barber = Clause("be", 4, {"S": I}, predicate=Predicate(7, phrase=Phrase(8, noun="profession:barber", det="a")))
    assert texts(barber)["ja"] == "私は理容師です。"
    whether = Utterance(Clause("read", 4, {"S": SHE, "O": REPORT}, Tense.PAST), "whether", speaker=I)
    assert texts(whether)["ja"] == "彼女が報告書を読んだかどうかわかりません。"


def test_japanese_does_not_say_whose_people_at_work_are_where_only_the_speakers_can_be_meant() -> None:
    boss = Phrase(2, noun="person:boss", det="we")
    call = Clause("call", 4, {"S": SHE, "O": boss}, Tense.PAST)
    assert texts(replace(call, roles={"S": I, "O": boss}))["ja"] == "上司に電話しました。"
    assert texts(Clause("call", 4, {"S": boss, "O": SHE}, Tense.PAST))["ja"] == "上司は彼女に電話しました。"
    mine = Clause("call", 4, {"S": replace(boss, noun="person:customer"), "O": SHE}, Tense.PAST)
    assert texts(mine)["ja"] == "お客様は彼女に電話しました。"


def test_japanese_has_ga_where_all_is_new() -> None:
    printer = {"S": Phrase(2, noun="device:printer", det="the")}
    broken = Clause("break_down", 4, printer, Tense.PAST)
    assert texts(broken)["ja"] == "プリンターが故障しました。"
    assert texts(replace(broken, negative=True))["ja"] == "プリンターは故障しませんでした。"
    reading = Clause("read", 4, {"S": CUSTOMER, "O": REPORT}, Tense.NOW)
    assert "お客様が" in texts(reading)["ja"]
    assert "お客様は" in texts(replace(reading, tense=Tense.PAST))["ja"]


def test_japanese_does_not_name_again_whom_the_first_clause_is_about() -> None:
    lost = Clause("lose", 6, {"S": SHE, "O": Phrase(2, noun="small:wallet", det="she")}, Tense.PAST)
    helped = Clause("help", 4, {"S": I, "O": replace(SHE, mark=5)}, Tense.PAST)
    assert texts(Utterance(lost, "so", helped))["ja"] == "彼女が財布をなくしたので、手助けしました。"
    him = replace(helped, roles={"S": I, "O": Phrase(5, pronoun="he")})
    quarrel = Clause("quarrel_family", 6, {"S": SHE, "O": Phrase(2, noun="family:sister", det="she")}, Tense.PAST)
    sorry = Clause("apologize", 4, {"S": replace(SHE, mark=7), "O": replace(SHE, mark=5)}, Tense.PAST)
    not_yet = replace(sorry, tense=Tense.DONE, negative=True)
    assert texts(Utterance(quarrel, "but", not_yet))["ja"] == "彼女は姉と喧嘩しましたが、まだ謝っていません。"
    assert texts(Utterance(quarrel, "so", sorry))["ja"] == "彼女は姉と喧嘩したので、謝りました。"
    assert texts(Utterance(lost, "so", him))["ja"] == "彼女が財布をなくしたので、彼を手伝いました。"


def test_japanese_chooses_verbs_by_what_is_worn_and_by_what_has_not_happened_yet() -> None:
    hat = Phrase(2, noun="clothes:hat", det="the")
    worn = Clause("wear", 4, {"S": SHE, "O": hat}, Tense.PAST)
    assert texts(worn)["ja"] == "彼女は帽子をかぶりました。"
    assert texts(replace(worn, roles={"S": SHE, "O": replace(hat, noun="clothes:coat")}))["ja"] == (
        "彼女はコートを着ました。"
    )
    lie = Clause("tell", 4, {"S": SHE, "O": Phrase(2, noun="story:lie", det="a"), "T": CUSTOMER}, Tense.PAST)
    assert texts(lie)["ja"] == "彼女はお客様に嘘をつきました。"
    room = Phrase(2, noun="room:kitchen", det="the", adjective="large")
    assert texts(Clause("clean", 4, {"S": SHE, "O": room}, Tense.PAST))["ja"] == "彼女は広い台所を掃除しました。"
    cat = Clause("have", 4, {"S": SHE, "O": Phrase(2, noun="animal:cat", det="a")})
    assert texts(cat)["ja"] == "彼女は猫を飼っています。"
    sought = Clause("look_for", 4, {"S": SHE, "O": Phrase(2, noun="small:key", det="the")}, Tense.PAST)
    found = Clause(
        "find", 6, {"S": replace(SHE, mark=5), "O": Phrase(7, pronoun="it", noun="small:key", refers="O")}
    )
    found = replace(found, tense=Tense.DONE, negative=True)
    assert texts(Utterance(sought, "but", found))["ja"] == "彼女は鍵を探しましたが、まだ見つかっていません。"


def test_japanese_chooses_the_verb_by_what_somebody_is_invited_to_won_or_prolongs() -> None:
    interview = Phrase(2, noun="event:interview", det="the")
    invited = Clause("invite", 4, {"S": SHE, "O": CUSTOMER, "T": interview}, Tense.PAST)
    assert texts(invited)["ja"] == "彼女はお客様を面接に呼びました。"
    tournament = Phrase(2, noun="event:tournament", det="the")
    assert texts(Clause("win", 4, {"S": SHE, "O": tournament}, Tense.PAST))["ja"] == (
        "彼女はトーナメントで優勝しました。"
    )
    contract = Phrase(2, noun="document:purchase contract", det="the")
    assert texts(Clause("extend_contract", 4, {"S": SHE, "O": contract}, Tense.PAST))["ja"] == (
        "彼女は売買契約を延長しました。"
    )
    assert "売買契約書に" in texts(Clause("sign", 4, {"S": SHE, "O": contract}, Tense.PAST))["ja"]


def test_japanese_answers_with_the_verb_that_goes_with_the_object() -> None:
    hat = {"S": SHE, "O": Phrase(2, noun="clothes:hat", det="the")}
    asked = Clause("wear", 4, hat, Tense.PAST, mood=Mood.YES_NO)
    answer = Clause("wear", 5, {"S": SHE}, Tense.PAST)
    assert texts(Utterance(asked, "yes", answer))["ja"] == "彼女は帽子をかぶりましたか？はい、かぶりました。"
    called = Clause("call", 4, {"S": SHE, "O": I}, Tense.PAST)
    also = Clause("call", 5, {"S": Phrase(6, name="Eli")}, Tense.PAST)
    assert texts(Utterance(called, "too", also))["ja"].endswith("Eliさんも電話してくれました。")
    never = replace(also, negative=True)
    need = Clause("need_help", 4, {"S": SHE}, negative=True)
    nor = replace(need, roles={"S": Phrase(6, name="Eli")})
    assert texts(Utterance(need, "neither", nor))["ja"].endswith("Eliさんにも助けは必要ありません。")
    likes = replace(need, negative=False)
    assert texts(Utterance(likes, "too", replace(nor, negative=False)))["ja"].endswith("Eliさんもです。")
    both = Utterance(replace(called, negative=True), "neither", never)
    assert texts(both)["ja"].endswith("Eliさんも電話してくれませんでした。")


def test_japanese_inflects_cute_as_it_does_high_and_good_by_itself() -> None:
    assert adjective("かわいい").plain(False, True) == "かわいかった"
    assert adjective("居心地がいい").plain(False, True) == "居心地がよかった"
    assert adjective("いい").plain(True, False) == "よくない"
    assert adjective("わかりやすい").polite(True, False) == "わかりにくいです"
    assert adjective("高い").polite(True, True) == "高くありませんでした"


def test_japanese_says_all_after_people_and_this_of_a_pair() -> None:
    guests = Phrase(2, noun="person:guest", det="all", plural=True)
    assert (
        texts(Clause("call", 4, {"S": SHE, "O": guests}, Tense.PAST))["ja"] == "彼女はゲスト全員に電話しました。"
    )
    files = replace(guests, noun="document:file")
    assert "すべてのファイル" in texts(Clause("read", 4, {"S": SHE, "O": files}, Tense.PAST))["ja"]
    shoes = Phrase(2, noun="clothes:shoe", det="this", plural=True)
    assert texts(Clause("buy", 4, {"S": SHE, "O": shoes}, Tense.PAST))["ja"] == "彼女はこの靴を買いました。"


def test_japanese_does_not_say_again_whose_family_it_is_that_somebody_speaks_of() -> None:
    mother = Phrase(2, noun="family:mother", det="she")
    rest = Clause("rest", 4, {"S": mother}, Tense.FUTURE)
    assert texts(Utterance(rest, "say", speaker=Phrase(1, name="Eli")))["ja"] == (
        "Eliさんは、彼女のお母さんが休憩すると言っていました。"
    )
    assert texts(Utterance(rest, "say", speaker=SHE))["ja"] == "彼女は、お母さんが休憩すると言っていました。"
    he = replace(rest, roles={"S": Phrase(2, pronoun="he")})
    assert (
        texts(Utterance(he, "say", speaker=Phrase(1, name="Eli")))["ja"] == "Eliさんは休憩すると言っていました。"
    )
    assert texts(Utterance(he, "think", speaker=Phrase(1, name="Eli")))["ja"] == (
        "Eliさんは、彼が休憩すると思っています。"
    )


def test_japanese_honours_all_of_somebodys_family_and_says_how_often_before_where() -> None:
    uncle = Phrase(2, noun="family:uncle", det="she")
    both = Phrase(2, members=(uncle, replace(uncle, mark=3, noun="family:mother")), link="and", plural=True)
    sing = Clause("sing", 4, {"S": both}, adverbials=(Adverbial(5, "always"), Adverbial(6, "in the garden")))
    assert texts(sing)["ja"] == "彼女のおじさんとお母さんはいつも庭で歌います。"


def test_japanese_hopes_it_of_somebody_and_that_it_happens() -> None:
    eli = Phrase(1, name="Eli")
    rest = Clause("rest", 4, {"S": replace(SHE, mark=2)}, Tense.FUTURE)
    assert texts(Utterance(rest, "hope", speaker=eli))["ja"] == "Eliさんは、彼女が休憩するといいと思っています。"
    to_me = Clause("send", 4, {"S": replace(SHE, mark=5), "O": REPORT, "T": replace(I, mark=6)}, Tense.FUTURE)
    assert texts(Utterance(to_me, "hope", speaker=eli))["ja"] == (
        "Eliさんは、彼女が私に報告書を送ってくれるといいと思っています。"
    )


def test_japanese_says_when_and_if_of_what_a_state_began_with() -> None:
    hungry = Clause("be_hungry", 6, {"S": replace(SHE, mark=5)})
    eat = Clause("eat_out", 4, {"S": SHE}, Tense.FUTURE)
    assert texts(Utterance(eat, "if", hungry))["ja"] == "彼女はお腹が空いたら、外食します。"
    past = Utterance(replace(eat, tense=Tense.PAST), "when", replace(hungry, tense=Tense.PAST))
    assert texts(past)["ja"] == "彼女はお腹が空いたとき、外食しました。"


def test_japanese_does_not_say_whose_company_somebody_has_if_it_is_their_own() -> None:
    aunt = Phrase(6, noun="family:aunt", det="i")
    fish = Clause("fish", 4, {"S": I}, Tense.PAST, adverbials=(Adverbial(5, "with {P}", aunt),))
    assert texts(fish)["ja"] == "叔母と一緒に釣りに行きました。"
    assert texts(replace(fish, roles={"S": SHE}))["ja"] == "彼女は私の叔母と一緒に釣りに行きました。"


def test_japanese_asks_with_morau_and_says_what_seems_best_of_oneself() -> None:
    room = Clause(
        "set_up_room", 4, {"S": Phrase(1, pronoun="you"), "O": Phrase(2, noun="hall:meeting room", det="the")}
    )
    asked = replace(room, modal=Modal.CAN, mood=Mood.YES_NO)
    assert texts(asked)["ja"] == "会議室の準備をしてもらえますか？"
    able = replace(room, roles=room.roles | {"S": SHE}, modal=Modal.CAN)
    assert texts(able)["ja"] == "彼女は会議室の準備ができます。"
    assert texts(replace(room, roles=room.roles | {"S": I}, modal=Modal.SHOULD))["ja"] == (
        "会議室の準備をした方がよさそうです。"
    )


def test_japanese_says_the_time_before_who_and_contrasts_what_is_not_done_yet() -> None:
    who = Clause(
        "read", 4, {"O": REPORT}, Tense.FUTURE, mood=Mood.WH, asked="S", adverbials=(Adverbial(5, "tomorrow"),)
    )
    assert texts(who)["ja"] == "明日は誰が報告書を読みますか？"
    read = Clause("read", 4, {"S": I, "O": REPORT}, Tense.PAST)
    it = Phrase(5, pronoun="it", noun="document:report", refers="O")
    sign = Clause("translate", 6, {"S": replace(I, mark=7), "O": it}, Tense.DONE, negative=True)
    assert texts(Utterance(read, "but", sign))["ja"] == "報告書は読みましたが、まだ翻訳していません。"


def test_a_japanese_reason_stands_where_the_thing_is_not_lost() -> None:
    screen = Phrase(2, noun="device:screen", det="the")
    it = Phrase(5, pronoun="it", noun=screen.noun, refers="O")
    old = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="old"))
    replaced = Clause("replace", 4, {"S": SHE, "O": screen}, Tense.PAST, adverbials=(Adverbial(8, "last week"),))
    assert texts(Utterance(replaced, "because", old))["ja"] == (
        "ディスプレイが古くなっていたので、彼女は先週交換しました。"
    )


def test_japanese_says_how_long_after_what_it_was_done_to_and_asks_of_habits_and_ages() -> None:
    waited = Clause("wait_for", 4, {"S": SHE, "O": CUSTOMER}, Tense.PAST, adverbials=(Adverbial(5, "for a week"),))
    assert texts(waited)["ja"] == "彼女はお客様を1週間待ちました。"
    takes = Clause("take_time", 4, {"S": Phrase(1, noun="event:meeting", det="the")}, mood=Mood.WH)
    assert texts(replace(takes, asked="how_long"))["ja"] == "会議はどのくらい時間がかかりますか？"
    reads = Clause("read", 4, {"S": SHE, "O": REPORT}, mood=Mood.YES_NO, adverbials=(Adverbial(5, "always"),))
    assert texts(reads)["ja"] == "彼女はいつも報告書を読んでいますか？"
    age = Clause("age", 4, {"S": Phrase(1, noun="family:mother", det="you")}, mood=Mood.WH, asked="age")
    assert texts(age)["ja"] == "お母さんはおいくつですか？"
    assert texts(replace(age, roles={"S": Phrase(1, noun="family:mother", det="she")}))["ja"].endswith(
        "何歳ですか？"
    )


def test_japanese_names_whose_people_they_are_where_he_or_she_could_be_meant() -> None:
    boss, sister = Phrase(2, noun="person:boss", det="we"), Phrase(2, noun="family:sister", det="you")
    call = Clause("call", 4, {"S": SHE, "O": boss}, Tense.PAST)
    assert texts(call)["ja"] == "彼女は私たちの上司に電話しました。"
    eli = Phrase(1, name="Eli")
    company = (Adverbial(5, "with {P}", replace(boss, noun="person:colleague", det="i")),)
    assert texts(replace(call, roles={"S": eli, "O": CUSTOMER}, adverbials=company))["ja"] == (
        "Eliさんは私の同僚と一緒にお客様に電話しました。"
    )
    served = replace(boss, noun="person:customer")
    assert texts(replace(call, roles={"S": eli, "O": served}))["ja"] == "Eliさんはお客様に電話しました。"
    rest = Clause("rest", 4, {"S": replace(boss, det="i")}, Tense.PAST)
    assert texts(Utterance(rest, "say", speaker=SHE))["ja"] == "彼女は、私の上司が休憩したと言っていました。"
    asked = Utterance(replace(rest, roles={"S": sister}), "whether", speaker=SHE)
    assert texts(asked)["ja"] == "彼女は、あなたのお姉さんが休憩したかどうか知りません。"
    assert texts(replace(rest, mood=Mood.YES_NO))["ja"] == "私の上司は休憩しましたか？"
    both = Phrase(2, members=(boss, replace(boss, mark=3, noun="person:colleague")), link="and", plural=True)
    team = replace(both, members=(replace(boss, noun="group:sales team", det="the"), boss))
    assert texts(replace(rest, roles={"S": team}))["ja"] == "営業チームと上司は休憩しました。"
    assert "私たちの上司と同僚に" in texts(replace(call, roles={"S": SHE, "O": both}))["ja"]


def test_japanese_says_we_once() -> None:
    we = replace(I, pronoun="we")
    wrote = Clause("write", 4, {"S": we, "O": REPORT}, Tense.PAST)
    assert texts(wrote)["ja"] == "私たちは報告書を書きました。"
    it = Phrase(5, pronoun="it", noun=REPORT.noun, refers="O")
    sent = Clause("send", 6, {"S": replace(we, mark=7), "O": it, "T": CUSTOMER}, Tense.PAST)
    assert texts(Utterance(wrote, "and", sent))["ja"] == "私たちは報告書を書いて、お客様に送りました。"
    still = replace(sent, tense=Tense.DONE, negative=True)
    assert texts(Utterance(wrote, "but", still))["ja"].startswith("私たちは報告書を書きましたが、")


def test_japanese_says_whose_job_was_settled_where_it_is_a_reason() -> None:
    he = Phrase(1, pronoun="he")
    got = Clause("get_job", 6, {"S": he, "O": Phrase(2, noun="position:job", det="he")}, Tense.PAST)
    assert texts(got)["ja"] == "彼は仕事が決まりました。"
    sister = replace(got, mark=3, roles=got.roles | {"S": Phrase(1, noun="family:sister", det="i")})
    sister = replace(sister, roles=sister.roles | {"O": Phrase(2, noun="position:job", det="a")})
    news = replace(sister, adverbials=(Adverbial(8, "yesterday"),))
    assert texts(news)["ja"] == "昨日、姉は仕事が決まりました。"
    praise = Clause("congratulate", 4, {"S": I, "O": replace(he, mark=5)}, Tense.PAST)
    assert texts(Utterance(got, "so", praise))["ja"].startswith("彼の仕事が決まったので、")
    own = Utterance(replace(got, embedded=True), "say", speaker=Phrase(8, name="Eli"))
    assert texts(own)["ja"] == "Eliさんは仕事が決まったと言っていました。"


def test_japanese_asks_where_something_is_put_and_since_when_it_goes_on() -> None:
    park = Clause("park", 4, {"S": SHE, "O": Phrase(2, noun="motor:car", det="we")}, Tense.PAST, mood=Mood.WH)
    assert texts(replace(park, asked="where"))["ja"] == "彼女はうちの車をどこに停めたんですか？"
    wait = Clause("wait_for", 4, {"S": SHE, "O": CUSTOMER}, Tense.ONGOING, mood=Mood.WH, asked="how_long")
    assert texts(wait)["ja"] == "彼女はどのくらい前からお客様を待っていますか？"


def test_japanese_thinks_that_something_is_not_done_and_knows_that_it_is() -> None:
    read = Clause("read", 4, {"S": SHE, "O": REPORT}, Tense.PAST)
    denied = Utterance(replace(read, negative=True), "think", speaker=I)
    assert texts(denied)["ja"] == "彼女は報告書を読んでいないと思います。"
    assert texts(Utterance(read, "think", speaker=I))["ja"] == "彼女が報告書を読んだと思います。"
    assert texts(Utterance(read, "know", speaker=I))["ja"] == "彼女が報告書を読んだのは知っています。"


def test_japanese_says_the_reason_first_and_who_does_something_about_it() -> None:
    device = Phrase(2, noun="device:washing machine", det="the")
    it = Phrase(5, pronoun="it", noun=device.noun, refers="O")
    broken = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="broken"))
    craftsman = Phrase(1, noun="profession:craftsman", det="the")
    repaired = Clause("repair", 4, {"S": craftsman, "O": device}, Tense.PAST)
    repaired = replace(repaired, adverbials=(Adverbial(8, "last week"),))
    assert texts(Utterance(repaired, "because", broken))["ja"] == (
        "洗濯機が壊れていたので、先週、修理業者が修理しました。"
    )
    minutes = replace(device, noun="document:meeting minutes")
    long = Clause("be", 6, {"S": replace(it, noun=minutes.noun)}, predicate=Predicate(7, adjective="long"))
    sums = Clause("summarize", 4, {"S": SHE, "O": minutes}, Tense.FUTURE)
    assert texts(Utterance(sums, "because", long))["ja"] == "議事録が長いので、彼女が要約します。"
    problem = replace(device, noun="problem:problem")
    told = Clause("report_problem", 4, {"S": SHE, "O": problem, "T": CUSTOMER}, Tense.FUTURE)
    told = replace(told, adverbials=(Adverbial(8, "at noon"),))
    big = Clause("be", 6, {"S": replace(it, noun=problem.noun)}, predicate=Predicate(7, adjective="big"))
    assert texts(Utterance(told, "because", big))["ja"].startswith("問題が深刻なので、彼女が正午にお客様に")
    worth = replace(long, predicate=Predicate(7, adjective="interesting"))
    minds = replace(sums, frame="read", roles={"S": SHE, "O": replace(minutes, det="this")})
    assert texts(Utterance(minds, "because", worth))["ja"] == "この議事録が興味深いので、彼女は読みます。"
    this = replace(sums, roles={"S": SHE, "O": replace(minutes, det="this")})
    assert texts(Utterance(this, "because", long))["ja"] == "この議事録は長いので、彼女が要約します。"


def test_japanese_names_what_is_taken_for_what_it_is_like_beside_the_verb() -> None:
    """ "噴水が印象的だったので、観光客は撮影しました": the verb would stand far from what it is done to."""
    fountain = Phrase(2, noun="sight:fountain", det="the")
    it = Phrase(5, pronoun="it", noun=fountain.noun, refers="O")
    great = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="impressive"))
    took = Clause("photograph", 4, {"S": CUSTOMER, "O": fountain}, Tense.PAST)
    assert texts(Utterance(took, "because", great))["ja"] == "印象的だったので、お客様は噴水を撮影しました。"
    mine = replace(took, roles={"S": I, "O": fountain})
    assert texts(Utterance(mine, "because", great))["ja"] == "噴水が印象的だったので、撮影しました。"
    not_mine = replace(took, negative=True)
    assert (
        texts(Utterance(not_mine, "because", great))["ja"]
        == "噴水が印象的だったので、お客様は撮影しませんでした。"
    )


def test_japanese_does_not_say_again_who_acts_after_therefore_but_who_can() -> None:
    thirsty = Clause("be", 6, {"S": SHE}, Tense.PAST, predicate=Predicate(7, adjective="tired"))
    rest = Clause("rest", 4, {"S": replace(SHE, mark=5)}, Tense.PAST)
    assert texts(Utterance(thirsty, "that's why", rest))["ja"] == "彼女は疲れていました。それで、休憩したんです。"
    sent = Clause("send", 4, {"S": SHE, "O": REPORT, "T": I}, Tense.PAST)
    it = Phrase(5, pronoun="it", noun=REPORT.noun, refers="O")
    can = Clause("print", 6, {"S": replace(I, mark=7), "O": it}, Tense.PAST, modal=Modal.CAN)
    assert texts(Utterance(sent, "so that", can))["ja"] == (
        "私が印刷できるように、彼女は報告書を送ってくれました。"
    )


def test_japanese_is_humble_about_what_one_does_for_the_one_who_is_spoken_to() -> None:
    """Nothing else says to whom: "you" goes without saying."""
    you = {"S": I, "T": Phrase(3, pronoun="you")}
    assert send(roles=SEND | you, tense=Tense.FUTURE)["ja"] == "報告書をお送りします。"
    assert send(roles=SEND | {"S": I}, tense=Tense.FUTURE)["ja"] == "お客様に報告書を送ります。"
    assert send(roles=SEND | you, modal=Modal.WANT)["ja"] == "報告書をお送りしたいです。"


def test_japanese_names_whom_a_report_is_about_if_it_is_not_who_speaks() -> None:
    """Quentin is a man: "he said that she …" would be lost without 彼女が."""
    rest = Clause("rest", 4, {"S": SHE}, Tense.PAST)
    assert texts(Utterance(rest, "say", speaker=Phrase(8, name="Quentin")))["ja"] == (
        "Quentinさんは、彼女が休憩したと言っていました。"
    )
    he = replace(rest, roles={"S": Phrase(1, pronoun="he")})
    assert texts(Utterance(he, "say", speaker=Phrase(8, name="Anna")))["ja"] == (
        "Annaさんは、彼が休憩したと言っていました。"
    )
    assert texts(Utterance(rest, "say", speaker=Phrase(8, name="Anna")))["ja"] == (
        "Annaさんは休憩したと言っていました。"
    )


def test_japanese_says_to_whom_others_tell_something() -> None:
    you = SEND | {"T": Phrase(3, pronoun="you")}
    assert send(roles=you, tense=Tense.PAST)["ja"] == "彼女はあなたに報告書を送りました。"
    assert send(roles=you, tense=Tense.PAST, mood=Mood.YES_NO)["ja"] == "彼女は報告書を送ってくれましたか？"


def test_japanese_asks_whom_it_speaks_to_what_they_do_not_what_they_want() -> None:
    you = {"S": Phrase(1, pronoun="you"), "O": REPORT}
    want = Clause("read", 4, you, modal=Modal.WANT, mood=Mood.YES_NO)
    assert texts(want)["ja"] == "報告書を読みますか？"
    assert texts(replace(want, mood=Mood.WH, asked="when"))["ja"] == "いつ報告書を読みますか？"
    mine = replace(want, roles={"S": I}, mood=Mood.STATEMENT, negative=True)
    assert texts(Utterance(want, "no", mine))["ja"] == "報告書を読みますか？いいえ、読みません。"
    assert texts(Utterance(want, "yes", replace(mine, negative=False)))["ja"].endswith("はい、読みます。")
    assert texts(replace(mine, roles=you | {"S": I}, negative=False))["ja"] == "報告書を読みたいです。"


def test_japanese_begins_what_is_news_with_eeto() -> None:
    rest = Clause("rest", 4, {"S": SHE}, Tense.PAST)
    assert texts(Utterance(rest, opener="statement:well"))["ja"] == "ええと、彼女は休憩しました。"
