"""Japanese: particles, the polite end of a sentence, plain forms inside it."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.japanese_verbs import ASKING_MOODS, Word, adjective, verb, with_modal
from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.lexicon import WORDS
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import ASKED_FRAMES, Adverbial, Clause, Mood, Phrase, Predicate, Tense, Utterance

_ASKED = {
    **{"when": "いつ", "where": "どこで", "why": "なぜ", "how": "どうやって", "S": "誰が", "O": "何を"},
    **{"how_long": "どのくらいの間", "how_often": "どのくらいの頻度で"},
}
_EXPLAINED = ("when", "where", "why", "how", "S")
"""What is asked for with のですか if it is past: one knows that it was done."""
_ASKING = {"which": "どの", "what_kind": "どんな", "whose": "誰の"}
_TABLES = tomllib.loads((WORDS / "japanese.toml").read_text(encoding="utf-8"))
_PRONOUNS = _TABLES["pronouns"]
_LOVERS = ("彼女", "彼氏")
"""Who would be somebody else without "my"."""
_OWN_PEOPLE = ("family", "feast", "person")
_OWN = ("i", "we", "own", "counted")
"""Where 母 is the speaker's own mother."""
_GLAD = "glad"
_FELT = {"happy": _GLAD}
_SHORT = 2
_LIVING = ("person", "family", "animal", "profession")


