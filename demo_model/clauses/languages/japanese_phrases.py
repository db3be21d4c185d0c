"""Japanese words and noun phrases: polite and plain forms, whose a thing is, what counts it."""

from __future__ import annotations

import re
import tomllib
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.lexicon import WORDS
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Tense

TABLES = tomllib.loads((WORDS / "japanese.toml").read_text(encoding="utf-8"))
_PRONOUNS = TABLES["pronouns"]
_ASKING = {"which": "どの", "what_kind": "どんな", "whose": "誰の"}
_LOVERS = ("彼女", "彼氏")
"""Who would be somebody else without "my"."""
_OWN = ("i", "we", "own", "counted", "you")
"""Where 母 is the speaker's own mother, and 上司 the speaker's own boss."""
_SHORT = 2
_RELATED = re.compile("(?:[前後]に|まで.*|中に|早く|すぐ|直後.*|で)$")
"""Times that no は stands after."""
_TIED = re.compile("(?<![時分半中でめ])(?<!の前)に(.)$")
_AT_ONCE = re.compile("soon|later$|minutes|hour|before noon")
"""Times that are too near to be a plan."""
_PEOPLE = ("person", "family", "profession")
_LIVING = (*_PEOPLE, "animal", "dog", "wild")

_EXPLAINED = ("when", "where", "S")
"""What is asked for with んですか if it is past: one knows that it was done. Why and how are always asked so."""
FOR_US = "for us"
"""A role that is not said: who is glad of it, so that it is してくれる."""
ASKING_MOODS = (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS)

_GODAN = {
    "う": ("わ", "い", "っ"),
    "つ": ("た", "ち", "っ"),
    "る": ("ら", "り", "っ"),
    "む": ("ま", "み", "ん"),
    "ぶ": ("ば", "び", "ん"),
    "ぬ": ("な", "に", "ん"),
    "く": ("か", "き", "い"),
    "ぐ": ("が", "ぎ", "い"),
    "す": ("さ", "し", "し"),
}

_E_ROW = dict(zip("うつるむぶぬくぐす", "えてれめべねけげせ", strict=True))


