"""Japanese: particles, the polite end of a sentence, plain forms inside it."""

from __future__ import annotations

import re
from dataclasses import replace

from demo_model.clauses.languages.japanese_phrases import (
    ASKING_MOODS,
    FOR_US,
    TABLES,
    JapanesePhrases,
    Word,
    adjective,
    verb,
    with_modal,
)
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import (
    ANSWERS,
    ASKED_FRAMES,
    PURPOSES,
    Clause,
    Modal,
    Mood,
    Phrase,
    Predicate,
    Tense,
    Utterance,
)

_ASKED = {
    **{"when": "いつ", "where": "どこで", "why": "なぜ", "how": "どうやって", "S": "誰が", "O": "何を"},
    **{"how_long": "どのくらい", "how_often": "どのくらいの頻度で"},
}
_WITH_NI = re.compile("(の[朝夜春夏秋冬]|[午直]後|末|の.曜日|正午)$")
"""Times that に may stand after."""


class Japanese(JapanesePhrases):
    def arguments(self, clause: Clause, contrast: bool = False, named: bool = True) -> tuple[str, Word]:
        """The words between subject and verb, and the verb. contrast: スカートは洗いましたが.

        named: whether objects are; in an answer the verb alone goes with them.
        """
        subject = clause.roles.get("S")
        if clause.frame == "exist":
            return "", verb("いる1" if self.living(subject) else "ある")
        what = clause.predicate
        if clause.frame == "be" and what is not None:
            if what.place is not None:
                return self.place(what.place, "に"), verb("いる1" if self.living(subject) else "ある")
            if what.phrase is not None:
                very = "とても" if what.degree == "very" else ""
                return phrase(very, self.noun_phrase(what.phrase, "")), Word("", "na")
            cell = self.said_of(what.adjective, subject)
            one_feels = subject is not None and subject.pronoun in ("i", "we") and cell.endswith("そうな")
            word = adjective(cell.removesuffix("そうな") + "い" if one_feels else cell)
            degree = {"very": "とても"}.get(what.degree, "")
            part, ga, quality = word.text.rpartition("が")
            if degree and ga and what.degree != "too" and quality not in ("ある", "ない"):  # リスクがとても高い
                word, degree = Word(quality, word.kind, part + ga + degree), ""
            than = phrase(self.noun_phrase(what.than, ""), "より") if what.than else ""
            if what.degree == "too":
                stem = word.adjective_stem() if word.kind == "i" else word.text
                word = Word("すぎる", "1", stem)
            return phrase(than, marked(degree, what.mark) if degree else ""), word
        cell = self.words.frames[clause.frame].cells["ja"]
        thing = clause.roles.get("O")
        if thing is not None and thing.pronoun == "it":
            undone = clause.tense is Tense.DONE and clause.negative
            cell = TABLES["not_yet" if undone else "unsaid"].get(clause.frame, cell)
        if clause.tense in (Tense.PAST, Tense.PRIOR) and not clause.negative:
            cell = TABLES["told"].get(clause.frame, cell)
        if self.lasted(clause):
            cell = TABLES["lasted"].get(clause.frame, cell)
        if clause.gap == "O":
            cell = TABLES["of_it"].get(clause.frame, cell)
        if clause.modal is Modal.CAN:
            cell = TABLES["able"].get(clause.frame, cell)
        ours = subject is not None and subject.pronoun in ("i", "we")
        if ours and clause.frame in TABLES["humble"] and any(np.pronoun == "you" for np in clause.roles.values()):
            cell = f"{cell.rpartition(' ')[0]} {TABLES['humble'][clause.frame]}"
        if subject is not None and subject.det == "you":
            cell = TABLES["of_yours"].get(clause.frame, cell)
        *rest, last = self.verb_of(clause, cell).split()
        words: list[str] = []
        turned = {}
        if last == "する" and clause.modal is Modal.CAN and not self.asks_to(clause):
            turned = {"を": "が"}  # 準備ができます
        elif self.asks_about(clause, last):
            turned = {"が": "は"}  # 時間はありますか, 天気はいいですか
        elif clause.negative and last == "必要な":
            turned = {"が": "は"}  # 助けは必要ありません
        for each in rest:
            if each[0] in "OT":
                if not named or (each[0] in clause.roles and clause.roles[each[0]].pronoun == "it"):
                    continue  # what was named just before
                if each[0] in clause.roles:
                    owner = self.owner(subject, clause.roles[each[0]])
                    if self.goes_without(clause, owner, clause.roles[each[0]]):
                        continue  # 手伝ってください
                    particle = turned.get(each[1:], each[1:])
                    particle = (
                        "は" if (each == "Oが" and clause.negative) or (each == "Oを" and contrast) else particle
                    )
                    said = self.with_particle(clause.roles[each[0]], owner, particle)
                    paper = clause.frame in TABLES["frames"]["contracts"]
                    words.append(re.sub("(契約|申請)書", r"\1", said) if paper else said)
                elif clause.asked == each[0]:
                    words.append("何" + each[1:])
            else:
                words.append(marked(each[:-1] + turned.get(each[-1], each[-1]), clause.mark))
        asked, _, wanted = last.partition("/")
        return phrase(*words), verb(
            wanted
            if wanted and self.to_us(clause) and (clause.mood in ASKING_MOODS or self.asks_to(clause))
            else asked
        )

    def predicate(self, clause: Clause, word: Word) -> tuple[Word, bool, bool]:
        """The inflected end with modality and aspect in it: (word, negative, past)."""
        negative, past = clause.negative, clause.tense in (Tense.PAST, Tense.PRIOR)
        if self.asks_to(clause):
            return Word("もらえる", "1", word.te()), False, False
        asks = (
            clause.mood in (Mood.YES_NO, Mood.WH) and clause.person == "2" and clause.asked not in ("why", "how")
        )
        if clause.modal is Modal.WANT and asks and not (past or negative):
            return word, False, False  # 読みますか: one is not asked what one wants
        if clause.modal.value:
            return with_modal(word, clause.modal, clause.mood, clause.person[0], negative, past)
        if negative and past and clause.frame in TABLES["frames"]["unable"]:
            return word.potential(), negative, past
        asked = clause.mood in (Mood.YES_NO, Mood.WH) and clause.person[0] == "3"  # 招待してくれましたか
        theirs = {"i", "we", "you"} if asked else {"i", "we"}
        given = {np.pronoun for role, np in clause.roles.items() if role != "S"} & theirs
        welcome = FOR_US in clause.roles
        if welcome or (given and self.favour(clause) and clause.person[0] in "23"):
            word = Word("くれる", "1", word.te())
        if clause.tense is Tense.DONE:
            return (Word("いる", "1", word.te()), True, False) if negative else (word, False, True)
        resultative = "teiru" in self.tags(clause)
        regular = any(self.kind(each) == "frequency" for each in clause.adverbials)
        if regular and asked and clause.tense is Tense.HABIT and not self.stative(clause):  # 毎日しますか
            return Word("いる", "1", word.te()), negative, past
        lasts = clause.tense is Tense.ONGOING and not self.stative(clause)
        if lasts or clause.tense is Tense.NOW or (resultative and word.kind in ("1", "5", "する")):
            return Word("いる", "1", word.te()), negative, past
        return word, negative, past

    def clause(self, clause: Clause, style: str, drop: str = "", topic: str = "は") -> str:
        """style: polite, plain, attributive, tara, te … drop: a pronoun that is not said."""
        clause = self.got(clause, style, topic, drop)
        clause = replace(clause, adverbials=tuple(self.with_own(clause, each) for each in clause.adverbials))
        if self.foreign(clause.roles.get("S")):
            clause = self.with_owners(clause)
        elif clause.mood in (Mood.YES_NO, Mood.WH) and clause.person[0] == "3" and style == "polite":
            clause = self.with_owners(clause, "S")  # 私たちの同僚は, and not yours
        words, word = self.arguments(clause, topic == "contrast")
        mark = (
            clause.predicate.mark if clause.predicate is not None and clause.predicate.adjective else clause.mark
        )
        subject_np = clause.roles.get("S")
        subject = ""
        topic = "は" if topic == "contrast" else topic
        if style in ("attributive", "tara", "node", "toki") and topic != "same":
            topic = "が"
        to_one = clause.frame in TABLES["frames"]["with_someone"] and style != "attributive" and topic != "same"
        same = topic == "same"
        inside = style in ("attributive", "plain", "ka")
        topic = "は" if same else topic
        asks_for = clause.mood is Mood.YES_NO and subject_np is not None and subject_np.det != "num"
        if (clause.frame == "exist" and not asks_for) or clause.asked == "S":
            topic = "が"
        asking = clause.mood in ASKING_MOODS
        told = clause.mood is Mood.STATEMENT and style in ("polite", "te", "explains")
        front = self.fronted(clause) if told or (clause.mood is Mood.STATEMENT and style == "node") else None
        if front is not None and self.kind(front) == "cause" and bare(self.adverbial(front)).endswith("で"):
            front = None  # 彼は仕事で欠席しました
        for each in clause.adverbials if told and not clause.embedded else ():
            if self.kind(each) == "cause" and bare(self.adverbial(each)).endswith("が高いため"):
                front = each  # コストが高いため、彼女は, for it is not she who is dear
        if told and topic == "は" and not same and self.happens(clause, front):
            topic = "が"
        if (
            subject_np is not None
            and not asking
            and clause.gap != "S"
            and subject_np.pronoun not in (drop or "-", "you", "it", "weather")
            and not subject_np.refers
            and not self.understood(clause, subject_np, style, same)
        ):
            own = "" if (clause.embedded and inside) or clause.mood is not Mood.STATEMENT else "own"
            if clause.frame == "be" and clause.predicate and clause.predicate.adjective and topic == "は":
                own = "that" if subject_np.det == "the" and not self.living(subject_np) else own
            if topic == "が" and clause.frame == "be" and "が" in word.dictionary():
                topic = (
                    "に" if "がある" in word.text else "は" if words else "の"
                )  # 説得力があるので, 戦略のリスクが高いので
            at = "は" if clause.frame in TABLES["frames"]["topic_alone"] else "には"
            at = "に" if style in ("tara", "node", "toki") and topic == "が" else at
            particle = at if to_one and topic in ("は", "が") else topic
            subject = self.with_particle(subject_np, own, particle, clause.frame == "exist")
        question = ""
        if clause.frame in ASKED_FRAMES:
            question = "どのくらい 時間が" if clause.asked == "how_long" else ""
        elif clause.asked in _ASKED and not clause.wanted and not (clause.asked == "O" and "何" in words):
            ni = "ni" in self.tags(clause) or clause.frame in TABLES["frames"]["into"]
            question = "どこに" if ni and clause.asked == "where" else _ASKED[clause.asked]
            if clause.tense is Tense.ONGOING and clause.asked == "how_long":
                question += "前から"
        where = self.places(clause, "place")
        ni = "ni" in self.tags(clause) or clause.frame in TABLES["frames"]["into"]
        done = ""
        if clause.tense is Tense.DONE:
            done = "まだ" if clause.negative else "もう"
        rest = self.without(clause, front)
        end = self.end(clause, word, style)
        manner, length = self.places(rest, "manner"), self.places(rest, "length")
        fixed = self.fixed_last(clause) or word.text == "する" or clause.frame in TABLES["lasted"]
        exists = ""
        if clause.frame == "exist" and clause.predicate and clause.predicate.place:
            exists = self.place(clause.predicate.place, "に")
        words = phrase(
            "今 、" if self.told_now(clause) else "",
            self.places(rest, "cause"),
            question if clause.asked != "S" and question != "どこに" else "",
            self.paused(self.places(rest, "frequency")),
            phrase(where, "に" if ni else "で") if where else "",
            self.places(rest, "companion"),
            done,
            question if clause.asked == "S" else "",
            *(length, manner, words) if fixed else (words, length, manner),  # 督促状を3時間待ちました
            question if question == "どこに" else "",  # 車をどこに停めたんですか
            marked(end, mark),
        )
        time = self.when(rest, words)
        if subject_np is not None and self.living(subject_np) and clause.frame not in TABLES["frames"]["happens"]:
            time = time.replace("まもなく", "近いうちに")
        return phrase(
            self.opening(front, bool(subject)) if front else "",
            exists,
            *((time, subject) if clause.asked == "S" else (subject, time)),
            words,
        )

    def got(self, clause: Clause, style: str, topic: str, drop: str) -> Clause:
        """What somebody got is the subject where が stands: 彼の仕事が決まったので, but 彼は仕事が決まりました."""
        doer, thing = clause.roles.get("S"), clause.roles.get("O")
        inside = topic == "が" or style in ("attributive", "tara", "node", "toki")
        if not inside or topic == "same" or clause.gap or doer is None or thing is None or not thing.noun:
            return clause
        if doer.refers or doer.pronoun in ("i", "we", "you", drop or "-"):
            return clause
        if not self.settles(clause):
            return clause
        rest = {role: np for role, np in clause.roles.items() if role not in ("S", FOR_US)}
        return replace(clause, roles={**rest, "O": replace(thing, det="the", of=doer)})

    def understood(self, clause: Clause, subject: Phrase, style: str, same: bool) -> bool:
        """I goes without saying, and we as well where it was said."""
        advised = clause.modal is Modal.SHOULD and clause.mood in (Mood.YES_NO, Mood.WH)
        if subject.pronoun not in ("i", "we") or not (advised or clause.mood is Mood.STATEMENT):
            return False
        if same:
            return subject.pronoun == "i"
        if clause.embedded and style in ("plain", "ka"):
            return False
        if (
            style not in ("polite", "te", "plain", "ka", "explains")
            or clause.frame == "be"
            or clause.modal is Modal.MIGHT
        ):
            return False
        return subject.pronoun == "i"

    def opener_end(self, key: str) -> str:
        return "。" if key in ("yes, of course", "exactly", "okay", "good morning", "sorry") else self.comma

    def opened(self, said: Utterance) -> str:
        """The answer has the objects of the question, for the verb goes with them: はい、かぶりました."""
        if said.link in ANSWERS and said.second is not None:
            roles = {**said.first.roles, **said.second.roles}
            said = replace(said, second=replace(said.second, roles=roles))
        if said.link == "that's why" and said.second is not None:
            then = said.second
            said = replace(said, first=self.thanked(said.first, then))
            doer, again = said.first.roles.get("S"), then.roles.get("S")
            if doer and again and doer.pronoun and doer.pronoun == again.pronoun:  # それで、水を飲んだんです
                roles = {**then.roles, "S": replace(again, refers="S")}
                said = replace(said, second=replace(then, roles=roles))
        own = said.first.roles.get("S")
        if said.answer and own is not None and own.pronoun == "you":
            answer = self.of_oneself(said.answer, said.first)
            if answer:
                return phrase(super().opened(replace(said, answer="")), answer, self.stop)
        return super().opened(said)

    def answered(self, link: str, clause: Clause) -> str:
        acts = not self.stative(clause) or (clause.negative and clause.frame not in ("be", "exist"))
        if link in ("too", "neither") and acts:  # 彼も食べました, but 彼もです of what somebody has or is
            frames = TABLES["frames"]
            needs = clause.frame in frames["with_someone"] and clause.frame not in frames["topic_alone"]
            also = marked("にも" if needs else "も", clause.mark)
            return phrase(self.noun_phrase(clause.roles["S"], ""), also, self.done_so(clause, "polite"))
        if link in ("too", "neither"):
            return phrase(self.noun_phrase(clause.roles["S"], ""), marked("もです", clause.mark))
        if link == "not_yet":
            return "いいえ 、 まだです"
        begin = "はい 、" if link == "yes" else "いいえ 、"
        if clause.modal is Modal.WANT and clause.person[0] == "1" and clause.tense is not Tense.PAST:
            clause = replace(clause, modal=Modal.NONE)  # 読みますか？はい、読みます
        if self.planned(replace(clause, mood=Mood.YES_NO, negative=False)):
            return phrase(begin, marked("その予定です" if link == "yes" else "その予定はありません", clause.mark))
        if clause.modal is Modal.WANT and clause.person[0] == "3":
            return phrase(begin, marked("言っています" if link == "yes" else "言っていません", clause.mark))
        return phrase(begin, self.done_so(clause, "polite"))

    def done_so(self, clause: Clause, style: str) -> str:
        """The verb alone, without what was named in the question: 送りました."""
        words, word = self.arguments(clause, named=False)
        short = replace(clause, adverbials=())
        return phrase("" if word.text == "する" else words, marked(self.end(short, word, style), clause.mark))

    def of_oneself(self, answer: str, asked: Clause) -> str:
        """What one says of one's own act, which そうです does not fit: たぶん送ったと思います."""
        past = asked.tense in (Tense.PAST, Tense.DONE) and asked.modal is Modal.NONE
        own = TABLES["answers_past" if past else "answers_future"].get(answer, "")
        if "{" not in own:
            return str(own)
        roles = {role: np for role, np in asked.roles.items() if role != "S"}
        one = replace(asked, roles={**roles, "S": Phrase(asked.mark, pronoun="i")}, mood=Mood.STATEMENT)
        one = replace(one, tense=Tense.PAST if past else one.tense, negative="{not}" in own)
        before, _, after = own.replace("{not}", "{}").partition("{}")
        return phrase(before, self.done_so(one, "plain"), after)

    def end(self, clause: Clause, word: Word, style: str) -> str:
        match clause.mood:
            case Mood.IMPERATIVE:
                if clause.negative:
                    return word.negative_stem() + "ないでください"
                return (TABLES["please"].get(clause.frame) if self.to_us(clause) else "") or word.te() + "ください"
            case Mood.REQUEST:
                return word.te() + "いただけますか"
            case Mood.LETS:
                return (
                    word.negative_stem() + "ないようにしましょう" if clause.negative else word.stem() + "ましょう"
                )
        last, negative, past = self.predicate(clause, word)
        if style == "tara" or (style == "toki" and past):
            last = last if negative else last.begun()  # お腹が空いたら
        match style:
            case "polite":
                ka = "か" if clause.mood in (Mood.YES_NO, Mood.WH) else ""
                if ka and self.explained(clause, past):
                    return last.plain(negative, past, "な") + "んですか"
                if self.planned(clause):
                    return last.dictionary() + "予定です" + ka
                return last.polite(negative, past) + ka
            case "tara":
                return last.plain(negative, True) + "ら"
            case "node" | "attributive" | "toki":
                noun = last.kind == "na" and last.text == ""
                return last.plain(
                    negative,
                    past,
                    "である" if style == "attributive" else "の" if noun and style == "toki" else "な",
                )
            case "ka":
                return last.plain(negative, past, "な" if clause.asked else "") + ("の" if clause.asked else "")
            case "te":
                return last.te()
            case "stem":
                return last.stem() + "に"
            case "explains":
                return last.plain(negative, past, "な") + "んです"
        return last.plain(negative, past)

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        if said.speaker is not None:
            subject = phrase(self.noun_phrase(said.speaker, ""), "は")
            other = said.speaker.person[0] == "3"
            inner = first.roles["S"].pronoun if "S" in first.roles else ""
            own = said.speaker.name and said.link == "say" and inner in said.speaker.taken_for
            drop = inner if own else said.speaker.pronoun
            if self.foreign(said.speaker) and first.person[0] != "1":
                first = self.with_owners(first)
            theirs = first.roles.get("S")
            named_self = said.speaker.name and theirs is not None and theirs.det in ("he", "she")  # or another's
            if (
                other
                and theirs is not None
                and theirs.noun
                and not named_self
                and self.owner(said.speaker, theirs) == theirs.det
            ):
                theirs = replace(theirs, det="you" if self.noun(theirs).type == "family" else "the")
                first = replace(first, roles={**first.roles, "S": theirs})  # お母さんが来ると言っていました
            first = replace(first, embedded=other)
            if not other and said.speaker.pronoun == "i":
                subject = ""
            named = "S" in first.roles and (not inner or inner not in (drop, "you", "weather"))
            if first.adverbials or named:
                subject = phrase(subject, "、" if subject else "")  # the time is that of what is said
            match said.link:
                case "say":
                    if first.tense is Tense.PAST and self.stative(first):
                        first = replace(first, tense=Tense.HABIT)
                    told = self.clause(first, "plain", drop, "が")
                    if inner and inner == drop:  # 行きたいと言っていました
                        told = told.replace("たいと思っている", "たい").replace("たいと思っていた", "たい")
                    told = told.replace("たいと思ってい", "たがってい")
                    return phrase(subject, told, "と 言っていました 。")
                case "think":
                    undone = not other and first.negative and first.modal is Modal.NONE
                    if undone and first.tense is Tense.PAST and first.frame not in TABLES["frames"]["unable"]:
                        first = first if self.stative(first) else replace(first, tense=Tense.NOW)
                    topic = "は" if not other and (undone or first.frame == "be") else "が"
                    end = "と 思っています 。" if other else "と 思います 。"
                    thought = self.clause(first, "plain", drop, topic).replace("たいと思ってい", "たがってい")
                    return phrase(subject, thought, end)
                case "know":
                    known = "ことを 知っています 。" if subject else "のは 知っています 。"
                    return phrase(subject, self.clause(first, "attributive", drop), known)
                case "hope":
                    first = self.welcome(first) if self.asked_of(first) else first
                    hoped = self.clause(first, "plain", drop, "が")
                    hoped = re.sub("まもなく|近いうちに", "早く", hoped)
                    if not other:
                        return phrase(hoped, "と いいのですが 。")
                    return phrase(subject, hoped, "といいと 思っています 。")
            ka = "か" if first.asked else "かどうか"
            plain = replace(first, mood=Mood.STATEMENT)
            asked = phrase(self.clause(plain, "ka", drop, "が"), ka)
            if not other:
                return phrase(asked, "、 私たちには" if said.speaker.pronoun == "we" else "", "わかりません 。")
            return phrase(subject, asked, "知りません 。")
        mark = "。" if first.mood not in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "？"
        if second is None:
            return phrase(self.clause(first, "polite"), mark)
        pronoun = second.roles["S"].pronoun if "S" in second.roles else ""
        same = pronoun if pronoun and "S" in first.roles and first.roles["S"].pronoun == pronoun else ""
        topic = "same" if same else "は"
        weather = pronoun == "weather"
        if said.link in ("before", "after"):
            return phrase(self.around(said, same), mark)
        if said.link in PURPOSES:
            return phrase(self.meant(said), mark)
        if said.link == "so":
            first = self.thanked(first, second)
        elif said.link in ("if", "when"):
            second = self.thanked(second, first)
        if said.link in ("so", "and", "but"):
            second = self.named_before(second, first)
        elif said.link in ("if", "when", "because"):
            first = self.named_before(first, second)
        match said.link:
            case "and":
                return phrase(self.clause(first, "te", "", topic), "、", self.clause(second, "polite", same), mark)
            case "but":
                topic = "contrast" if self.undone(second) and same == "i" else "は"
                one = self.clause(first, "polite", "", topic)
                return phrase(one, "が 、", self.clause(second, "polite", same), mark)
            case "so":
                then = self.relieved(second, self.clause(second, "polite", same))
                return phrase(self.clause(first, "node", "", topic), "ので 、", then, mark)
            case "although" | "because":
                return phrase(self.reasoned(first, second, said.link), mark)
            case "if":
                return phrase(
                    "" if same or weather or first.mood in ASKING_MOODS else "もし",
                    self.clause(second, "tara", "", topic),
                    "、",
                    self.clause(first, "polite", same),
                    mark,
                )
        if weather and second.tense is Tense.PAST and self.stative(second):  # 暑かったので、海に行きました
            return phrase(self.clause(second, "node"), "ので 、", self.clause(first, "polite"), mark)
        if second.tense is Tense.PAST or self.stative(second):
            if (
                second.tense is Tense.PAST
                and first.mood is Mood.STATEMENT
                and second.frame in TABLES["frames"]["causes"]
            ):
                return phrase(
                    self.clause(second, "node", "", topic), "ので 、", self.clause(first, "polite", same), mark
                )
            after = "後 、" if same and not self.stative(second) else "とき 、"
            return phrase(self.clause(second, "toki", "", topic), after, self.clause(first, "polite", same), mark)
        return phrase(self.clause(second, "tara", "", topic), "、", self.clause(first, "polite", same), mark)

    def without_pause(self, clause: Clause, topic: str = "は") -> str:
        """What is said after two commas: 来年の秋に増やします for 来年の秋、増やします."""
        words = self.clause(clause, "polite", "", topic).split()
        return phrase(
            *(
                ("に" if _WITH_NI.search(bare(before)) else "") if each == "、" else each
                for before, each in zip(["", *words], words, strict=False)
            )
        )

    def relieved(self, clause: Clause, words: str) -> str:
        """What one feels for a reason: 合格したので、ほっとしました."""
        return words.replace("のんびりし", "ほっとし") if clause.frame == "relax" else words

    def concluded(self, clause: Clause) -> str:
        if clause.tense is Tense.PAST:
            return phrase("それで 、", self.relieved(clause, self.clause(clause, "explains")))
        return phrase("ですから 、", self.clause(clause, "polite"))

    def meant(self, said: Utterance) -> str:
        """確認するために; 買いに if one goes there for it; 彼が確認できるように: what is done names the thing."""
        if said.link == "so that":
            first, second = said.first, said.second
            assert second is not None  # noqa: S101
            first = self.named_before(first, second)
            able, ours = second.roles.get("S"), ("i", "we")
            for_us = first.mood in ASKING_MOODS or any(np.pronoun in ours for np in first.roles.values())
            if able is not None and able.pronoun in ours and for_us:
                if first.mood in ASKING_MOODS:  # 印刷できるように、送ってください
                    second = replace(second, roles={**second.roles, "S": replace(able, refers="S")})
                else:  # 私が印刷できるように、送ってくれました
                    told = {
                        role: replace(np, pronoun="it")
                        for role, np in first.roles.items()
                        if role != "S" and np.pronoun == able.pronoun
                    }
                    first = replace(first, roles={**first.roles, **told})
                    first = self.welcome(first) if told else first
            second = replace(second, tense=Tense.HABIT)
            return phrase(self.clause(second, "toki"), "ように 、", self.clause(first, "polite"))
        first, second = self.in_order(said, True)
        second = replace(second, tense=Tense.HABIT)
        goes = self.arguments(first)[1].text in ("行く", "来る", "帰る")
        doer = first.roles["S"]
        named = "" if self.understood(first, doer, "polite", False) else self.with_particle(doer, "own", "は")
        why = self.clause(second, "stem" if goes else "toki", second.roles["S"].pronoun, "same")
        main = self.clause(first, "polite", doer.pronoun)
        return phrase(named, why, "" if goes else "ために 、", main)

    def around(self, said: Utterance, same: str) -> str:
        """送る前に, 読んだ後; 読んでから for each second one if the same person does both. It names the thing."""
        first, second = self.in_order(said, True)
        first = self.named_before(first, second)
        style, word = "toki", "前に 、" if said.link == "before" else "後 、"
        if said.link == "after" and same and second.mark % 2:
            style, word = "te", "から 、"
        second = replace(second, tense=Tense.PAST if word == "後 、" else Tense.HABIT)
        topic = "same" if same else "は"
        return phrase(self.clause(second, style, "", topic), word, self.clause(first, "polite", same))

    def dealt_with(self, main: Clause, thing: Phrase, adjective: str) -> str:
        """What somebody does about it: 昨日、修理業者が修理しました; of what one likes 彼女は写真を撮ります."""
        if not self.deals(main, thing, adjective):
            return self.without_pause(main)
        if main.tense is not Tense.PAST:
            return self.without_pause(main, "が")  # 来年増やす予定です
        when = next((each for each in main.adverbials if self.kind(each) == "time"), None)
        said = self.without_pause(self.without(main, when), "が")
        return phrase(self.opening(when, False) if when else "", said)

    def deals(self, main: Clause, thing: Phrase, adjective: str) -> bool:
        """Whether somebody does what has to be done about the thing, so that who does it is what is new."""
        doer = main.roles["S"]
        if main.negative or main.mood is not Mood.STATEMENT or main.modal not in (Modal.NONE, Modal.MUST):
            return False
        if doer.pronoun == "we" or doer.link == "both" or (doer.pronoun and main.tense is Tense.PAST):
            return False
        return adjective in TABLES["dealt_with"]["adjectives"] or (thing.det == "this" and not doer.pronoun)

    def named_later(self, main: Clause, thing: Phrase, adjective: str) -> bool:
        """Whether the verb takes what was chosen or left for what it is like, as who acts stands before it."""
        named = adjective in TABLES["named_later"]["adjectives"] and not self.of_people(adjective)
        return named and not main.negative and not self.deals(main, thing, adjective)

    def reasoned(self, first: Clause, second: Clause, link: str) -> str:
        """The reason, who does it, what is done: コートが高かったので、彼女は買いませんでした.

        The reason names what it is about, and the main clause leaves that out, but for what is new and for what
        is taken or left for what it is like: 安いので、父はその炊飯器を買います.
        """
        about = second.roles["S"].refers
        doer, thing = first.roles.get("S"), first.roles.get(about)
        left = {role: np for role, np in first.roles.items() if role != about}
        if thing is not None and about == "O":
            left["O"] = replace(thing, pronoun="it")
            thing = replace(thing, det="the") if thing.det and self.owner(doer, thing) == thing.det else thing
        named = replace(second, roles={"S": thing}) if thing is not None else second
        main = replace(first, roles=left, embedded=True)
        if link == "although":
            if about == "S" and first.tense is Tense.PAST:
                return phrase(self.clause(named, "node", "", "same"), "のに 、", self.clause(main, "polite"))
            quality = second.predicate.adjective if second.predicate is not None else ""
            vague = quality in TABLES["felt"]["adjectives"] or self.of_people(quality)
            if about == "O" and thing is not None and thing.det == "a" and not thing.relative and not vague:
                named = replace(named, roles={"S": replace(thing, refers="S")})  # 高かったのですが、コートを
                main = replace(main, roles={**left, "O": first.roles[about]})
            told = self.clause(named, "explains").replace("んです", "のです")
            return phrase(told, "が 、", self.clause(main, "polite"))
        what = second.predicate
        if what is not None and what.adjective and what.degree != "too":
            named = replace(named, predicate=replace(what, adjective=f"+{what.adjective}"))
        if about == "O" and doer is not None and thing is not None and what is not None:
            unsaid = doer.pronoun == "you" or self.understood(first, doer, "polite", False)
            main = replace(main, roles={**left, "S": replace(doer, refers="S") if unsaid else doer})
            then = self.without_pause(main) if unsaid else self.dealt_with(main, thing, what.adjective)
            state = self.words.adjectives[what.adjective]["ja"].endswith("ている1") or what.degree == "too"
            if thing.det != "a" or thing.of or thing.adjective or thing.relative or state or first.negative:
                if not unsaid and self.named_later(main, thing, what.adjective):
                    named = replace(named, roles={"S": replace(thing, refers="S")})
                    then = self.without_pause(replace(main, roles={**main.roles, "O": thing}))
                    return phrase(self.clause(named, "node"), "ので 、", then)
                topic = "same" if thing.det == "this" and self.deals(main, thing, what.adjective) else "が"
                return phrase(self.clause(named, "node", "", topic), "ので 、", then)
            if self.living(thing) or self.words.adjectives[what.adjective]["ja"] == "いい":
                kind = replace(thing, det="bare", adjective=what.adjective)
                named = replace(named, roles={}, predicate=Predicate(what.mark, phrase=kind, degree=what.degree))
                return phrase(self.clause(named, "node"), "ので 、", then)
            named = replace(named, roles={"S": replace(thing, refers="S")})
            main = replace(main, roles={**main.roles, "O": replace(thing, det="that")})
            then = self.without_pause(main) if unsaid else self.dealt_with(main, thing, what.adjective)
            if not unsaid and self.of_people(what.adjective):  # else it would be she who is reliable
                why = phrase(self.clause(replace(named, tense=Tense.HABIT), "plain"), "という 理由で 、")
            else:
                why = phrase(self.clause(named, "node"), "ので 、")
            return phrase(why, then)
        when = tuple(each for each in first.adverbials if self.kind(each) == "time")
        named = replace(named, adverbials=when)
        main = replace(main, adverbials=tuple(each for each in first.adverbials if each not in when))
        return phrase(self.clause(named, "node", "", "same"), "ので 、", self.clause(main, "polite"))
