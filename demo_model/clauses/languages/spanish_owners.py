"""Whose a thing is in Spanish: "su" is his, her, their and your, so it is said only where it is clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from demo_model.clauses.syntax import Clause, Mood, Phrase, Utterance

_OWNERS = ("he", "she", "they", "you")


def with_owners(said: Utterance, said_of: Callable[[Phrase], str]) -> Utterance:
    """The sentence with "la abuela de ella" where "su abuela" would be heard as somebody else's.

    said_of: whom "su" is said of if a phrase is the only one that it can be: he, she, they, you, "he she" of a
    name that may be a man's or a woman's, or nothing.
    """
    around = [each for each in (said.speaker, said.first.roles.get("S")) if each is not None]
    if said.second is not None and "S" in said.second.roles:
        around.append(said.second.roles["S"])
    heard = {owner for each in around for owner in said_of(each).split()}
    asks = said.speaker is None and said.first.mood not in (Mood.STATEMENT, Mood.LETS)
    if asks:
        heard.add("you")
    named: set[str] = set()

    def owned(np: Phrase, rivals: set[str]) -> Phrase:
        np = replace(np, members=tuple(owned(each, rivals) for each in np.members))
        if np.relative is not None:
            np = replace(np, relative=told(np.relative, rivals, rivals))
        if np.det not in _OWNERS or not np.noun or np.of is not None:
            return np
        owner, clear = np.det, np.det in named or not rivals or np.det in rivals
        named.add(owner)
        return np if clear else replace(np, det="the", of=Phrase(np.mark, pronoun=owner))

    def told(clause: Clause, rivals: set[str], beside: set[str]) -> Clause:
        subject = clause.roles.get("S")
        roles = dict(clause.roles)
        if subject is not None:
            roles["S"] = owned(subject, beside)
        for role, np in clause.roles.items():
            if role != "S":
                own = subject is None and not said_of(np)  # ¿quién perdió su llave?
                roles[role] = owned(np, set() if own else rivals)
        adverbials = tuple(
            each if each.phrase is None else replace(each, phrase=owned(each.phrase, rivals))
            for each in clause.adverbials
        )
        return replace(clause, roles=roles, adverbials=adverbials)

    beside = set(said_of(said.speaker).split()) if said.speaker is not None else {"you"} if asks else set[str]()
    first = told(said.first, heard, beside)
    if said.second is None:
        return replace(said, first=first)
    doer = said.first.roles.get("S")
    beside = set(said_of(doer).split()) if doer else heard
    return replace(said, first=first, second=told(said.second, heard, beside))