@dataclass(frozen=True)
class Word:
    """kind: "1" (ichidan), "5" (godan), "する", "i" or "na" adjective; na words stand without な.

    before: what precedes an inflected ending that was built: Word("いい", "i", "送った方が").
    """

    text: str
    kind: str
    before: str = ""

    def stem(self) -> str:
        """送り, 食べ, し."""
        if self.kind == "する":
            return self.before + self.text[:-2] + "し"
        if self.kind == "1":
            return self.before + self.text[:-1]
        if self.text.endswith("来る"):
            return self.before + self.text[:-1]
        return self.before + self.text[:-1] + _GODAN[self.text[-1]][1]

    def negative_stem(self) -> str:
        """送ら, 食べ, し."""
        if self.kind != "5" or self.text.endswith("来る"):
            return self.stem()
        return self.before + self.text[:-1] + _GODAN[self.text[-1]][0]

    def te(self) -> str:
        if self.kind == "te":
            return self.dictionary()
        if self.kind != "5" or self.text.endswith("来る"):
            return self.stem() + "て"
        if self.text.endswith("行く"):
            return self.before + self.text[:-1] + "って"
        voiced = self.text[-1] in "むぶぬぐ"
        return self.before + self.text[:-1] + _GODAN[self.text[-1]][2] + ("で" if voiced else "て")

    def ta(self) -> str:
        te = self.te()
        return te[:-1] + ("だ" if te[-1] == "で" else "た")

    def e_row(self) -> str:
        """送れ, 食べれ, すれ."""
        if self.kind == "する":
            return self.before + self.text[:-2] + "すれ"
        if self.kind == "1" or self.text.endswith("来る"):
            return self.before + self.text[:-1] + "れ"
        return self.before + self.text[:-1] + _E_ROW[self.text[-1]]

    def potential(self) -> Word:
        """送れる, 食べられる, 確認できる."""
        if self.kind == "する":
            return Word("できる", "1", self.before + self.text[:-2])
        if self.kind == "1" or self.text.endswith("来る"):
            return Word("られる", "1", self.before + self.text[:-1])
        return Word("る", "1", self.e_row())

    def begun(self) -> Word:
        """What the state began with: 空く of 空いている, as a word that only has た."""
        if self.kind != "1" or not self.text.endswith(("ている", "でいる")):
            return self
        return Word(self.text[:-2], "te", self.before)

    def dictionary(self) -> str:
        return self.before + self.text

    def adjective_stem(self) -> str:
        """高, よ; かわい."""
        good = self.text == "いい" or self.text.endswith(("がいい", "にいい"))
        return self.before + (self.text[:-2] + "よ" if good else self.text[:-1])

    @property
    def hard(self) -> str:
        """What is not easy to do: わかりにくい of わかりやすい, else nothing."""
        return self.text.removesuffix("やすい") + "にくい" if self.text.endswith("やすい") else ""

    def polite(self, negative: bool, past: bool) -> str:
        if negative and self.hard:
            return replace(self, text=self.hard).polite(False, past)
        if self.kind == "i":
            if negative:
                return self.adjective_stem() + ("くありませんでした" if past else "くありません")
            return self.adjective_stem() + "かったです" if past else self.dictionary() + "です"
        if self.kind == "na" and negative and self.text.endswith("必要"):
            return self.dictionary() + ("ありませんでした" if past else "ありません")
        if self.kind == "na":
            ending = (
                ("ではありませんでした" if past else "ではありません")
                if negative
                else "でした"
                if past
                else "です"
            )
            return self.dictionary() + ending
        if negative and self.text == "知っている":
            return "知りませんでした" if past else "知りません"
        return self.stem() + (("ませんでした" if past else "ません") if negative else "ました" if past else "ます")

    def plain(self, negative: bool, past: bool, da: str = "だ") -> str:
        """da: what a na word has after it in the present: だ, な, の or である."""
        if negative and self.hard:
            return replace(self, text=self.hard).plain(False, past, da)
        if self.kind == "i":
            if negative:
                return self.adjective_stem() + ("くなかった" if past else "くない")
            return self.adjective_stem() + "かった" if past else self.dictionary()
        if self.kind == "na":
            ending = ("ではなかった" if past else "ではない") if negative else "だった" if past else da
            return self.dictionary() + ending
        if negative:
            nai = self.before + self.text[:-2] if self.text.endswith("ある") else self.negative_stem()
            return nai + ("なかった" if past else "ない")
        return self.ta() if past else self.dictionary()


def verb(cell: str) -> Word:
    """送る → godan; 始める1 → ichidan; 確認する → する."""
    if cell.endswith(("な", "の")):
        return Word(cell[:-1], "na")
    if cell.endswith("い"):
        return Word(cell, "i")
    if cell.endswith("1"):
        return Word(cell[:-1], "1")
    return Word(cell, "する" if cell.endswith("する") else "5")


def adjective(cell: str) -> Word:
    """高い, 重要な, 無料の; also a verb: 信頼できる1."""
    return verb(cell)


def with_modal(
    word: Word, modal: Modal, mood: Mood, person: str, negative: bool, past: bool
) -> tuple[Word, bool, bool]:
    """What one can, must, wants to … do: (word, negative, past). person: 1, 2 or 3."""
    match modal:
        case Modal.CAN:
            return word.potential(), negative, past
        case Modal.MUST if negative:
            return Word("いい", "i", word.negative_stem() + "なくても"), False, past
        case Modal.MUST if mood in (Mood.YES_NO, Mood.WH):
            return Word("ある", "5", word.dictionary() + "必要が"), False, past
        case Modal.MUST:
            return Word("なる", "5", word.negative_stem() + "なければ"), True, past
        case Modal.SHOULD if person == "1" and mood is Mood.STATEMENT:  # not advice for who listens
            what = word.negative_stem() + "ない" if negative else word.ta()
            return Word("よさそう", "na", what + "方が"), False, past
        case Modal.SHOULD if negative:
            return Word("いい", "i", word.negative_stem() + "ない方が"), False, past
        case Modal.SHOULD if mood is Mood.WH:
            return Word("いい", "i", word.e_row() + "ば"), False, past
        case Modal.SHOULD:
            return Word("いい", "i", word.ta() + "方が"), False, past
        case Modal.MIGHT:
            return Word("しれる", "1", word.plain(negative, False, "") + "かも"), True, False
        case Modal.WANT if person == "3" and mood is Mood.STATEMENT:
            return Word("いる", "1", word.stem() + "たいと思って"), negative, past
        case Modal.WANT if person == "3":
            return Word("いる", "1", word.stem() + "たいと言って"), negative, past
    return Word("たい", "i", word.stem()), negative, past


