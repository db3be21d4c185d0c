"""Draws what is said every day of how long something lasts, and why and what for it is done."""

from __future__ import annotations

import re
from dataclasses import replace

from demo_model.clauses.compose_linked import LinkedComposer
from demo_model.clauses.compose_phrases import ALWAYS_PLURAL
from demo_model.clauses.syntax import Adverbial, Clause, Modal, Mood, Phrase, Predicate, Tense, Utterance

_PEOPLE = ("i", "i", "we", "we", "he", "she", "they")
_UNITS = {
    "hours": ("minutes", "hours"),
    "days": ("days", "weeks"),
    "months": ("weeks", "months"),
    "years": ("months",),
}
_SINCE = {
    "hours": ("since {clock}", "since {clock}", "since {clock}", "since this morning"),
    "days": (
        *("since {weekday}", "since {weekday}", "since {weekday}", "since yesterday", "since last week"),
        *("since the weekend", "since last month"),
    ),
    "months": ("since {month}", "since {month}", "since last month", "since last summer"),
    "years": ("since {month}", "since {month}", "since last year", "since last summer"),
}
_SPANS = {
    "hours": ("{duration}", "{duration}", "{duration}", "half an hour", "an hour", "an hour", "a few hours"),
    "days": ("{duration}", "{duration}", "a few days", "a week", "a week", "a few weeks", "a month"),
    "months": (
        *("{duration}", "{duration}", "a few months", "a few weeks", "a month", "a year", "two years"),
        "three years",
    ),
    "years": (
        *("{duration}", "a year", "two years", "three years", "four years", "five years", "ten years"),
        *("twenty years", "many years", "a long time", "a few months"),
    ),
}
_LENGTHS = {
    "hours": ("half an hour", "an hour", "a few hours", "the whole afternoon"),
    "days": ("a few days", "a week", "a month"),
}
_WEEKS = re.compile("weeks|month")
_LONGEST = {"minutes": (10, 15, 20, 30, 40, 45), "hours": range(2, 6), "days": range(2, 7), "weeks": range(2, 7)}


