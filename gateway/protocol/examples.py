"""One example of each message, in one meeting: Ana speaks English, Ben reads Japanese.

Knows: the messages. Must not know: what is made of the examples (`protocol.asyncapi`).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, structs

from gateway.domain.log import Timings
from gateway.protocol import messages as m
from gateway.protocol.limits import Limits

_ANA, _BEN = "p-7Q2f", "p-x81L"
_SAID: dict[str, Any] = {"participant": _ANA, "utterance": "u1", "rev": 3}
_HERE: dict[str, Any] = {"participant": _BEN, "name": "Ben", "speaks": None, "reads": ["ja"]}


def examples() -> dict[str, dict[str, Any]]:
    """Name → a message of it, without the fields that have their default."""
    return {str(type(message).__struct_config__.tag): _written(message) for message in _MESSAGES}


def _written(message: Struct) -> dict[str, Any]:
    defaults = {field.encode_name: field.default for field in structs.fields(message)}
    fields = msgspec.to_builtins(message).items()
    return {name: value for name, value in fields if name not in defaults or value != defaults[name]}


_MESSAGES: tuple[Struct, ...] = (
    m.SessionStart(meeting="weekly", name="Ana", speaks="en", reads=["ja", "de"]),
    m.SessionRefresh(token="eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl"),  # noqa: S106 -- none
    m.SessionUpdate(reads=["ja"], stability="stable"),
    m.UtterancePartial(id="u1", rev=2, text="good mor"),
    m.UtteranceFinal(id="u1", rev=3, text="Good morning.", start_ms=1200, end_ms=1950),
    m.UtteranceCancel(id="u2"),
    m.ParticipantRemove(participant=_BEN),
    m.ParticipantMute(participant=_BEN, muted=True),
    m.MeetingLock(locked=True),
    m.MeetingTitle(title="Weekly"),
    m.MeetingEnd(),
    m.Ping(nonce="7"),
    m.SessionEnd(),
    m.SessionStarted(
        session="s-Vd0wq3",
        participant=_ANA,
        meeting="weekly",
        epoch="e-5b1c",
        offset=0,
        recovered=None,
        languages=["en", "ja", "de"],
        participants=[m.Participant(**_HERE)],
        options=["glossary", "context"],
        limits=Limits(),
    ),
    m.SessionUpdated(reads=["ja"], speaks="en", stability="stable"),
    m.SessionMuted(muted=True),
    m.LanguagesChanged(languages=["en", "ja", "de", "fr"], options=["glossary", "context"]),
    m.UtteranceAccepted(id="u1", rev=3, offset=12),
    m.UtteranceCancelled(participant=_ANA, utterance="u2"),
    m.Caption(**_SAID, speaker="Ana", lang="en", text="Good morning.", final=True, offset=12),
    m.UtteranceReplaced(participant=_ANA, utterances=["u1"], by="u4", place=1, at_ms=1_790_000_000_000),
    m.TranslationDelta(**_SAID, lang="ja", committed="おはよう", tentative="ござ"),
    m.TranslationFinal(
        **_SAID,
        speaker="Ana",
        lang="ja",
        text="おはようございます。",
        offset=13,
        timings=Timings(queue_ms=0.4, first_token_ms=21.5, total_ms=63.0),
        tokens=5,
        confidence=0.93,
    ),
    m.TranslationFailed(
        **_SAID,
        speaker="Ana",
        lang="de",
        code="engine_failed",
        message="The engine failed; say it again.",
        offset=14,
    ),
    m.ParticipantJoined(**_HERE),
    m.ParticipantUpdated(**_HERE, muted=True),
    m.ParticipantLeft(**_HERE),
    m.MeetingLocked(locked=True),
    m.MeetingTitled(title="Weekly", held_by="Ana"),
    m.TokenExpiring(expires_in_ms=60_000),
    m.SessionRefreshed(expires_in_ms=3_600_000),
    m.SessionDraining(deadline_ms=30_000),
    m.Error(code="invalid_value", message="zz is not a language.", field="reads[0]"),
    m.Pong(nonce="7"),
)