class JapanesePhrases(Linearizer):
    """Writes noun phrases with their particles."""

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

    @abstractmethod
    def clause(self, clause: Clause, style: str, drop: str = "", topic: str = "は") -> str:
        """style: polite, plain, attributive, tara, te … drop: a pronoun that is not said."""

    def noun_phrase(self, np: Phrase, case: str) -> str:
        if np.members:
            return self.joined(np, lambda each: self.member(np, each, case))
        if np.pronoun:
            return marked(_PRONOUNS[np.pronoun], np.mark)
        if np.name:
            return marked(f"{self.name(np)}さん", np.mark)
        noun = self.noun(np)
        word = noun.cells["ja"]
        if np.adjective:
            word = self.said_of(np.adjective, np).removesuffix("1") + word
        match np.det:
            case "the" if case == "that" and np.of is None:
                word = "その" + word
            case "that":  # what was new a moment ago
                word = "その" + word
            case "this":
                word = ("これらの" if np.plural and self.counter(np) != "足" else "この") + word
            case "many":
                word = "多くの" + word
            case "all":
                word = word + "全員" if self.living(np) and noun.type != "animal" else "すべての" + word
            case "num":
                word = word if case == "counted" else f"{np.count}{self.counter(np)}の{word}"
            case asking if asking in _ASKING:
                word = _ASKING[asking] + word
            case det if det == case.removesuffix("+") and word not in _LOVERS:  # whose it is goes without saying
                if (case.endswith("+") or det == "you") and det != "i":
                    word = TABLES["family"].get(word, word)
            case "you" if noun.type == "family":
                word = TABLES["family"].get(word) or f"そちらの{word}"
            case "i" | "we" if case in _OWN and (
                (noun.type == "family" and word not in _LOVERS) or noun.key in TABLES["own"]["related"]
            ):
                pass
            case "i" | "we" if noun.key in TABLES["own"]["unsaid"] or noun.type in TABLES["own"]["unsaid"]:
                pass
            case "i" | "we" as det if noun.type in TABLES["own"][det]:
                word = "うちの" + word
            case det if _PRONOUNS.get(det):
                honoured = TABLES["family"].get(word, word) if det in ("he", "she", "they", "yours") else word
                word = f"{'そちら' if det == 'you' else _PRONOUNS[det]}の{honoured}"
        words = marked(word, np.mark)
        if np.of is not None:
            words = phrase(self.noun_phrase(np.of, ""), "の", words)
        if np.relative is not None:
            words = phrase(self.clause(np.relative, "attributive", case if case in _PRONOUNS else ""), words)
        return words

    def member(self, np: Phrase, each: Phrase, case: str) -> str:
        """One of several: whose they all are is said once, 彼女の甥御さんとお父さん."""
        first, *others = np.members
        one = all(other.noun and other.det == first.det and first.det in _PRONOUNS for other in others)
        return self.noun_phrase(each, first.det + "+" if one and each is not first else case)

    def said_of(self, key: str, np: Phrase | None) -> str:
        """The adjective as it is said of this thing or its type: 広い部屋, 大きい机, 少ない予算."""
        if key.startswith("+"):  # a reason
            key = key[1:]
            noun = self.noun(np) if np is not None and np.noun else None
            hoped = noun and TABLES["reason_of"].get(key, {}).get(noun.type)
            return hoped or TABLES["reason"].get(key) or self.said_of(key, np)
        said = TABLES["said_of"].get(key, {})
        noun = self.noun(np) if np is not None and np.noun else None
        own = noun and (said.get(noun.cells["ja"]) or said.get(noun.type))
        return own or self.words.adjectives[key]["ja"]

    def named_before(self, later: Clause, clause: Clause) -> Clause:
        """Whom the first clause is about is not named again: 彼が財布をなくしたので、助けました."""
        subject, doer = clause.roles.get("S"), later.roles.get("S")
        known = {np.pronoun for np in (subject,) if np is not None and np != doer}
        if subject is not None and doer is not None and subject.pronoun and subject.pronoun == doer.pronoun:
            known = (
                {"he", "she"}
                if any(self.living(np) for role, np in clause.roles.items() if role != "S")
                else set()
            )
        elif doer is not None and doer.pronoun not in ("i", "we", "you"):
            known = set()
        again = {
            role: replace(np, pronoun="it")
            for role, np in later.roles.items()
            if role != "S" and np.pronoun in known & {"he", "she", "they"}
        }
        return replace(later, roles={**later.roles, **again})

    def counter(self, np: Phrase) -> str:
        noun = self.noun(np)
        return noun.counter or TABLES["counters"].get(noun.key) or TABLES["counters"].get(noun.type, "つ")

    def with_particle(self, np: Phrase, case: str, particle: str, there: bool = False) -> str:
        """A phrase and its particle: も for each of both; 何人 stands after を, or が of what there is."""
        if np.link == "both" and particle in ("は", "が", "を", "に", "と", "から"):
            also = ("" if particle in ("は", "が", "を") else particle) + "も"
            return phrase(*(phrase(self.member(np, each, case), also) for each in np.members))
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

    def adverbial(self, each: Adverbial) -> str:
        """10分間, 2日間: but 2時間."""
        words = super().adverbial(each)
        return re.sub("(?<=[分日月])(?=.$)", "間", words) if self.kind(each) == "length" else words

    def place(self, each: Adverbial, particle: str) -> str:
        return phrase(self.adverbial(each), particle)

    def owner(self, subject: Phrase | None, thing: Phrase) -> str:
        """Whose things the subject's are: of a name his or hers, of a noun his. "+" if both are one's family."""
        if subject is None or subject.pronoun or subject.members:
            return subject.pronoun if subject and subject.pronoun != "that" else ""
        if subject.noun and self.noun(subject).type == "family":
            own = {"f": "she", "m": "he"}.get(self.noun(subject).genders["es"])
            kin = not thing.noun or self.noun(thing).type == "family"
            return (
                thing.det + "+" if thing.det == subject.det else thing.det if thing.det == own and not kin else ""
            )
        return thing.det if thing.det == "he" or (thing.det == "she" and not subject.noun) else ""

    def tags(self, clause: Clause) -> frozenset[str]:
        frame = self.words.frames.get(clause.frame)
        return frame.tags if frame else frozenset()

    def when(self, clause: Clause, follows: str) -> str:
        """The time, with a comma if it would run into the next noun: 昨日の朝、年次報告書を; 昨日、顧客に."""
        words = self.places(clause, "time", "since", "span", "deadline")
        if (
            clause.asked == "S"
            and clause.mood is Mood.WH
            and clause.tense is Tense.FUTURE
            and not (clause.wanted or _RELATED.search(bare(words)))
        ):
            return phrase(re.sub("に(.)$", r"\1", words), "は") if words else ""  # 水曜日は誰が
        if "に" in follows.split() and _TIED.search(words):  # 金曜日の午後、秘書に
            return phrase(_TIED.sub(r"\1", words), "、")
        short = len(bare(words)) <= _SHORT and not "一" <= follows[:1] <= "鿿"
        return words if short else self.paused(words)

    def paused(self, words: str) -> str:
        return phrase(words, "、") if words and bare(words)[-1] > "一" else words

    def fixed_last(self, clause: Clause) -> bool:
        """Whether a word that belongs to the verb stands before it, as in 薄切りにする."""
        frame = self.words.frames.get(clause.frame)
        rest = frame.cells["ja"].split()[:-1] if frame else []
        return bool(rest) and rest[-1][0] not in "OT"

    def with_own(self, clause: Clause, each: Adverbial) -> Adverbial:
        """With the subject's own people it goes without saying whose they are: 叔母と一緒に."""
        whom = each.phrase
        if whom is None or not whom.det or self.owner(clause.roles.get("S"), whom) != whom.det:
            return each
        return replace(each, phrase=replace(whom, det="the"))

    def foreign(self, subject: Phrase | None) -> bool:
        """Whether people whose owner is not named would be taken for the subject's: 彼は上司に."""
        who = (subject.members or (subject,)) if subject is not None else ()
        return bool(who) and all(each.name or each.pronoun in ("he", "she", "they") for each in who)

    def with_owners(self, clause: Clause, *roles: str) -> Clause:
        """My colleague is named as mine, your sister as yours. roles: only these, and only what is not yours."""
        named = {
            role: self.with_owner(np) if not roles or (role in roles and np.det != "you") else np
            for role, np in clause.roles.items()
        }
        around = tuple(
            replace(each, phrase=self.with_owner(each.phrase)) if each.phrase and not roles else each
            for each in clause.adverbials
        )
        return replace(clause, roles=named, adverbials=around)

    def with_owner(self, np: Phrase) -> Phrase:
        members = tuple(map(self.with_owner, np.members))
        of = self.with_owner(np.of) if np.of is not None else None
        kind = self.noun(np).type if np.noun else ""
        own = kind in ("person", "profession") and np.noun not in TABLES["own"]["served"]
        det = {"i": "my", "we": "our"}.get(np.det, np.det) if own else np.det
        det = "yours" if kind == "family" and det == "you" else det
        return replace(np, det=det, members=members, of=of)

    def happens(self, clause: Clause, front: Adverbial | None) -> bool:
        """Whether all of it is new, so that the subject takes が: プリンターが故障しました."""
        subject = clause.roles.get("S")
        if subject is None or clause.negative or clause.modal is not Modal.NONE or subject.link == "both":
            return False
        if self.settles(clause):
            return False  # 妹は仕事が決まりました
        if clause.frame in TABLES["frames"]["happens"]:
            return not subject.pronoun
        new = front is not None or clause.tense is Tense.NOW
        thing = subject.members[0] if subject.members else subject
        return bool(thing.noun) and new and clause.tense is not Tense.HABIT and not self.stative(clause)

    def asked_of(self, clause: Clause) -> bool:
        """Whether one can hope it of somebody: 彼に来てほしい."""
        doer = clause.roles.get("S")
        if doer is None or doer.pronoun in ("i", "we") or "O" not in clause.roles or self.stative(clause):
            return False
        ours = any(np.pronoun in ("i", "we") for role, np in clause.roles.items() if role != "S")
        able = self.living(doer) or (bool(doer.noun) and self.noun(doer).type == "group")
        return able and not ours and not clause.negative and clause.modal is Modal.NONE

    def welcome(self, clause: Clause) -> Clause:
        """As what somebody is glad of: 見つけてくれた."""
        return replace(clause, roles={**clause.roles, FOR_US: Phrase(clause.mark, pronoun="we")})

    def thanked(self, clause: Clause, then: Clause) -> Clause:
        """The clause as what one thanks somebody for, if that is what one does then."""
        doer = then.roles.get("S")
        if then.frame not in TABLES["frames"]["thanks"] or doer is None or doer.pronoun not in ("i", "we"):
            return clause
        return self.welcome(clause) if self.asked_of(clause) else clause

    def of_people(self, adjective: str) -> bool:
        """Whether people are said to be so too."""
        same = self.words.adjectives[adjective]["ja"]
        types = (
            self.words.adjective_types[key] for key, row in self.words.adjectives.items() if row["ja"] == same
        )
        return any(set(each) & {*_PEOPLE, "anyone", "human", "staff"} for each in types)

    def explained(self, clause: Clause, past: bool) -> bool:
        """Whether one asks with んですか: for a reason or a way, for what one knows was done, what others want."""
        if clause.modal in (Modal.NONE, Modal.WANT) and clause.asked in ("why", "how"):
            return True
        which = clause.wanted.det if clause.wanted else ""
        return past and (which == "whose" or (clause.asked in _EXPLAINED and which in ("", "which")))

    def asks_to(self, clause: Clause) -> bool:
        """Whether "can you" asks somebody to do it: 準備をしてもらえますか."""
        you = clause.mood is Mood.YES_NO and clause.person == "2" and not clause.negative
        return you and clause.modal is Modal.CAN and clause.frame in TABLES["frames"]["asked_to"]

    def verb_of(self, clause: Clause, cell: str) -> str:
        """The frame's cell with the verb, or all of it, that goes with its nouns: 帽子をかぶる, 面接に呼ぶ."""
        verbs = TABLES["said_with"].get(clause.frame, {})
        for role in "OT":
            np = clause.roles.get(role)
            if np is not None and np.noun:
                noun = self.noun(np)
                said = verbs.get(noun.cells["ja"]) or verbs.get(noun.type)
                if said:
                    return said if " " in said else f"{cell.rpartition(' ')[0]} {said}"
        return cell

    def settles(self, clause: Clause) -> bool:
        """Whether what somebody gets is the subject: 仕事が決まる."""
        return self.verb_of(clause, "").strip().endswith("決まる")

    def favour(self, clause: Clause) -> bool:
        """Whether it is done for somebody: 待ってくれました."""
        frames = TABLES["frames"]
        return clause.frame in frames["favours"] or clause.frame in frames["kindnesses"]

    def goes_without(self, clause: Clause, owner: str, whom: Phrase) -> bool:
        """Whether for whom a favour is done goes without saying. owner: whose the subject's own things are."""
        if owner == "you" and whom.pronoun in ("i", "we"):
            return self.favour(clause)
        others = clause.person[0] == "3" and clause.mood is Mood.STATEMENT  # 彼女はあなたに送りました
        known = whom.pronoun == "you" and not clause.gap and not others
        return known and clause.frame in TABLES["frames"]["favours"]

    def asks_about(self, clause: Clause, last: str) -> bool:
        """Whether a question or a denial is about what there is: 時間はありますか, 天気はよくありません."""
        if clause.frame.startswith("weather_"):
            return clause.mood is Mood.YES_NO or clause.negative
        return last == "ある" and clause.mood is Mood.YES_NO and clause.person == "2"

    def planned(self, clause: Clause) -> bool:
        """Whether it is what others are going to do on some day, each second time: 明日出席する予定です.

        Of what will be done one always asks so, and of what one asks for never: 送ってくれますか.
        """
        doer = clause.roles.get("S")
        asked = clause.mood in (Mood.YES_NO, Mood.WH)
        if doer is None or clause.tense is not Tense.FUTURE or not (asked or clause.mood is Mood.STATEMENT):
            return False
        if clause.negative or clause.modal is not Modal.NONE or (clause.person[0] != "3" and not asked):
            return False
        if doer.pronoun in ("it", "that", "weather") or clause.frame in TABLES["frames"]["unplanned"]:
            return False
        someone = bool(doer.members) or self.living(doer) or self.noun(doer).type == "group"
        times = tuple(each.key for each in clause.adverbials if self.kind(each) == "time")
        if asked:
            ours = any(np.pronoun in ("i", "we") for role, np in clause.roles.items() if role != "S")
            return someone and not ours and not self.stative(clause) and not any(map(_AT_ONCE.search, times))
        return len(clause.frame) % 2 == 0 and someone and any(not _AT_ONCE.search(each) for each in times)

    def to_us(self, clause: Clause) -> bool:
        """Whether it is done to the speaker."""
        thing = clause.roles.get("O")
        return thing is not None and thing.pronoun in ("i", "we")

    def undone(self, clause: Clause) -> bool:
        """Whether it has not been done to what was named just before: スカートは洗いましたが."""
        thing = clause.roles.get("O")
        it = thing is not None and thing.pronoun == "it"
        return it and clause.negative and clause.frame not in TABLES["not_yet"]

    def opening(self, front: Adverbial, named: bool) -> str:
        """A time that begins the sentence: 数日前、彼女は, 数日前に行きました."""
        words = self.adverbial(front)
        if named and len(bare(words)) > _SHORT + 1:
            words = _TIED.sub(r"\1", words)
        return phrase(words, "、" if named or bare(words)[-1] not in "にで" else "")

    def told_now(self, clause: Clause) -> bool:
        """Whether 今 says it: each third time."""
        told = clause.mood is Mood.STATEMENT and not clause.adverbials
        return told and clause.tense is Tense.NOW and not clause.negative and clause.mark % 3 == 0