class EverydayComposer(LinkedComposer):
    """Utterances; `Composer` draws them among others."""

    def _spell(self, template: str, units: tuple[str, ...]) -> Adverbial:
        """For two hours, since Monday. units: those of a duration."""
        key = self.words.adverbials[template]["en"]
        if "{duration}" not in key:
            return self.adverbial(template)
        unit = self.random.choice(units)
        count = self.random.choice(_LONGEST.get(unit, range(2, 10)))
        return Adverbial(self.mark(), template, values=(("duration", (count, unit)),))

    # How long

    def _lasting(self) -> Utterance:
        """I have been working here for three years. The server was down for two hours."""
        draw = self.random.random()
        if draw < 0.3:
            return self._over()
        kind = self.random.choices(("hours", "days", "months", "years"), (36, 28, 12, 24))[0]
        if draw < 0.42 and kind in ("days", "years"):
            return Utterance(self._been(kind))
        going_on = self._going_on(kind)
        if draw > 0.85 and "S" in going_on.roles:
            return Utterance(self._how_long(going_on))
        return Utterance(going_on)

    def _until_now(self, kind: str) -> Adverbial:
        if self.odds(0.35):
            return self.adverbial(self.random.choice(_SINCE[kind]))
        return self._spell(f"for {self.random.choice(_SPANS[kind])} (until now)", _UNITS[kind])

    def _going_on(self, kind: str) -> Clause:
        """What has been going on, with what is known."""
        key, _, filled = self.random.choice(self.choices["ongoing"][kind]).partition(" ")
        said = self._doing(key, Tense.HABIT, filled)
        if key == "sleep" and said.roles["S"].pronoun in ("i", "we"):  # one would not say so
            said = replace(said, roles={"S": Phrase(self.mark(), pronoun="he")})
        time = self._until_now(kind)
        while key in self.choices["lasted"]["short"] and _WEEKS.search(f"{time.key} {time.values}"):
            time = self._until_now(kind)
        if "know" in key and "{month}" in time.key:
            time = self._spell("for many years (until now)", ())
        return replace(said, tense=Tense.ONGOING, adverbials=(time,))

    def _doing(self, key: str, tense: Tense, filled: str = "") -> Clause:
        frame = self.words.frames[key]
        anybody = {"people"} & set(self._types(frame.types["S"]))
        who = Phrase(self.mark(), pronoun=self.random.choice(_PEOPLE)) if anybody and self.odds(0.7) else None
        said = self.clause([key], Mood.STATEMENT, {Tense.PAST: 1, tense: 1}, False, who, plain=True)
        roles = said.roles | self._filled(filled, said, key)
        roles = {role: self._known_thing(np) for role, np in roles.items()}
        roles = {role: replace(np, of=None) if np.noun else np for role, np in roles.items()}
        return replace(said, tense=tense, roles=roles, adverbials=(), negative=False, modal=Modal.NONE)

    def _how_long(self, going_on: Clause) -> Clause:
        """How long have you been working there?"""
        subject = going_on.roles["S"]
        if subject.pronoun != "weather" and not subject.noun:
            you = self.random.choice(("you", "you", "you", "he", "she", "they"))
            subject = Phrase(subject.mark, pronoun=you)
        others = {role: self._asked_about(np, subject) for role, np in going_on.roles.items() if role != "S"}
        roles = {"S": subject, **others}
        return replace(going_on, roles=roles, mood=Mood.WH, asked="how_long", adverbials=())

    def _asked_about(self, np: Phrase, subject: Phrase) -> Phrase:
        if np.name or (np.pronoun and np.pronoun in ("i", "we", subject.pronoun)):
            others = [each for each in ("he", "she", "they") if each != subject.pronoun]
            self.values.pop(np.mark, None)
            return Phrase(np.mark, pronoun=self.random.choice(others))
        return np

    def _been(self, kind: str) -> Clause:
        """She has been ill since Monday."""
        subject, what = self._state(f"for_{kind}")
        time = self._until_now(kind)
        return Clause("be", self.mark(), {"S": subject}, Tense.ONGOING, predicate=what, adverbials=(time,))

    def _state(self, table: str) -> tuple[Phrase, Predicate]:
        adjective = self.random.choice(self.choices["adjectives"][table])
        noun = self.random.choice(self._nouns(self.words.adjective_types[adjective]))
        if noun.type in ("person", "family", "profession"):
            subject = Phrase(self.mark(), pronoun=self.random.choice(("he", "she", "they")))
            if self.odds(0.4):
                subject = self._known_thing(self.noun(noun, True, True))
        else:
            subject = replace(self._known_thing(self.noun(noun, True, True)), det="the")
        return replace(subject, count=0), Predicate(self.mark(), adjective=adjective)

    def _over(self) -> Utterance:
        """A state of some hours or days that is over."""
        kind = self.random.choice(("hours", "days"))
        units = _UNITS[kind]
        length = "for {duration}" if self.odds(0.5) else f"for {self.random.choice(_LENGTHS[kind])}"
        if self.odds(0.25):
            subject, what = self._state("for_days")
            said = Clause("be", self.mark(), {"S": subject}, Tense.PAST, predicate=what)
            length = "for {duration}" if self.odds(0.5) else f"for {self.random.choice(_LENGTHS['days'])}"
            units = _UNITS["days"]
        else:
            key, _, filled = self.random.choice(self.choices["lasted"][kind]).partition(" ")
            said = self._doing(key, Tense.PAST, filled)
        time = self._spell(length, units)
        while said.frame in self.choices["lasted"]["short"] and _WEEKS.search(f"{time.key} {time.values}"):
            time = self._spell("for {duration}", units)
        return Utterance(replace(said, adverbials=(time,)))

    # Why and what for

    def _caused(self) -> Utterance:
        """We postponed the meeting because of the strike. I couldn't sleep because of the noise."""
        key, _, who, does, filled = self._drawn("causes")
        frame = self.words.frames[does]
        anybody = {"people"} & set(self._types(frame.types["S"]))
        nobodys_job = does in self.choices["jobs"] or self.odds(0.75)
        person = Phrase(self.mark(), pronoun=self.random.choice(_PEOPLE)) if anybody and nobodys_job else None
        said = self.clause([does], Mood.STATEMENT, {Tense.PAST: 1, Tense.HABIT: 0}, False, person, plain=True)
        said = self._told(said, filled)
        cause = self.adverbial(key)
        if who == "not":
            now = self.odds(0.3)
            said = replace(said, modal=Modal.CAN, negative=True, tense=Tense.HABIT if now else Tense.PAST)
            return Utterance(replace(said, adverbials=(cause,)))
        draw, human = self.random.random(), bool(anybody)
        stative = "stative" in frame.tags
        if stative and draw < 0.4:
            said = replace(said, tense=Tense.HABIT)
        elif human and not stative and draw < 0.15:
            said = replace(said, tense=Tense.FUTURE)
        elif human and not stative and draw < 0.32 and does not in self.choices["verbs"]["unasked"]:
            said = replace(said, tense=Tense.HABIT, modal=Modal.MUST)
        dated = said.tense is Tense.PAST and not stative and self.odds(0.35)
        when = self._time(frame, "time_past", negative=True) if dated else []
        return Utterance(replace(said, adverbials=(*when, cause)))

    def _told(self, said: Clause, filled: str) -> Clause:
        """With what its roles are filled with, nothing of it unknown."""
        fresh = said.frame in self.choices["verbs"]["fresh"]
        known = {
            role: np if fresh and not np.relative else self._known_thing(np) for role, np in said.roles.items()
        }
        roles = {**known, **self._filled(filled, said, said.frame)}
        thing = roles.get("O")
        if thing is not None and thing.noun:
            unknown = thing.count or thing.det == "a"
            det = ("a" if fresh else "the") if unknown else thing.det
            plural = thing.noun in ALWAYS_PLURAL
            roles["O"] = replace(thing, of=None, relative=None, plural=plural, det=det, count=0)
        return replace(said, roles=roles, adverbials=())

    def _concluded(self) -> Utterance:
        """That's why we postponed the meeting."""
        key = self.random.choice(self.choices["concluded"]["said"])
        tenses = {Tense.PAST: 7.0, Tense.FUTURE: 2.0}
        said = self.clause([key], Mood.STATEMENT, tenses, True)
        if said.modal in (Modal.CAN, Modal.MIGHT):
            said = replace(said, modal=Modal.NONE, tense=Tense.PAST, adverbials=())
        times = tuple(each for each in said.adverbials if self.words.adverbial_kinds[each.key].startswith("time"))
        said = replace(said, adverbials=times[:1] if self.odds(0.4) else ())
        return Utterance(
            replace(said, roles={role: replace(np, relative=None) for role, np in said.roles.items()}),
            "that's why",
        )

    def _meant(self) -> Utterance:
        """She called the supplier to cancel the order. I'll send it to you so that you can check it."""
        key, narrowed, who, does, filled = self._drawn("purpose")
        main = self.clause(
            [key], Mood.STATEMENT, {Tense.PAST: 1}, False, self._whom(key, does, "same"), plain=True
        )
        roles = {role: self._known_thing(np) for role, np in main.roles.items()}
        roles |= self._narrowed(narrowed)
        roles = {role: replace(np, of=None) if np.noun else np for role, np in roles.items()}
        if who == "same" and key in self.choices["verbs"]["fresh"] and "O" in roles:
            roles["O"] = replace(roles["O"], det="a" if roles["O"].det == "the" else roles["O"].det)
        main = replace(main, adverbials=(), roles=roles)
        doer = roles["S"]
        if not doer.pronoun:
            doer = Phrase(doer.mark, pronoun=self.random.choice(_PEOPLE))
            main = replace(main, roles={**roles, "S": doer})
        if who == "same":
            return self._in_order_to(main, does, filled, doer)
        return self._so_that(main, who, does, filled, doer)

    def _in_order_to(self, main: Clause, does: str, filled: str, doer: Phrase) -> Utterance:
        again = replace(doer, mark=self.mark())
        second = self.clause([does], Mood.STATEMENT, {Tense.FUTURE: 1}, False, again, plain=True)
        second = self._told(second, filled)
        kinds = {Tense.PAST: 55, Tense.FUTURE: 20, Tense.HABIT: 25}
        tense = self.random.choices(list(kinds), list(kinds.values()))[0]
        modal = self.random.choice((Modal.MUST, Modal.WANT)) if tense is Tense.HABIT else Modal.NONE
        main = replace(main, tense=tense, modal=modal)
        return Utterance(main, "to", replace(second, tense=Tense.HABIT, roles={**second.roles, "S": again}))

    def _so_that(self, main: Clause, who: str, does: str, filled: str, doer: Phrase) -> Utterance:
        """Somebody else can do something then; "please", so that one can do it oneself."""
        please = who == "to" and self.odds(0.35)
        if please:
            doer = Phrase(0, pronoun="you")
        mine = doer.pronoun in ("i", "we", "you")
        other = self.random.choice(("i", "i", "we") if please else ("he", "she", "they") if mine else ("i", "we"))
        if who == "plural":
            other = "they"
            doer = replace(doer, pronoun=self.random.choice(("i", "we", "he", "she")))
        elif who == "any":
            other = self.random.choice([each for each in ("we", "they", "he", "she") if each != doer.pronoun])
        roles = {**main.roles, "S": doer}
        if who == "to":
            roles["T"] = Phrase(self.mark(), pronoun=other)
        second = self.clause(
            [does], Mood.STATEMENT, {Tense.FUTURE: 1}, False, Phrase(self.mark(), pronoun=other), plain=True
        )
        thing = roles.get("O")
        if filled == "O=$O" and thing is not None:
            it = Phrase(self.mark(), pronoun="it", noun=thing.noun, refers="O")
            second = replace(second, roles={**second.roles, "O": it}, adverbials=())
            roles["O"] = replace(
                thing, plural=False, count=0, det="the" if please or thing.det == "a" else thing.det
            )
        else:
            second = self._told(second, filled)
        future = please or self.odds(0.4)
        tense = Tense.HABIT if future else Tense.PAST
        second = replace(second, tense=tense, modal=Modal.CAN)
        if please:
            main = replace(main, mood=Mood.IMPERATIVE, tense=Tense.FUTURE, roles=roles)
        else:
            main = replace(main, tense=Tense.FUTURE if future else Tense.PAST, roles=roles)
        return Utterance(main, "so that", second)
