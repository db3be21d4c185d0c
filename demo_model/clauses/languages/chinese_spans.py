"""How long something has gone on or lasted, and since when: 已经等了两个小时了, 从星期一起就病了."""

from __future__ import annotations

import re
from abc import abstractmethod

from demo_model.clauses.languages.chinese_phrases import ChinesePhrases
from demo_model.clauses.marks import marked, phrase
from demo_model.clauses.syntax import Clause, Mood, Tense

_STATES = {
    **{"ill": "病", "busy": "忙", "broken": "坏", "closed": "关|门", "open": "开|门"},
    **{"married": "结|婚", "unemployed": "失业", "retired": "退休"},
}
"""An adjective → the verb of which one says how long."""
_SPANNED = {
    **{"be_in_meeting": "=开|会", "be_on_phone": "=打|电话", "be_on_holiday": "=休|假", "be_away": "=出|差"},
    **{"be_off_sick": "=休|病假", "be_in_hospital": "=住|院", "be_without_power": "=停|电", "be_down": "=瘫痪"},
    **{
        "have_cold": "=感冒",
        "have_fever": "=发|烧",
        "live_city": "在T =住",
        "prepare_exam": "为O =准备",
        "stay_home": "在家 =待",
    },
}
"""Frame → its cell if one says how long."""
_WITHOUT = re.compile("^[话天觉]$")
"""What is not said after a time: 睡了两个小时."""


class ChineseSpans(ChinesePhrases):
    @abstractmethod
    def pieces(self, clause: Clause) -> tuple[list[str], str, list[str], bool]:
        """What stands before the verb, the verb, what follows, whether it takes no 了."""

    def cell(self, clause: Clause) -> str:
        long = self.spans(clause) and (clause.asked == "how_long" or self.places(clause, "span", "length"))
        return (_SPANNED.get(clause.frame) if long else None) or super().cell(clause)

    def spans(self, clause: Clause) -> bool:
        """Whether it goes on, or lasted for some time."""
        return clause.tense is Tense.ONGOING or self.lasted(clause)

    def spanned(self, clause: Clause) -> str:
        subject = self.noun_phrase(clause.roles["S"], "S") if "S" in clause.roles else ""
        when, where = self.places(clause, "time"), self.places(clause, "companion", "place")
        if "S" in clause.roles and clause.roles["S"].link == "both":
            when = phrase(when, "都")
        before: list[str] = []
        after: list[str] = []
        stative = False
        if clause.frame == "be" and clause.predicate is not None:
            verb = _STATES[clause.predicate.adjective]
        else:
            before, verb, after, stative = self.pieces(clause)
        mark = clause.predicate.mark if clause.predicate is not None else clause.mark
        head, _, tail = verb.partition("|")
        goes_on = clause.tense is Tense.ONGOING
        since = self.places(clause, "since")
        if since and clause.frame == "be":
            return phrase(subject, since, "就", marked(f"{head}{tail}了", mark))
        if since:
            still = "" if stative else "一直 在"
            return phrase(subject, since, "就", still, where, *before, marked(head + tail, mark), *after)
        length = "多久" if clause.asked else self.places(clause, "span", "length")
        already = "已经" if goes_on and not clause.asked else ""
        last = "了" if goes_on else ""
        if stative or (clause.frame == "be" and (goes_on or not tail)):  # 认识他三年了, 关门三天了, 病了一个星期
            le = "" if goes_on and (stative or tail or len(head) > 1) else "了"
            done = marked(f"{head}{tail}{le}", mark)
            return phrase(subject, when, already, where, *before, done, *after, length, last, self.asks(clause))
        thing = clause.roles.get("O")
        done, of = marked(f"{head}了", mark), marked(_WITHOUT.sub("", tail), mark)
        people = ("person", "family", "profession", "group")
        known = thing is not None and (thing.pronoun or thing.name or self.noun_type(clause, "O") in people)
        if (
            after and not known and thing is not None and thing.det not in ("bare", "", "a")
        ):  # 找钥匙已经找了两个小时了
            before, after, tail = [*before, marked(head, mark), *after], [], ""
            return phrase(subject, when, where, *before, already, done, length, last, self.asks(clause))
        parts = (done, *after, length) if known else (done, length, of, *after)
        return phrase(subject, when, already, where, *before, *parts, last, self.asks(clause))

    def asks(self, clause: Clause) -> str:
        return "吗" if clause.mood is Mood.YES_NO else ""
