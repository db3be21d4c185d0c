"""What the gateway accepts from one session.

Knows: the name and default of every limit. Must not know: who checks them (`protocol.checks`).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gateway.domain.roles import NAME_CHARS, SHOWN_NAME_CHARS


def about(description: str, limit: str | None = None) -> Meta:
    """What is said of a field. limit: the one of `Limits` that the session checks; decoding does not."""
    return Meta(description=description, extra_json_schema=None if limit is None else {"x-limit": limit})


def _meta(description: str, at_least: int = 1) -> Meta:
    # In `extra`, so that decoding does not check it: a client must accept the limits of any gateway.
    return Meta(description=description, extra={"ge": at_least, "le": 2**30})


class Limits(Struct, frozen=True, omit_defaults=False):
    """What this gateway accepts from one session; sent in `session.started`, enforced with an `error`."""

    message_bytes: Annotated[int, _meta("Longest frame, in bytes.", at_least=1_024)] = 65_536
    text_chars: Annotated[int, _meta("Longest segment of what is said; longest text of a request.")] = 2_000
    utterances_in_flight: Annotated[int, _meta("Utterances accepted and not yet finished.")] = 32
    languages: Annotated[int, _meta("Most entries of `reads`.")] = 8
    messages_per_s: Annotated[int, _meta("Sustained rate of client messages.")] = 50
    messages_burst: Annotated[int, _meta("Messages accepted above that rate.")] = 100
    id_chars: Annotated[int, _meta("Longest utterance `id`, `meeting` and `nonce`.")] = NAME_CHARS
    name_chars: Annotated[int, _meta("Longest participant `name`.")] = SHOWN_NAME_CHARS
    glossary_terms: Annotated[int, _meta("Glossary entries over all languages.")] = 200
    term_chars: Annotated[int, _meta("Longest glossary term.")] = 80
    context_chars: Annotated[int, _meta("Longest `context`.")] = 2_000
    meeting_languages: Annotated[int, _meta("Languages read in one meeting.")] = 32
    participants_shown: Annotated[int, _meta("Participants of a meeting that are announced.")] = 100
    start_timeout_s: Annotated[int, _meta("Time to send `session.start`.")] = 15
    idle_s: Annotated[int, _meta("Silence in both directions before a connection is closed.")] = 1_800
    keep_s: Annotated[int, _meta("How long a session without a connection can be resumed.")] = 120
