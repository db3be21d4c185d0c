"""Draws clauses: a frame, its roles, when it happens, how it is said, and its adverbials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from demo_model.clauses.compose_adverbials import AdverbialComposer
from demo_model.clauses.compose_phrases import expanded
from demo_model.clauses.lexicon import Frame
from demo_model.clauses.syntax import Clause, Modal, Mood, Phrase, Tense

_ATTEMPTS = 20
_SHORT_VERB = 3
_ONCE = frozenset(
    [
        *("event", "document", "text", "plan", "product", "code", "data", "dishes", "goods", "audio", "show"),
        *("remark", "credential", "term", "problem", "task", "meal", "food", "sweet", "gift"),
    ]
)
"""Types of what one does something with once, but for what is `regular`."""


class ClauseComposer(AdverbialComposer):
    """Clauses with a verb; `Composer` makes sentences of them."""

    def clause(
        self,
        keys: Sequence[str],
        mood: Mood | None = None,
        tenses: dict[Tense, float] | None = None,
        modals: bool = True,
        subject: Phrase | None = None,
        plain: bool = False,
        wanted: tuple[str, Phrase | None] | None = None,
    ) -> Clause:
        """A clause with one of these frames. plain: no negation, no modal verb, one clause deep.

        wanted: what is asked for, and the phrase of that role, if it has one.
        """
        if mood is None:
            mood = self.random.choices(
                (Mood.STATEMENT, Mood.YES_NO, Mood.WH, Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS),
                (64, 13, 9, 4, 6, 4),
            )[0]
        if mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS):
            wishes = self._proposed if mood is Mood.LETS else self._requested
            fitting = [key for key in keys if key in wishes]
            keys, mood = fitting or keys, mood if fitting else Mood.STATEMENT
        frame = self.words.frames[self.random.choice(keys)]
        stative = "stative" in frame.tags
        verbs = self.choices["verbs"]
        due = frame.key in self.choices["times"]["done"] or frame.key in self.choices["times"]["brief"]
        wished = due or frame.key in self.choices["times"]["some_day"] + self.choices["times"]["notable"]
        human = bool({"human", "anyone", "boss", "firm", "tech"} & set(frame.types["S"]))
        if stative and mood is Mood.WH:
            mood = Mood.YES_NO
        if mood is Mood.YES_NO and frame.key in verbs["unasked"] and frame.key not in verbs["wondered"]:
            mood = Mood.STATEMENT
        asks = mood in (Mood.YES_NO, Mood.WH)
        if frame.key in verbs["urged"] and tenses is None:
            mood = self.random.choice((Mood.IMPERATIVE, Mood.REQUEST))
        if tenses is None:
            tenses = {Tense.PAST: 36, Tense.FUTURE: 24, Tense.DONE: 12, Tense.NOW: 9, Tense.HABIT: 13}
        if frame.key in verbs["told"] and wanted is None:
            mood = Mood.STATEMENT
        if Tense.NOW in tenses and frame.key in verbs["planned"]:
            tenses = {**tenses, Tense.PLANNED: 4 * tenses[Tense.NOW]}
        if Tense.NOW in tenses and frame.key in (*verbs["not_now"], *verbs["planned"]):
            tenses = {tense: share for tense, share in tenses.items() if tense is not Tense.NOW}
        if frame.key in verbs["general"]:
            tenses, modals, mood = {Tense.HABIT: 1}, False, Mood.YES_NO if asks else mood
        if stative and tenses != {Tense.PAST: 1}:
            tenses = (
                {Tense.HABIT: 75} if asks or frame.key in verbs["liked"] else {Tense.HABIT: 75, Tense.PAST: 25}
            )
        elif not human or frame.key in verbs["moments"] or frame.key in verbs["unasked"]:
            tenses = {tense: share for tense, share in tenses.items() if tense in (Tense.PAST, Tense.FUTURE)} or {
                Tense.PAST: 1
            }
        if frame.key in self.choices["verbs"]["unasked"] and Tense.PAST in tenses:
            tenses = {Tense.PAST: 1}
        if Tense.DONE in tenses and len(tenses) > 1 and frame.key not in self.choices["times"]["done"]:
            tenses = {tense: share for tense, share in tenses.items() if tense is not Tense.DONE}
        if (
            Tense.HABIT in tenses
            and len(tenses) > 1
            and not stative
            and (frame.key not in verbs["habits"] or frame.key in self.choices["times"]["undated"])
        ):
            tenses = {tense: share for tense, share in tenses.items() if tense is not Tense.HABIT}
        tense = self.random.choices(list(tenses), list(tenses.values()))[0]
        modal = Modal.NONE
        if mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS):
            tense = Tense.FUTURE
        elif (
            modals
            and human
            and not stative
            and not plain
            and self.odds(0.22)
            and wished
            and frame.key not in self.choices["verbs"]["unasked"]
        ):
            modals_now = (Modal.CAN, Modal.MUST, Modal.WANT, Modal.SHOULD)[list(frame.types) == ["S"] :]
            modal = self.random.choice((*modals_now, Modal.MIGHT) if mood is Mood.STATEMENT else modals_now)
            if not due:
                modal = self.random.choice((Modal.WANT, Modal.MIGHT if mood is Mood.STATEMENT else Modal.WANT))
            past = modal in (Modal.MUST, Modal.WANT) and mood is Mood.STATEMENT and self.odds(0.2)
            tense = Tense.PAST if past else Tense.HABIT
        if mood is Mood.WH and tense is Tense.DONE:
            tense = Tense.PAST
        asked, filled = (wanted or self._asked(frame, tense, modal)) if mood is Mood.WH else ("", None)
        if mood is Mood.WH and not asked:
            mood = Mood.YES_NO
        negative = (
            not plain
            and self.odds(0.14)
            and frame.key not in verbs["affirmative"]
            and (stative or modal is not Modal.NONE or frame.key in self.choices["times"]["done"])
            and mood in (Mood.STATEMENT, Mood.IMPERATIVE)
            and (mood is Mood.STATEMENT or frame.key in verbs["forbidden"])
            and tense not in (Tense.NOW, Tense.PLANNED)
            and (stative or tense is not Tense.HABIT or modal is not Modal.NONE)
        )
        roles = self._roles(frame, mood, asked, modal, tense, subject)
        if filled is not None:
            roles[asked] = filled
        habitual = tense is Tense.HABIT and modal is Modal.NONE and Tense.FUTURE in tenses
        once = "O" in roles and roles["O"].noun.split(":")[0] in _ONCE
        if habitual and once and roles["O"].noun not in expanded(["regular"]):
            tense = Tense.FUTURE
        asked_for = mood in (Mood.IMPERATIVE, Mood.REQUEST, Mood.LETS)
        again = tense is Tense.HABIT and modal is Modal.NONE
        counted = "O" in roles and roles["O"].det in ("many", "num", *(("all",) if negative else ()))
        if stative and "O" in roles and roles["O"].det == "a" and frame.key in verbs["liked"]:
            roles["O"] = replace(roles["O"], det="the")
        if frame.key in ("have", "have_thing") and "O" in roles and roles["O"].det == "the":
            roles["O"] = replace(roles["O"], det="the" if roles["O"].plural else "a", of=None, relative=None)
        if stative and "S" in roles and roles["S"].count:
            roles["S"] = replace(roles["S"], det="the", plural=False, count=0)
        uncounted = counted and roles["O"].det == "num" and frame.key not in self.choices["asked"]["how_many"]
        if counted and (negative or asked_for or again or uncounted) and frame.key not in verbs["several"]:
            roles["O"] = replace(roles["O"], det="the", plural=False, count=0)
        thing = roles.get("O")
        unfinished = (
            tense is Tense.DONE
            or tense is Tense.NOW
            or (negative and not stative)
            or asked in ("S", "when", "why", "where", "how")
        )
        if unfinished and thing is not None and thing.det == "a" and not frame.key.startswith("have"):
            roles["O"] = replace(thing, det="the")
        if asked == "why" and "S" in roles and roles["S"].pronoun in ("i", "we"):
            roles["S"] = replace(roles["S"], pronoun="they")
        if (
            "S" in roles
            and roles["S"].pronoun in ("i", "we")
            and mood in (Mood.YES_NO, Mood.WH)
            and not asked.startswith("how_")
        ):
            if due:
                modal, tense = Modal.SHOULD if self.odds(0.5) else Modal.CAN, Tense.HABIT
            else:
                roles["S"] = replace(roles["S"], pronoun="they")
        clause = Clause(
            frame.key, self.mark(), self._known_gender(frame, roles, tense), tense, negative, modal, mood, asked
        )
        return self._with_adverbials(clause, frame)

    def _echoes(self, frame: Frame, np: Phrase) -> bool:
        """To test a test case."""
        verb = frame.cells["en"].replace("_", " ").split()[0]
        return len(verb) > _SHORT_VERB and verb in self.words.nouns[np.noun].cells["en"]

    @cached_property
    def _requested(self) -> set[str]:
        """What one asks others to do."""
        refused = {*self.choices["verbs"]["unasked"], *self.choices["verbs"]["own_will"]}
        return {
            key
            for key, frame in self.words.frames.items()
            if "stative" not in frame.tags
            and {"human", "anyone", "tech"} & set(frame.types["S"])
            and "O" in frame.types
            and key not in refused
        }

    @cached_property
    def _proposed(self) -> set[str]:
        """What one proposes to do together."""
        return self._requested & {*self._shared()}

    def _shared(self) -> list[str]:
        """What several people do together."""
        return self.choices["companions"]["with {P}"] + self.choices["together"]["done"]

    def _asked(self, frame: Frame, tense: Tense, modal: Modal) -> tuple[str, Phrase | None]:
        """What is asked for, and "who" if that is a person."""
        choices: list[str] = []
        if tense in (Tense.PAST, Tense.FUTURE) or modal is not Modal.NONE:
            choices += ["when", "when"] if frame.key not in self.choices["verbs"]["unasked"] else []
            choices += ["why"] if tense is Tense.PAST and self._has_reasons(frame) else []
            choices += ["where", "where"] if frame.key in self.choices["where"]["asked"] else []
            choices += (
                ["how", "how"] if frame.key in self.choices["how"]["asked"] and modal is not Modal.WANT else []
            )
        if (
            tense in (Tense.PAST, Tense.FUTURE)
            and {"human", "anyone", "tech"} & set(frame.types["S"])
            and modal is Modal.NONE
        ):
            choices += ["S", "S"]
        if self.direct(frame) and frame.key in self.choices["asked"]["what"]:
            choices += ["O", "O"]
        people = [role for role in "OT" if "people" in self._types(frame.types.get(role, ()))]
        choices += ["whom"] * 4 if people else []
        asked = self.random.choice(choices) if choices else ""
        return (people[0], Phrase(self.mark(), pronoun="who")) if asked == "whom" else (asked, None)

    def _has_reasons(self, frame: Frame) -> bool:
        return any(key[1:] == frame.key for keys in self.choices["reasons"].values() for key in keys)

    def _actor(self, frame: Frame, types: Sequence[str], asks: bool) -> Phrase:
        """Who does it: sometimes the one whose job it is."""
        jobs = self.choices["jobs"].get(frame.key, ())
        if tuple(types) == ("human",):
            types = ("people", "actor")
        if jobs and self.odds(0.25):
            return self.noun(self.words.nouns[self.random.choice(jobs)], True, True)
        return self.role(types, True, asks=asks, plain=frame.key in self.choices["verbs"]["unasked"])

    def _fitting(self, frame: Frame, role: str, types: Sequence[str], roles: dict[str, Phrase]) -> Sequence[str]:
        """The types of a role, narrower where another one is known: a mechanic repairs cars, not phones."""
        nouns = [np.noun for np in roles.values() if np.noun]
        rows = [f"{frame.key} {role} of:{each}" for noun in nouns for each in (noun, noun.split(":")[0])]
        paired = self.choices["paired"]
        return next((paired[row] for row in rows if row in paired), types)

    def _roles(
        self, frame: Frame, mood: Mood, asked: str, modal: Modal, tense: Tense, subject: Phrase | None
    ) -> dict[str, Phrase]:
        roles: dict[str, Phrase] = {}
        asks = mood in (Mood.YES_NO, Mood.WH)
        avoid: list[str] = []
        for role, types in frame.types.items():
            if role == asked:
                continue
            if role == "S":
                if mood in (Mood.IMPERATIVE, Mood.REQUEST):
                    avoid.append("you")
                    roles["S"] = Phrase(0, pronoun="you")
                    continue
                if mood is Mood.LETS:
                    avoid += ["we", "you"]
                    roles["S"] = Phrase(0, pronoun="we")
                    continue
                np = subject or self._actor(frame, types, asks)
                if np.pronoun in ("we", "they") and frame.key in self.choices["verbs"]["single"]:
                    np = replace(np, pronoun=self.random.choice(("he", "she")))
                if asks and np.noun and modal is Modal.SHOULD:
                    np = Phrase(np.mark, pronoun="we")
                if asks and np.pronoun and (modal is Modal.SHOULD or (modal is Modal.CAN and self.odds(0.5))):
                    np = replace(np, pronoun=self.random.choice(("i", "we")))
                avoid.append(np.pronoun)
                roles["S"] = (
                    self._richer(np, 0, frame.key, tense is Tense.PAST) if not asks and subject is None else np
                )
            else:
                fresh = role == "O" and frame.key in self.choices["verbs"]["fresh"]
                plain = asks or frame.key in self.choices["verbs"]["unasked"]
                fitting = self._fitting(frame, role, types, roles)
                np = self.role(fitting, False, fresh, avoid, plain=plain)
                own = np.pronoun in ("i", "we") and "S" in roles
                usual = tense is Tense.HABIT and modal is Modal.NONE  # not "do you usually work with me"
                if (
                    own
                    and asks
                    and (roles["S"].pronoun != "you" or asked.startswith("how_") or tense is Tense.PAST or usual)
                ):
                    np = replace(np, pronoun=self.random.choice(("he", "she", "they")))
                    if np.pronoun in avoid:
                        np = self._name()
                if np.pronoun == "you" and tense is Tense.HABIT and modal is Modal.NONE and not asks:
                    np = self._name()  # who is spoken to knows it
                np = self._kin(np, roles.get("S"), frame.types[role])
                if asked == "how_long" or mood is Mood.YES_NO:
                    np = replace(np, adjective="")
                if fresh and np.adjective in ("old", "current", "second-hand", "frozen"):
                    np = replace(np, adjective="")  # one does not build an old house
                if frame.key in self.choices["verbs"]["several"] and np.det != "num":
                    np = replace(np, det="num", plural=True, count=self.random.randint(2, 3))
                avoid.append(np.pronoun)
                for _ in range(_ATTEMPTS):
                    if not np.noun or not (
                        self._echoes(frame, np) or np.noun in [each.noun for each in roles.values()]
                    ):
                        break
                    np = self.role(fitting, False, fresh, avoid)
                roles[role] = self._richer(
                    np,
                    asks
                    or tense is Tense.DONE
                    or "T" in frame.types
                    or frame.key in self.choices["verbs"]["unmade"]
                    or bool("S" in roles and roles["S"].relative),
                    frame.key,
                    tense is Tense.PAST,
                )
        return roles