class Japanese(Linearizer):
    language = "ja"
    glue = ""
    comma = "、"
    stop = "。"
    joins: ClassVar = {
        "and": ("", "と", "と", ""),
        "or": ("", "か", "か", ""),
        "both": ("", "と", "と", ""),
        "either": ("", "か", "か", "の どちらか"),
        "etc": ("", "や", "や", "など"),
    }

    def noun_phrase(self, np: Phrase, case: str) -> str:
        if np.members:
            first, *others = np.members
            if all(each.noun and each.det == first.det and first.det in _PRONOUNS for each in others):
                others = [replace(each, det="bare") for each in others]  # 彼女の甥と父
            alike = replace(np, members=(first, *others))
            return self.joined(alike, lambda each: self.noun_phrase(each, case))
        if np.pronoun:
            return marked(_PRONOUNS[np.pronoun], np.mark)
        if np.name:
            return marked(f"{self.name(np)}さん", np.mark)
        noun = self.noun(np)
        word = noun.cells["ja"]
        if np.adjective:
            word = self.words.adjectives[np.adjective]["ja"].removesuffix("1") + word
        match np.det:
            case "the" if case == "that":
                word = "その" + word
            case "this":
                word = ("これらの" if np.plural else "この") + word
            case "many":
                word = "多くの" + word
            case "all":
                word = "すべての" + word
            case "num":
                word = word if case == "counted" else f"{np.count}{self.counter(np)}の{word}"
            case asking if asking in _ASKING:
                word = _ASKING[asking] + word
            case det if det == case and word not in _LOVERS and (det != "we" or noun.type in _OWN_PEOPLE):
                pass  # whose it is goes without saying
            case "you" if noun.type == "family":
                word = _TABLES["family"].get(word) or f"あなたの{word}"
            case "i" if noun.type == "family" and case in _OWN and word not in _LOVERS:
                pass
            case det if _PRONOUNS.get(det):
                honoured = _TABLES["family"].get(word, word) if det in ("he", "she", "they") else word
                word = f"{_PRONOUNS[det]}の{honoured}"
        words = marked(word, np.mark)
        if np.of is not None:
            words = phrase(self.noun_phrase(np.of, ""), "の", words)
        if np.relative is not None:
            words = phrase(self.clause(np.relative, "attributive", case if case in _PRONOUNS else ""), words)
        return words

    def counter(self, np: Phrase) -> str:
        noun = self.noun(np)
        return noun.counter or _TABLES["counters"].get(noun.key) or _TABLES["counters"].get(noun.type, "つ")

    def with_particle(self, np: Phrase, case: str, particle: str, there: bool = False) -> str:
        """A phrase and its particle: も for each of both; 何人 stands after を, or が of what there is."""
        if np.link == "both" and particle in ("は", "が", "を", "に", "と", "から"):
            also = ("" if particle in ("は", "が", "を") else particle) + "も"
            return phrase(*(phrase(self.noun_phrase(each, case), also) for each in np.members))
        if np.det == "num" and particle in ("を", "が") and np.relative is None:
            counted = marked(f"{np.count}{self.counter(np)}", np.mark)
            return phrase(self.noun_phrase(np, "counted"), particle, counted)
        particle = "が" if np.link in ("either", "or") and particle == "は" else particle
        words = phrase(self.noun_phrase(np, case), particle)
        if np.det not in ("how_many", "how_much"):
            return words
        counter = "" if np.det == "how_much" else self.counter(np)
        many = {"": "どのくらい", "つ": "いくつ"}.get(counter) or "何" + counter
        return phrase(words, many) if there or particle == "を" else phrase(many, "の", words)

    def living(self, np: Phrase | None) -> bool:
        return np is not None and (
            bool(np.name) or np.pronoun not in ("", "that") or (bool(np.noun) and self.noun(np).type in _LIVING)
        )

    def place(self, each: Adverbial, particle: str) -> str:
        return phrase(self.adverbial(each), particle)

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
            word = adjective("嬉しい" if what.adjective == _GLAD else self.words.adjectives[what.adjective]["ja"])
            degree = {"very": "とても"}.get(what.degree, "")
            than = phrase(self.noun_phrase(what.than, "that"), "より") if what.than else ""
            if what.degree == "too":
                stem = word.adjective_stem() if word.kind == "i" else word.text
                word = Word("すぎる", "1", stem)
            return phrase(than, marked(degree, what.mark) if degree else ""), word
        *rest, last = self.words.frames[clause.frame].cells["ja"].split()
        words: list[str] = []
        for each in rest:
            if each[0] in "OT":
                if each[0] in clause.roles and clause.roles[each[0]].pronoun == "it":
                    continue  # what was named just before
                if each[0] in clause.roles:
                    owner = self.owner(subject, clause.roles[each[0]])
                    if (
                        owner == "you"
                        and clause.roles[each[0]].pronoun == "i"
                        and clause.frame in _TABLES["frames"]["favours"]
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

    def owner(self, subject: Phrase | None, thing: Phrase) -> str:
        """Whose things the subject's are: of a name or a noun, his or hers."""
        if subject is None or subject.pronoun or subject.members:
            return subject.pronoun if subject else ""
        if subject.noun and self.noun(subject).type == "family":
            return thing.det if thing.det == subject.det else ""
        return thing.det if thing.det in ("he", "she") else ""

    def predicate(self, clause: Clause, word: Word) -> tuple[Word, bool, bool]:
        """The inflected end with modality and aspect in it: (word, negative, past)."""
        negative, past = clause.negative, clause.tense is Tense.PAST
        if clause.modal.value:
            return with_modal(word, clause.modal, clause.mood, clause.person[0] == "3", negative, past)
        given = {np.pronoun for role, np in clause.roles.items() if role != "S"} & {"i", "we"}
        if given and clause.frame in _TABLES["frames"]["favours"] and clause.person[0] in "23" and not negative:
            word = Word("くれる", "1", word.te())
        if clause.tense is Tense.DONE:
            return (Word("いる", "1", word.te()), True, False) if negative else (word, False, True)
        resultative = "teiru" in self.tags(clause)
        if clause.tense is Tense.NOW or (resultative and word.kind in ("1", "5", "する")):
            return Word("いる", "1", word.te()), negative, past
        return word, negative, past

    def tags(self, clause: Clause) -> frozenset[str]:
        frame = self.words.frames.get(clause.frame)
        return frame.tags if frame else frozenset()

    def clause(self, clause: Clause, style: str, drop: str = "", topic: str = "は") -> str:
        """style: polite, plain, attributive, tara, te … drop: a pronoun that is not said."""
        words, word = self.arguments(clause)
        mark = (
            clause.predicate.mark if clause.predicate is not None and clause.predicate.adjective else clause.mark
        )
        subject_np = clause.roles.get("S")
        subject = ""
        if style in ("attributive", "tara", "node", "toki") and topic != "same":
            topic = "が"
        to_one = clause.frame in _TABLES["frames"]["with_someone"] and style != "attributive" and topic != "same"
        topic = "は" if topic == "same" else topic
        if clause.frame == "exist" or clause.asked == "S":
            topic = "が"
        asking = clause.mood in ASKING_MOODS
        if (
            subject_np is not None
            and not asking
            and clause.gap != "S"
            and subject_np.pronoun not in (drop or "-", "you", "it", "weather")
            and not subject_np.refers
        ):
            own = "" if clause.embedded or clause.mood is not Mood.STATEMENT else "own"
            if clause.frame == "be" and clause.predicate and clause.predicate.adjective and topic == "は":
                own = "that" if subject_np.det == "the" else own
            particle = "には" if to_one and topic in ("は", "が") else topic
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
        front = (
            self.fronted(clause) if clause.mood is Mood.STATEMENT and style in ("polite", "te", "node") else None
        )
        rest = self.without(clause, front)
        end = self.end(clause, word, style)
        manner = self.places(rest, "manner")
        exists = ""
        if clause.frame == "exist" and clause.predicate and clause.predicate.place:
            exists = self.place(clause.predicate.place, "に")
        return phrase(
            phrase(self.adverbial(front), "、") if front else "",
            exists,
            subject,
            self.when(rest),
            "今 、" if clause.tense is Tense.NOW and not clause.adverbials and clause.mark % 3 == 0 else "",
            self.places(rest, "cause"),
            question if clause.asked != "S" else "",
            phrase(where, "に" if ni else "で") if where else "",
            self.places(rest, "companion", "frequency"),
            done,
            self.places(rest, "length"),
            question if clause.asked == "S" else "",
            *(manner, words) if self.fixed_last(clause) else (words, manner),
            marked(end, mark),
        )

    def when(self, clause: Clause) -> str:
        """The time, with a comma if it would run into the next noun: 昨日の朝、年次報告書を."""
        words = self.places(clause, "time", "deadline")
        return phrase(words, "、") if len(bare(words)) > _SHORT and bare(words)[-1] > "一" else words

    def opener_end(self, key: str) -> str:
        return "。" if key in ("yes, of course", "exactly", "okay", "good morning", "sorry") else self.comma

    def fixed_last(self, clause: Clause) -> bool:
        """Whether a word that belongs to the verb stands before it, as in 薄切りにする."""
        frame = self.words.frames.get(clause.frame)
        rest = frame.cells["ja"].split()[:-1] if frame else []
        return bool(rest) and rest[-1][0] not in "OT"

    def answered(self, link: str, clause: Clause) -> str:
        if link in ("too", "neither"):
            same = replace(clause, roles={"S": clause.roles["S"]}, adverbials=(), mood=Mood.STATEMENT)
            words, word = self.arguments(same)
            also = "にも" if clause.frame in _TABLES["frames"]["with_someone"] else "も"
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
        match style:
            case "polite":
                ka = "か" if clause.mood in (Mood.YES_NO, Mood.WH) else ""
                wanting = clause.modal.value == "want" and clause.person[0] == "3"
                if ka and (wanting or (past and clause.asked in _EXPLAINED and not clause.wanted)):
                    return last.plain(negative, past) + "のですか"
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
        return last.plain(negative, past)

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        if said.speaker is not None:
            subject = phrase(self.noun_phrase(said.speaker, ""), "は")
            other = said.speaker.person[0] == "3"
            inner = first.roles["S"].pronoun if "S" in first.roles else ""
            drop = inner if said.speaker.name and inner == "he" else said.speaker.pronoun
            first = replace(first, embedded=other)
            if first.adverbials:
                subject = phrase(subject, "、")  # the time is that of what is said
            match said.link:
                case "say":
                    if first.tense is Tense.PAST and self.stative(first):
                        first = replace(first, tense=Tense.HABIT)
                    return phrase(subject, self.clause(first, "plain", drop, "が"), "と 言いました 。")
                case "think":
                    topic = "は" if first.frame == "be" else "が"
                    subject = phrase(subject, "、" if topic == "は" else "")
                    end = "と 思っています 。" if other else "と 思います 。"
                    return phrase(subject, self.clause(first, "plain", drop, topic), end)
                case "know":
                    return phrase(subject, self.clause(first, "attributive", drop), "ことを 知っています 。")
                case "hope" if not other:
                    return phrase(self.clause(first, "plain", drop, "が"), "と いいのですが 。")
                case "hope":
                    return phrase(subject, self.clause(first, "attributive", drop), "ことを 願っています 。")
            ka = "か" if first.asked else "かどうか"
            plain = replace(first, mood=Mood.STATEMENT)
            asked = phrase(self.clause(plain, "ka", drop, "が"), ka)
            if not other:
                return phrase(asked, "、", self.noun_phrase(said.speaker, ""), "には わかりません 。")
            return phrase(subject, asked, "知りません 。" if ka == "かどうか" else "を 知りません 。")
        mark = "。" if first.mood not in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "？"
        if second is None:
            return phrase(self.clause(first, "polite"), mark)
        pronoun = second.roles["S"].pronoun if "S" in second.roles else ""
        same = pronoun if pronoun and "S" in first.roles and first.roles["S"].pronoun == pronoun else ""
        topic = "same" if same else "は"
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
                    "" if same else "、",
                    self.clause(first, "polite", same),
                    mark,
                )
        if second.tense is Tense.PAST or self.stative(second):
            state = replace(second, tense=Tense.HABIT) if self.stative(second) else second
            weather = "S" in second.roles and second.roles["S"].pronoun == "weather"
            after = "とき 、" if weather or self.stative(second) else "後 、"
            return phrase(self.clause(state, "toki", "", topic), after, self.clause(first, "polite", same), mark)
        return phrase(self.clause(second, "tara", "", topic), "、", self.clause(first, "polite", same), mark)

    def reasoned(self, first: Clause, second: Clause, link: str) -> str:
        """The reason comes first and names what it is about; the main clause leaves that out, or says それを."""
        about = second.roles["S"].refers
        named = replace(second, roles={"S": first.roles[about]}) if about else second
        left = replace(first, roles={role: np for role, np in first.roles.items() if role != about})
        if link == "although":
            return phrase(self.clause(named, "polite"), "が 、", self.clause(left, "polite"))
        what, thing = second.predicate, first.roles.get(about)
        if about == "O" and what is not None and thing is not None:
            if "Oを" in self.words.frames[first.frame].cells["ja"].split() and not first.negative:
                left = replace(first, roles={**first.roles, "O": Phrase(thing.mark, pronoun="that")})
            state = self.words.adjectives[what.adjective]["ja"].endswith("ている1") or what.degree == "too"
            if thing.det in ("the", "a") and thing.of is None and not thing.adjective and not state:
                said = replace(thing, det="bare", adjective=what.adjective)
                kind = Predicate(what.mark, phrase=said, degree=what.degree)
                named = replace(second, roles={}, predicate=kind)
        elif what is not None and what.adjective and about == "S":
            named = replace(named, predicate=replace(what, adjective=_FELT.get(what.adjective, what.adjective)))
        return phrase(
            self.clause(named, "node", "", "same" if about == "S" else "が"),
            "ので 、",
            self.clause(left, "polite"),
        )
