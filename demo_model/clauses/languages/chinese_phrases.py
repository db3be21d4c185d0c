"""Chinese phrases: nouns with measure words and 的, what adjectives say, which verb is said."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Tense
from demo_model.recogniser import NUMBER_WORDS

PRONOUNS = {
    "it": "它",
    "weather": "",
    "i": "我",
    "we": "我们",
    "you": "您",
    "he": "他",
    "she": "她",
    "they": "他们",
    "that": "那个",
    "who": "谁",
}
DETERMINERS = {"how_much": "多少", "what_kind": "什么样的", "whose": "谁的", "many": "很多", "all": "所有"}
ASKED = {"when": "什么时候", "where": "在哪里", "why": "为什么", "how": "怎么", "how_often": "多久"}
MODAL = {
    Modal.CAN: ("可以", "不能"),
    Modal.MUST: ("得", "不用"),
    Modal.WANT: ("想", "不想"),
    Modal.SHOULD: ("应该", "不应该"),
    Modal.MIGHT: ("可能会", "可能不会"),
}
MATRIX = {"think": "觉得", "know": "知道", "hope": "希望", "say": "说", "whether": "不知道"}
RESULTS = dict.fromkeys("写做烤洗修煮煎泡织熨切画叠点租买种", "好")
RESULTS |= dict.fromkeys("去看读喝吃教学听谈提找笑哭尝用骑弹讲唱说遛喂等拍", "过")
RESULTS |= dict.fromkeys(
    ("帮助", "联系", "通知", "批评", "表扬", "拜访", "参观", "观察", "讨论", "看望", "照顾"), "过"
)
"""A verb → what it takes with 已经: 已经看过书了."""
AGAIN = {
    **dict.fromkeys(("check", "proofread", "read", "read_book", "test", "test_code"), "一遍"),
    **dict.fromkeys(("review_code", "correct", "inspect"), "一遍"),
    **dict.fromkeys(("iron", "repair", "discuss_with", "summarize"), "一下"),
    **{"wrap": "起来", "store": "起来", "save": "下来", "print": "出来"},
    **{"taste": "一口", "drive": "一会儿", "use": "一段时间"},
}
"""What is said in place of 它 after these."""
TO_IT = {"send": "=发给 T O", "give": "=送给 T O", "share": "=分享给 T O", "submit": "=提交给 T O"}
TO_IT_ONCE = {"read_book": "=看完 O", "eat": "=吃掉 O"}
"""Frame → its cell if the object is 它, which is not said; the second if it was done."""
UNDER_WAY = {
    **{"open_event": "给O =致|开幕词", "record": "=录 O"},
    **{"go_shopping": "=买|东西", "hike": "=远足", "camp": "=露营", "fish": "=钓|鱼", "jog": "=慢跑"},
    **{"run": "=跑|步", "go_bed": "=准备睡觉"},
    **dict.fromkeys(("pick_up", "pick_up_guest"), "=~在去接 O 的路上"),
    **dict.fromkeys(("travel", "fly", "leave_for", "go_to_shop"), "=~在去 T 的路上"),
    **{"go_theatre": "=~在去剧院的路上", "go_cinema": "=~在去电影院的路上", "go_home": "=~在回家的路上"},
    **{"go_beach": "=~在去海边的路上", "see_doctor": "=~在去看病的路上", "go_lunch": "=~在去吃午饭的路上"},
    **{"go_school": "=~在上学的路上", "come_office": "=~在来公司的路上", "return_from": "=~在从 T 回来的路上"},
    "go_holiday": "=~在去度假的路上",
    "take_to_vet": "=~在带 O 去看兽医的路上",
}
"""Frame → its cell for what is going on."""
ONCE = {
    **{"吵|架": "吵了一架", "洗|澡": "洗了个澡", "泡|澡": "泡了个澡", "谈|话": "谈了谈", "聊|天": "聊了聊"},
    **{"散|步": "散了会儿步", "做|报告": "做了个报告", "睡|午觉": "睡了个午觉", "打|招呼": "打了个招呼"},
    **{"量": "量了一下", "休息": "休息了一下", "待在|家里": "待在家里", "答应给": "答应给", "邀请": "邀请"},
}
"""Verb → how it is said of what was done, where no rule puts 了 in its place."""
THEN = {
    **dict.fromkeys(("cancel", "postpone", "delete_account", "return_goods", "return_item", "exchange"), "后来又"),
    **dict.fromkeys(("check", "correct", "proofread", "print", "share", "upload", "archive", "test"), "并"),
    **dict.fromkeys(("test_code", "review_code", "deploy", "optimize", "configure", "discuss_with"), "并"),
    **dict.fromkeys(("explain", "summarize", "comment_on", "distribute", "sign", "submit", "solve"), "并"),
    **dict.fromkeys(("report_problem", "launch", "advertise", "file_doc", "translate", "furnish"), "并"),
    "find": "最后",
}
"""What is done next with the same thing → what joins it, if not 然后."""
MOMENTARY = frozenset(
    [
        *("busy", "tired", "hungry", "ill", "nervous", "happy", "satisfied", "disappointed", "angry", "worried"),
        *("sad (person)", "excited", "relaxed", "surprised", "thirsty", "sleepy", "impatient", "grateful"),
    ]
)
"""What people are at a moment (当时), not as they are (那时候)."""
LASTING = frozenset(
    [
        *("live_city", "live_in", "own_company", "have", "have_thing", "know_person", "work_at", "respect"),
        *("collect_thing", "belong", "love", "trust", "be_responsible", "understand_language"),
        *("rich", "famous", "strong (person)"),
    ]
)
"""Frames and adjectives of states that were so before (以前), not at that moment (当时)."""
BEFORE_VERB = ("向", "给", "对", "把", "和", "为")
QUICK = "as soon as possible"
POINTED_AT = frozenset(
    [
        *("animal", "dog", "wild", "remark", "text", "plan:method", "plan:plan", "product:feature", "plan:idea"),
        *("plan:measure", "plan:change", "plan:compromise", "plan:suggestion", "plan:proposal"),
        *("person:employee", "person:designer", "person:graphic designer", "person:web designer"),
    ]
)
"""Nouns, or types of them, that would be all of their kind, or a verb, without 那."""
UNIQUE = frozenset(
    [
        *(
            "person",
            "family",
            "profession",
            "group",
            "city",
            "topic",
            "skill",
            "sport",
            "subject",
            "money",
            "charge",
        ),
        *("nature", "sight", "amenity", "site", "fixture", "transport", "opening", "staple", "ingredient"),
    ]
)
"""Types of nouns that one knows without 这."""
SAID_OF = (
    ("庆祝", "(?:^生日|纪念日)$", "过"),
    ("设立", "(?:店|餐厅|健身房|幼儿园|食堂)$", "开"),
    ("做完", "(?:报告|文章|信|稿|文件|月报|总结|摘要)$", "写完"),
    ("穿上", "(?:帽子?|围巾|手套|头巾|披肩)$", "戴上"),
    ("穿上", "(?:领带|领结|皮带)$", "系上"),
    ("脱下", "(?:帽子?|手套)$", "摘下"),
    ("弹", "提琴$", "拉"),
    ("做", "(?:系统|软件|应用|程序|网站|平台|数据库|工具|功能)$", "开发"),
    ("泡", "(?:柠檬水|昔|汁|鸡尾酒)$", "做"),
    ("打", "^足球$", "踢"),
)
"""A verb, objects that take another one, and that one."""
BY_NAME = ("product", "device", "software", "code")
"""Types of things that are 它; others are named again."""
OTHERWISE = {"person:client": "委托人", "person:trainee": "见习生"}
"""What these are called beside customers and interns."""
OWN = frozenset(["dog", "family:child", "family:baby", "feast:birthday"])
"""Whose these are goes without saying, if they are the subject's own."""
ROLE = re.compile(r"^([^OT]*)([OT])([^OT]*)$")


