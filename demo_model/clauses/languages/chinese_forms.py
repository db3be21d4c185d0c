"""Chinese forms: pronouns and other small words, what adjectives say. Knows words, not sentences."""

from __future__ import annotations

import re

from demo_model.clauses.syntax import Modal

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
    **{"wrap": "起来", "store": "起来", "save": "下来", "iron": "一下"},
    **{
        "taste": "一口",
        "drive": "一会儿",
        "use": "一段时间",
        "send": "过去",
        "give": "过去",
        "print": "出来",
        "repair": "一下",
    },
}
"""What is said in place of 它 after these."""
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
POINTED_AT = {"animal", "dog", "wild", "remark", "plan:method", "product:feature"}
"""Nouns, or types of them, that would be all of their kind, or a verb, without 那."""
ROLE = re.compile(r"^([^OT]*)([OT])([^OT]*)$")


def adjective(cell: str) -> str:
    """What stands before a noun. cell: 漂亮的, 目标~高的 (~: the degree), =坏的/坏了 (a state)."""
    return cell.removeprefix("=").partition("/")[0].replace("~", "很")


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
