"""Composed Chinese: what says that a thing is past, where 了 stands, what is left out the second time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo_model.clauses.languages.chinese_phrases import adjective, said_of
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from tests.demo_model.clauses.said import REPORT, read, texts

YOU = Phrase(1, pronoun="you")
HE = Phrase(1, pronoun="he")
QUICK = Adverbial(5, "as soon as possible")


def chinese(said: Utterance | Clause) -> str:
    return texts(said)["zh"]


def test_a_state_that_is_over_says_so_unless_a_time_does() -> None:
    busy = Clause("be", 9, {"S": HE}, Tense.PAST, predicate=Predicate(5, "busy"))
    assert chinese(busy) == "他当时很忙。"
    assert chinese(replace(busy, tense=Tense.HABIT)) == "他很忙。"
    assert chinese(replace(busy, adverbials=(Adverbial(6, "yesterday"),))) == "昨天他很忙。"
    lived = Clause("live_city", 9, {"S": HE, "T": Phrase(2, noun="city:Rome", det="name")}, Tense.PAST)
    assert chinese(lived) == "他以前住在罗马。"
    assert chinese(read(HE, modal=Modal.MUST)) == "他不得不看报告。"
    assert chinese(Utterance(replace(busy, embedded=True), "know", speaker=YOU)) == "您知道他当时很忙。"


def test_le_ends_a_question_and_what_is_already_done() -> None:
    assert chinese(read(YOU, mood=Mood.YES_NO)) == "您看报告了吗？"
    assert chinese(read(HE, Tense.DONE)) == "他已经看过报告了。"
    write = Clause("write", 9, {"S": HE, "O": REPORT}, Tense.DONE)
    assert chinese(write) == "他已经写好报告了。"
    one = {"S": HE, "O": replace(REPORT, det="a")}
    assert chinese(replace(write, roles=one)) == "他已经写了一份报告。"
    assert chinese(replace(write, roles=one, mood=Mood.YES_NO)) == "他已经写好报告了吗？"


def test_the_same_subject_and_the_same_thing_are_not_said_again() -> None:
    it = Phrase(5, pronoun="it", noun="document:report", refers="O")
    check = Clause("check", 6, {"S": HE, "O": it}, Tense.PAST, embedded=True)
    assert chinese(Utterance(read(HE), "and", check)) == "他看了报告，并检查了一遍。"
    not_yet = replace(check, tense=Tense.DONE, negative=True)
    assert chinese(Utterance(read(HE), "but", not_yet)) == "他看了报告，但是还没检查。"
    hungry = Clause("be_hungry", 8, {"S": HE}, Tense.PAST, embedded=True)
    assert chinese(Utterance(read(HE), "when", hungry)) == "他饿的时候看了报告。"
    assert chinese(Utterance(replace(hungry, embedded=False), "so", read(HE, embedded=True))) == (
        "他饿了，就看了报告。"
    )
    assert chinese(Utterance(read(YOU), "when", hungry)) == "他饿的时候，您看了报告。"


def test_although_names_the_thing_first() -> None:
    it = Phrase(5, pronoun="it", noun="document:report", refers="O")
    long = Clause("be", 6, {"S": it}, embedded=True, predicate=Predicate(7, "long"))
    assert chinese(Utterance(read(HE, Tense.FUTURE), "although", long)) == "虽然这份报告很长，但是他还是会看。"
    assert chinese(Utterance(read(HE, Tense.FUTURE), "because", long)) == "这份报告很长，所以他要看一遍。"


def test_a_condition_is_fulfilled_first() -> None:
    crash = read(HE, Tense.HABIT, embedded=True)
    said = Utterance(replace(read(YOU, Tense.FUTURE), frame="check"), "if", crash)
    assert chinese(said) == "如果他看了报告，您就检查报告。"
    rain = Clause("rain", 8, {"S": Phrase(4, pronoun="weather")}, embedded=True)
    assert chinese(Utterance(read(YOU, Tense.FUTURE), "if", rain)) == "如果下雨，您就看报告。"


def test_where_soon_and_a_time_stand() -> None:
    assert chinese(read(HE, Tense.FUTURE, adverbials=(QUICK,))) == "他会尽快看报告。"
    tomorrow = (Adverbial(5, "tomorrow"),)
    assert chinese(read(YOU, mood=Mood.REQUEST, adverbials=tomorrow)) == "您明天能看一下报告吗？"
    who = replace(Phrase(1, noun="person:customer", det="how_many", plural=True))
    assert chinese(read(who, mood=Mood.WH, asked="S", adverbials=(Adverbial(5, "yesterday"),))) == (
        "昨天有多少客户看了报告？"
    )
    hope = Utterance(read(HE, Tense.FUTURE, embedded=True), "hope", speaker=YOU)
    assert chinese(hope) == "您希望他能看报告。"


def test_one_goes_to_the_country_to_walk() -> None:
    hike = Clause("hike", 9, {"S": HE}, Tense.PAST, adverbials=(Adverbial(5, "in the countryside"),))
    assert chinese(hike) == "他去乡下远足了。"
    assert chinese(Clause("jog", 9, {"S": HE}, Tense.FUTURE, mood=Mood.WH, asked="how_long")) == "他要慢跑多久？"


def test_a_thing_with_an_adjective_is_pointed_at() -> None:
    plan = replace(REPORT, adjective="useful")
    assert chinese(Clause("read", 9, {"S": HE, "O": plan}, Tense.PAST)) == "他看了那份有用的报告。"


def test_who_is_meant_follows_a_preposition() -> None:
    apologized = Clause(
        "apologize", 5, {"S": Phrase(6, noun="person:customer", det="the"), "O": HE}, Tense.PAST, gap="S"
    )
    customer = Phrase(3, noun="person:customer", det="the", relative=apologized)
    said = Clause("apologize", 9, {"S": YOU, "O": customer}, Tense.FUTURE)
    assert chinese(said) == "您会向那位向他道歉的客户道歉。"


def test_so_did_they_repeats_a_state() -> None:
    had = Clause("have_time", 9, {"S": HE}, Tense.PAST)
    assert chinese(Utterance(had, "too", replace(had, roles={"S": YOU}))) == "他当时有时间。您也有。"
    came = Clause("come_from", 9, {"S": HE, "T": Phrase(2, noun="city:Rome", det="name")}, Tense.PAST)
    assert chinese(Utterance(came, "too", replace(came, roles={"S": YOU}))) == "他来自罗马。您也是。"
    live = Clause("live_city", 9, {"S": HE}, Tense.HABIT, negative=True)
    assert chinese(Utterance(live, "neither", replace(live, roles={"S": YOU}))).endswith("您也不住。")
    hat = Clause("wear", 9, {"S": HE, "O": Phrase(2, noun="clothes:hat", det="the")}, Tense.PAST)
    assert chinese(Utterance(hat, "too", replace(hat, roles={"S": YOU}))) == "他戴上了帽子。您也是。"
    must = read(YOU, Tense.HABIT, modal=Modal.MUST, mood=Mood.YES_NO)
    yes = replace(must, roles={**must.roles, "S": HE}, mood=Mood.STATEMENT)
    assert chinese(Utterance(must, "yes", yes)) == "您得看报告吗？是的，他得看。"


@pytest.mark.parametrize(
    ("cell", "degree", "negative", "text"),
    [
        ("漂亮的", "", False, "很漂亮"),
        ("漂亮的", "more", False, "更漂亮"),
        ("目标~高的", "too", False, "目标太高了"),
        ("目标~高的", "", True, "目标不高"),
        ("=坏的/坏了", "", False, "坏了"),
        ("=坏的/坏了", "", True, "没坏"),
        ("=红色的", "", True, "不是红色的"),
        ("有耐心的", "", True, "没有耐心"),
    ],
)
def test_what_an_adjective_says(cell: str, degree: str, negative: bool, text: str) -> None:
    assert said_of(cell, degree, negative, asks=False, future=False) == text


def test_what_stands_before_a_noun() -> None:
    cells = ("目标~高的", "经验~丰富的", "=坏的/坏了", "漂亮的")
    assert [adjective(each) for each in cells] == ["目标很高的", "经验丰富的", "坏", "漂亮的"]


def test_two_that_are_called_the_same_are_told_apart() -> None:
    client, customer = (
        Phrase(mark, noun=f"person:{key}", det="the") for mark, key in ((3, "client"), (4, "customer"))
    )
    both = Phrase(2, members=(client, customer), link="and", plural=True)
    assert chinese(Clause("call", 9, {"S": HE, "O": both}, Tense.FUTURE)) == "他要给委托人和客户打电话。"
    assert chinese(Clause("call", 9, {"S": HE, "O": client}, Tense.FUTURE)) == "他要给客户打电话。"


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        ("be_hungry", "他当时不饿。"),
        ("have_stomachache", "他当时肚子不疼。"),
        ("be_late", "他当时进度没落后。"),
        ("be_in_meeting", "他当时没在开会。"),
        ("have_time", "他当时没有时间。"),
        ("be_wrong", "他当时没错。"),
        ("be_right", "他当时没说对。"),
    ],
)
def test_what_was_not_so(frame: str, text: str) -> None:
    assert chinese(Clause(frame, 9, {"S": HE}, Tense.PAST, negative=True)) == text


def test_when_it_was_is_asked_with_de() -> None:
    assert chinese(read(HE, mood=Mood.WH, asked="when")) == "他是什么时候看报告的？"
    assert chinese(read(HE, mood=Mood.WH, asked="why")) == "他为什么看报告？"


def test_who_it_was_is_asked_with_de() -> None:
    asked = Clause("read", 9, {"O": REPORT}, Tense.PAST, mood=Mood.WH, asked="S")
    assert chinese(replace(asked, adverbials=(Adverbial(5, "yesterday"),))) == "昨天是谁看报告的？"
    assert chinese(replace(asked, negative=True)) == "谁没有看报告？"
    met = Clause("take_place", 9, {"S": Phrase(1, noun="event:meeting", det="the")}, Tense.PAST)
    assert chinese(replace(met, adverbials=(Adverbial(6, "yesterday"),))) == "会议是昨天举行的。"


def test_a_reason_has_its_subject() -> None:
    busy = Clause("be", 6, {"S": replace(HE, refers="S")}, Tense.PAST, predicate=Predicate(7, "tired"))
    slept = Clause("fall_asleep", 9, {"S": HE}, Tense.PAST)
    assert chinese(Utterance(slept, "because", busy)) == "他累了，就睡着了。"
    assert chinese(Utterance(slept, "although", busy)) == "他虽然很累，但还是睡着了。"
    it = Phrase(5, pronoun="it", noun="product:website", refers="O")
    used = Clause("use", 9, {"S": HE, "O": Phrase(2, noun="product:website", det="the")}, Tense.PAST)
    fast = Clause("be", 6, {"S": it}, Tense.PAST, predicate=Predicate(7, "fast"))
    assert chinese(Utterance(used, "because", fast)) == "那个网站很快，所以他用了。"


def test_what_one_waits_for_and_what_follows() -> None:
    solved = Clause("read", 6, {"S": HE, "O": replace(REPORT, det="a")}, Tense.HABIT, embedded=True)
    call = Clause("call", 9, {"S": YOU, "O": Phrase(3, pronoun="i")}, Tense.FUTURE, mood=Mood.IMPERATIVE)
    assert chinese(Utterance(call, "when", solved)) == "他看完报告后，请给我打个电话。"
    past = Clause("receive", 6, {"S": HE, "O": REPORT}, Tense.PAST, embedded=True)
    assert chinese(Utterance(read(HE), "when", past)) == "他收到那份报告之后看了报告。"
    rain = Clause("rain", 8, {"S": Phrase(4, pronoun="weather")}, Tense.PAST, embedded=True)
    assert chinese(Utterance(read(HE), "when", rain)) == "下雨的时候他看了报告。"


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        ("go_home", "他回家了。"),
        ("have_lunch", "他吃了午饭。"),
        ("stay_home", "他待在家里。"),
        ("rain", "下雨了。"),
    ],
)
def test_where_le_stands_after_what_was_done(frame: str, text: str) -> None:
    who = Phrase(1, pronoun="weather") if frame == "rain" else HE
    assert chinese(Clause(frame, 9, {"S": who}, Tense.PAST)) == text


def test_le_follows_where_one_went() -> None:
    went = Clause("go_trip", 9, {"S": HE, "T": Phrase(2, noun="city:Rome", det="name")}, Tense.PAST)
    assert chinese(went) == "他去罗马出差了。"


def test_what_is_under_way() -> None:
    assert chinese(Clause("go_theatre", 9, {"S": HE}, Tense.NOW)) == "他正在去剧院的路上。"
    with_her = (Adverbial(6, "with {P}", phrase=Phrase(7, pronoun="she")),)
    cinema = Clause("go_cinema", 9, {"S": HE}, Tense.NOW, adverbials=with_her)
    assert chinese(cinema) == "他正和她一起在去电影院的路上。"
    assert chinese(replace(cinema, mood=Mood.YES_NO, adverbials=())) == "他在去电影院的路上吗？"
    assert chinese(Clause("finish", 9, {"S": HE, "O": REPORT}, Tense.NOW)) == "他正在写报告。"
    party = Phrase(2, noun="event:workshop", det="the")
    forward = Clause("look_forward", 9, {"S": HE, "O": party}, Tense.NOW)
    assert chinese(forward) == "他很期待工作坊。"
    assert chinese(replace(forward, mood=Mood.YES_NO)) == "他期待工作坊吗？"


def test_a_thing_of_which_something_is_said_is_pointed_at() -> None:
    car = Phrase(2, noun="motor:car", det="the")
    old = Clause("be", 9, {"S": car}, predicate=Predicate(5, "old"))
    assert chinese(old) == "这辆车很旧。"
    assert chinese(replace(old, tense=Tense.PAST)) == "那辆车很旧。"
    boss = replace(old, roles={"S": Phrase(2, noun="person:boss", det="the")}, predicate=Predicate(5, "busy"))
    assert chinese(boss) == "老板很忙。"


def test_two_prepositions_do_not_meet() -> None:
    asked = Clause("apologize", 5, {"O": Phrase(6, pronoun="they")}, Tense.PAST, gap="S")
    for det, text in (("all", "他向所有向他们道歉的客户道歉了。"), ("the", "他向那些向他们道歉的客户道歉了。")):
        people = Phrase(3, noun="person:customer", det=det, plural=True, relative=asked)
        assert (
            chinese(Clause("apologize", 9, {"S": HE, "O": people}, Tense.PAST)).replace("道了歉", "道歉了") == text
        )


def test_what_is_ones_own_and_every_week() -> None:
    child = Phrase(2, noun="family:child", det="he")
    watch = Clause("watch_child", 9, {"S": HE, "O": child}, Tense.HABIT, adverbials=(Adverbial(5, "every week"),))
    assert chinese(watch) == "他每周都照看孩子。"
    assert chinese(replace(watch, roles={"S": YOU, "O": child})) == "您每周都照看他孩子。"


def test_i_do_not_is_what_i_mean_to_do() -> None:
    i = Phrase(1, pronoun="i")
    assert chinese(read(i, Tense.FUTURE, negative=True)) == "我不看报告。"
    assert chinese(read(HE, Tense.FUTURE, negative=True)) == "他不会看报告。"


@pytest.mark.parametrize(
    ("adjective", "text"), [("new", "他看了自己的新报告。"), ("useful", "他看了自己那份有用的报告。")]
)
def test_whose_it_is_and_what_it_is_like(adjective: str, text: str) -> None:
    mine = replace(REPORT, det="he", adjective=adjective)
    assert chinese(Clause("read", 9, {"S": HE, "O": mine}, Tense.PAST)) == text


@pytest.mark.parametrize(
    ("frame", "noun", "text"),
    [
        ("finish", "document:report", "他写完了一份报告。"),
        ("finish", "document:poster", "他做完了一张海报。"),
        ("celebrate_day", "feast:birthday", "他过了一个生日。"),
        ("open_office", "site:shop", "他开了一家商店。"),
        ("open_office", "site:factory", "他设立了一家工厂。"),
        ("forget", "small:umbrella", "他忘了带一把雨伞。"),
        ("wear", "clothes:hat", "他戴上了一顶帽子。"),
        ("wear", "clothes:tie", "他系上了一条领带。"),
        ("wear", "clothes:coat", "他穿上了一件大衣。"),
        ("play_instrument", "instrument:violin", "他拉了一把小提琴。"),
    ],
)
def test_the_verb_fits_its_object(frame: str, noun: str, text: str) -> None:
    thing = Phrase(2, noun=noun, det="a")
    assert chinese(Clause(frame, 9, {"S": HE, "O": thing}, Tense.PAST)) == text


def test_two_verbs_and_one_le() -> None:
    assert chinese(Clause("go_cinema", 9, {"S": HE}, Tense.PAST)) == "他去看电影了。"
    assert chinese(Clause("come_office", 9, {"S": HE}, Tense.PAST)) == "他来公司了。"


@pytest.mark.parametrize(
    ("frame", "text"), [("have_fever", "他发烧了。"), ("be_right", "他说对了。"), ("be_hungry", "他当时很饿。")]
)
def test_a_change_needs_no_time(frame: str, text: str) -> None:
    assert chinese(Clause(frame, 9, {"S": HE}, Tense.PAST)) == text


def test_again_says_how_often_and_an_asked_quantity_follows_the_verb() -> None:
    again = (Adverbial(5, "again"),)
    assert chinese(read(YOU, Tense.FUTURE, mood=Mood.IMPERATIVE, adverbials=again)) == "请再看一遍报告。"
    assert chinese(Clause("call", 9, {"S": YOU, "O": HE}, mood=Mood.IMPERATIVE, adverbials=again)) == (
        "请再给他打一次电话。"
    )
    many = replace(REPORT, det="how_many", plural=True)
    sent = Clause("forward", 9, {"S": YOU, "O": many, "T": HE}, Tense.PAST, mood=Mood.WH, asked="O")
    assert chinese(sent) == "您给他转发了几份报告？"
    assert chinese(read(YOU, Tense.HABIT, modal=Modal.CAN, mood=Mood.YES_NO)) == "您可以看一下报告吗？"


def test_what_is_near_and_who_will_do_it() -> None:
    assert chinese(Clause("marry", 9, {"S": HE}, Tense.FUTURE)) == "他要结婚了。"
    who = Clause("go_bed", 9, {}, Tense.FUTURE, mood=Mood.WH, asked="S", adverbials=(Adverbial(5, "tomorrow"),))
    assert chinese(who) == "明天谁要去睡觉？"


def test_the_weather_is_a_time_and_a_loss_is_a_reason() -> None:
    hot = Clause("weather_hot", 8, {"S": Phrase(4, pronoun="weather")}, Tense.PAST)
    assert chinese(Utterance(read(HE), "when", hot)) == "天气热的时候他看了报告。"
    lost = Clause("lose_doc", 8, {"S": HE, "O": REPORT}, Tense.PAST)
    called = Clause("call", 9, {"S": HE, "O": YOU}, Tense.PAST)
    assert chinese(Utterance(called, "when", lost)) == "他弄丢了报告，就给您打了电话。"


def test_both_things_one_is_asked_to_read_are_named() -> None:
    both = Phrase(2, members=(REPORT, replace(REPORT, mark=3, noun="document:list")), link="both", plural=True)
    asked = Clause("read", 9, {"S": YOU, "O": both}, mood=Mood.IMPERATIVE)
    assert chinese(asked).startswith("请看一下报告和")