def adjective(cell: str) -> str:
    """What stands before a noun. cell: 漂亮的, 目标~高的 (~: the degree), =坏的/坏了 (a state)."""
    word = re.sub("~(?=.的)", "很", cell.removeprefix("=").partition("/")[0]).replace("~", "")
    short = cell.startswith("=") and len(word) <= 3 and word not in ("生病的", "当前的")  # 生蘑菇, 二手衬衫
    return word.removesuffix("的") if short else word


def said_of(cell: str, degree: str, negative: bool, asks: bool, future: bool) -> str:
    """What is said of a subject: 很漂亮, 不漂亮, 目标太高了, 坏了, 是红色的. degree: that of the predicate."""
    will = "会" if future else ""
    state = cell.partition("/")[2]
    if state:
        change = state.removesuffix("了").replace("着", "")
        return "没" + change if negative else will + change if future else state
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
            if found:
                return found
        if clause.tense is Tense.NOW and clause.frame in UNDER_WAY:
            return UNDER_WAY[clause.frame]
        usual = self.words.frames[clause.frame].cells["zh"]
        noun = self.noun(thing).cells["zh"] if thing is not None and thing.noun else ""
        for verb, objects, other in SAID_OF:
            if usual == f"={verb} O" and re.search(objects, noun):
                return f"={other} O"
        return usual

    def pointed(self, np: Phrase, det: str) -> Phrase:
        """The thing something is said of: 这件衬衫很薄, not 衬衫很薄. What one knows is as it was."""
        if not np.noun or np.det != "the" or np.plural or np.adjective or np.relative or np.of:
            return np
        return np if self.noun(np).type in UNIQUE else replace(np, det=det)

    def own(self, np: Phrase, clause: Clause) -> bool:
        """Whether it is the subject's, which goes without saying: 我得照看孩子."""
        subject = clause.roles.get("S")
        if not np.noun or subject is None or np.det != subject.pronoun or np.adjective or np.relative:
            return False
        ours = np.det == "we" and (clause.mood is Mood.LETS or self.noun(np).type == "person")
        return ours or bool({np.noun, self.noun(np).type} & OWN)

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

    def direct(self, clause: Clause) -> bool:
        """Whether its object follows the verb."""
        return "O" in clause.roles and self.cell(clause).endswith(" O")

    def named_again(self, it: Phrase, thing: Phrase | None) -> Phrase:
        """What 它 stands for, unless it is of a kind that one calls so, or has a long name."""
        noun = self.words.nouns[it.noun]
        known = noun.type in UNIQUE
        if noun.type in BY_NAME or len(noun.cells["zh"]) not in ((2,) if known else (1, 2)):
            return it
        det = thing.det if thing is not None and thing.det == "the" else "this"
        pointed = not known and not {noun.type, noun.key} & POINTED_AT
        return Phrase(it.mark, noun=it.noun, det="this" if pointed else det)

    def changed(self, words: str) -> str:
        """A state that one got into: 他很累 → 他累了."""
        return re.sub(r"(?<!不)很([饿渴累困])", r"\1了", words)

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
        modifier = adjective(self.words.adjectives[np.adjective]["zh"]) if np.adjective else ""
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
            case "how_much" | "what_kind" | "whose" | "many" | "all":
                lead = DETERMINERS[det]
            case "num":
                lead = NUMBER_WORDS["zh"][np.count - 2] + measure
            case _ if det in PRONOUNS and modifier.endswith("的") and not (np.plural or kin or noun.mass):
                lead = f"{PRONOUNS[det]}那{measure}"
            case _ if det in PRONOUNS:
                near = (kin and not modifier and len(word) < 4) or "的" in word
                lead = PRONOUNS[det] + ("" if near else "的")
        if np.relative is not None:
            relative = self.clause(np.relative)
            again = case in BEFORE_VERB and bare(relative.split()[0]) in BEFORE_VERB  # not 向向
            before = lead or ("那些" if np.plural else "") if again else ""
            after = word if again else lead + word
            return phrase(marked(before, np.mark), relative, "的", marked(after, np.mark))
        words = marked(lead + word, np.mark)
        return phrase(self.noun_phrase(np.of, ""), "的", words) if np.of is not None else words
