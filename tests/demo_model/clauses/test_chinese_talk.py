"""Composed Chinese as people say it: what is planned, whose it is, what follows, how one asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import REPORT, read
from tests.demo_model.clauses.test_chinese import HE, YOU, chinese

TOMORROW = (Adverbial(5, "tomorrow"),)


@pytest.mark.parametrize(
    ("noun", "det", "text"),
    [
        ("person:boss", "i", "我老板"),
        ("person:colleague", "he", "他同事"),
        ("family:mother", "i", "我妈妈"),
        ("person:team leader", "we", "我们团队负责人"),
        ("group:marketing team", "they", "他们市场团队"),
        ("person:team leader", "he", "他的团队负责人"),
        ("family:twin brother", "she", "她的双胞胎兄弟"),
    ],
)
def test_those_who_are_near_are_ones_own_without_de(noun: str, det: str, text: str) -> None:
    said = Clause("inform", 9, {"S": Phrase(1, name="Nora"), "O": Phrase(2, noun=noun, det=det)}, Tense.PAST)
    assert chinese(said) == f"Nora通知了{text}。"


def test_what_one_loses_is_ones_own() -> None:
    lost = Clause("lose", 9, {"S": HE, "O": Phrase(2, noun="small:wallet", det="he")}, Tense.PAST)
    assert chinese(lost) == "他弄丢了钱包。"
    assert chinese(replace(lost, roles={**lost.roles, "O": Phrase(2, noun="small:wallet", det="she")})) == (
        "他弄丢了她的钱包。"
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"adverbials": TOMORROW}, "他明天要看报告。"),
        ({"adverbials": TOMORROW, "mood": Mood.YES_NO}, "他明天会看报告吗？"),
        ({"adverbials": TOMORROW, "mood": Mood.YES_NO, "roles": {"S": YOU, "O": REPORT}}, "您明天要看报告吗？"),
        ({"asked": "where", "mood": Mood.WH, "adverbials": TOMORROW}, "他明天要在哪里看报告？"),
        ({"adverbials": (Adverbial(5, "by Friday evening"),)}, "他星期五晚上之前会看报告。"),
        ({"asked": "when", "mood": Mood.WH}, "他什么时候看报告？"),
        ({}, "他要看报告。"),
        ({"frame": "go_home", "roles": {"S": HE}}, "他要回家。"),
        (
            {"frame": "arrive_late", "roles": {"S": HE}, "adverbials": TOMORROW},
            "他明天会迟到。",
        ),
    ],
)
def test_a_plan_is_what_somebody_is_going_to_do(changes: dict[str, object], text: str) -> None:
    assert chinese(replace(read(HE, Tense.FUTURE), **changes)) == text  # type: ignore[arg-type]


def test_one_thinks_and_hopes_that_it_will_be() -> None:
    plan = read(HE, Tense.FUTURE, embedded=True, adverbials=TOMORROW)
    assert chinese(Utterance(plan, "think", speaker=YOU)) == "您觉得他明天会看报告。"
    assert chinese(Utterance(plan, "hope", speaker=YOU)) == "您希望他明天能看报告。"
    assert chinese(Utterance(plan, "know", speaker=YOU)) == "您知道他明天要看报告。"


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        (read(HE, embedded=True), "您不知道他有没有看报告。"),
        (read(HE, Tense.FUTURE, embedded=True), "您不知道他会不会看报告。"),
        (read(HE, Tense.DONE, embedded=True), "您不知道他是不是已经看过报告了。"),
        (Clause("have_time", 9, {"S": HE}, embedded=True), "您不知道他有没有时间。"),
        (Clause("be", 9, {"S": HE}, predicate=Predicate(5, "busy")), "您不知道他是不是很忙。"),
    ],
)
def test_whether_it_is_so(clause: Clause, text: str) -> None:
    assert chinese(Utterance(clause, "whether", speaker=YOU)) == text


@pytest.mark.parametrize(
    ("frame", "roles", "text"),
    [
        ("read", {"S": HE, "O": REPORT}, "他每周看两次报告。"),
        ("help", {"S": HE, "O": YOU}, "他每周帮您两次。"),
        ("go_walk", {"S": HE}, "他每周散两次步。"),
    ],
)
def test_how_many_times_follows_the_verb(frame: str, roles: dict[str, Phrase], text: str) -> None:
    assert chinese(Clause(frame, 9, roles, adverbials=(Adverbial(5, "twice a week"),))) == text


def test_what_comes_to_one_is_named_exactly() -> None:
    bike = {"S": HE, "O": Phrase(2, noun="vehicle:bicycle", det="the")}
    assert chinese(Clause("buy", 9, bike, Tense.PAST)) == "他买了那辆自行车。"
    assert chinese(Clause("wash", 9, bike, Tense.PAST)) == "他洗了自行车。"


def test_what_follows_a_reason() -> None:
    hot = Clause("weather_hot", 6, {"S": Phrase(4, pronoun="weather")}, Tense.PAST)
    home = Clause("go_home", 9, {"S": HE}, Tense.PAST)
    assert chinese(Utterance(hot, "so", home)) == "当时天气很热，他就回家了。"
    assert chinese(Utterance(home, "because", replace(hot, embedded=True))) == "因为天气很热，他回家了。"
    late = Clause("arrive_late", 6, {"S": HE}, Tense.PAST)
    assert chinese(Utterance(late, "so", read(HE))) == "他迟到了，就看了报告。"
    assert chinese(Utterance(late, "so", home)) == "他迟到了，就回家了。"
    done = Clause("finish", 6, {"S": HE, "O": REPORT}, Tense.PAST)
    assert (
        chinese(Utterance(done, "so", Clause("rest", 9, {"S": HE}, Tense.PAST))) == "他写完了报告，就休息了一下。"
    )


def test_the_second_of_two_verbs_has_its_object() -> None:
    it = Phrase(5, pronoun="it", noun="document:report", refers="O")
    translate = Clause("translate", 6, {"S": HE, "O": it}, Tense.PAST, embedded=True)
    assert chinese(Utterance(read(HE), "and", translate)) == "他看了报告，并翻译出来了。"


def test_what_one_is_asked_for_is_done_briefly() -> None:
    check = replace(read(YOU, Tense.FUTURE), frame="check", mood=Mood.IMPERATIVE)
    assert chinese(check) == "请检查一下报告。"
    assert chinese(replace(check, negative=True)) == "请不要检查报告。"
    loud = Clause("speak_loud", 9, {"S": YOU}, mood=Mood.REQUEST)
    assert chinese(loud) == "您能大声一点吗？"


def test_in_detail_stands_before_the_verb() -> None:
    detail = (Adverbial(5, "in detail"),)
    talk = Clause("discuss_with", 9, {"S": HE, "O": REPORT, "T": YOU}, Tense.PAST, adverbials=detail)
    assert chinese(talk) == "他和您详细讨论了报告。"


def test_whether_there_is_one_is_asked_without_one() -> None:
    shop = Phrase(2, noun="site:shop", det="a")
    assert chinese(Clause("own_company", 9, {"S": YOU, "O": shop}, mood=Mood.YES_NO)) == "您有商店吗？"


def test_so_will_they_is_said_as_it_was() -> None:
    plan = read(HE, Tense.FUTURE, adverbials=TOMORROW)
    you = replace(plan, roles={**plan.roles, "S": YOU})
    assert chinese(Utterance(plan, "too", you)) == "他明天要看报告。您也要。"


def test_how_long_one_learns() -> None:
    music = Phrase(2, noun="subject:biology", det="bare")
    learn = Clause("study", 9, {"S": HE, "O": music}, Tense.FUTURE, mood=Mood.WH, asked="how_long")
    assert chinese(learn) == "他要学多久生物？"


def test_what_is_being_done_is_not_done_yet() -> None:
    safe = Phrase(2, noun="opening:safe", det="the")
    assert chinese(Clause("lock", 9, {"S": HE, "O": safe}, Tense.NOW)) == "他正在锁保险箱。"


def test_when_one_wants_to_is_asked_after_wanting() -> None:
    asked = read(YOU, Tense.HABIT, modal=Modal.WANT, asked="when", mood=Mood.WH)
    assert chinese(asked) == "您想什么时候看报告？"


def test_what_is_held_at_a_time_needs_no_will() -> None:
    held = Clause("take_place", 9, {"S": Phrase(1, noun="event:meeting", det="the")}, Tense.FUTURE)
    assert chinese(replace(held, adverbials=TOMORROW)) == "会议明天举行。"
    assert chinese(held) == "会议会举行。"


def test_once_more_stands_before_who_is_there() -> None:
    again = (Adverbial(5, "again"), Adverbial(6, "with {P}", phrase=Phrase(7, pronoun="you")))
    assert chinese(read(HE, adverbials=again)) == "他又和您一起看了报告。"
    assert chinese(read(HE, modal=Modal.WANT, adverbials=again[:1])) == "他当时想再看一遍报告。"


def test_yes_answers_what_is_so() -> None:
    hope = Clause("look_forward", 9, {"S": YOU, "O": Phrase(2, noun="event:party", det="the")}, Tense.NOW)
    asked, said = replace(hope, mood=Mood.YES_NO), replace(hope, roles={**hope.roles, "S": HE})
    assert chinese(Utterance(asked, "yes", said)) == "您期待聚会吗？是的。"


def test_one_goes_to_do_sport() -> None:
    lake = (Adverbial(5, "by the lake"),)
    swim = Clause("swim", 9, {"S": HE}, Tense.PAST)
    assert chinese(swim) == "他去游泳了。"
    assert chinese(replace(swim, adverbials=lake)) == "他去湖边游泳了。"
    assert chinese(replace(swim, tense=Tense.NOW)) == "他正在游泳。"


def test_one_finishes_what_comes_before_something() -> None:
    novel = Phrase(2, noun="text:novel", det="the")
    it = Phrase(5, pronoun="it", noun="text:novel", refers="O")
    back = Clause("return_item", 9, {"S": YOU, "O": it}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    reads = Clause("read_book", 6, {"S": YOU, "O": novel}, Tense.PAST)
    assert (
        chinese(
            Utterance(
                replace(back, roles={"S": YOU, "O": novel}), "after", replace(reads, roles={"S": YOU, "O": it})
            )
        )
        == "请看完那本小说之后再把它还回去。"
    )
    rest = Clause("rest", 9, {"S": HE}, Tense.PAST)
    assert chinese(Utterance(rest, "after", Clause("jog", 6, {"S": HE}, Tense.PAST))) == (
        "他慢跑完之后，休息了一下。"
    )
    assert chinese(Utterance(rest, "after", Clause("call", 6, {"S": HE, "O": YOU}, Tense.PAST))) == (
        "他给您打完电话之后，休息了一下。"
    )


@pytest.mark.parametrize(
    ("frame", "noun", "adjective", "tense", "text"),
    [
        ("replace", "device:screen", "broken", Tense.FUTURE, "这块显示屏坏了，所以他要把它换掉。"),
        ("replace", "device:screen", "broken", Tense.PAST, "这块显示屏坏了，所以他把它换掉了。"),
        ("shorten", "document:report", "long", Tense.FUTURE, "这份报告很长，所以他要精简一下。"),
        ("summarize", "document:report", "long", Tense.PAST, "这份报告很长，所以他总结了一下。"),
        ("read", "document:report", "long", Tense.FUTURE, "这份报告很长，所以他要看一遍。"),
    ],
)
def test_what_is_done_to_a_thing_for_a_reason(
    frame: str, noun: str, adjective: str, tense: Tense, text: str
) -> None:
    it = Phrase(5, pronoun="it", noun=noun, refers="O")
    why = Clause("be", 6, {"S": it}, embedded=True, predicate=Predicate(7, adjective))
    said = Clause(frame, 9, {"S": HE, "O": Phrase(2, noun=noun, det="the")}, tense)
    assert chinese(Utterance(said, "because", why)) == text


def test_a_new_thing_is_it_in_the_reason() -> None:
    it = Phrase(5, pronoun="it", noun="animal:cat", refers="O")
    cute = Clause("be", 6, {"S": it}, embedded=True, predicate=Predicate(7, "cute"))
    adopts = Clause("adopt", 9, {"S": HE, "O": Phrase(2, noun="animal:cat", det="a")}, Tense.PAST)
    assert chinese(Utterance(adopts, "because", cute)) == "他收养了一只猫，因为它很可爱。"


def test_who_comes_to_do_it_and_who_is_able_to() -> None:
    write = Clause("write", 9, {"O": REPORT}, Tense.FUTURE, mood=Mood.WH, asked="S")
    assert chinese(write) == "谁来写报告？"
    assert chinese(replace(write, frame="read")) == "谁要看报告？"
    knit = Clause("knit", 9, {"S": HE, "O": Phrase(2, noun="clothes:scarf", det="a")}, Tense.FUTURE)
    assert chinese(replace(knit, mood=Mood.YES_NO)).startswith("他打算织")


def test_you_who_answer_we_are_several() -> None:
    asked = read(YOU, mood=Mood.YES_NO)
    we = replace(asked, roles={**asked.roles, "S": Phrase(7, pronoun="we")}, mood=Mood.STATEMENT)
    assert chinese(Utterance(asked, "yes", we)) == "你们看报告了吗？看了。"


def test_what_follows_is_no_sentence_of_its_own() -> None:
    late = Clause("arrive_late", 6, {"S": HE}, Tense.PAST)
    assert chinese(Utterance(late, "that's why", read(YOU, embedded=True))) == "他迟到了，所以您看了报告。"


def test_one_missed_a_class() -> None:
    lesson = Phrase(2, noun="event:swimming lesson", det="the")
    missed = Clause("miss_event", 9, {"S": HE, "O": lesson}, Tense.PAST)
    assert chinese(missed) == "他没上成游泳课。"
    assert chinese(replace(missed, tense=Tense.FUTURE)) == "他会错过游泳课。"


def test_one_waits_for_a_while() -> None:
    station = Phrase(2, noun="amenity:train station", det="the")
    assert chinese(Clause("wait_at", 9, {"S": HE, "T": station}, Tense.PAST)) == "他在火车站等了一会儿。"
    assert chinese(Clause("wait_for", 9, {"S": HE, "O": YOU}, Tense.PAST)) == "他等了您。"


def test_both_did_it_for_hours() -> None:
    both = Phrase(8, members=(HE, YOU), link="both", plural=True)
    hours = (Adverbial(5, "for {duration}", values=(("duration", (2, "hours")),)),)
    played = Clause("play_cards", 9, {"S": both}, Tense.PAST, adverbials=hours)
    assert chinese(played) == "他和您都打了两个小时牌。"


def test_what_is_known_is_sold_with_ba() -> None:
    phone = Phrase(2, noun="device:laptop", det="the")
    sold = Clause("sell", 9, {"S": HE, "O": phone, "T": YOU}, Tense.PAST)
    assert chinese(sold) == "他把那台笔记本电脑卖给了您。"
    assert chinese(replace(sold, roles={**sold.roles, "O": replace(phone, det="a")})) == (
        "他向您出售了一台笔记本电脑。"
    )


def test_what_is_taken_for_what_it_is_like_is_not_left_out_after_one_syllable() -> None:
    """ "喷泉非常壮观，所以游客拍了": of what?"""
    fountain = Phrase(2, noun="sight:fountain", det="the")
    it = Phrase(5, pronoun="it", noun=fountain.noun, refers="O")
    great = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, adjective="impressive"))
    took = Clause("photograph", 4, {"S": HE, "O": fountain}, Tense.PAST)
    assert chinese(Utterance(took, "because", great)).endswith("，所以他拍了下来。")
    assert chinese(Utterance(replace(took, tense=Tense.FUTURE), "because", great)).endswith("，所以他要拍下来。")
    app = Phrase(2, noun="product:calendar app", det="the")
    good = replace(great, roles={"S": replace(it, noun=app.noun)}, predicate=Predicate(7, adjective="reliable"))
    chose = replace(took, frame="choose", roles={"S": HE, "O": app})
    assert chinese(Utterance(chose, "because", good)).endswith("，所以他选择了它。")


def test_one_is_asked_to_do_first_what_is_done_before() -> None:
    shirt = Phrase(2, noun="clothes:shirt", det="the")
    wear = Clause("wear", 6, {"S": YOU, "O": Phrase(5, pronoun="it", noun=shirt.noun, refers="O")})
    iron = Clause("iron", 4, {"S": YOU, "O": shirt}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    assert chinese(Utterance(iron, "before", wear)) == "穿上衬衫之前，请先熨一下。"


def test_because_of_what_something_will_be_done_is_said_first() -> None:
    """我因为罢工会推迟: "because of the strikers' union"."""
    strike = (Adverbial(7, "because of the strike"),)
    one = Phrase(1, pronoun="i")
    said = Clause("postpone", 4, {"S": one, "O": Phrase(2, noun="event:meeting", det="the")}, Tense.FUTURE)
    assert chinese(replace(said, adverbials=strike)) == "因为罢工，我要推迟会议。"


def _after(first: Clause, second: Clause, noun: str) -> Utterance:
    """The first is done after the second to the same thing."""
    thing = Phrase(2, noun=noun, det="the")
    it = Phrase(5, pronoun="it", noun=noun, refers="O")
    return Utterance(
        replace(first, roles={**first.roles, "O": thing}),
        "after",
        replace(second, roles={**second.roles, "O": it}),
    )


def test_what_will_be_done_after_something_is_named_where_it_comes_first() -> None:
    please = Clause("test", 9, {"S": YOU}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    repairs = Clause("repair", 6, {"S": Phrase(7, pronoun="they")})
    assert chinese(_after(please, repairs, "device:computer")) == "他们修理完电脑之后，请测试一下。"
    has_to = Clause("translate", 9, {"S": Phrase(1, pronoun="i")}, modal=Modal.MUST)
    assert chinese(_after(has_to, Clause("write", 6, {"S": HE}), "document:article")) == (
        "他写完文章之后，我得翻译一下。"
    )


def test_what_is_done_to_what_was_named_has_a_complement() -> None:
    """先改进了 sounds unfinished."""
    launch = Clause("launch", 6, {"S": HE}, Tense.PAST)
    before = replace(_after(Clause("improve", 9, {"S": HE}, Tense.PAST), launch, "product:app"), link="before")
    assert chinese(before).endswith("先改进了一下。")
    told = Clause("recommend_book", 9, {"S": HE, "T": Phrase(3, pronoun="they")}, Tense.PAST)
    read_it = Clause("read_book", 6, {"S": HE}, Tense.PAST)
    assert chinese(_after(told, read_it, "text:novel")).endswith("推荐给了他们。")


def test_a_film_is_watched_to_its_end_and_an_invoice_is_not_paid_as_a_bill_is() -> None:
    """看了一下 would be a glance."""
    it = Phrase(5, pronoun="it", noun="show:series", refers="O")
    good = Clause("be", 6, {"S": it}, Tense.PAST, embedded=True, predicate=Predicate(7, "good"))
    watch = Clause("watch", 9, {"S": HE, "O": Phrase(2, noun="show:series", det="the")}, Tense.PAST)
    assert chinese(Utterance(watch, "because", good)).endswith("所以他看了一遍。")
    invoice = Phrase(2, noun="document:invoice", det="the")
    assert chinese(Clause("pay", 9, {"S": HE, "O": invoice}, Tense.PAST)) == "他支付了发票。"


def test_after_an_activity_it_is_over() -> None:
    eat = Clause("eat_out", 9, {"S": HE}, Tense.PAST)
    assert chinese(Utterance(eat, "after", Clause("go_cinema", 6, {"S": HE}, Tense.PAST))) == (
        "他看完电影之后，出去吃饭了。"
    )
    assert chinese(Utterance(eat, "after", Clause("swim", 6, {"S": HE}, Tense.PAST))) == (
        "他游完泳之后，出去吃饭了。"
    )


def test_soup_is_good_to_drink() -> None:
    soup = Phrase(2, noun="food:soup", det="the")
    assert chinese(Clause("taste_good", 9, {"S": soup})).endswith("很好喝。")
    good = Clause("be", 9, {"S": soup}, predicate=Predicate(7, adjective="delicious"))
    assert chinese(good).endswith("很好喝。")
    assert "好吃" in chinese(replace(good, roles={"S": replace(soup, noun="food:pizza")}))


def test_one_goes_by_train_to_do_something() -> None:
    visit = Clause("visit_family", 9, {"S": HE, "O": Phrase(2, noun="family:nephew", det="he")}, Tense.PLANNED)
    visit = replace(visit, adverbials=(Adverbial(5, "by train"), Adverbial(7, "this evening")))
    assert "坐火车去看望" in chinese(visit)
    office = Clause("come_office", 9, {"S": HE}, adverbials=(Adverbial(5, "by train"),))
    assert "坐火车来公司" in chinese(office)


def test_mistakes_are_corrected_and_furniture_is_carried() -> None:
    report = Phrase(2, noun="document:report", det="the")
    assert chinese(Clause("correct", 9, {"S": HE, "O": report}, Tense.PAST)) == "他更正了报告。"
    sofa = Phrase(2, noun="furniture:sofa", det="the")
    assert "搬沙发" in chinese(Clause("move_furniture", 9, {"S": HE, "O": sofa}, Tense.FUTURE))
