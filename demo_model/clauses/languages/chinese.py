"""Chinese: word order, 了 没 正在 会, measure words, 的."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.marks import marked, phrase
from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Tense, Utterance
from demo_model.recogniser import NUMBER_WORDS

_PRONOUNS = {
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
_ASKED = {"when": "什么时候", "where": "在哪里", "why": "为什么", "how": "怎么", "how_often": "多久"}
_MODAL = {
    Modal.CAN: ("可以", "不能"),
    Modal.MUST: ("必须", "不用"),
    Modal.WANT: ("想", "不想"),
    Modal.SHOULD: ("应该", "不应该"),
    Modal.MIGHT: ("可能会", "可能不会"),
}
_MATRIX = {"think": "认为", "know": "知道", "hope": "希望", "say": "说", "whether": "不知道"}
_ROLE = re.compile(r"^([^OT]*)([OT])([^OT]*)$")


class Chinese(Linearizer):
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

    def noun_phrase(self, np: Phrase, case: str) -> str:
        if np.members:
            first = sorted(np.members, key=lambda each: each.pronoun != "i")
            words = self.joined(replace(np, members=tuple(first)), lambda each: self.noun_phrase(each, case))
            return words.replace(" 和 ", " 以及 ") if case == "和" else words
        if np.pronoun:
            return marked("那" if (np.pronoun, case) == ("that", "S") else _PRONOUNS[np.pronoun], np.mark)
        if np.name:
            return marked(self.name(np), np.mark)
        noun = self.noun(np)
        word = noun.cells["zh"]
        adjective = self.words.adjectives[np.adjective]["zh"].removeprefix("=") if np.adjective else ""
        measure = noun.measure
        match np.det:
            case "this":
                word = ("这些" if np.plural else "这" + measure) + adjective + word
            case "a" if not np.plural and case != "be":
                word = f"一{measure}{adjective}{word}"
            case "which":
                word = ("哪些" if np.plural else "哪" + measure) + adjective + word
            case "how_many":
                word = f"{'有' if case == 'S' else ''}几{measure}{adjective}{word}"
            case "how_much" | "what_kind" | "whose":
                word = {"how_much": "多少", "what_kind": "什么样的", "whose": "谁的"}[np.det] + adjective + word
            case "many":
                word = f"很多{adjective}{word}"
            case "all":
                word = f"所有{adjective}{word}"
            case "num":
                word = f"{NUMBER_WORDS['zh'][np.count - 2]}{measure}{adjective}{word}"
            case det if det in _PRONOUNS:
                near = (noun.type in ("family", "group") and not adjective) or adjective.endswith("的")
                word = _PRONOUNS[det] + ("" if near else "的") + adjective + word
            case _:
                word = adjective + word
        words = marked(word, np.mark)
        if np.of is not None:
            words = phrase(self.noun_phrase(np.of, ""), "的", words)
        if np.relative is not None:
            words = phrase(self.clause(np.relative), "的", words)
        return words

    def pieces(self, clause: Clause) -> tuple[list[str], str, list[str], bool]:
        """What stands before the verb, the verb, what follows, whether it takes no 了."""
        before: list[str] = []
        after: list[str] = []
        verb = ""
        for token in self.words.frames[clause.frame].cells["zh"].split():
            if token.startswith("="):
                verb = token[1:]
                continue
            found = _ROLE.match(token)
            if found is None:
                text = marked(token, clause.mark)
            else:
                preposition, role, end = found.groups()
                np = clause.roles.get(role)
                if np is not None and np.det == "a" and (clause.negative or clause.asked == "how_often"):
                    np = replace(np, det="bare")
                asked = "什么" if clause.asked == role else ""
                if (np is None and not asked) or self.before_subject(clause) is np is not None:
                    continue
                text = phrase(preposition, self.noun_phrase(np, preposition) if np else asked, end)
            (after if verb else before).append(text)
        return before, verb.removeprefix("~"), after, verb.startswith("~")

    def before_subject(self, clause: Clause) -> Phrase | None:
        """The direct object that is "both …": 报告和幻灯片，她都看了."""
        np = clause.roles.get("O")
        direct = clause.frame in self.words.frames and self.words.frames[clause.frame].cells["zh"].endswith(" O")
        both = np is not None and np.link == "both" and not any(each.det in ("a", "num") for each in np.members)
        return np if both and direct else None

    def verbs(self, clause: Clause, verb: str, stative: bool, when: bool) -> tuple[str, str]:
        """What stands before the verb phrase ("已经", "没有"), and the verb with 了."""
        negative = clause.negative
        head, _, tail = verb.partition("|")
        plain = marked(head + tail, clause.mark)
        perfect = marked(f"{head}了{tail}", clause.mark)
        if clause.asked == "how_often":
            return "", marked(f"{head}一次{tail}", clause.mark)
        if clause.asked == "how_long" and "多" not in head:
            le = "了" if clause.tense is Tense.PAST else ""
            will = "会" if clause.tense is Tense.FUTURE else ""
            if self.direct(clause) and len(head) > 1:
                return f"{will}花{le}多长时间", plain
            again = phrase(plain, self.noun_phrase(clause.roles["O"], "")) if self.direct(clause) else ""
            return will, phrase(again, marked(f"{head}{le}多久{tail.removeprefix('话')}", clause.mark))
        if clause.modal is not Modal.NONE:
            return _MODAL[clause.modal][negative], plain
        match clause.tense:
            case Tense.DONE:
                return ("还没有", plain) if negative else ("已经", perfect)
            case Tense.NOW:
                return ("没有在" if negative else "正在"), plain
            case Tense.FUTURE if not stative or head in ("有",):
                return ("不会" if negative else "会"), plain
            case Tense.PAST if not stative:
                return ("没有", plain) if negative else ("", plain if clause.gap or when else perfect)
        if negative:
            return ("没" if head == "有" else "不"), plain
        return "", plain

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
        cell = self.words.adjectives[what.adjective]["zh"]
        if cell.startswith("="):
            return marked(("不是" if negative else "是") + cell[1:], what.mark)
        word = cell.removesuffix("的").removeprefix("很")
        if what.than is not None:
            than = phrase("比", self.noun_phrase(what.than, ""))
            return phrase(
                "没有" if negative else "", than.removeprefix("比 ") if negative else than, marked(word, what.mark)
            )
        if what.degree == "too":
            return marked(f"太{word}了", what.mark)
        degree = {"very": "非常", "more": "更"}.get(what.degree, "很")
        if negative:
            has = word.startswith("有") and word != "有趣"
            return marked(f"没{word}" if has else f"不{word}", what.mark)
        if clause.mood is Mood.YES_NO and not what.degree:
            degree = ""
        return phrase(will, marked(degree + word, what.mark))

    def clause(self, clause: Clause, later: str = "", when: bool = False, drop: bool = False) -> str:
        """later: a word between the subject and the rest (就, 所以 …)."""
        subject_np = clause.roles.get("S")
        subject = (
            ""
            if clause.gap == "S" or drop
            else self.noun_phrase(subject_np, "S")
            if subject_np
            else "谁"
            if clause.asked == "S"
            else ""
        )
        front = self.fronted(clause) if clause.mood is Mood.STATEMENT and not clause.gap else None
        rest = self.without(clause, front)
        start = phrase(self.adverbial(front), "，") if front else ""
        time = self.places(rest, "time", "deadline")
        if clause.frame == "exist":
            assert subject_np is not None  # noqa: S101
            place = clause.predicate.place if clause.predicate else None
            where = self.adverbial(place).removeprefix("在") if place else ""
            has = (
                ("不会有" if clause.negative else "会有")
                if clause.tense is Tense.FUTURE
                else "没有"
                if clause.negative
                else "有"
            )
            np = replace(subject_np, det="bare") if subject_np.det == "a" and clause.negative else subject_np
            return phrase(start, time, where, later, marked(has, clause.mark), self.noun_phrase(np, ""))
        question = _ASKED.get(clause.asked, "")
        if clause.frame == "be":
            later = phrase(
                later, "都" if subject_np is not None and subject_np.plural and subject_np.members else ""
            )
            return phrase(start, subject, time, later, question, self.places(rest, "frequency"), self.be(clause))
        before, verb, after, stative = self.pieces(clause)
        cause, where = self.places(rest, "cause"), self.places(rest, "place", "companion")
        manner = self.places(rest, "manner")
        often = self.places(rest, "frequency")
        length = self.places(rest, "length")
        match clause.mood:
            case Mood.IMPERATIVE:
                what = phrase(where, manner, *before, marked(verb.replace("|", ""), clause.mark), *after, length)
                return phrase("请", time, "不要" if clause.negative else "", what)
            case Mood.REQUEST:
                what = phrase(
                    time, where, manner, *before, marked(verb.replace("|", ""), clause.mark), *after, length
                )
                return phrase("您能", what, "吗")
            case Mood.LETS:
                what = phrase(where, manner, *before, marked(verb.replace("|", ""), clause.mark), *after, length)
                return phrase(
                    "我们", time, "不要" if clause.negative else "", what, "了" if clause.negative else "吧"
                )
        aux, verb = self.verbs(clause, verb, stative, when)
        if clause.asked == "how_long" and self.direct(clause) and "花" not in aux:
            after = []
        both = self.before_subject(clause)
        if both is not None:
            start = phrase(start, self.noun_phrase(both, ""), "，")
        if both is not None or (subject_np is not None and subject_np.link == "both"):
            aux = phrase("都", aux)
        end = "吗" if clause.mood is Mood.YES_NO else ""
        return phrase(
            start,
            subject,
            time,
            cause,
            later,
            question,
            often,
            aux,
            where,
            manner,
            *before,
            verb,
            *after,
            length,
            end,
        )

    def direct(self, clause: Clause) -> bool:
        """Whether its object follows the verb."""
        return "O" in clause.roles and self.words.frames[clause.frame].cells["zh"].endswith(" O")

    def answered(self, link: str, clause: Clause) -> str:
        said = self.noun_phrase(clause.roles["S"], "S")
        done = clause.tense in (Tense.PAST, Tense.DONE) and clause.modal is Modal.NONE
        if link == "too":
            return phrase(said, "也会" if clause.tense is Tense.FUTURE else "也是")
        if link == "neither" and clause.tense is Tense.FUTURE:
            return phrase(said, "也不会")
        if link == "neither":
            stative = self.stative(clause)
            also = (
                ("没有",) if done and not stative else self.verbs(clause, self.pieces(clause)[1], stative, False)
            )
            return phrase(said, "也", *also)
        if link == "not_yet":
            return "不 ， 还没有"
        yes = link == "yes"
        if clause.modal is not Modal.NONE:
            verb = _MODAL[clause.modal][not yes]
        elif done:
            head = self.pieces(clause)[1].partition("|")[0]
            verb = marked(head + "了", clause.mark) if yes else "没有"
        else:
            verb = "会的" if yes else "不会"
        return phrase(
            "是的 ，" if yes else "不 ，", said, "已经" if yes and clause.tense is Tense.DONE else "", verb
        )

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        mark = "？" if first.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "。"
        if said.speaker is not None:
            subject = self.noun_phrase(said.speaker, "S")
            if said.link == "whether":
                plain = replace(first, mood=Mood.STATEMENT)
                inner = self.clause(plain) if first.asked else self.clause(plain, "是否")
                return phrase(subject, "不知道", inner, "。")
            verb = "觉得" if said.link == "think" and said.speaker.pronoun == "i" else _MATRIX[said.link]
            return phrase(subject, verb, self.clause(first), "。")
        if second is None:
            end = self.clause(first)
            if first.mood is Mood.YES_NO and first.frame in ("be", "exist"):
                end = phrase(end, "吗")
            return phrase(end, mark)
        about = second.roles.get("S")
        if about is not None and about.refers and said.link == "because":
            return phrase(self.clause(first), "，因为", self.clause(second), mark)
        if about is not None and about.refers and said.link == "although":
            second = replace(second, gap="S")
        other = self.clause(second, when=said.link == "when")
        tail = "吗" if first.mood is Mood.YES_NO and first.frame in ("be", "exist") else ""
        main = phrase(self.clause(first), tail)
        match said.link:
            case "and":
                if about is not None and about.pronoun and about.pronoun == first.roles["S"].pronoun:
                    return phrase(main, "，还", self.clause(second, drop=True), mark)
                return phrase(main, "，", self.clause(second), mark)
            case "but":
                return phrase(main, "，但是", other, mark)
            case "so":
                return phrase(main, "，所以", other, mark)
            case "because" if first.mood is Mood.STATEMENT:
                return phrase("因为", other, "，所以", main, mark)
            case "because":
                return phrase("因为", other, "，", main, mark)
            case "if":
                return phrase(
                    "如果",
                    other,
                    "，",
                    main if first.mood is not Mood.STATEMENT else self.clause(first, "就"),
                    mark,
                )
            case "although":
                return phrase("虽然", other, "，但是", main, mark)
        return phrase(other, "时，", main, mark)

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        if before in ("正在", "没有在") and after.startswith("在"):
            return before[:-1], after
        return None
