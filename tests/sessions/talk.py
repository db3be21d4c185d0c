"""A session's state table in the hand of a test: what is sent, and what must come of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from gateway.domain.engine import EngineProfile
from gateway.protocol.limits import Limits
from gateway.protocol.messages import Error, SessionStart, UtteranceFinal
from gateway.sessions.machine import Effect, Join, Reply, SessionState

_Kind = TypeVar("_Kind")

PROFILE = EngineProfile(model="m", family="f", languages=("en", "ja", "de"))
LIMITS = Limits(text_chars=50, utterances_in_flight=3, languages=2, messages_per_s=10, messages_burst=1000)


def by_tag(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """What a detector says: a text like `de: …` is certainly German, `de? …` perhaps, any other has no words."""
    tag, certain = text[:2], {":": 0.99, "?": 0.8}.get(text[2:3])
    if tag not in languages or certain is None:
        return []
    return [(tag, certain), *((lang, (1 - certain) / len(languages)) for lang in languages if lang != tag)]


class Talk:
    """A session and the clock of its client."""

    def __init__(self, limits: Limits = LIMITS, profile: EngineProfile | None = PROFILE) -> None:
        self.session = SessionState(limits, by_tag)
        self.profile = profile
        self.now_s = 0.0

    def send(self, message: Any) -> list[Effect]:
        return self.session.receive(message, self.now_s, self.profile)

    def started(self, **fields: Any) -> Talk:
        effects = self.send(SessionStart(**{"reads": ["ja"], "speaks": "en", **fields}))
        assert isinstance(effects[0], Join), effects
        return self


def error_of(effects: list[Effect]) -> Error:
    (effect,) = effects
    assert isinstance(effect, Reply)
    assert isinstance(effect.message, Error)
    return effect.message


def final(utterance_id: str = "u1", text: str = "hello", rev: int = 1, **fields: Any) -> UtteranceFinal:
    return UtteranceFinal(id=utterance_id, rev=rev, text=text, **fields)


def only(kind: type[_Kind], effects: Sequence[object]) -> _Kind:
    """The effect of this kind, beside which there is no other."""
    (effect,) = effects
    assert isinstance(effect, kind)
    return effect
