"""Chinese phrases: nouns with measure words and 的, what adjectives say, which verb is said."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.chinese_words import (
    AGAIN,
    BEFORE_VERB,
    BRIEFLY,
    CARRIED,
    CLOSE,
    DETERMINERS,
    ENJOYED,
    GOES,
    LASTING,
    MOMENTARY,
    ONE_MORE,
    ONLY_ONCE,
    OTHERWISE,
    OWN,
    POINTED_AT,
    PRONOUNS,
    SAID_OF,
    SAYS_IT,
    SKILLS,
    SOON,
    TO_IT,
    TO_IT_LATER,
    TO_IT_ONCE,
    UNDER_WAY,
    UNIQUE,
    UNWILLED,
    WATCHED,
    WITH_ONE,
)
from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Tense
from demo_model.recogniser import NUMBER_WORDS


def adjective(cell: str) -> str:
    """What stands before a noun. cell: 漂亮的, 目标~高的 (~: the degree), =坏的/坏了 (a state)."""
    word = re.sub("~(?=.的)", "很", cell.removeprefix("=").partition("/")[0]).replace("~", "")
    short = (
        cell.startswith("=") and len(word) <= 3 and word not in ("生病的", "当前的", "对的")
    )  # 生蘑菇, 二手衬衫
    return word.removesuffix("的") if short else word


def said_of(cell: str, degree: str, negative: bool, asks: bool, future: bool) -> str:
    """What is said of a subject: 很漂亮, 不漂亮, 目标太高了, 坏了, 是红色的. degree: that of the predicate."""
    will = "会" if future else ""
    state = cell.partition("/")[2]
    if state:
        change = state.removesuffix("了").replace("着", "")
        no = "不" if state.startswith("能") else "没"
        return no + change if negative else will + change if future else state
    if cell.startswith("="):
        return ("不是" if negative else "是") + cell[1:]
    topic, _, word = cell.removesuffix("的").removeprefix("很").rpartition("~")
    if degree == "more":
        return topic + ("" if negative or len(word) == 1 else "更") + word
    if degree == "too":
        return f"{topic}太{word}了"
    if negative:
        return f"没{word}" if word.startswith("有") and word != "有趣" else f"{topic}不{word}"
    much = {"very": "很" if asks else "非常"}.get(degree, "" if asks else "很")
    return will + topic + much + word


_OWNERS = ("i", "we", "you", "he", "she", "they")


class ChinesePhrases(Linearizer):
    """Writes noun phrases; `Chinese` writes the clauses."""

    language = "zh"
    glue = ""
    comma = "，"
    stop = "。"
    joins: ClassVar = {
        "and": ("", "、", "和", ""),
        "or": ("", "、", "或者", ""),
        "both": ("", "、", "和", ""),
        "either": ("", "、", "或者", ""),
        "etc": ("", "、", "、", "等等"),
    }

    @abstractmethod
    def clause(self, clause: Clause, later: str = "", when: bool = False, drop: bool = False) -> str:
        """The words of a clause."""

    def cell(self, clause: Clause) -> str:
        """The verb and what it takes: that of the frame, or what is said of this object and tense."""
        thing = clause.roles.get("O")
        if thing is not None and thing.pronoun == "it":
            once = clause.tense is Tense.PAST and not clause.negative
            found = TO_IT.get(clause.frame) or (TO_IT_ONCE.get(clause.frame) if once else None)
            found = found or (None if clause.negative else TO_IT_LATER.get(clause.frame))
            if found:
                return found
        if clause.tense is Tense.NOW and clause.frame in UNDER_WAY:
            return UNDER_WAY[clause.frame]
        usual = self.tasted(self.words.frames[clause.frame].cells["zh"], clause.roles.get("S"))
        if clause.asked == "how_long" and usual.startswith("=去"):
            return UNDER_WAY.get(clause.frame, usual)  # 他要慢跑多久
        if thing is not None and thing.det in ("how_many", "how_much"):  # 给她转发了几条消息
            usual = re.sub("^把O =(.+)给 T$", r"给T =\1 O", usual)
        if thing is not None and thing.noun and thing.det in ("the", "this", *_OWNERS):  # 把报告发给他
            usual = re.sub("^给T =([发寄]) O$", r"把O =\1给 T", usual)
        elif clause.frame == "sell" and thing is not None:
            usual = "向T =出售 O"
        if clause.frame == "deliver" and clause.person[0] == "1":
            return "把O =送过去"
        if usual == "=~喜欢 O" and thing is not None and thing.noun:
            usual = f"=~喜欢{ENJOYED.get(self.noun(thing).type, '')} O"
        noun = self.noun(thing).cells["zh"] if thing is not None and thing.noun else ""
        for verb, objects, other in SAID_OF:
            if usual.endswith(f"={verb} O") and re.search(objects, noun):
                return f"{usual.removesuffix(f'={verb} O')}={other} O"
        if usual == "=错过 O" and noun.endswith("课") and clause.tense is Tense.PAST and not clause.negative:
            return "=没上成 O"
        return usual

    def adverbial(self, each: Adverbial) -> str:
        words = re.sub(r"(?<=[\d一两三四五六七八九十])小时", "个小时", super().adverbial(each))
        return re.sub("早上(?=1[01]|十)", "上午", words)

    def pointed(self, np: Phrase, det: str) -> Phrase:
        """The thing something is said of: 这件衬衫很薄, not 衬衫很薄. What one knows is as it was."""
        if not np.noun or np.det != "the" or np.plural or np.adjective or np.relative or np.of:
            return np
        return np if self.noun(np).type in UNIQUE else replace(np, det=det)

    def be(self, clause: Clause) -> str:
        what = clause.predicate
        assert what is not None  # noqa: S101
        negative, past = clause.negative, clause.tense
        will = "会" if past is Tense.FUTURE else ""
        if what.place is not None:
            return phrase(
                ("不会" if negative else "会") if will else "不" if negative else "", self.adverbial(what.place)
            )
        if what.phrase is not None:
            return phrase("不是" if negative else "是", self.noun_phrase(what.phrase, "be"))
        cell = self.tasted(self.words.adjectives[what.adjective]["zh"], clause.roles.get("S"))
        than = self.noun_phrase(what.than, "") if what.than is not None else ""
        asks = clause.mood is Mood.YES_NO
        word = said_of(cell, what.degree, negative, asks, bool(will))
        return phrase("" if not than else "没有" if negative else "比", than, marked(word, what.mark))

    def tasted(self, cell: str, np: Phrase | None) -> str:
        """One drinks what is liquid: 汤很好喝, but 比萨很好吃."""
        liquid = (
            np is not None and np.noun and (self.noun(np).cells["zh"][-1] == "汤" or self.noun(np).type == "drink")
        )
        return cell.replace("好吃", "好喝") if liquid else cell

    def own(self, np: Phrase, clause: Clause) -> bool:
        """Whether it is the subject's, which goes without saying: 我得照看孩子."""
        subject = clause.roles.get("S")
        if not np.noun or subject is None or np.det != subject.pronoun or np.adjective or np.relative:
            return False
        ours = np.det == "we" and (clause.mood is Mood.LETS or self.noun(np).type == "person")
        with_one = clause.frame in WITH_ONE and self.noun(np).type in CARRIED
        return ours or with_one or bool({np.noun, self.noun(np).type} & OWN)

    def to_it(self, clause: Clause, verb: str) -> str:
        """What is said in place of 它: 检查了一遍, 要检查一遍, 应该改进一下."""
        told = clause.mood is Mood.STATEMENT and not clause.negative
        once = told and clause.tense is Tense.PAST and clause.modal is Modal.NONE
        later = told and (clause.tense is Tense.FUTURE or clause.modal is not Modal.NONE)
        if not (once or later) or (once and clause.frame in TO_IT_ONCE):
            return ""
        again = "" if later and clause.frame in ONLY_ONCE else AGAIN.get(clause.frame)
        return again if again is not None else "一下" if verb in BRIEFLY else ""

    def selfs(self, np: Phrase, clause: Clause) -> bool:
        """Whether it is the thing of him who does it: 他重写了自己的报告."""
        subject = clause.roles.get("S")
        if not np.noun or subject is None or np.det != subject.pronoun or np.det not in ("he", "she", "they"):
            return False
        return self.noun(np).type not in ("person", "family", "profession", "group", "home", "city")

    def therefore(self, why: Clause, does: Clause, drop: bool) -> str:
        """What follows: 他累了，就睡着了, but 他迟到了，所以道了歉."""
        event = self.words.frames.get(why.frame)
        weather = event is not None and event.types["S"] == ("weather",)
        then = self.clause(does, "就", drop=drop)
        once = does.tense is Tense.PAST and does.modal is Modal.NONE and not does.negative and "了" in then
        if once and (weather or drop or self.stative(why)):
            return phrase("，", then)
        return phrase("，所以", self.planned(does, self.clause(does, self.then(does), drop=drop)))

    def reasoned(self, first: Clause, second: Clause) -> str:
        """A reason that lies in what it is done to comes first: 屏幕旧了，所以他换了."""
        it, thing = second.roles["S"], first.roles.get("O")
        if thing is None or thing.det == "a" or self.about(first, second) is not second:
            named = thing is not None and not thing.plural and self.about(first, second) is second
            why = self.clause(second if named else replace(second, gap="S"))  # 因为它很便宜
            return phrase(self.planned(first, self.clause(first, self.then(first))), "，因为", why)
        left = {role: np for role, np in first.roles.items() if role != "O"}
        cell = self.cell(first)
        kept = "O" in cell.split(" ")[0] and not (cell.startswith("把") or "=投" in cell)  # 为它做准备
        again = {"O": thing} if self.noun_type(first, "O") in ("money", "charge") else {}  # 降低了费用
        it = replace(it, noun=thing.noun)
        kept = kept or first.frame in SAYS_IT or (first.frame in TO_IT_LATER and not first.negative)
        kept = kept or self.to_it(first, cell.partition("=")[2].split(" ")[0]) in ("一下", "一遍", "下来")
        again = {"O": it} if kept else again
        first = replace(first, embedded=True, roles=left | again)
        why = self.changed(self.clause(replace(second, roles={"S": thing})))
        return phrase(why, "，所以", self.planned(first, self.clause(first, self.then(first))))

    def willed(self, clause: Clause) -> bool:
        """Whether it is what somebody means to do."""
        who = clause.roles.get("S")
        person = who is not None and (
            not who.noun or self.noun(who).type in ("person", "family", "profession", "group")
        )
        plain = clause.modal is Modal.NONE and not clause.negative and not self.stative(clause)
        return clause.tense is Tense.FUTURE and person and plain and clause.frame not in UNWILLED

    def planned(self, clause: Clause, words: str) -> str:
        """What one will do for a reason: 他累了，所以要回家."""
        return " ".join(
            self.will(clause, self.places(clause, "time", "deadline") or "明天", "") if each == "会" else each
            for each in words.split()
        )

    def whether(self, clause: Clause) -> str:
        """她不知道他看没看 …: 有没有看报告, 会不会看报告, 是不是很忙."""
        did = clause.tense is Tense.PAST and not (
            clause.negative or self.stative(clause) or clause.modal is not Modal.NONE
        )
        said = self.clause(replace(clause, negative=True) if did else clause, "是不是")
        either = {"会": "会不会", "有": "有没有", "没有": "有没有" if did else "是不是 没有"}
        return re.sub("是不是 (会|有|没有)", lambda found: either[found[1]], said)

    def will(self, clause: Clause, time: str, later: str) -> str:
        """What says that it will be: 我明天要看报告, 您明天看报告吗, 他明天会看报告吗, 他会迟到."""
        who = clause.roles.get("S")
        person = who is None or not who.noun or self.noun(who).type in ("person", "family", "profession", "group")
        vague = not time or bool(re.search("之前|之内|很快|尽快|稍后|就$|接下来", bare(time)))
        if clause.frame in ("take_place", "start_event", "end_event") and not vague:
            return ""
        if not person or clause.frame in UNWILLED or clause.gap or later or (who is None and not clause.asked):
            return "会"
        if clause.asked == "how_long":
            return "要"
        if clause.asked == "when":
            return ""
        asks = clause.mood is Mood.YES_NO
        if asks and not vague and clause.person == "2":
            return "要"
        verb = self.cell(clause).partition("=")[2]
        leisure = self.noun_type(clause, "O") in ("sport", "instrument", "show")
        if clause.asked == "S" and who is None and self.direct(clause) and not (leisure or WATCHED.match(verb)):
            return "来"
        if asks and SKILLS.match(verb):  # 会 is: whether she can
            return "打算"
        promised = not time and clause.person[0] in "12"  # 我会优化算法
        unsure = asks or promised or (vague and bool(time))
        return "会" if unsure and not re.match(GOES, self.cell(clause)) else "要"

    def soon(self, clause: Clause, will: str) -> bool:
        """Whether 了 says that it is near: 他要结婚了."""
        told = clause.mood is Mood.STATEMENT and not (clause.adverbials or clause.gap or clause.embedded)
        return will == "要" and told and clause.frame in SOON

    def exists(self, clause: Clause, later: str) -> str:
        """What there is: 冰箱里有黄油."""
        subject_np = clause.roles["S"]
        asks = clause.mood is Mood.YES_NO
        place = clause.predicate.place if clause.predicate else None
        where = self.adverbial(place).removeprefix("在") if place else ""
        inside = place is not None and place.key.startswith("in the ") and not re.search("[里上中下边面].$", where)
        where = re.sub("(.)$", r"里\1", where) if inside else where
        has = (
            ("不会有" if clause.negative else "会有")
            if clause.tense is Tense.FUTURE
            else "没有"
            if clause.negative
            else "有"
        )
        np = replace(subject_np, det="bare") if subject_np.det == "a" and (clause.negative or asks) else subject_np
        return phrase(where, later, marked(has, clause.mark), self.noun_phrase(np, ""))

    def once_more(self, clause: Clause) -> str:
        """How often, with 再: 再讲解一遍."""
        thing = clause.roles.get("O")
        again = any(each.key == "again" for each in clause.adverbials)
        was = clause.tense in (Tense.PAST, Tense.DONE, Tense.NOW) and clause.modal is Modal.NONE
        counted = thing is not None and thing.det in ("a", "num", "many")
        if not again or was or counted or clause.negative or clause.asked or self.stative(clause):
            return ""
        return "一遍" if clause.frame in ONE_MORE else "一次"

    def refuses(self, clause: Clause) -> bool:
        """我明天不吃午饭."""
        subject = clause.roles.get("S")
        we = subject is not None and subject.pronoun in ("i", "we")
        return clause.negative and we and clause.mood is Mood.STATEMENT and not clause.gap

    def identifies(self, clause: Clause) -> bool:
        """Whether 是 … 的 tells or asks for it: 昨天是谁看报告的, 他是什么时候看报告的, 会议是昨天举行的."""
        asks = clause.asked in ("when", "where", "how") or (clause.asked == "S" and clause.wanted is None)
        held = clause.frame == "take_place" and clause.mood is Mood.STATEMENT and not (clause.asked or clause.gap)
        asks = asks or (held and bool(self.places(clause, "time")))
        done = clause.tense is Tense.PAST and not clause.negative and clause.modal is Modal.NONE
        return asks and done and not self.stative(clause)

    def then(self, clause: Clause) -> str:
        """What says that a state is over, where no time says it."""
        lasts = (self.stative(clause) or clause.modal is not Modal.NONE) and clause.frame != "come_from"
        if clause.tense is not Tense.PAST or not lasts or self.places(clause, "time"):
            return ""
        if clause.modal is Modal.CAN and clause.negative:  # 没能
            return ""
        what, who = clause.predicate, clause.roles.get("S")
        before = what is not None and (what.phrase is not None or what.adjective in LASTING)
        if before or clause.frame in LASTING:
            return "以前"
        changed = clause.modal is Modal.NONE and re.search("=~[^ ]*了$", self.cell(clause) if what is None else "")
        if not clause.negative and (changed or clause.modal is Modal.MUST):
            return ""
        if what is None or not what.adjective or who is None:
            return "当时"
        person = not who.noun or self.noun(who).type in ("person", "family", "profession")
        return "" if not person else "当时" if what.adjective in MOMENTARY else "那时候"

    def noun_type(self, clause: Clause, role: str) -> str:
        np = clause.roles.get(role)
        return self.noun(np).type if np is not None and np.noun else ""

    def direct(self, clause: Clause) -> bool:
        """Whether its object follows the verb."""
        return "O" in clause.roles and self.cell(clause).endswith(" O")

    def fronted(self, clause: Clause) -> Adverbial | None:
        front = super().fronted(clause)  # 她每周都 …
        due = clause.modal is Modal.MUST or clause.tense is Tense.FUTURE  # not 我因为罢工会
        if front is None and due and not clause.embedded:  # 因为下雨，我们得推迟
            front = next((each for each in clause.adverbials if self.kind(each) == "cause"), None)
        habit = front is not None and self.words.adverbial_kinds[front.key] == "time_habit"
        return None if habit else front

    def before_subject(self, clause: Clause) -> Phrase | None:
        """The direct object that is "both …": 报告和幻灯片，她都看了."""
        np = clause.roles.get("O")
        told = clause.mood in (Mood.STATEMENT, Mood.YES_NO, Mood.WH)
        direct = told and clause.frame in self.words.frames and self.cell(clause).endswith(" O")
        both = np is not None and np.link == "both" and not any(each.det in ("a", "num") for each in np.members)
        return np if both and direct else None

    def ends_done(self, clause: Clause) -> bool:
        """Whether 了 stands at the end: 已经发报告了, 您发报告了吗, but 已经发了一份报告."""
        if clause.negative or clause.modal is not Modal.NONE or clause.asked or clause.gap or self.stative(clause):
            return False
        thing = clause.roles.get("O")
        asks = clause.mood is Mood.YES_NO
        counted = thing is not None and thing.det in (("num", "many") if asks else ("a", "num", "many"))
        counted = counted or (thing is not None and any(each.det in ("a", "num") for each in thing.members))
        counted = counted or "很多" in self.cell(clause)  # 花了很多钱吗
        return not counted and (clause.tense is Tense.DONE or (asks and clause.tense is Tense.PAST))

    def changed(self, words: str) -> str:
        """A state that one got into: 他很累 → 他累了."""
        return re.sub(r"(?<!不)很([饿渴累困旧])", r"\1了", words)

    def noun_phrase(self, np: Phrase, case: str) -> str:
        if np.members:
            first = sorted(np.members, key=lambda each: (each.pronoun != "i") == (len(np.members) == 2))
            called = [self.noun(each).cells["zh"] for each in first if each.noun]

            def member(each: Phrase) -> str:
                words, other = self.noun_phrase(each, case), OTHERWISE.get(each.noun)
                word = self.noun(each).cells["zh"] if other else ""
                return words.replace(word, other) if other and called.count(word) > 1 else words

            words = self.joined(replace(np, members=tuple(first)), member)
            return words.replace(" 和 ", " 以及 ") if case == "和" else words
        if np.pronoun:
            return marked("那" if (np.pronoun, case) == ("that", "S") else PRONOUNS[np.pronoun], np.mark)
        if np.name:
            return marked(self.name(np), np.mark)
        noun = self.noun(np)
        modifier = adjective(self.tasted(self.words.adjectives[np.adjective]["zh"], np)) if np.adjective else ""
        measure, kin = noun.measure, noun.type in ("family", "group")
        word = modifier + noun.cells["zh"]
        lead, det = "", np.det
        described = modifier or (np.relative and not noun.mass)
        if det == "the" and (described or {noun.type, noun.key} & POINTED_AT) and not (np.plural and not modifier):
            det = "that"
        match det:
            case "this" | "that":
                lead = {"this": "这", "that": "那"}[det] + ("些" if np.plural else measure)
            case "a" if not np.plural and case != "be":
                lead = "一" + measure
            case "which":
                lead = "哪些" if np.plural else "哪" + measure
            case "how_many":
                lead = ("有" if case == "S" else "") + ("多少" if measure == "位" else "几" + measure)
            case "own" if modifier.endswith("的") and not np.plural:
                lead = f"自己那{measure}"
            case "how_much" | "what_kind" | "whose" | "many" | "all" | "own":
                lead = DETERMINERS[det]
            case "num":
                lead = NUMBER_WORDS["zh"][np.count - 2] + measure
            case _ if det in PRONOUNS and modifier.endswith("的") and not (np.plural or kin or noun.mass):
                lead = f"{PRONOUNS[det]}那{measure}"
            case _ if det in PRONOUNS:
                ours = det == "we" and word.startswith("团队")
                close = kin or np.noun in CLOSE
                short = (close and len(word) < 4) or noun.type == "group"
                near = (not modifier and (ours or short)) or "的" in word
                lead = PRONOUNS[det] + ("" if near else "的")
        if np.relative is not None:
            relative = self.clause(np.relative)
            again = case in BEFORE_VERB and bare(relative.split()[0]) in BEFORE_VERB  # not 向向
            before = lead or ("那些" if np.plural else "") if again else ""
            after = word if again else lead + word
            return phrase(marked(before, np.mark), relative, "的", marked(after, np.mark))
        words = marked(lead + word, np.mark)
        return phrase(self.noun_phrase(np.of, ""), "的", words) if np.of is not None else words

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        if before in ("正在", "没有在", "在") and after.startswith("在"):
            return before[:-1], after
        if before.endswith("都") and after == "都":
            return "", after
        return None
