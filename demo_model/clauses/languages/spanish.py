"""Spanish: ser and estar, personal a, clitics, the subjunctive of usted and after cuando."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar
from zlib import crc32

from demo_model.clauses.languages.romance import Parts
from demo_model.clauses.languages.spanish_forms import (
    AROUND,
    ASKED,
    CLITIC,
    FOOD,
    LASTING,
    LINKS,
    MATRIX,
    MODAL,
    POSSESSIVE,
    PROMPT,
    REFLEXIVE,
    STRESSED,
    SUBJECT,
    TASTES,
    TODAY,
    TONIC,
    YOU_ALL,
    SpanishForms,
    attached,
    gerund,
    stressed,
    with_clitics,
)
from demo_model.clauses.languages.spanish_owners import with_owners
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import (
    ANSWERS,
    FIXED_FRAMES,
    Adverbial,
    Clause,
    Modal,
    Mood,
    Phrase,
    Predicate,
    Tense,
    Utterance,
)

_ARTICLES = {"de": "", "a": "the"}
"""What a kind of thing has after a preposition: hablar de innovación, alergia a la mostaza."""


class Spanish(SpanishForms):
    people_take_a = True
    question_words: ClassVar = ASKED
    joins: ClassVar = {
        "and": ("", ",", "y", ""),
        "or": ("", ",", "o", ""),
        "both": ("tanto", ",", "como", ""),
        "either": ("", ",", "o", ""),
        "etc": ("", ",", ",", ", etcétera"),
    }
    subjects: ClassVar = SUBJECT
    tonics: ClassVar = TONIC
    clitics: ClassVar = CLITIC
    links: ClassVar = LINKS
    arounds: ClassVar = AROUND
    during = "durante"
    why = "por eso"
    graver: ClassVar = {"big": "serious"}
    degrees: ClassVar = {"very": "muy", "too": "demasiado", "more": "más"}

    def relative(self, np: Phrase, clause: Clause) -> str:
        person = self.noun(np).type in ("person", "family", "profession")
        que = "a quien" if clause.gap == "O" and person and not np.plural else "que"
        lent = self.ended("prestado", self.agreement(np))
        return phrase(que, re.sub(r"\bprestado\b", lent, self.clause(clause, "")))

    def clause(self, clause: Clause, order: str, mood: str = "") -> str:
        clause = self.settled(clause)
        if mood == "perfect" and (clause.tense is not Tense.PAST or clause.modal is not Modal.NONE):
            mood = ""
        subject_np = clause.roles.get("S")
        subject = self.subject(clause, order)
        front = self.fronted(clause) if self.may_front(clause) and order == "main" else None
        start = self.before(front)
        if clause.modal is Modal.MIGHT:  # no podría ir: could not go
            said = replace(self.without(clause, front), modal=Modal.NONE, tense=Tense.HABIT)
            return phrase(start, "puede que", self.clause(said, "", "subjunctive"))
        mark = clause.mark
        kind = ""
        clitics: list[str] = []
        held: list[str] = []
        fixed = 0
        if clause.frame == "be":
            what = clause.predicate
            verb = "ser"
            if what is not None and (
                what.place or (what.adjective and self.words.adjectives[what.adjective]["es"].startswith("="))
            ):
                verb = "estar"
            kind = self.noun(subject_np).type if subject_np and subject_np.noun else ""
            adjective = self.words.adjectives[what.adjective]["es"] if what and what.adjective else ""
            if what is not None and what.place and kind == "event":
                verb = "ser"
            elif adjective in TASTES and kind in FOOD and what is not None and what.than is None:
                verb = "estar"
            elif adjective.startswith("tener"):
                verb = "tener"
            rest = [self.predicate(what, subject_np)] if what else []
            held, rest = (rest, []) if order == "inverted" and what and not what.place else ([], rest)
        elif clause.frame == "exist":
            assert subject_np is not None  # noqa: S101
            verb, subject = "haber", ""
            shown = replace(
                subject_np,
                det=""
                if subject_np.det == "bare" or (clause.negative and subject_np.det == "a")
                else subject_np.det,
            )
            place = clause.predicate.place if clause.predicate else None
            rest = ["" if clause.asked else self.noun_phrase(shown, ""), self.adverbial(place) if place else ""]
            clause = replace(clause, roles={"S": replace(subject_np, plural=False)})
        else:
            owned = clause.roles.get("O") if clause.negative and self.complements(clause)[0] == "tener" else None
            if owned is not None and owned.det == "a" and not owned.plural:  # no tenemos violonchelo
                clause = replace(clause, roles={**clause.roles, "O": replace(owned, det="")})
            parts = self.parts(clause)
            verb, rest = parts.verb, [marked(each, mark) for each in parts.rest]
            fixed = len(parts.fixed) + sum(not each[0] for each in self.complements(clause)[1][:1])
            held = rest[:fixed] if order == "inverted" else []
            rest, fixed = rest[len(held) :], fixed - len(held)
            thing = clause.roles.get("O")
            if parts.fixed == ["prestado"] and thing is not None:
                lent = marked(self.ended("prestado", self.agreement(thing)), mark)
                held, rest = ([lent], rest) if held else ([], [lent, *rest[1:]])
            clitics = [each[2:] for each in sorted(parts.clitics)]
            dative = next((np for _, how, np in self.complements(clause)[1] if how.endswith(".dat") and np), None)
            if dative is not None and dative.pronoun in ("", "who") and clause.mood is not Mood.IMPERATIVE:
                clitics.insert(0, "les" if dative.plural else "le")
        if len(clitics) > 1 and bare(clitics[0]) in ("le", "les") and bare(clitics[1]) in ("lo", "la"):
            clitics[0] = "se"
        if any(np is not None and np.pronoun == "you" for np in self.weak(clause)):
            rest.insert(fixed, "a usted")  # "lo" and "le" would be heard as "him"
        if verb.startswith("~"):
            return self.pleasing(clause, verb[1:], order)
        if verb == "comer" and clitics and clause.tense is Tense.PAST:
            verb = "se_comer"  # all of it: nos la comimos
        himself = verb.startswith("se_") and clause.person[0] == "3"  # "no se pudo ir" would be that nobody could
        if verb.startswith("se_"):
            verb = verb[3:]
            clitics.insert(0, REFLEXIVE.get(clause.person, "se"))
        if clause.mood in (Mood.IMPERATIVE, Mood.LETS, Mood.REQUEST):
            return self.asking(clause, verb, clitics, rest)
        if clause.tense is Tense.NOW and verb == "ir" and rest and bare(rest[0]).startswith(("a ", "al ")):
            rest.insert(0, "de camino")
        if mood == "infinitive":
            return phrase(marked(attached(verb, clitics), mark), *rest, self.ending(clause))
        person = clause.person
        past = clause.tense is Tense.PAST
        no = ("todavía no" if clause.tense is Tense.DONE else "no") if clause.negative else ""
        ya = "ya" if clause.tense is Tense.DONE and not clause.negative else ""
        inner = ""
        if clause.modal is not Modal.NONE:
            modal = MODAL[clause.modal]
            unable = clause.modal is Modal.CAN and clause.negative  # no pude venir
            tense = (
                "conditional"
                if clause.modal is Modal.SHOULD
                else "past subjunctive"
                if past and mood == "subjunctive"
                else ("preterite" if clause.modal is Modal.MUST or unable else "imperfect")
                if past
                else mood or "present"
            )
            que = "que" if clause.modal is Modal.MUST else ""
            whole = verb
            if himself or (order == "inverted" and subject_np is not None and not subject_np.pronoun):
                whole, clitics = attached(verb, clitics), []
            finite, inner = self.form(modal, tense, person), phrase(que, marked(whole, mark))
        else:
            match clause.tense:
                case Tense.ONGOING if self.carries_on(clause, verb):
                    finite = self.form("llevar", "present", person)
                    inner, clause = self.carried(clause, verb, clitics)
                    clitics = []
                case Tense.PAST if (mood == "perfect" or (not mood and _today(clause))) and not self.stative(
                    clause
                ):
                    finite = self.form("haber", "present", person)
                    inner = marked(self.form(verb, "participle", person), mark)
                case Tense.PAST if mood != "imperfect" or self.stative(clause):
                    whole_event = verb == "ser" and kind == "event" and not clause.embedded  # la reunión fue larga
                    stative = self.stative(clause) and not self.lasted(clause) and not whole_event
                    tense = "imperfect" if stative else "preterite"
                    tense = "past subjunctive" if mood == "subjunctive" else tense
                    finite = marked(self.form(verb, tense, person), mark)
                case Tense.DONE | Tense.PAST | Tense.PRIOR:
                    finite = self.form("haber", "present", person)
                    if mood == "imperfect" or clause.tense is Tense.PRIOR:
                        finite = self.form("haber", "imperfect", person)
                    inner = marked(self.form(verb, "participle", person), mark)
                case Tense.NOW if clause.frame not in LASTING and verb != "ir":
                    finite, inner = (
                        self.form("estar", mood if mood == "imperfect" else "present", person),
                        marked(self.form(verb, "gerund", person), mark),
                    )
                case Tense.FUTURE if (
                    not mood and verb != "ir" and person != "1p" and self.intended(clause)
                ):  # not vamos a: let's
                    finite, inner = self.form("ir", "present", person), phrase("a", marked(verb, mark))
                case Tense.FUTURE if mood != "subjunctive":
                    finite = marked(self.form(verb, "conditional" if mood else "future", person), mark)
                case _:
                    finite = marked(self.form(verb, mood or "present", person), mark)
        if verb == "haber" and finite.startswith("ha") and clause.tense is Tense.HABIT and mood != "imperfect":
            finite = "haya" if mood else "hay"
        said = self.without(clause, front)
        early = self.early(said) if rest[fixed:] or len(said.adverbials) > 1 else None
        when = self.adverbial(early) if early else ""
        tail = phrase(*rest[:fixed], when, *rest[fixed:], self.ending(self.without(said, early)))
        often = self.places(clause, "frequency")
        verbs = phrase(no, ya, *clitics, finite, inner)
        if bare(often) == "regularmente":
            often, verbs = "", phrase(verbs, often)
        carried = clause.modal is not Modal.NONE or (clause.tense is Tense.ONGOING and inner)
        if order == "inverted" and carried and (tail or held or not clause.modal.value):
            return phrase(often, no, *clitics, finite, subject, inner, *held, tail)
        if order == "inverted" and subject_np is not None and subject_np.pronoun:
            return phrase(often, verbs, subject, *held, tail)
        if order == "inverted":
            return phrase(often, verbs, *held, subject, tail)
        return phrase(start, subject, often, verbs, tail)

    def ending(self, clause: Clause) -> str:
        """Cambiar una cosa por otra is to swap them: it is changed "debido a"."""
        swaps = clause.frame not in FIXED_FRAMES and self.complements(clause)[0] == "cambiar"
        return _due(super().ending(clause)) if swaps else super().ending(clause)

    def before(self, front: Adverbial | None) -> str:
        """A time that begins the sentence: a short one without a comma."""
        words = _due(self.adverbial(front)) if front else ""
        return phrase(words, "," if front and (words.count(" ") > 2 or self.kind(front) == "cause") else "")

    def carries_on(self, clause: Clause, verb: str) -> bool:
        """Whether "llevar" says it: lleva dos horas esperando, una semana enfermo; but lo conozco desde hace …"""
        if clause.frame == "be":
            return verb == "estar" and bool(self.places(clause, "span"))
        return not self.stative(clause)

    def carried(self, clause: Clause, verb: str, clitics: list[str]) -> tuple[str, Clause]:
        """What follows "llevar", dos horas esperando, and the clause without the time."""
        spent = " ".join(self.places(clause, "span").split()[2:])  # without "desde hace"
        doing = (
            "" if clause.frame == "be" else marked(gerund(self.form(verb, "gerund", "3s"), clitics), clause.mark)
        )
        others = tuple(each for each in clause.adverbials if self.kind(each) != "span")
        return phrase(spent, doing), replace(clause, adverbials=others)

    def weak(self, clause: Clause) -> list[Phrase | None]:
        """What is said by a clitic, or could be."""
        if clause.frame in ("be", "exist"):
            return []
        return [np for _, how, np in self.complements(clause)[1] if how[0] == "." or how.endswith(".dat")]

    def fronted(self, clause: Clause) -> Adverbial | None:
        """A time does not wait until the end of a long clause, nor of a denied one."""
        if clause.tense is Tense.ONGOING:
            return None
        times = [] if clause.embedded else [each for each in clause.adverbials if self.kind(each) == "time"]
        if not times or clause.mood is not Mood.STATEMENT:
            return super().fronted(clause)
        lengthy = len(clause.roles) > 2 or (len(clause.roles) > 1 and len(clause.adverbials) > 1)
        denied = clause.negative and clause.tense is not Tense.DONE
        return times[0] if lengthy or denied or times[0].key in PROMPT else super().fronted(clause)

    def early(self, clause: Clause) -> Adverbial | None:
        """A short time that stands right after the verb: quién terminó hace poco el informe."""
        times = [each for each in clause.adverbials if self.kind(each) == "time"]
        if not times or clause.frame in ("be", "exist") or self.adverbial(times[0]).count(" ") > 2:
            return None
        known = all(np.det not in ("", "a", "bare", "none") or np.name for np in clause.roles.values())
        asks = clause.asked or "S" not in clause.roles
        prompt = times[0].key in PROMPT and times[0].key != "the other day"
        return times[0] if prompt or (asks and known) else None

    def subject(self, clause: Clause, order: str) -> str:
        """He and she, if another one is spoken of, or at every third beginning: learners meet both."""
        np = clause.roles.get("S")
        if clause.gap == "S" or np is None or np.pronoun in ("i", "we"):
            return ""
        if np.det == YOU_ALL:
            return marked("ustedes", np.mark)
        if np.pronoun == "they":
            return ""
        noun = "".join(each.noun for each in clause.roles.values())
        begins = order == "main" and clause.mood is Mood.STATEMENT and not clause.embedded
        begins = begins and crc32(f"{clause.frame} {noun} {clause.tense}".encode()) % 3 == 0
        if np.pronoun in ("he", "she") and np.det != STRESSED and not begins:
            return ""
        return self.noun_phrase(np, "S")

    def utterance(self, said: Utterance) -> str:
        if said.second is not None:
            first, second = said.first, said.second
            said = replace(said, first=self.apart(first, second), second=self.apart(second, first))
        if said.first.mood in (Mood.YES_NO, Mood.WH) and said.speaker is None:
            said = replace(said, first=stressed(said.first))
        elif said.first.mood in (Mood.IMPERATIVE, Mood.REQUEST) and said.second is not None:
            said = replace(said, second=stressed(said.second))
        elif said.speaker is None and _shared_form(said.first, self.stative(said.first)):
            said = replace(said, first=stressed(said.first))
        thing = said.first.roles.get("O")
        over = said.first.tense in (Tense.PAST, Tense.DONE) and said.first.modal is Modal.NONE
        if said.second is None and said.first.negative and over and thing is not None and thing.det == "a":
            none = {**said.first.roles, "O": replace(thing, det="none")}
            said = replace(said, first=replace(said.first, roles=none))
        return super().utterance(said)

    def apart(self, clause: Clause, other: Clause) -> Clause:
        """He and she are said if the other clause is about a woman and a man."""
        mine, theirs = clause.roles.get("S"), other.roles.get("S")
        if mine is None or theirs is None or mine.pronoun not in ("he", "she") or theirs.person != "3s":
            return clause
        clear = mine.refers or theirs.refers or theirs.name or theirs.pronoun == "weather"
        if clear or self.agreement(mine)[0] == self.agreement(theirs)[0]:
            return clause
        return replace(clause, roles={**clause.roles, "S": replace(mine, det=STRESSED)})

    def parts(self, clause: Clause) -> Parts:
        """Le presenté mi cuñado a mi padre: who is introduced has no "a" beside the one that has."""
        parts = super().parts(clause)
        whom, to = clause.roles.get("O"), clause.roles.get("T")
        if parts.verb == "presentar" and whom is not None and to is not None and not (whom.pronoun or to.pronoun):
            parts.rest[0] = self.noun_phrase(whom, "")
        return parts

    def concluded(self, clause: Clause) -> str:
        return super().concluded(stressed(clause) if _shared_form(clause, self.stative(clause)) else clause)

    def governed(self, preposition: str, np: Phrase, frame: str) -> str:
        """Hablar de innovación, but la innovación es importante."""
        return super().governed(
            preposition, replace(np, det=_ARTICLES.get(preposition, "bare")) if np.det == "bare" else np, frame
        )

    def pleasing(self, clause: Clause, verb: str, order: str) -> str:
        """A mi abuela le gusta el té: what is liked is the subject."""
        subject, thing = clause.roles["S"], clause.roles.get("O")
        clitic = CLITIC[subject.pronoun][1] if subject.pronoun else "les" if subject.plural else "le"
        person = "3p" if thing is not None and thing.plural else "3s"
        if thing is not None and thing.det == "bare":
            thing = replace(thing, det="the")
        finite = marked(
            self.form(verb, "imperfect" if clause.tense is Tense.PAST else "present", person), clause.mark
        )
        if thing is not None and thing.members:
            thing = replace(thing, members=tuple(replace(each, det="the") for each in thing.members))
        whom = "" if subject.pronoun in ("i", "we") else self.governed("a", subject, clause.frame)
        no = "no" if clause.negative else ""
        return phrase(whom, no, clitic, finite, self.noun_phrase(thing, "") if thing else "", self.ending(clause))

    def asking(self, clause: Clause, verb: str, clitics: list[str], rest: list[str]) -> str:
        tail = phrase(*rest, self.ending(clause))
        please = "" if clause.mood is Mood.LETS else "por favor ,"
        if clause.negative:
            form = self.form(verb, "subjunctive", "1p" if clause.mood is Mood.LETS else "2")
            return phrase(please, "no", *clitics, marked(form, clause.mark), tail)
        if clause.mood is Mood.IMPERATIVE:
            form = with_clitics(self.form(verb, "subjunctive", "2"), [bare(each) for each in clitics])
            return phrase(please, marked(form, clause.mark), tail)
        start = "podría" if clause.mood is Mood.REQUEST else "vamos a"
        return phrase(start, marked(attached(verb, clitics), clause.mark), tail)

    def better(self, key: str, agreement: str) -> str:
        base = {"bueno": "mejor", "malo": "peor"}.get(self.words.adjectives[key]["es"], "")
        return base + "es" if base and agreement.endswith("p") else base

    def idiom(self, what: Predicate) -> str:
        """Tener mucho sueño, for "to be very sleepy"."""
        base = self.words.adjectives[what.adjective]["es"]
        if not base.startswith("tener "):
            return ""
        noun = base.removeprefix("tener ")
        much = "mucho" if noun == "sueño" else "mucha"
        return phrase({"very": much, "too": f"demasiad{much[-1]}", "more": "más"}.get(what.degree, ""), noun)

    def job(self, np: Phrase) -> Phrase:
        return replace(np, det="") if self.noun(np).type in ("person", "profession") else np

    def main(self, clause: Clause) -> str:
        if clause.mood is Mood.WH:
            return self.asked(clause)
        turned = clause.mood is Mood.YES_NO and (self.pronominal(clause) or self.characterizes(clause))
        return self.clause(clause, "inverted" if turned else "main")

    def characterizes(self, clause: Clause) -> bool:
        """Whether it says what something is or is like: ¿está disponible el informe?"""
        what = clause.predicate
        return clause.frame == "be" and what is not None and what.place is None

    def pronominal(self, clause: Clause) -> bool:
        """Whether its subject is a pronoun that is said."""
        np = clause.roles.get("S")
        return np is not None and np.pronoun in ("you", "he", "she", "they")

    def asked(self, clause: Clause) -> str:
        """A question with a question word, direct or indirect."""
        plain = replace(clause, mood=Mood.STATEMENT)
        wanted = clause.wanted
        if wanted is not None and wanted.det == "whose":
            thing = replace(wanted, det="the", relative=clause.owned)
            return phrase("de quién", "son" if wanted.plural else "es", self.noun_phrase(thing, ""))
        if clause.asked == "S" and clause.frame != "exist":
            return phrase("" if wanted else "quién", self.clause(plain, ""))
        order = "" if clause.asked == "why" and clause.embedded else "inverted"
        return phrase(self.question(clause), self.clause(plain, order))

    def answered(self, link: str, clause: Clause) -> str:
        match link:
            case "not_yet":
                return "no , todavía no"
            case "too" | "neither":
                subject = clause.roles["S"]
                said = marked("yo", subject.mark) if subject.pronoun == "i" else self.noun_phrase(subject, "S")
                return phrase(said, "también" if link == "too" else "tampoco")
        yes = link == "yes"
        if clause.modal is Modal.NONE:
            return "sí" if yes else "no"
        past = "imperfect" if clause.tense is Tense.PAST else "present"
        modal = self.form(
            MODAL[clause.modal], "conditional" if clause.modal is Modal.SHOULD else past, clause.person
        )
        que = "que" if clause.modal is Modal.MUST else ""
        return phrase("sí ," if yes else "no , no", modal, que, "hacerlo")

    def ends(self, clause: Clause) -> tuple[str, str]:
        return ("¿", "?") if clause.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else ("", ".")

    def reported(self, said: Utterance, speaker: Phrase) -> str:
        first, person = said.first, speaker.person
        subject = self.noun_phrase(speaker, "S")
        if speaker.pronoun and (person[0] != "3" or speaker.mark % 4):
            subject = ""
        about = first.roles.get("S")
        who = set(self.said_of(speaker).split())
        if about is not None and about.pronoun in ("he", "she") and who and who <= {"he", "she"} - {about.pronoun}:
            first = replace(first, roles={**first.roles, "S": replace(about, det=STRESSED)})
        if speaker.person[0] == "1" and (said.link == "hope" or _shared_form(first, self.stative(first))):
            first = stressed(first)
        if said.link == "say":
            said_so = self.clause(first, "", "imperfect")
            return phrase(subject, self.form("decir", "preterite", person), "que", said_so, ".")
        verb = self.form(MATRIX[said.link], "present", person)
        if said.link != "whether":
            mood = "subjunctive" if said.link == "hope" and first.tense is not Tense.PAST else ""
            return phrase(subject, verb, "que", self.clause(first, "", mood), ".")
        inner = self.asked(first) if first.asked else phrase("si", self.clause(first, ""))
        return phrase(subject, "no", verb, inner, ".")

    def continued(self, first: Clause, second: Clause) -> Clause:
        """The same pronoun is not said twice."""
        about = second.roles.get("S")
        same = about is not None and about.pronoun and about.pronoun == first.roles["S"].pronoun
        return replace(second, gap="S") if same else second

    def aspect(self, first: Clause) -> str:
        return "perfect" if _today(first) else ""

    def opened(self, said: Utterance) -> str:
        said = with_owners(said, self.said_of)
        if said.link == "not_yet":  # ¿se ha inscrito? Todavía no
            said = replace(said, first=replace(said.first, tense=Tense.DONE))
        asked = said.first.roles.get("S")
        if said.link in ANSWERS and said.second is not None and asked is not None and asked.pronoun == "you":
            answering = said.second.roles.get("S")
            if answering is not None and answering.pronoun == "we":
                all_of_you = replace(asked, pronoun="they", det=YOU_ALL)
                said = replace(said, first=replace(said.first, roles={**said.first.roles, "S": all_of_you}))
        return super().opened(said)

    def said_of(self, np: Phrase) -> str:
        """Whom "su" would be said of beside this phrase: he, she, they or you, or nobody; Anna is she, Kim he."""
        if np.members:
            return "they" if np.person == "3p" else ""
        if np.name:
            return " ".join(np.taken_for)
        if np.pronoun:
            return np.pronoun if np.pronoun in POSSESSIVE and np.pronoun != "i" else ""
        if not np.noun or self.noun(np).type not in ("person", "family", "group", "profession"):
            return ""
        return "they" if np.plural else "she" if self.agreement(np)[0] == "f" else "he"

    def subordinate(self, said: Utterance, second: Clause) -> str:
        later = said.link == "when" and second.tense in (Tense.HABIT, Tense.FUTURE)
        mood = "subjunctive" if later and said.first.tense is Tense.FUTURE else self.aspect(said.first)
        return self.clause(second, "", mood)

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        low = before.lower()
        if low in ("de", "a") and after == "el":
            return before + "l", ""
        if low == "con" and after == "mí":
            return "conmigo", ""
        if low == "y" and re.match(r"h?[ií](?![aeo])", after.lower()):
            return "e", after
        if low == "o" and re.match(r"h?[oó]", after.lower()):
            return "u", after
        return None


def _today(clause: Clause) -> bool:
    """Of what was done today one says "ha leído"."""
    return any(each.key in TODAY for each in clause.adverbials)


def _due(words: str) -> str:
    """Debido al ruido, for "por el ruido"."""
    return re.sub(r"\bpor(.) (?=(?:el|la|los|una?)\1 (?!mañana|tarde|noche))", r"debido\1 a\1 ", words)


def _shared_form(clause: Clause, stative: bool) -> bool:
    """Whether the verb of "he" is that of "I": debería, necesitaba."""
    if clause.modal is Modal.NONE:
        return clause.tense is Tense.PAST and stative
    if clause.modal is Modal.MIGHT:
        return True
    could = clause.modal in (Modal.CAN, Modal.WANT) and clause.tense is Tense.PAST and not clause.negative
    return clause.modal is Modal.SHOULD or could
