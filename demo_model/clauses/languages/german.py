"""German: cases, verb-second and verb-final order, separable verbs, kein and nicht."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from demo_model.clauses.languages.german_forms import (
    ARTICLES,
    ASKED,
    AUX,
    DER,
    FLAT,
    LASTING,
    LINKS,
    LYING,
    MODAL,
    MODALS,
    OPEN,
    PRETERITE,
    WAY,
    GermanForms,
    attributive,
    cell,
    negated,
)
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance

_IN_FULL = ("invest",)
"""Frames whose preposition keeps apart from the article: in das Modell investieren."""
_SAID_OF = (
    ("senken", "budget", "kürzen"),
    ("auf_den_Markt_bringen", "datenbank", "in_Betrieb_nehmen"),
    ("auf_den_Markt_bringen", "website", "online_stellen"),
    ("auf_den_Markt_bringen", "shop", "online_stellen"),
    ("auf_den_Markt_bringen", "warenkorb", "live_schalten"),
    ("auf_den_Markt_bringen", "suchmaschine", "live_schalten"),
    ("auf_den_Markt_bringen", "plattform", "live_schalten"),
    ("auf_den_Markt_bringen", "dienst", "ein|führen"),
    ("auf_den_Markt_bringen", "system", "ein|führen"),
    ("auf_den_Markt_bringen", "logo", "ein|führen"),
    ("auf_den_Markt_bringen", "update", "veröffentlichen"),
    ("auf_den_Markt_bringen", "firewall", "in_Betrieb_nehmen"),
)
"""A verb, what a thing is called that takes another one, and that one."""
_BARE = re.compile(
    r"(?!.* (?:um|vor|nach|bis) )"
    r"(?!(?:am|ab|an|bei|bis|durch|für|i[mn]|nach|seit|u[mn]|von|vor|während|wegen|zu[mr]?|schon) )\w"
)
"""A time without a preposition, which stands before what is known: heute früh, letzte Woche."""
_SPORT = (["joggen"], ["laufen"])
"""Where one was, if one went to do it."""
_STILL = ("famous",)
"""Adjectives of what is still so: weil es berühmt ist."""
_REFLEXIVE = {"1s": "mich", "1p": "uns"}
_UNCLEAR = ("sie", "Sie", "es", "das")
"""Pronouns that could be the subject."""
_MATRIX = {"think": "glauben", "know": "wissen", "hope": "hoffen", "say": "sagen", "whether": "wissen"}


class German(GermanForms):
    def relative(self, np: Phrase, clause: Clause) -> str:
        case = "nom" if clause.gap == "S" else "acc"
        pronoun = cell(DER, case, self.gender(np))
        if clause.gap == "S":
            return phrase(pronoun, self.clause(clause, "rel"))
        return phrase(pronoun, self.clause(clause, "sub"))

    def complements(self, clause: Clause) -> tuple[str, list[tuple[str, str, Phrase | None]]]:
        verb, rest = super().complements(clause)
        thing = clause.roles.get("O")
        noun = self.noun(thing).cells["de"].lower() if thing is not None and thing.noun else ""
        for usual, ending, other in _SAID_OF:
            if verb == usual and noun.endswith(ending):
                return other, rest
        return verb, rest

    def group(self, clause: Clause, verb: str, mark: int) -> tuple[str, list[str]]:
        """The finite verb and what stands at the end: ("hat", ["abgesagt"]), ("sagt", ["ab"])."""
        aux = "haben"
        if verb.startswith("+"):
            aux, verb = "sein", verb[1:]
        prefix, _, base = verb.rpartition("|")
        infinitive = marked(prefix + base, mark)
        past = clause.tense is Tense.PAST
        person = clause.person

        def ended(stem: str) -> str:
            return stem if person in ("1s", "3s") else stem + ("n" if stem.endswith("e") else "en")

        if clause.mood is Mood.REQUEST:
            return "könnten", [infinitive]
        if past and clause.modal is Modal.NONE and base in PRETERITE and (base in AUX or self.stative(clause)):
            finite = ended(PRETERITE[base])
            return finite if base in AUX else marked(finite, mark), [marked(prefix, mark)] if prefix else []
        if clause.modal is not Modal.NONE:
            present, preterite = MODAL[MODALS[clause.modal]]
            if past:
                return ended(preterite), [infinitive]
            many = MODALS[clause.modal] if clause.modal in (Modal.CAN, Modal.MUST) else present + "n"
            return (present if person in ("1s", "3s") else many), [infinitive]
        match clause.tense:
            case Tense.FUTURE:
                return self.conjugated("werden", person), [infinitive]
            case Tense.PRIOR:
                return ended(PRETERITE[aux]), [marked(self.participle(base, prefix), mark)]
            case Tense.PAST | Tense.DONE:
                return self.conjugated(aux, person), [marked(self.participle(base, prefix), mark)]
        finite = marked(self.conjugated(base, person), mark)
        return finite, [marked(prefix, mark)] if prefix else []

    def predicate(self, what: Predicate) -> str:
        if what.adjective:
            base, _, given = self.words.adjectives[what.adjective]["de"].partition("/")
            if what.degree == "more":
                return marked(given or (base + "r" if base.endswith("e") else attributive(base) + "er"), what.mark)
            return marked(phrase({"very": "sehr", "too": "zu"}.get(what.degree, ""), base), what.mark)
        if what.phrase is not None:
            job = what.phrase.det == "a" and not what.phrase.adjective
            return self.noun_phrase(replace(what.phrase, det="") if job else what.phrase, "nom")
        return self.adverbial(what.place) if what.place else ""

    def spoken(self, clause: Clause) -> Clause:
        """What will be is told in the present once the time is said, and so is a journey."""
        when = clause.asked == "when" or self.places(clause, "time", "deadline")
        travels = clause.frame in ("fly", "travel", "drive_to", "go_trip", "move_to", "leave_for")
        if clause.tense is Tense.FUTURE and clause.modal is Modal.NONE and (when or travels):
            return replace(clause, tense=Tense.HABIT)
        return clause

    def clause(self, clause: Clause, order: str) -> str:
        """order: main, sub (the verb last), rel (no subject, the verb last), first (the verb first), inverted,
        gapped (no subject, the verb first), shared (nor the auxiliary), zu (the infinitive, no subject)."""
        clause = replace(clause, roles={role: self.several(np) for role, np in clause.roles.items()})
        perhaps = "vielleicht" if clause.modal is Modal.MIGHT else ""
        clause = self.spoken(self.settled(replace(clause, modal=Modal.NONE) if perhaps else clause))
        objects: dict[str, tuple[str, bool]] = {}
        pronouns: list[tuple[int, str]] = []
        pp: list[str] = []
        negative, after, noch = clause.negative, "", ""
        subject_np = clause.roles.get("S")
        if clause.frame == "exist" and subject_np is not None:
            place = clause.predicate.place if clause.predicate else None
            verb = "geben"
            if clause.asked or (order == "main" and place and not negative):
                verb = self.being(clause)
            if negative and subject_np.det in ("a", "bare", ""):
                subject_np, negative = replace(subject_np, det="no"), False
            pp += [self.adverbial(place)] if place else []
            if verb != "geben" and not clause.asked:
                finite, _ = self.group(clause, verb, clause.mark)
                return phrase(*pp, finite, self.noun_phrase(subject_np, "nom"))
            subject = "" if clause.asked else "es"
            if not clause.asked:
                objects["acc"] = self.noun_phrase(subject_np, "acc"), True
                clause = replace(clause, roles={})
        else:
            subject = self.noun_phrase(subject_np, "nom") if subject_np else ""
            if clause.frame == "weather_sunny" and subject_np is not None:
                subject = marked("die Sonne", subject_np.mark)
            if clause.frame == "be":
                verb, what = self.being(clause), clause.predicate
                if what is not None:
                    if negative and what.phrase is not None and what.phrase.det == "a":
                        what, negative = replace(what, phrase=replace(what.phrase, det="no")), False
                    pp.append(self.predicate(what))
                    after = phrase("als", self.noun_phrase(what.than, "nom")) if what.than else ""
            else:
                cell, complements = self.complements(clause)
                *fixed, verb = cell.split("_")
                for role, how, np in complements:
                    if role and role == clause.asked:
                        continue
                    if np is None and how == "sich":
                        pronouns.append((0, _REFLEXIVE.get(clause.person, "sich")))
                        continue
                    if np is None:
                        pp.append(marked(how, clause.mark))
                        continue
                    preposition, _, case = how.partition(".")
                    case = case or "acc"
                    if preposition == "über" and np.det == "bare":
                        np = replace(np, det="")
                    elif clause.frame == "play_instrument" and np.relative is None:
                        np = _plain(np)
                    if (
                        not preposition
                        and case == "acc"
                        and negative
                        and (np.det in ("a", "bare") or (not np.det and np.plural))
                    ):
                        np, negative = replace(np, det="no"), False
                        noch = "noch" if clause.tense is Tense.DONE else ""
                    elif not preposition and negative and np.det == "all":
                        negative, noch = False, "noch nicht" if clause.tense is Tense.DONE else "nicht"
                    whole = "*" if preposition and (np.relative is not None or clause.frame in _IN_FULL) else ""
                    if np.relative is not None:
                        after = phrase(",", self.relative(np, np.relative), ",")
                        np = replace(np, relative=None)
                    text = self.noun_phrase(np, case)
                    if preposition and np.link in ("both", "either"):
                        each_with = partial(self.after, preposition, case)
                        pp.append(self.joined(np, each_with))
                    elif preposition:
                        pp.append(phrase(preposition, whole + text))
                    elif np.pronoun and np.pronoun != "that":
                        pronouns.append((case == "dat", text))
                    else:
                        objects[case] = text, self.new(np)
                if "sich" in fixed:
                    pronouns.append((0, _REFLEXIVE.get(clause.person, "sich")))
                words = [each for each in fixed if each != "sich"]
                went = clause.tense in (Tense.PAST, Tense.PRIOR) and clause.modal is Modal.NONE
                if verb == "+gehen" and words[-1:] in _SPORT and went:
                    verb, clause = "+sein", replace(clause, tense=Tense.PAST)  # er war laufen
                if negative and words:
                    words, negative = negated(words)
                if words and words[0] in ARTICLES:
                    objects["fixed"] = marked(" ".join(words), clause.mark), True
                elif pp and pp[0].startswith(("nach ", "vor ")):  # mit dem Auto nach Krakau, Angst vor dem Hai
                    pp = [*(marked(each, clause.mark) for each in words), *pp]
                else:
                    pp += [marked(each, clause.mark) for each in words]
        if clause.tense is Tense.NOW and verb == "+gehen" and pp and WAY.match(" ".join(map(bare, pp))):
            verb, pp = "+sein", ["gerade auf dem Weg", *pp]
            clause = replace(clause, tense=Tense.HABIT)
        finite, end = self.group(clause, verb, clause.mark)
        front = (
            self.fronted(clause)
            if order == "main" and clause.mood is Mood.STATEMENT and not clause.asked
            else None
        )
        rest = self.without(clause, front)
        clitics = phrase(*(text for _, text in sorted(pronouns)))
        field = phrase(self.middle(rest, objects, negative, perhaps, noch), *pp)
        if clause.mood in (Mood.IMPERATIVE, Mood.LETS):
            return phrase(self.asking(clause, verb, clitics, field), after)
        match order:
            case "zu":
                prefix, _, base = verb.removeprefix("+").rpartition("|")
                to = f"{prefix}zu{base}" if prefix else f"zu {base}"
                return phrase(clitics, field, marked(to, clause.mark), after)
            case "sub" | "rel":
                if end and "|" in verb and bare(end[0]) == verb.removeprefix("+").partition("|")[0]:
                    finite, end = marked(bare(end[0]) + bare(finite), clause.mark), []
                return phrase("" if order == "rel" else subject, clitics, field, *end, finite, after)
            case "gapped":
                return phrase(finite, clitics, field, *end, after)
            case "shared":
                return phrase(clitics, field, *end, after)
        full = subject_np is not None and not subject_np.pronoun and subject
        if full and not any(bare(text) in _UNCLEAR for _, text in pronouns):
            following = phrase(clitics, subject)
        else:
            following = phrase(subject, clitics)
        if front is not None or order in ("first", "inverted"):
            return phrase(self.adverbial(front) if front else "", finite, following, field, *end, after)
        return phrase(subject, finite, clitics, field, *end, after)

    def after(self, preposition: str, case: str, np: Phrase) -> str:
        return phrase(preposition, self.noun_phrase(np, case))

    def being(self, clause: Clause) -> str:
        """The verb that says where something is: things lie, furniture stands."""
        place, thing = clause.predicate.place if clause.predicate else None, clause.roles["S"]
        where = self.words.adverbial_kinds[place.key] if place else ""
        if clause.frame == "exist" and thing.noun and self.noun(thing).type == "furniture":
            return "stehen"
        open_ = place is not None and OPEN.match(self.words.adverbials[place.key]["de"])
        if where != "place_thing" or not open_ or not thing.noun or self.noun(thing).type not in LYING:
            return "+sein"
        stands = self.noun(thing).type == "dishes" and not FLAT.search(self.noun(thing).cells["de"])
        return "stehen" if stands else "liegen"

    def new(self, np: Phrase) -> bool:
        """Not known before, so it stands near the verb: einen Bericht, Brot."""
        if np.members:
            return np.link in ("both", "either") or any(self.new(each) for each in np.members)
        if not np.noun or (np.det == "bare" and self.noun(np).type == "topic"):
            return False
        return np.det in ("", "a", "bare", "no", "num", "many", "all")

    def middle(
        self, clause: Clause, objects: dict[str, tuple[str, bool]], negative: bool, perhaps: str, noch: str
    ) -> str:
        """The objects, the times, what is said of the whole (schon, nicht) and the circumstances. What is known
        stands before the time, schon and the place, what is new after them."""
        placed = [objects[each] for each in ("dat", "acc", "fixed") if each in objects]
        if negative and "fixed" in objects and not objects["fixed"][0].startswith("ein"):
            placed[-1] = placed[-1][0], False  # den Tisch in der Küche nicht abräumen
        at = next((index for index, (_, new) in enumerate(placed) if new), len(placed))
        texts = [text for text, _ in placed]
        known, fresh = phrase(*texts[:at]), phrase(*texts[at:])
        when, often = (
            self.places(clause, "time", "since", "span", "deadline", "cause"),
            self.places(clause, "frequency"),
        )
        if clause.tense is Tense.ONGOING and (clause.asked or (when and clause.mark % 2)):  # schon seit Montag
            when = phrase("schon", when)
        where = self.places(clause, "companion", "length", "place", "manner")
        if negative:
            when = phrase(when, often)
            nicht = phrase(perhaps, "noch" if clause.tense is Tense.DONE else "", "nicht")
            if fresh:
                return phrase(when, known, where, fresh, nicht)
            if "fixed" in objects:
                return phrase(known, when, where, nicht)
            return phrase(known, when, nicht, where)
        early = "gerade" if clause.tense is Tense.NOW and clause.frame not in LASTING else ""
        done = "schon" if clause.tense is Tense.DONE and not clause.negative else noch
        if fresh:
            return phrase(known, perhaps, when, often, early, where, done, fresh)
        if at > 1:  # whom it is done for stands before the time and the place, what is done after them
            return phrase(
                perhaps,
                often,
                early,
                texts[0],
                when,
                self.places(clause, "place"),
                *texts[1:at],
                done,
                self.places(clause, "companion", "length", "manner"),
            )
        if _BARE.match(bare(when)) and len(placed) == 1:  # morgen früh den Workshop
            return phrase(perhaps, often, early, when, known, done, where)
        return phrase(perhaps, often, early, known, when, done, where)

    def asking(self, clause: Clause, verb: str, clitics: str, field: str) -> str:
        """Please …, let us …, shall we …?"""
        prefix, _, base = verb.removeprefix("+").rpartition("|")
        if clause.mood is Mood.LETS:
            start = "wollen wir" if self.casual(clause) else "lassen Sie uns"
            return phrase(start, clitics, field, marked(prefix + base, clause.mark))
        ending = marked(prefix, clause.mark) if prefix else ""
        return phrase("bitte", marked(base, clause.mark), "Sie", clitics, field, ending)

    def casual(self, clause: Clause) -> bool:
        """What would say "uns" twice is proposed with a question."""
        return "sich" in self.words.frames[clause.frame].cells["de"]

    def asks(self, clause: Clause, order: str) -> str:
        """order: first (a question of its own) or sub."""
        plain = replace(clause, mood=Mood.STATEMENT)
        if clause.asked == "S" and clause.wanted and clause.frame != "exist":
            return self.clause(plain, "main" if order == "first" else "sub")
        word = ASKED.get(clause.asked, "")
        if clause.wanted:
            word = self.noun_phrase(clause.wanted, "acc")
            for role, how, np in self.complements(clause)[1] if clause.frame != "exist" else ():
                if role == clause.asked and np is not None:
                    preposition, _, case = how.partition(".")
                    word = phrase(preposition, self.noun_phrase(np, case))
        last = "rel" if clause.asked == "S" and not clause.wanted else "sub"
        return phrase(word, self.clause(plain, "first" if order == "first" else last))

    def opened(self, said: Utterance) -> str:
        """ "Übrigens habe ich …", but "übrigens, haben Sie …?"."""
        if said.opener != "statement:by the way" or said.second is not None or said.speaker is not None:
            return super().opened(said)
        return phrase("übrigens", self.clause(said.first, "inverted"), ".")

    def answered(self, link: str, clause: Clause) -> str:
        said = self.noun_phrase(clause.roles["S"], "nom")
        match link:
            case "not_yet":
                return "nein , noch nicht"
            case "too" | "neither":
                if clause.roles["S"].pronoun == "they":  # "sie auch" is heard as "you, too"
                    said = marked("die", clause.roles["S"].mark)
                return phrase(said, "auch", "nicht" if link == "neither" else "")
        finite, _ = self.group(clause, self.verb(clause), clause.mark)
        if clause.tense is Tense.FUTURE and clause.modal is Modal.NONE:
            finite = phrase("das", self.conjugated("machen", clause.person))
        return phrase("ja ," if link == "yes" else "nein ,", finite, said, "nicht" if link == "no" else "")

    def concluded(self, clause: Clause) -> str:
        return phrase("deshalb", self.clause(_present(clause), "inverted"))

    def verb(self, clause: Clause) -> str:
        return self.complements(clause)[0].split("_")[-1]

    def added(self, first: Clause, second: Clause) -> str:
        """The clause after "and": without what both share."""
        refused = first.negative or self.complements(first)[0].startswith("nicht_")  # it would deny both
        whole = not refused and all(np.relative is None for np in first.roles.values())
        if not whole or first.roles["S"] != second.roles["S"] or first.mood is not Mood.STATEMENT:
            return self.main(second)
        (aux, end), (other, then) = (self.group(each, self.verb(each), each.mark) for each in (first, second))
        if aux != other or not end or not then:
            return self.clause(second, "gapped")
        direct = all(("O", ".acc") in [each[:2] for each in self.complements(it)[1]] for it in (first, second))
        if direct and second.roles["O"].refers == "O":
            second = replace(second, roles={role: np for role, np in second.roles.items() if role != "O"})
        return self.clause(second, "shared")

    def main(self, clause: Clause, order: str = "main") -> str:
        if clause.asked:
            return self.asks(clause, "first")
        if clause.mood in (Mood.YES_NO, Mood.REQUEST):
            return self.clause(clause, "first")
        return self.clause(clause, order)

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        proposes = first.mood is Mood.LETS and self.casual(first)
        mark = "?" if proposes or first.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "."
        if said.speaker is not None:
            person = said.speaker.person
            verb = self.conjugated(_MATRIX[said.link], person)
            if said.link == "say":
                verb = phrase(self.conjugated("haben", person))
            subject = self.noun_phrase(said.speaker, "nom")
            inner = phrase("dass", self.clause(first, "sub"))
            if said.link == "whether":
                verb = phrase(verb, "nicht")
                inner = self.asks(first, "sub") if first.asked else phrase("ob", self.clause(first, "sub"))
            return phrase(subject, verb, "gesagt" if said.link == "say" else "", ",", inner, ".")
        if second is None:
            return f"{self.main(first)} {mark}"
        match said.link:
            case "and":
                return phrase(self.main(first), "und", self.added(first, second), mark)
            case "but":
                return phrase(self.main(first), ", aber", self.main(second), mark)
            case "to":
                return phrase(
                    self.main(first), ", um", self.clause(replace(second, tense=Tense.HABIT), "zu"), mark
                )
            case "so that":
                return phrase(self.main(first), ", damit", self.clause(second, "sub"), mark)
            case "so":
                return phrase(self.main(first), ", deshalb", self.clause(_present(second), "inverted"), mark)
        word = LINKS[said.link]
        if said.link in ("before", "after"):
            first, second = self.in_order(said, said.early)
            if said.link == "after":
                second = replace(second, tense=Tense.PRIOR if second.tense is Tense.PAST else Tense.PAST)
            other = phrase(word, self.clause(second, "sub"))
            if said.early:
                return phrase(other, ",", self.main(_present(first), "inverted"), mark)
            return phrase(self.main(first), ",", other, mark)
        still = second.predicate is not None and second.predicate.adjective.partition(" ")[0] in _STILL
        if said.link == "because" and still and second.roles["S"].pronoun == "it":
            second = replace(second, tense=Tense.HABIT)
        weather = "S" in second.roles and second.roles["S"].pronoun == "weather"
        if said.link == "when" and second.tense is Tense.PAST:
            word = "als"
        elif said.link == "when" and first.tense is Tense.FUTURE and not (weather or self.stative(second)):
            word, second = "sobald", replace(second, tense=Tense.PAST)  # "wenn er" would be: whenever he
        elif said.link == "if" and first.mood is not Mood.STATEMENT:
            word = "falls"  # "sagen Sie Bescheid, wenn er" would be: when he
        other = phrase(word, self.clause(self.about(first, second), "sub"))
        if said.link in ("because", "although") or first.mood is not Mood.STATEMENT:
            return phrase(self.main(first), ",", other, mark)
        return phrase(other, ",", self.main(_present(first), "inverted"), mark)


def _plain(np: Phrase) -> Phrase:
    """Without an article: Klavier spielen."""
    return replace(np, det="bare" if np.det == "the" else np.det, members=tuple(map(_plain, np.members)))


def _present(clause: Clause) -> Clause:
    """What follows from something else is told in the present."""
    return replace(clause, tense=Tense.HABIT) if clause.tense is Tense.FUTURE else clause
