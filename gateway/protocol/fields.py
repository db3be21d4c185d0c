"""The types of the messages' fields, with what `/asyncapi.json` and the tables of docs/protocol.md say of them.

Knows: bounds that hold for every gateway, and which limit bounds a field.
Must not know: the values of limits, which are settings (`protocol.limits`); messages.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, UnsetType

from gateway.domain.engine import Formality
from gateway.domain.sessions import Stability
from gateway.protocol.limits import about

# The largest integer that JavaScript, JSON and msgpack all carry exactly.
MAX_INT = 2**53 - 1

# ---------------------------------------------------------------- from the client

Lang = Annotated[str, about("BCP 47 language tag; a region is ignored (`en-US` is `en`).")]
Reads = Annotated[list[Lang], about("Languages in which translations are wanted; may be empty.", "languages")]
Speaks = Annotated[
    str,
    about(
        "Language of utterances without a `lang`; others see it, too. `auto`: that of each utterance is detected."
    ),
]
MeetingId = Annotated[
    str, about("Letters, digits and `. _ ~ -`, not only dots. Without it, a private meeting is made.", "id_chars")
]
Name = Annotated[str, about("What others see; a name in the token wins.", "name_chars")]
Stable = Annotated[
    Stability,
    about(
        "How much of a translation is shown while its utterance is still being said. `live`: the "
        "earliest words; the last of them may change. `stable`: only text that is never taken back. "
        "`final`: nothing."
    ),
]
Glossary = Annotated[
    dict[str, dict[str, str]],
    about("Target language → source term → target term. A term may have `term_chars`.", "glossary_terms"),
]
Context = Annotated[str, about("What the meeting is about, for the model.", "context_chars")]
Formal = Annotated[Formality, about("How translations address people.")]
Originals = Annotated[bool, about("Captions in every language, not only those in `reads`.")]
Record = Annotated[
    bool,
    about(
        "Whoever begins the meeting decides whether it is recorded; for others, what it has to be. "
        "`false`: nothing is kept. Left out: as it is, or as the gateway is set to."
    ),
]
Token = Annotated[
    str, about("What the gateway's operator or your backend issued. Programs may send it as a header instead.")
]
HostKey = Annotated[
    str,
    about(
        "Where no token is needed: the secret that the meeting's id was made of; its session is a host. Elsewhere "
        "the token's roles say so.",
        "id_chars",
    ),
]
Another = Annotated[str, about("Public id of another participant in the meeting.", "id_chars")]
MeetingTitle = Annotated[
    str,
    about(
        "What the meeting is called, if it has no title yet. It is taken from a host, and from the first in the "
        "meeting. One line.",
        "name_chars",
    ),
]
NewTitle = Annotated[str, about("One line; empty: the meeting has no title.", "name_chars")]
Guest = Annotated[
    str,
    about(
        "A secret that you have drawn for this person, the same in all their sessions. Where a token says who it "
        "is, that counts.",
        "id_chars",
    ),
]
Mutes = Annotated[bool, about("`true`: what they say is refused; `false`: it is taken again.")]
Locks = Annotated[bool, about("`true`: others are not let in; `false`: they are again.")]
Secret = Annotated[str, about("`session` of the newest `session.started`.", "id_chars")]
Epoch = Annotated[str, about("`epoch` of the newest `session.started`.", "id_chars")]
Offset = Annotated[int, Meta(ge=0, le=MAX_INT, description="Highest `offset` of any message received.")]
OwnUtterance = Annotated[
    str,
    about(
        "Chosen by the client, unique in its session, not empty; does not end with `~` and a number.", "id_chars"
    ),
]
Rev = Annotated[int, Meta(ge=0, le=MAX_INT, description="Revision of the utterance, growing.")]
Text = Annotated[str, about("All of the utterance so far, however long; not only blanks.")]
UtteranceLang = Annotated[
    str, about("Language of the text, if it is not the session's `speaks`. `auto`: it is detected.")
]
Replaces = Annotated[
    str,
    about(
        "An utterance of yours that this one corrects, with all its segments; with `~` and a number, one segment. "
        "Without a text, it is taken back."
    ),
]
EarlierSelf = Annotated[
    str,
    about(
        "With `replaces`: the participant as whom you said it, if that was an earlier session of yours, with the "
        "same `person`. Null: this session's.",
        "id_chars",
    ),
]
# Not bounded: words are not refused for the sake of their times (`checks.position`).
StartMillis = Annotated[
    float,
    about("Where it begins in the speaker's audio, for subtitles, from 0 on. What makes no sense is left out."),
]
Traceparent = Annotated[str, about("The span that it belongs to in a trace of yours: W3C Trace Context.")]
EndMillis = Annotated[float, about("Where it ends there; not before `start_ms`.")]
Nonce = Annotated[str, about("Comes back in the `pong`.", "id_chars")]

# ---------------------------------------------------------------- from the gateway

Who = Annotated[str, about("Public id of a participant in the meeting.")]
Utterance = Annotated[str, about("Id of the utterance, chosen by its speaker's client.")]
TheirName = Annotated[str, about("Their name; may be empty.")]
TheySpeak = Annotated[str | None, about("The language that they speak; null: not told, or detected.")]
TheyRead = Annotated[list[str], about("The languages that they read.")]
TheirPerson = Annotated[
    str | UnsetType, about("The same in all sessions of one person in this meeting. Absent: not known.")
]
TheyAreMuted = Annotated[bool | UnsetType, about("`true`: a host has muted them. Absent: they may speak.")]
SpeaksNow = Annotated[str | None, about("Language of utterances without a `lang`; `auto`: detected; null: none.")]
DetectedLang = Annotated[str | UnsetType, about("The language that was spoken; only where it was detected.")]
Confidence = Annotated[
    float | UnsetType,
    about(
        "Estimated probability, from 0 to 1, that a reader would call the translation right. Absent: "
        "the model has no calibration."
    ),
]
Unsure = Annotated[
    bool | UnsetType,
    about(
        "Whether it should be shown differently: `confidence` is low, or the translation is no more "
        "than the original. Absent: no."
    ),
]
Speaker = Annotated[str, about("Name of who said it; may be empty.")]
Target = Annotated[str, about("The language that it is translated into.")]
SaidRev = Annotated[int, about("Revision of the utterance that this belongs to.")]
Position = Annotated[int, about("Position in the meeting's log, within its `epoch`.")]
AtMs = Annotated[
    int | UnsetType, about("When it came into the log: Unix time in milliseconds, by the gateway's clock.")
]
Place = Annotated[
    int | UnsetType,
    about(
        "Position in the log of what was first said where `by` stands. Absent: not known, or not kept any more; "
        "`by` stands where its own caption is."
    ),
]
PlacedMs = Annotated[
    int | UnsetType, about("When that was said: Unix time in milliseconds, by the gateway's clock.")
]
Recorded = Annotated[
    bool | UnsetType,
    about(
        "`false`: the meeting is not recorded, so latecomers see nothing, and there is no transcript. "
        "Absent: it is recorded."
    ),
]
Host = Annotated[bool | UnsetType, about("`true`: this session is a host of the meeting. Absent: it is not.")]
Locked = Annotated[bool | UnsetType, about("`true`: a host has locked the meeting. Absent: it is open.")]
TitleNow = Annotated[str | UnsetType, about("What the meeting is called. Absent: it has no title.")]
HeldBy = Annotated[str | UnsetType, about("Name of the host who has set the title. Absent: not known.")]
YourPerson = Annotated[str | UnsetType, about("What others see as your `person`. Absent: it is not known.")]
YouAreMuted = Annotated[bool | UnsetType, about("`true`: a host has muted you. Absent: you may speak.")]
Targets = Annotated[
    dict[str, list[str]] | UnsetType,
    about(
        "Language that is spoken → the languages it is translated into. Absent: each of `languages` "
        "is translated into every other."
    ),
]
TokenMillis = Annotated[int, about("How long the session may still last, in milliseconds.")]
DrainMillis = Annotated[int, about("How long accepted work may still take, in milliseconds.")]
ErrorCode = Annotated[str, about("One of the error codes, for programs.")]
ErrorText = Annotated[str, about("A sentence for people; its words may change.")]
Retryable = Annotated[bool, about("Whether the same message may succeed later.")]
RetryMillis = Annotated[int | None, about("How long to wait before, in milliseconds; null: not known.")]
ErrorUtterance = Annotated[str | None, about("Id of your utterance that was refused; null: none, or not known.")]
ErrorField = Annotated[str | None, about("Path of the field that was refused, such as `reads[0]`; null: none.")]
