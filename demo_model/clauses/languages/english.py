"""English."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from demo_model.clauses.languages.linearizer import Linearizer
from demo_model.clauses.marks import bare, marked, phrase
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance
from demo_model.recogniser import NUMBER_WORDS

_SUBJECT = {
    "i": "I",
    "we": "we",
    "you": "you",
    "he": "he",
    "she": "she",
    "they": "they",
    "that": "that",
    "weather": "it",
}
_OBJECT = {"i": "me", "we": "us", "you": "you", "he": "him", "she": "her", "they": "them", "that": "that"}
_OBJECT["who"] = _SUBJECT["who"] = "who"
_POSSESSIVE = {"i": "my", "we": "our", "you": "your", "he": "his", "she": "her", "they": "their"}
_ONES_OWN = ("homework",)
"""What is said with whose it is: we did our homework."""
_BE = {"1s": ("am", "was"), "3s": ("is", "was")}
_ASKED = {
    **{each: each for each in ("when", "where", "why", "how")},
    **{"how_long": "how long", "how_often": "how often", "amount": "how much", "age": "how old", "place": "where"},
}
_ASKING = {
    "which": "which",
    "how_many": "how many",
    "how_much": "how much",
    "what_kind": "what kind of",
    "whose": "whose",
}
_SAID = {
    **{"will": "would", "won't": "wouldn't", "has": "had", "have": "had", "hasn't": "hadn't", "haven't": "hadn't"},
    **{"is": "was", "am": "was", "are": "were"},
}
"""Auxiliaries after "said that"."""
_LAST = re.compile(r"ago|\{time|soon|later|minutes|hour|possible|noon|recently|just now|\{P\}|sometime")
"""Times that do not begin a sentence."""
_MANY = re.compile(r"(?:figures|details|minutes|instructions|phones)$")
"""Nouns that are plural as they stand."""
_SOME = re.compile(r"(?:soup|porridge|syrup)$")
"""Nouns of what one has some, not one."""
_NOT = {"can": "can't", "will": "won't", "am": "am not", "might": "might not"}
_SHORT = {"am": "'m", "are": "'re", "is": "'s", "am not": "'m not", "will": "'ll", "have": "'ve", "has": "'s"}
"""Auxiliaries after a pronoun, in speech."""
_DATIVE = frozenset(["send", "show", "give", "lend", "offer", "teach", "read", "tell", "promise"])
"""Verbs that take the person without "to": "sent me the report"."""
_CASUAL = 5
"""Of this many sentences one has no contraction, and of half as many "that" is said, so that both are learned."""
_AN_NOT = ("USB", "user", "uni", "use", "usa", "eu", "one")
_DOUBLED = re.compile(
    r"admit|quarrel|babysit|begin|cancel|chat|cut|debug|drop|fit|forget|get|hug|jog|knit|label|let|log|plan|"
    r"prefer|put|repot|run|scan|set|ship|shop|sit|skip|stop|submit|swim|transfer|travel|unwrap|win|"
    r"wrap"
)


def plural(noun: str) -> str:
    if noun.endswith("sis"):
        return noun[:-2] + "es"
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def comparative(adjective: str, given: str) -> str:
    if given:
        return given
    if adjective.endswith("y") and " " not in adjective and len(re.findall("[aeiouy]+", adjective)) < 3:
        return adjective[:-1] + "ier"
    return f"more {adjective}"


class English(Linearizer):
    language = "en"
    joins: ClassVar = {
        "and": ("", ",", "and", ""),
        "or": ("", ",", "or", ""),
        "both": ("both", ",", "and", ""),
        "either": ("either", ",", "or", ""),
        "etc": ("", ",", ",", "and so on"),
    }

    def opener_end(self, key: str) -> str:
        return ": " if key == "one question" else self.comma

    def noun_phrase(self, np: Phrase, case: str) -> str:
        if np.members:
            return self.joined(np, lambda each: self.noun_phrase(each, case))
        if np.pronoun == "it":
            return marked("it", np.mark)
        if np.pronoun:
            return marked((_SUBJECT if case == "S" else _OBJECT)[np.pronoun], np.mark)
        if np.name:
            return marked(self.name(np), np.mark)
        noun = self.noun(np)
        word = noun.cells["en"]
        if np.plural:
            word = noun.plurals.get("en") or plural(word)
        adjective = self.words.adjectives[np.adjective]["en"].split("/")[0] if np.adjective else ""
        words = phrase(adjective, word)
        match np.det:
            case "a" if _MANY.search(word):
                pass
            case "a" if _SOME.search(word) and not np.plural:
                words = phrase("some", words)
            case "the" | "this":
                many = np.plural or _MANY.search(word)
                words = phrase("these" if np.det == "this" and many else np.det, words)
                if np.of is not None and np.of.name:
                    words = phrase(self.noun_phrase(np.of, "O") + "'s", words.split(" ", 1)[1])
            case "a" if not np.plural:
                vowel = words[0].lower() in "aeiou" and not words.startswith(_AN_NOT)
                words = phrase("an" if vowel or words.startswith("hour") else "a", words)
            case "many" | "all":
                words = phrase("many" if np.det == "many" else "all the", words)
            case "num":
                words = phrase(NUMBER_WORDS["en"][np.count - 2], words)
            case det if det in _POSSESSIVE or det in _ASKING:
                words = phrase(_POSSESSIVE.get(det) or _ASKING[det], words)
        if np.of is not None and not np.of.name:
            words = phrase(words, "of", self.noun_phrase(np.of, "O"))
        words = marked(words, np.mark)
        if np.relative is not None:
            people = noun.type in ("person", "family", "profession")
            that = "who" if people and np.relative.gap == "S" else "that"
            subject = np.relative.roles.get("S")
            if np.relative.gap == "O" and subject is not None and subject.pronoun and np.relative.mark % 2:
                that = ""
            words = phrase(words, that, self.clause(np.relative))
        return words

    def forms(self, verb: str) -> tuple[str, str, str, str]:
        """Third person, past, participle, -ing."""
        ing = verb[:-1] + "ing" if verb.endswith("e") and not verb.endswith("ee") else verb + "ing"
        if _DOUBLED.fullmatch(verb):
            ing = verb + verb[-1] + "ing"
        if verb.endswith("ie"):
            ing = verb[:-2] + "ying"
        third = {"have": "has", "do": "does", "go": "goes"}.get(verb) or plural(verb)
        if verb in self.irregular:
            past, participle = self.irregular[verb].split()
            return third, past, participle, ing
        past = verb + ("d" if verb.endswith("e") else "ed")
        if verb.endswith("y") and verb[-2] not in "aeiou":
            past = verb[:-1] + "ied"
        if _DOUBLED.fullmatch(verb):
            past = verb + verb[-1] + "ed"
        return third, past, past, ing

    def group(self, clause: Clause, verb: str, asks: bool, mark: int) -> tuple[str, str]:
        """The auxiliary and the rest of the verbs: ("has", "sent"). The auxiliary is empty if none is needed."""
        person = clause.person
        head, tail = verb, ""
        be = verb == "be"
        past = clause.tense is Tense.PAST
        if clause.frame == "look_forward" and clause.tense is Tense.HABIT:
            clause = replace(clause, tense=Tense.NOW)
        match clause.modal:
            case Modal.CAN:
                return ("could" if past else "can"), marked(verb, mark)
            case Modal.SHOULD | Modal.MIGHT:
                return clause.modal.value, marked(verb, mark)
            case Modal.MUST | Modal.WANT:
                head = "have" if clause.modal is Modal.MUST else "want"
                tail, be = "to " + marked(verb, mark), False
        third, preterite, participle, ing = self.forms(head)

        def main(word: str) -> str:
            return phrase(word, tail) if tail else marked(word, mark)

        present, was = _BE.get(person, ("are", "were"))
        match clause.tense:
            case Tense.FUTURE if self.intended(clause):
                return present, phrase("going to", main(head))
            case Tense.FUTURE:
                return "will", main(head)
            case Tense.PRIOR:
                return "had", main(participle)
            case Tense.ONGOING if be or self.stative(clause):
                return ("has" if person == "3s" else "have"), main(participle)
            case Tense.ONGOING:
                return ("has" if person == "3s" else "have"), phrase("been", main(ing))
            case Tense.NOW | Tense.PLANNED if not be:
                return present, main(ing)
            case Tense.DONE if not be:
                return ("has" if person == "3s" else "have"), main(participle)
        if be:
            return (was if past else present), ""
        if clause.negative or asks:
            return ("did" if past else "does" if person == "3s" else "do"), main(head)
        return "", main(preterite if past else third if person == "3s" else head)

    def predicate(self, what: Predicate) -> str:
        if what.adjective:
            base, _, given = self.words.adjectives[what.adjective]["en"].partition("/")
            words = base
            if what.degree == "more":
                words = comparative(base, given)
            elif what.degree:
                words = f"{what.degree} {base}"
            words = marked(words, what.mark)
            return phrase(words, "than", self.noun_phrase(what.than, "O")) if what.than else words
        if what.phrase is not None:
            return self.noun_phrase(what.phrase, "O")
        return self.adverbial(what.place) if what.place else ""

    def plain_plural(self, np: Phrase) -> Phrase:
        """Plural if the noun has no singular: "the minutes are long", "they are long"."""
        if not np.noun or np.plural or not _MANY.search(self.noun(np).cells["en"]):
            return np
        return replace(np, plural=True, pronoun=np.pronoun and "they")

    def clause(self, clause: Clause, full: bool = False) -> str:
        """full: without contractions."""
        clause = replace(clause, roles={role: self.plain_plural(np) for role, np in clause.roles.items()})
        asks = clause.mood in (Mood.YES_NO, Mood.WH) and (clause.asked != "S" or clause.frame == "exist")
        wanted = ""
        particle = ""
        rest: list[str] = []
        if clause.frame in ("be", "exist"):
            verb = "be"
            if clause.predicate is not None:
                rest.append(self.predicate(clause.predicate))
            subject = self.noun_phrase(clause.roles["S"], "S") if "S" in clause.roles and clause.gap != "S" else ""
            if clause.frame == "exist":
                if clause.asked:
                    wanted = self.noun_phrase(clause.roles["S"], "O")
                else:
                    rest.insert(0, self.noun_phrase(clause.roles["S"], "O"))
                subject = "there"
        else:
            cell, complements = self.complements(clause)
            verb, _, particle = cell.partition("_")
            complements = self.datives(verb, complements)
            particle = particle.replace("_", " ")
            for role, how, np in complements:
                preposition = how.partition(".")[0]
                if np is not None and role == clause.asked:
                    wanted = self.noun_phrase(np, "O")
                    rest.append(marked(preposition, clause.mark))
                    continue
                own = self.possessive(clause.roles.get("S")) if how in _ONES_OWN else ""
                rest.append(
                    phrase(preposition, self.noun_phrase(np, "O")) if np else marked(phrase(own, how), clause.mark)
                )
                if role == "O" and particle:
                    both = [marked(particle, clause.mark), rest[-1]]
                    late = np is not None and (np.pronoun or np.name)  # "switch it on", "pick Anna up"
                    rest[-1], particle = phrase(*(reversed(both) if late else both)), ""
            subject = self.noun_phrase(clause.roles["S"], "S") if "S" in clause.roles and clause.gap != "S" else ""
            if particle:
                rest.insert(0, marked(particle, clause.mark))
        if clause.mood is Mood.IMPERATIVE:
            return phrase(
                "please", "don't" if clause.negative else "", marked(verb, clause.mark), *rest, self.ending(clause)
            )
        if clause.mood is Mood.REQUEST:
            return phrase("could you", marked(verb, clause.mark), *rest, self.ending(clause))
        if clause.mood is Mood.LETS:
            return phrase(
                "let's", "not" if clause.negative else "", marked(verb, clause.mark), *rest, self.ending(clause)
            )
        aux, verbs = self.group(clause, verb, asks, clause.mark)
        middle = self.places(clause, "frequency")
        recent = next((each for each in clause.adverbials if each.key == "recently"), None)
        if recent is not None:
            middle, clause = phrase(middle, self.adverbial(recent)), self.without(clause, recent)
        if clause.tense is Tense.DONE and not clause.negative and not asks:
            middle = phrase(middle, "already")
        if clause.negative:
            aux = _NOT.get(aux) or aux + "n't"
        if clause.asked == "owner":
            words = self.noun_phrase(replace(clause.roles["S"], det="whose"), "O")
            pair = re.sub(r"pair\S* of\S* ", "", words)
            aux, this = ("are", "these") if pair != words else (aux, "this")
            return phrase(pair, aux, this) if clause.mood is Mood.WH else phrase(pair, this, aux)
        question = wanted
        if not clause.wanted:
            question = {"": "", "S": "who", "O": "what"}.get(clause.asked) or _ASKED.get(clause.asked, "")
        yet = "yet" if clause.tense is Tense.DONE and (clause.negative or asks) else ""
        end = phrase(*rest, self.ending(clause), yet)
        if asks:
            return phrase(question, aux, subject, middle, verbs, end)
        front = self.fronted(clause) if clause.mood is Mood.STATEMENT and not clause.gap else None
        if front is not None:
            others = self.without(clause, front)
            end = phrase(*rest, self.ending(others), yet)
            question = phrase(self.adverbial(front), ",")
        rest_of_it = phrase(middle, verbs, end)
        short = "" if full else self.short(clause, subject, aux, rest_of_it)
        return phrase(question, subject + short, "" if short else aux, rest_of_it)

    def short(self, clause: Clause, subject: str, aux: str, rest: str) -> str:
        """ "'s", "'ll": after a pronoun or "there", if more follows."""
        said = clause.roles.get("S")
        there = clause.frame == "exist" and aux == "is"
        pronoun = clause.frame != "exist" and said is not None and said.pronoun not in ("", "that", "who")
        return _SHORT.get(aux, "") if (there or pronoun) and subject and rest and clause.mark % _CASUAL else ""

    def possessive(self, np: Phrase | None) -> str:
        """His or her, of somebody whose gender is known."""
        if np is None or np.name:
            return ""
        female = bool(np.noun) and self.noun(np).genders["es"] == "f"
        who = "they" if np.plural or np.members else "she" if female else "he"
        return _POSSESSIVE.get(np.pronoun, "") if np.pronoun else _POSSESSIVE[who]

    def datives(
        self, verb: str, complements: list[tuple[str, str, Phrase | None]]
    ) -> list[tuple[str, str, Phrase | None]]:
        """ "sent me the report", but "sent it to me"."""
        if verb not in _DATIVE or [each[0] for each in complements] not in (["O", "T"], ["T"]):
            return complements
        *others, (role, how, person) = complements
        short = person is not None and person.pronoun not in ("", "who") and how.startswith("to")
        if not short or any(np is None or np.pronoun for _, _, np in others):
            return complements
        return [(role, ".", person), *others]

    def fronted(self, clause: Clause) -> Adverbial | None:
        front = super().fronted(clause)
        late = front is not None and (clause.modal is not Modal.NONE or _LAST.search(front.key))
        return None if late else front

    def adverbial(self, each: Adverbial) -> str:
        """Due to the strike, for every fourth "because of"."""
        words = super().adverbial(each)
        formal = self.kind(each) == "cause" and each.mark % 4 == 3
        return re.sub("(?i)^because(.) of", r"due\1 to", words) if formal else words

    def ending(self, clause: Clause) -> str:
        kinds = ("manner", "companion", "place", "length", "span", "time", "since", "deadline", "cause")
        return self.places(clause, *kinds)

    def utterance(self, said: Utterance) -> str:
        first, second = said.first, said.second
        mark = "?" if first.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST) else "."
        text = self.clause(first)
        if said.speaker is not None:
            person = said.speaker.person
            subject = self.noun_phrase(said.speaker, "S")
            that = "that" if first.mark % 2 else ""
            match said.link:
                case "say":
                    text = phrase(subject, "said", that, self.backshifted(first))
                case "whether" | "know":
                    do = "doesn't" if person == "3s" else "don't"
                    if said.link == "know":
                        text = phrase(subject, "knows" if person == "3s" else "know", that, text)
                    else:
                        text = phrase(subject, do, "know", self.indirect(first))
                case link:
                    text = phrase(subject, link + ("s" if person == "3s" else ""), that, text)
            return text + " ."
        if second is None:
            return f"{text} {mark}"
        if said.link == "to":
            wants = self.clause(replace(second, gap="S", modal=Modal.WANT, tense=Tense.HABIT), full=True)
            return phrase(text, wants.partition(" ")[2], mark)
        if said.link in ("before", "after"):
            first, second = self.in_order(said, said.early)
            other = phrase(said.link, self.around(said, second))
            return phrase(other, ",", self.clause(first), mark) if said.early else phrase(text, other, mark)
        other = self.clause(second)
        subject = first.roles["S"].pronoun if "S" in first.roles else ""
        again = subject and second.roles["S"].pronoun == subject and second.tense is first.tense
        if said.link == "and" and again and second.tense is Tense.PAST and not second.negative:
            return phrase(text, "and", other.split(" ", 1)[1], mark)
        match said.link:
            case "because" | "although" | "so that":
                return phrase(text, said.link, other, mark)
            case "and" | "but" | "so":
                return phrase(text, ",", said.link, other, mark)
            case link:
                if first.mood in (Mood.YES_NO, Mood.WH, Mood.REQUEST, Mood.IMPERATIVE):
                    return phrase(text, link, other, mark)
                return phrase(link, other, ",", text, mark)

    def concluded(self, clause: Clause) -> str:
        return phrase("that's why", self.clause(clause))

    def around(self, said: Utterance, second: Clause) -> str:
        """After she read, had read, reading: each in a third of the sentences."""
        kind = second.mark % 3
        if kind == 0 and self.same_subject(said):
            return self.clause(replace(second, tense=Tense.NOW), full=True).split(" ", 2)[2]
        prior = kind == 1 and said.link == "after" and second.tense is Tense.PAST
        return self.clause(replace(second, tense=Tense.PRIOR) if prior else second)

    def backshifted(self, clause: Clause) -> str:
        """What was said: one tense earlier."""
        if clause.tense is Tense.HABIT and clause.modal not in (Modal.SHOULD, Modal.MIGHT):
            return self.clause(replace(clause, tense=Tense.PAST))
        words = self.clause(clause, full=True).split()
        at = next((index for index, word in enumerate(words) if word in _SAID), None)
        if at is not None and clause.tense in (Tense.FUTURE, Tense.DONE, Tense.NOW):
            words[at] = _SAID[words[at]]
        return " ".join(words)

    def indirect(self, clause: Clause) -> str:
        """whether she comes, when she comes."""
        return phrase("" if clause.asked else "whether", self.clause(replace(clause, mood=Mood.STATEMENT)))

    def answered(self, link: str, clause: Clause) -> str:
        subject = clause.roles["S"]
        said = self.noun_phrase(subject, "S")
        verb = "be" if clause.frame == "be" else self.complements(clause)[0].partition("_")[0]
        aux = self.group(replace(clause, embedded=False), verb, True, clause.mark)[0]  # as it was asked
        match link:
            case "yes":
                return phrase("yes ,", said, aux)
            case "no":
                return phrase("no ,", said, _NOT.get(aux) or aux + "n't")
            case "not_yet":
                return "no , not yet"
        if subject.pronoun == "i" and clause.mark % 2 and clause.tense is Tense.HABIT:  # "she did it": so did I
            return phrase(marked("me", subject.mark), link)
        return phrase("so" if link == "too" else link, aux, said)

    def rewrite(self, before: str, after: str) -> tuple[str, str] | None:
        if bare(before).endswith("s") and after == "'s":
            return before + "'", ""
        return None
