"""Japanese: particles, the polite end of a sentence, plain forms inside it."""

from __future__ import annotations

from dataclasses import replace

from demo_model.clauses.languages.japanese_phrases import (
    ASKING_MOODS,
    TABLES,
    JapanesePhrases,
    Word,
    adjective,
    verb,
    with_modal,
)
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import (
    ASKED_FRAMES,
    Adverbial,
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
    **{"how_long": "どのくらいの間 、", "how_often": "どのくらいの頻度で"},
}
_EXPLAINED = ("when", "where", "S")
"""What is asked for with んですか if it is past: one knows that it was done. Why and how are always asked so."""
_GLAD = "glad"
_FELT = {"happy": _GLAD}


class Japanese(JapanesePhrases):
    def arguments(self, clause: Clause) -> tuple[str, Word]:
        """The words between subject and verb, and the verb."""
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
            word = adjective("嬉しい" if what.adjective == _GLAD else self.said_of(what.adjective, subject))
            degree = {"very": "とても"}.get(what.degree, "")
            than = phrase(self.noun_phrase(what.than, "that"), "より") if what.than else ""
            if what.degree == "too":
                stem = word.adjective_stem() if word.kind == "i" else word.text
                word = Word("すぎる", "1", stem)
            return phrase(than, marked(degree, what.mark) if degree else ""), word
        cell = self.words.frames[clause.frame].cells["ja"]
        thing = clause.roles.get("O")
        if thing is not None and clause.tense is Tense.DONE and clause.negative and thing.pronoun == "it":
            cell = TABLES["not_yet"].get(clause.frame, cell)
        *rest, last = cell.split()
        if thing is not None and thing.noun:
            noun, verbs = self.noun(thing), TABLES["said_with"].get(clause.frame, {})
            last = verbs.get(noun.cells["ja"]) or verbs.get(noun.type) or last
        words: list[str] = []
        for each in rest:
            if each[0] in "OT":
                if each[0] in clause.roles and clause.roles[each[0]].pronoun == "it":
                    continue  # what was named just before
                if each[0] in clause.roles:
                    owner = self.owner(subject, clause.roles[each[0]])
                    if clause.frame in TABLES["frames"]["favours"] and (
                        clause.roles[each[0]].pronoun == "you"
                        or (owner == "you" and clause.roles[each[0]].pronoun in ("i", "we"))
                    ):
                        continue  # 手伝ってください
                    particle = "は" if clause.negative and each[1:] == "が" else each[1:]
                    words.append(self.with_particle(clause.roles[each[0]], owner, particle))
                elif clause.asked == each[0]:
                    words.append("何" + each[1:])
            else:
                words.append(marked(each, clause.mark))
        asked, _, wanted = last.partition("/")
        return phrase(*words), verb(wanted if wanted and clause.mood in ASKING_MOODS else asked)

    def predicate(self, clause: Clause, word: Word) -> tuple[Word, bool, bool]:
        """The inflected end with modality and aspect in it: (word, negative, past)."""
        negative, past = clause.negative, clause.tense is Tense.PAST
        if clause.modal.value:
            return with_modal(word, clause.modal, clause.mood, clause.person[0] == "3", negative, past)
        given = {np.pronoun for role, np in clause.roles.items() if role != "S"} & {"i", "we"}
        if given and clause.frame in TABLES["frames"]["favours"] and clause.person[0] in "23" and not negative:
            word = Word("くれる", "1", word.te())
        if clause.tense is Tense.DONE:
            return (Word("いる", "1", word.te()), True, False) if negative else (word, False, True)
        resultative = "teiru" in self.tags(clause)
        if clause.tense is Tense.NOW or (resultative and word.kind in ("1", "5", "する")):
            return Word("いる", "1", word.te()), negative, past
        return word, negative, past

    def clause(self, clause: Clause, style: str, drop: str = "", topic: str = "は") -> str:
        """style: polite, plain, attributive, tara, te … drop: a pronoun that is not said."""
        clause = replace(clause, adverbials=tuple(self.with_own(clause, each) for each in clause.adverbials))
        words, word = self.arguments(clause)
        mark = (
            clause.predicate.mark if clause.predicate is not None and clause.predicate.adjective else clause.mark
        )
        subject_np = clause.roles.get("S")
        subject = ""
        if style in ("attributive", "tara", "node", "toki") and topic != "same":
            topic = "が"
        to_one = clause.frame in TABLES["frames"]["with_someone"] and style != "attributive" and topic != "same"
        same = topic == "same"
        inside = style in ("attributive", "plain", "ka", "hope")
        topic = "は" if same else topic
        if clause.frame == "exist" or clause.asked == "S":
            topic = "が"
        asking = clause.mood in ASKING_MOODS
        told = clause.mood is Mood.STATEMENT and style in ("polite", "te")
        front = self.fronted(clause) if told or (clause.mood is Mood.STATEMENT and style == "node") else None
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
                own = "that" if subject_np.det == "the" else own
            if topic == "が" and clause.frame == "be" and "が" in word.text:
                topic = "は"  # リスクが高いので
            at = "に" if style in ("tara", "node", "toki") and topic == "が" else "には"
            particle = at if to_one and topic in ("は", "が") else topic
            subject = self.with_particle(subject_np, own, particle, clause.frame == "exist")
        question = ""
        if clause.frame in ASKED_FRAMES:
            question = "どのくらい" if clause.asked == "how_long" else ""
        elif clause.asked in _ASKED and not clause.wanted and not (clause.asked == "O" and "何" in words):
            question = _ASKED[clause.asked]
        where = self.places(clause, "place")
        ni = "ni" in self.tags(clause)
        done = ""
        if clause.tense is Tense.DONE:
            done = "まだ" if clause.negative else "もう"
        rest = self.without(clause, front)
        end = self.end(clause, word, style)
        manner = self.places(rest, "manner")
        exists = ""
        if clause.frame == "exist" and clause.predicate and clause.predicate.place:
            exists = self.place(clause.predicate.place, "に")
        words = phrase(
            "今 、" if clause.tense is Tense.NOW and not clause.adverbials and clause.mark % 3 == 0 else "",
            self.places(rest, "cause"),
            question if clause.asked != "S" else "",
            self.paused(self.places(rest, "frequency")),
            phrase(where, "に" if ni else "で") if where else "",
            self.places(rest, "companion"),
            done,
            self.places(rest, "length"),
            question if clause.asked == "S" else "",
            *(manner, words) if self.fixed_last(clause) else (words, manner),
            marked(end, mark),
        )
        return phrase(
            phrase(self.adverbial(front), "、" if subject or bare(self.adverbial(front))[-1] not in "にで" else "")
            if front
            else "",
            exists,
            subject,
            self.when(rest, words),
            words,
        )

    def understood(self, clause: Clause, subject: Phrase, style: str, same: bool) -> bool:
        """I and we go without saying, but for each fourth "we", so that learners meet it."""
        advised = clause.modal is Modal.SHOULD and clause.mood in (Mood.YES_NO, Mood.WH)
        if subject.pronoun not in ("i", "we") or not (advised or clause.mood is Mood.STATEMENT):
            return False
        if same:
            return True
        if clause.embedded and style in ("plain", "ka"):
            return False
        if style not in ("polite", "te", "plain", "ka") or clause.frame == "be" or clause.modal is Modal.MIGHT:
            return False
        thing = clause.roles.get("O")
        return subject.pronoun == "i" or len(clause.frame + (thing.noun if thing else "")) % 4 > 0

    def happens(self, clause: Clause, front: Adverbial | None) -> bool:
        """Whether all of it is new, so that the subject takes が: プリンターが故障しました."""
        subject = clause.roles.get("S")
        if subject is None or clause.negative or clause.modal is not Modal.NONE or subject.link == "both":
            return False
        if clause.frame in TABLES["frames"]["happens"]:
            return not subject.pronoun
        new = front is not None or clause.tense is Tense.NOW
        thing = subject.members[0] if subject.members else subject
        return bool(thing.noun) and new and clause.tense is not Tense.HABIT and not self.stative(clause)

    def opener_end(self, key: str) -> str:
        return "。" if key in ("yes, of course", "exactly", "okay", "good morning", "sorry") else self.comma

    def answered(self, link: str, clause: Clause) -> str:
        if link in ("too", "neither"):
            same = replace(clause, roles={"S": clause.roles["S"]}, adverbials=(), mood=Mood.STATEMENT)
            words, word = self.arguments(same)
            also = "にも" if clause.frame in TABLES["frames"]["with_someone"] else "も"
            yet = "" if clause.tense is not Tense.DONE else "まだ" if clause.negative else "もう"
            end = marked(self.end(same, word, "polite"), clause.mark)
            return phrase(self.noun_phrase(clause.roles["S"], ""), also, yet, words, end)
        if link == "not_yet":
            return "いいえ 、 まだです"
        bare = replace(clause, roles={"S": clause.roles["S"]}, adverbials=())
        words, word = self.arguments(bare)
        said = phrase(words, marked(self.end(bare, word, "polite"), clause.mark))
        return phrase("はい 、" if link == "yes" else "いいえ 、", said)

    def end(self, clause: Clause, word: Word, style: str) -> str:
        match clause.mood:
            case Mood.IMPERATIVE:
                return word.negative_stem() + "ないでください" if clause.negative else word.te() + "ください"
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
            case "hope":
                return last.negative_stem() + "ないで" if negative else last.te()
        return last.plain(negative, past)

    def asked_of(self, clause: Clause) -> bool:
        """Whether one can hope it of somebody: 彼に来てほしい."""
        doer = clause.roles.get("S")
        ours = any(np.pronoun in ("i", "we") for role, np in clause.roles.items() if role != "S")
        able = doer is not None and (self.living(doer) or (bool(doer.noun) and self.noun(doer).type == "group"))
        return able and not ours and clause.modal is Modal.NONE and not self.stative(clause)

    def explained(self, clause: Clause, past: bool) -> bool:
        """Whether one asks with んですか: for a reason or a way, for what one knows was done, what others want."""
        if clause.modal is Modal.WANT and clause.person[0] == "3":
            return True
        if clause.modal is Modal.NONE and clause.asked in ("why", "how"):
            return True
        which = clause.wanted.det if clause.wanted else ""
        return past and (which == "whose" or (clause.asked in _EXPLAINED and which in ("", "which")))

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        if said.speaker is not None:
            subject = phrase(self.noun_phrase(said.speaker, ""), "は")
            other = said.speaker.person[0] == "3"
            inner = first.roles["S"].pronoun if "S" in first.roles else ""
            own = said.speaker.name and inner in ("he", "she") and said.link == "say"
            drop = inner if own else said.speaker.pronoun
            theirs = first.roles.get("S")
            if other and theirs is not None and theirs.noun and self.owner(said.speaker, theirs) == theirs.det:
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
                    return phrase(subject, self.clause(first, "plain", drop, "が"), "と 言っていました 。")
                case "think":
                    topic = "は" if first.frame == "be" and not other else "が"
                    end = "と 思っています 。" if other else "と 思います 。"
                    return phrase(subject, self.clause(first, "plain", drop, topic), end)
                case "know":
                    return phrase(subject, self.clause(first, "attributive", drop), "ことを 知っています 。")
                case "hope" if not other:
                    return phrase(self.clause(first, "plain", drop, "が"), "と いいのですが 。")
                case "hope" if self.asked_of(first):
                    return phrase(subject, self.clause(first, "hope", drop, "に"), "ほしいと 思っています 。")
                case "hope":
                    return phrase(subject, self.clause(first, "plain", drop, "が"), "と いいと 思っています 。")
            ka = "か" if first.asked else "かどうか"
            plain = replace(first, mood=Mood.STATEMENT)
            asked = phrase(self.clause(plain, "ka", drop, "が"), ka)
            if not other:
                return phrase(asked, "わかりません 。")
            return phrase(subject, asked, "知りません 。" if ka == "かどうか" else "を 知りません 。")
        mark = "。" if first.mood not in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "？"
        if second is None:
            return phrase(self.clause(first, "polite"), mark)
        pronoun = second.roles["S"].pronoun if "S" in second.roles else ""
        same = pronoun if pronoun and "S" in first.roles and first.roles["S"].pronoun == pronoun else ""
        topic = "same" if same else "は"
        if said.link in ("before", "after"):
            return phrase(self.around(said, same), mark)
        if said.link in ("so", "and", "but"):
            second = self.named_before(second, first)
        elif said.link in ("if", "when", "because"):
            first = self.named_before(first, second)
        match said.link:
            case "and":
                return phrase(self.clause(first, "te", "", topic), "、", self.clause(second, "polite", same), mark)
            case "but":
                return phrase(self.clause(first, "polite"), "が 、", self.clause(second, "polite", same), mark)
            case "so":
                return phrase(
                    self.clause(first, "node", "", topic), "ので 、", self.clause(second, "polite", same), mark
                )
            case "although" | "because":
                return phrase(self.reasoned(first, second, said.link), mark)
            case "if":
                return phrase(
                    "" if same else "もし",
                    self.clause(second, "tara", "", topic),
                    "、",
                    self.clause(first, "polite", same),
                    mark,
                )
        if second.tense is Tense.PAST or self.stative(second):
            after = "後 、" if same and not self.stative(second) else "とき 、"
            return phrase(self.clause(second, "toki", "", topic), after, self.clause(first, "polite", same), mark)
        return phrase(self.clause(second, "tara", "", topic), "、", self.clause(first, "polite", same), mark)

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

    def reasoned(self, first: Clause, second: Clause, link: str) -> str:
        """The reason comes first and names what it is about; the main clause leaves that out."""
        about = second.roles["S"].refers
        doer, thing = first.roles.get("S"), first.roles.get(about)
        left = {role: np for role, np in first.roles.items() if role != about}
        if thing is not None and about == "O":
            left["O"] = replace(thing, pronoun="it")
            thing = replace(thing, det="the") if thing.det and self.owner(doer, thing) == thing.det else thing
        named = replace(second, roles={"S": thing}) if thing is not None else second
        main = replace(first, roles=left)
        if link == "although":
            return phrase(self.clause(named, "polite"), "が 、", self.clause(main, "polite"))
        what = second.predicate
        if about == "O" and what is not None and thing is not None:
            state = self.words.adjectives[what.adjective]["ja"].endswith("ている1") or what.degree == "too"
            if thing.det == "a" and thing.of is None and not thing.adjective and not state:
                said = replace(thing, det="bare", adjective=what.adjective)
                kind = Predicate(what.mark, phrase=said, degree=what.degree)
                named = replace(second, roles={}, predicate=kind)
        elif what is not None and what.adjective and about == "S":
            named = replace(named, predicate=replace(what, adjective=_FELT.get(what.adjective, what.adjective)))
        new = about == "O" and doer is not None and doer.noun and not first.negative
        return phrase(
            self.clause(named, "node", "", "same" if about == "S" else "が"),
            "ので 、",
            self.clause(main, "polite", "", "が" if new else "は"),
        )
