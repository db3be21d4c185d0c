"""Chinese: word order, 了 没 正在 会, measure words, 的."""

from __future__ import annotations

import re
from dataclasses import replace

from demo_model.clauses.languages.chinese_spans import ChineseSpans
from demo_model.clauses.languages.chinese_words import (
    ASKED,
    BRIEFLY,
    FINISHED,
    FINISHED_GOING,
    HIRED,
    HIT,
    MATRIX,
    MODAL,
    ONCE,
    QUICK,
    RESULTS,
    ROLE,
    SAID_OF,
    SAYS_IT,
    TAKEN,
    THEN,
    UNABLE,
)
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import PURPOSES, Clause, Modal, Mood, Tense, Utterance

_BRIEF = 5
"""A time of so many signs begins a sentence without a comma: 昨天她看了报告."""
_RIDES = re.compile("坐|开车")


class Chinese(ChineseSpans):
    def pieces(self, clause: Clause) -> tuple[list[str], str, list[str], bool]:
        """What stands before the verb, the verb, what follows, whether it takes no 了."""
        before: list[str] = []
        after: list[str] = []
        verb = ""
        asks = clause.mood is Mood.YES_NO
        for token in self.cell(clause).split():
            if token.startswith("="):
                verb, _, kindly = token[1:].partition("/")
                can = clause.modal is Modal.CAN and asks and clause.person == "2"
                asking = can or clause.mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS)
                asking = asking and not any(each.key == "again" for each in clause.adverbials)
                kindly = kindly or (f"{verb}一下" if verb in BRIEFLY and self.direct(clause) else "")
                verb = kindly if kindly and asking and not clause.negative else verb
                continue
            found = ROLE.match(token)
            if found is None:
                text = marked(token, clause.mark)
            else:
                preposition, role, end = found.groups()
                np = clause.roles.get(role)
                dropped = np is not None and np.pronoun == "it" and verb and not (preposition or end)
                if dropped and clause.frame not in SAYS_IT:
                    after.append(self.to_it(clause, verb))
                    continue
                if np is not None and self.own(np, clause):
                    np = replace(np, det="bare")
                elif np is not None and self.selfs(np, clause):
                    np = replace(np, det="own")
                if np is not None and clause.frame in HIRED and role == "O" and np.det == "the" and not np.plural:
                    np = replace(np, det="that")
                if np is not None and role == "O" and clause.frame in TAKEN:
                    np = self.pointed(np, "that")
                none = (
                    clause.negative
                    or verb.startswith("~没")
                    or self.identifies(clause)
                    or clause.asked in ("how_often", "when")
                )
                none = none or (asks and (self.stative(clause) or self.ends_done(clause)))
                if np is not None and np.det == "a" and none:
                    np = replace(np, det="bare")
                asked = "什么" if clause.asked == role else ""
                if (np is None and not asked) or self.before_subject(clause) is np is not None:
                    continue
                text = phrase(preposition, self.noun_phrase(np, preposition) if np else asked, end)
            (after if verb else before).append(text)
        return before, verb.removeprefix("~"), after, verb.startswith("~")

    def verbs(self, clause: Clause, verb: str, stative: bool, when: bool) -> tuple[str, str]:
        """What stands before the verb phrase ("已经", "没有"), and the verb with 了."""
        negative = clause.negative
        head, _, tail = verb.partition("|")
        head = head.removeprefix("很") if clause.mood is Mood.YES_NO else head
        plain = marked(head + tail, clause.mark)
        alone = len(tail) == 1 and not {"O", "T"} & set(clause.roles)  # 回家了, but 吃了午饭
        at_end = alone or head[0] in "去来" or self.cell(clause).startswith("去")
        weather = "S" in clause.roles and clause.roles["S"].pronoun == "weather"
        over = when and not (negative or stative or weather) and clause.modal is Modal.NONE
        if over and head in FINISHED:
            return "", marked(f"{head}完{tail}", clause.mark)
        gone_for = (head + tail).removeprefix("去")
        if over and head[0] == "去" and gone_for in FINISHED_GOING:
            return "", marked(FINISHED_GOING[gone_for], clause.mark)
        once = None if verb == "等" and "O" in clause.roles else ONCE.get(verb)
        perfect = marked(once or (f"{head}{tail}了" if at_end else f"{head}了{tail}"), clause.mark)
        short = len(head) == 1 and "O" in clause.roles and not tail  # 丢了钥匙之后
        if clause.asked == "why" or self.identifies(clause):
            perfect = plain
        if self.ends_done(clause):
            result = "" if tail else RESULTS.get(head, "") if clause.tense is Tense.DONE else ""
            return "已经" if clause.tense is Tense.DONE else "", marked(head + result + tail, clause.mark)
        if clause.asked == "how_often":
            return "", marked(f"{head}一次{tail}", clause.mark)
        if clause.asked == "how_long" and "多" not in head:
            le = "了" if clause.tense is Tense.PAST else ""
            will = "会" if clause.tense is Tense.FUTURE else ""
            if head == "去":
                return will, marked(f"{head}{tail}{le}多久", clause.mark)
            if self.direct(clause) and self.noun_type(clause, "O") in ("skill", "subject", "sport", "instrument"):
                return will, marked(f"{head}{le}多久", clause.mark)
            again = phrase(plain, self.noun_phrase(clause.roles["O"], "")) if self.direct(clause) else ""
            return will, phrase(again, marked(f"{head}{le}多久{tail.strip('话天')}", clause.mark))
        past = clause.tense is Tense.PAST
        if clause.modal is Modal.CAN and negative and clause.frame in UNABLE:
            return "", marked(UNABLE[clause.frame][past], clause.mark)
        if clause.modal is not Modal.NONE:
            if clause.modal is Modal.MUST and clause.tense is Tense.PAST and not negative:
                return "不得不", plain
            if clause.modal is Modal.SHOULD and clause.asked == "when" and not negative:
                return "该", plain
            if clause.modal is Modal.CAN and past and negative:
                return "没能", plain
            return MODAL[clause.modal][negative], plain
        match clause.tense:
            case Tense.DONE:
                return ("还没", plain) if negative else ("已经", perfect)
            case Tense.NOW if verb.startswith("在"):  # 正和她一起在去电影院的路上
                return ("没有" if negative else "" if clause.mood is Mood.YES_NO else "正"), plain
            case Tense.NOW if not verb.startswith("很"):
                plain = marked(
                    re.sub("(?<=.)[完上下掉好]$|(?<=[借送])来$", "", head) + tail, clause.mark
                )  # 正在写报告
                return ("没有在" if negative else "在" if clause.mood is Mood.YES_NO else "正在"), plain
            case Tense.FUTURE if not self.stative(clause) or head in ("有",):
                return ("不" if self.refuses(clause) else "不会" if negative else "会"), plain
            case Tense.PAST if not stative:
                return (
                    ("没有", plain) if negative else ("", plain if clause.gap or (when and not short) else perfect)
                )
        if negative and head.endswith("了"):
            return "没", marked(head.removesuffix("了"), clause.mark)
        if negative:
            return ("没" if head[0] in "有在" else "不"), marked(head.removeprefix("很") + tail, clause.mark)
        return "", plain

    def clause(self, clause: Clause, later: str = "", when: bool = False, drop: bool = False) -> str:
        """later: a word between the subject and the rest (就, 所以 …)."""
        if self.spans(clause):
            return self.spanned(clause)
        same = {Tense.PLANNED: Tense.FUTURE, Tense.PRIOR: Tense.PAST}
        clause = replace(clause, tense=same.get(clause.tense, clause.tense))
        subject_np, identifies = clause.roles.get("S"), self.identifies(clause)
        adjective = clause.predicate is not None and clause.predicate.adjective
        if subject_np is not None and (
            (clause.frame == "be" and adjective) or clause.frame in ("cost", "fit", "taste_good")
        ):
            subject_np = self.pointed(subject_np, "that" if clause.tense is Tense.PAST else "this")
        subject = (
            ""
            if clause.gap == "S" or drop
            else self.noun_phrase(subject_np, "S")
            if subject_np
            else ("是谁" if identifies else "谁")
            if clause.asked == "S"
            else ""
        )
        quick = phrase(*(self.adverbial(each) for each in clause.adverbials if each.key == QUICK))
        clause = replace(clause, adverbials=tuple(each for each in clause.adverbials if each.key != QUICK))
        fronts = clause.mood is Mood.STATEMENT and not (clause.gap or identifies)
        front = self.fronted(clause) if fronts else None
        rest = self.without(clause, front)
        start = self.adverbial(front) if front else ""
        brief = front is not None and self.kind(front) == "time" and not front.values
        brief = brief and len("".join(map(bare, start.split()))) <= _BRIEF
        start = phrase(start, "" if brief else "，") if front else ""
        time = self.places(rest, "time", "deadline")
        if identifies and not clause.asked:
            time = phrase("是", time)
        refused = clause.negative and clause.tense is Tense.FUTURE and clause.mood is Mood.STATEMENT
        if (refused and not clause.embedded) or (
            clause.asked == "S" and (clause.wanted or identifies or clause.tense is Tense.FUTURE)
        ):
            start, time = phrase(start, time.removeprefix("在")), ""
        counted = re.match("(.*)(.次)(.)$", time)  # 每周帮他两次
        time, times = (counted[1] + counted[3], counted[2] + counted[3]) if counted else (time, "")
        late = ""
        if clause.modal is not Modal.NONE and time.startswith("在"):  # 想在茶歇前打印
            late, time = time, ""
        if clause.frame == "exist":
            return phrase(start, time, self.exists(clause, later))
        asks = ASKED.get(clause.asked, "")
        question = "是" + asks if asks and identifies else asks
        each_time = any(re.match("every (?!two|other)", each.key) for each in rest.adverbials)
        if clause.frame == "be":
            several = subject_np is not None and subject_np.plural and subject_np.members
            later = phrase(later, "都" if several or each_time else "")
            return phrase(start, subject, time, later, question, self.places(rest, "frequency"), self.be(clause))
        before, verb, after, stative = self.pieces(clause)
        cause, where = self.places(rest, "cause"), self.places(rest, "place")
        if verb[0] == "去" and re.match("在(?!没有)", where) and not {"O", "T"} & set(clause.roles):  # 去乡下远足
            where, verb = "去" + where[1:], verb[1:].removeprefix("|")
        where = phrase(quick, self.places(rest, "companion"), where)  # 和侄女在公园玩
        manner = self.places(rest, "manner")
        if _RIDES.match(bare(manner)) and verb[0] not in "去来回":  # 坐火车去看望侄子
            manner = phrase(manner, "去")
        if clause.tense in (Tense.PAST, Tense.DONE) and not clause.negative and clause.modal is Modal.NONE:
            manner = manner.replace("再", "又")
        manner = manner.replace("再", "重新") if clause.tense is Tense.NOW else manner
        if bare(manner) in ("再", "又"):  # 又和您一起看了
            where, manner = phrase(manner, where), ""
        if bare(manner) in ("详细", "仔细", "快速"):  # 和她详细讨论
            before, manner = [*before, manner], ""
        often = self.places(rest, "frequency")
        length = self.places(rest, "length")
        times = times or self.once_more(clause)
        head, _, tail = verb.partition("|")
        named = times and self.direct(clause) and not clause.roles["O"].pronoun
        asked_to = marked(head + (times if named or tail else "") + tail, clause.mark)
        what = phrase(where, manner, *before, asked_to, *after, "" if named or tail else times, length)
        match clause.mood:
            case Mood.IMPERATIVE:
                first = ("", time) if time.startswith("过") else (time, "")
                return phrase(first[1], "请", first[0], "不要" if clause.negative else "", what)
            case Mood.REQUEST:
                return phrase("您", time, "能", what, "吗")
            case Mood.LETS:
                return phrase(
                    "我们", time, "不要" if clause.negative else "", what, "了" if clause.negative else "吧"
                )
        cut = verb.partition("|")
        aux, verb = self.verbs(clause, verb, stative, when)
        if clause.tense is Tense.FUTURE and aux.startswith("会"):
            aux = self.will(clause, phrase(start, time, quick), later) + aux[1:]
        if (times and not after) or (self.direct(clause) and not clause.roles["O"].pronoun):
            verb = phrase(marked(cut[0], clause.mark), times, marked(cut[2], clause.mark)) if times else verb
        else:
            length = phrase(times, length)
        if clause.asked == "how_long" and self.direct(clause) and " " in verb:
            after = []
        both = self.before_subject(clause)
        if both is not None:
            start = phrase(start, self.noun_phrase(both, ""), "，")
        if both is not None or each_time or (subject_np is not None and subject_np.link == "both"):
            aux = phrase("都", aux.replace("正在", "在"))
        if stative and before and not self.cell(clause).startswith("在"):
            before, aux = [*before, aux], ""  # 肚子不疼
        last = "的" if identifies else "了" if self.ends_done(clause) or self.soon(clause, aux) else ""
        early = clause.asked in ("where", "how") or clause.modal is Modal.WANT  # 您想什么时候看报告
        end = phrase(last, "吗" if clause.mood is Mood.YES_NO else "")
        return phrase(
            start,
            subject,
            time,
            cause,
            later,
            often,
            *((aux, question) if early else (question, aux)),
            late,
            where,
            manner,
            *before,
            verb,
            *after,
            length,
            end,
        )

    def answered(self, link: str, clause: Clause) -> str:
        said = self.noun_phrase(clause.roles["S"], "S")
        done = clause.tense in (Tense.PAST, Tense.DONE) and clause.modal is Modal.NONE
        cell = self.cell(clause)
        if link == "too" and self.stative(clause) and re.match(r"=~?[^ ]*[^在自于 ](?: |$)", cell):
            return phrase(said, "也", *self.verbs(clause, self.pieces(clause)[1], True, False))
        head, _, tail = self.pieces(clause)[1].partition("|")
        said_again = cell.startswith("=") or (head != "去" and "表示" not in cell and cell[0] not in "去为")
        said_again = said_again and not any(cell == f"={verb} O" for verb, *_ in SAID_OF)  # 穿上 or 戴上
        if link == "too" and done and not self.stative(clause) and said_again:
            verb = head + (tail if len(tail) == 1 else "") + "了"
            return phrase(said, "也", marked(verb, clause.mark))
        if link == "too":
            will = self.will(clause, self.places(clause, "time", "deadline"), "")
            return phrase(said, f"也{will}" if clause.tense is Tense.FUTURE else "也是")
        if link == "neither" and clause.tense is Tense.FUTURE:
            return phrase(said, "也不会")
        if link == "neither":
            stative = self.stative(clause)
            also = (
                ("没有",) if done and not stative else self.verbs(clause, self.pieces(clause)[1], stative, False)
            )
            return phrase(said, "也", *(re.sub("(.)在(.?)$", r"\1\2", each) for each in also))
        if link == "not_yet":
            return "还没有"
        yes = link == "yes"
        if clause.modal is not Modal.NONE:
            must = clause.modal is Modal.MUST and yes
            verb = (
                phrase(*self.verbs(clause, self.pieces(clause)[1].removesuffix("给"), False, False))
                if must
                else ""
            )
            verb = verb or MODAL[clause.modal][not yes]
        elif done:
            verb = marked(head.removesuffix("给") + "了", clause.mark) if yes else "没有"
        else:
            plan = clause.tense is Tense.FUTURE
            verb = ("会的" if plan else "是的") if yes else "不会" if plan else "没有"
        if not yes or verb in ("会的", "是的", MODAL[Modal.CAN][0]):
            return verb
        if clause.modal is Modal.NONE:  # 解释了
            return verb if said_again else "是的"
        return phrase("是的 ，", said, verb)

    def opened(self, said: Utterance) -> str:
        words = super().opened(said)
        if said.link == "that's why":
            return words.replace(" 。 所以", " ， 所以")
        asked, answers = said.first.roles.get("S"), said.second.roles.get("S") if said.second is not None else None
        several = said.link in ("yes", "no", "not_yet") and answers is not None and answers.pronoun == "we"
        return words.replace("您", "你们") if several and asked is not None and asked.pronoun == "you" else words

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        mark = "？" if first.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "。"
        if said.speaker is not None:
            subject = self.noun_phrase(said.speaker, "S")
            if said.link == "whether":
                plain = replace(first, mood=Mood.STATEMENT)
                inner = self.clause(plain) if first.asked else self.whether(plain)
                return phrase(subject, "不知道", inner, "。")
            spoken = self.clause(first, self.then(first)).split()
            for will in {"会", "要"} & set(spoken) if said.link in ("hope", "think") else ():
                spoken[spoken.index(will)] = "能" if said.link == "hope" else "会"
            return phrase(subject, MATRIX[said.link], *spoken, "。")
        if second is None:
            end = self.clause(first, self.then(first))
            if first.mood is Mood.YES_NO and first.frame in ("be", "exist"):
                end = phrase(end, "吗")
            return phrase(end, mark)
        if said.link in ("before", "after"):
            return phrase(self.around(said), mark)
        if said.link in PURPOSES:
            return phrase(self.meant(first, second, said.link), mark)
        about = second.roles.get("S")
        shared = about is not None and bool(about.pronoun) and about.pronoun == first.roles["S"].pronoun
        thing = first.roles.get("O")
        moved = "O" in first.roles and (self.direct(first) or self.cell(first).startswith("把"))
        named = moved and thing is not None and thing.det != "a"
        if about is not None and about.pronoun == "it" and said.link == "because":
            return phrase(self.reasoned(first, second), mark)
        if about is not None and about.refers == "S" and said.link == "because":
            times = tuple(each for each in first.adverbials if self.kind(each) == "time")
            others = tuple(each for each in first.adverbials if each not in times)
            why = self.changed(self.clause(replace(second, roles={"S": first.roles["S"]}, adverbials=times)))
            main = replace(first, embedded=True, adverbials=others)
            return phrase(why, self.therefore(second, main, drop=True), mark)
        if about is not None and about.refers == "S" and said.link == "although":
            subject = self.noun_phrase(first.roles["S"], "S")
            does = self.clause(replace(first, embedded=True), "还是", drop=True)
            return phrase(subject, "虽然", self.clause(second, drop=True), "，但", does, mark)
        if about is not None and about.refers == "O" and said.link == "although" and not named:
            why = self.clause(replace(second, gap="S"))
            return phrase("虽然", why, "，但", self.clause(replace(first, embedded=True), "还是"), mark)
        if about is not None and about.refers == "O" and said.link == "although":
            second = replace(second, roles={**second.roles, "S": first.roles["O"]})
            first = replace(first, roles={role: np for role, np in first.roles.items() if role != "O"})
        event = self.words.frames.get(second.frame)
        happens = event is not None and not self.stative(second) and event.types["S"] != ("weather",)
        asks = first.mood is not Mood.STATEMENT
        awaited = said.link == "when" and asks and happens
        if happens and (awaited or said.link == "if"):
            known = {role: replace(np, det="bare") if np.det == "a" else np for role, np in second.roles.items()}
            second = replace(second, tense=Tense.PAST, roles=known)
        when = said.link == "when"
        other = self.clause(second, when=when, drop=shared and said.link in ("and", "but", "so"))
        tail = "吗" if first.mood is Mood.YES_NO and first.frame in ("be", "exist") else ""
        turned = said.link == "so" and first.frame in ("be_hungry", "be_thirsty", "have_fever")  # 他饿了，所以 …
        over = first.modal is not Modal.NONE or (said.link == "so" and not turned)
        later = "就" if said.link == "if" and not asks else self.then(first) if over else ""
        later = phrase(later, "还是") if said.link == "although" else later
        hit = shared and second.frame in HIT  # 她忘了密码，就更改了密码
        if when and not asks and second.tense is Tense.PAST and hit:
            return phrase(self.clause(second), "，", self.clause(first, "就", drop=shared), mark)
        if later == "就" and self.willed(first):
            first = replace(first, tense=Tense.HABIT)  # 如果下雪，他们就泡茶
        follows = said.link in ("because", "although", "if", "when")
        main = replace(first, embedded=follows)
        words = phrase(self.clause(main, later, drop=shared and follows), tail)
        match said.link:
            case "and":
                then = THEN.get(second.frame, "然后") if shared and not second.negative else ""
                return phrase(words, "，" + then, other, mark)
            case "but":
                return phrase(words, "，但是", other, mark)
            case "so":
                words = self.changed(words) if turned else words
                return phrase(words, self.therefore(first, second, drop=shared), mark)
            case "because":
                return phrase("因为", other, "，", words, mark)
            case "if":
                return phrase("如果", self.changed(other), "，", words, mark)
            case "although":
                return phrase("虽然", other, "，但是", words, mark)
        close = shared or (about is not None and about.pronoun == "weather")
        if self.stative(second):
            other = re.sub(r"了(.?)$", r"\1", other.replace("很", "", 1))
        return phrase(
            other, ("后" if awaited else "之后" if happens else "的时候") + ("" if close else "，"), words, mark
        )

    def concluded(self, clause: Clause) -> str:
        return phrase("所以", self.planned(clause, self.clause(clause, self.then(clause))))

    def meant(self, first: Clause, second: Clause, link: str) -> str:
        """为了确认日期，她打了电话; 她去超市买面包了; 她发了报告，好让他看."""
        second = replace(second, tense=Tense.HABIT, modal=Modal.NONE)
        if link == "so that":
            it = "O" in second.roles and second.roles["O"].pronoun == "it"
            briefly = it and self.pieces(second)[1] in BRIEFLY  # 好让他看一下
            other = phrase(self.clause(second), marked("一下", second.mark) if briefly else "")
            return phrase(self.clause(first, self.then(first)), "，好让", other)
        why = self.clause(second, drop=True)
        if self.cell(first) not in ("=去 T", "=回|家", "=来|公司", "=坐飞机去 T"):
            return phrase("为了", why, "，", self.clause(replace(first, embedded=True), self.then(first)))
        over = first.tense is Tense.PAST
        goes = self.clause(replace(first, tense=Tense.HABIT) if over else first)
        return phrase(goes, why, "了" if over else "")

    def around(self, said: Utterance) -> str:
        """她看报告之前，先打了电话; 他看了报告之后，我打了电话. What comes first names the thing."""
        before = said.link == "before"
        first, second = self.in_order(said, True)
        shared, asks = self.same_subject(said), first.mood is not Mood.STATEMENT
        second = replace(second, tense=Tense.HABIT if before else Tense.PAST)
        other = self.clause(second, when=not before, drop=shared and asks)
        words = self.clause(
            replace(first, embedded=True), "先" if before and shared else "", drop=shared and not asks
        )
        words = re.sub("^先 (得|要|应该|会|想) ", r"\1先 ", words)
        if not before and shared and words.startswith("请 ") and not first.negative:
            return phrase("请", other, "之后再", words.removeprefix("请 "))
        if before and shared and words.startswith("请 "):
            words = f"请 先 {words.removeprefix('请 ')}"
        return phrase(other, "之前，" if before else "之后，", words)
