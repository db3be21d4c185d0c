"""What the gateway accepts from one session.

Knows: the name and default of every limit. Must not know: who checks them (`protocol.checks`).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["Limits"]


class Limits(Struct, frozen=True, omit_defaults=False):
    """What this gateway accepts from one session; sent in `session.started`, enforced with an `error`."""

    message_bytes: Annotated[int, Meta(description="Longest frame, in bytes.")] = 65_536
    text_chars: Annotated[int, Meta(description="Longest `text` of an utterance.")] = 2_000
    utterances_in_flight: Annotated[int, Meta(description="Utterances accepted and not yet finished.")] = 32
    languages: Annotated[int, Meta(description="Most entries of `reads`.")] = 8
    messages_per_s: Annotated[int, Meta(description="Sustained rate of client messages.")] = 50
    messages_burst: Annotated[int, Meta(description="Messages accepted above that rate.")] = 100
    id_chars: Annotated[int, Meta(description="Longest utterance `id`, `meeting` and `nonce`.")] = 64
    name_chars: Annotated[int, Meta(description="Longest participant `name`.")] = 80
    glossary_terms: Annotated[int, Meta(description="Glossary entries over all languages.")] = 200
    term_chars: Annotated[int, Meta(description="Longest glossary term.")] = 80
    context_chars: Annotated[int, Meta(description="Longest `context`.")] = 2_000
    meeting_languages: Annotated[int, Meta(description="Languages read in one meeting.")] = 32
    participants_shown: Annotated[int, Meta(description="Participants of a meeting that are announced.")] = 100
    start_timeout_s: Annotated[int, Meta(description="Time to send `session.start`.")] = 15
    idle_s: Annotated[int, Meta(description="Silence in both directions before a connection is closed.")] = 1_800
    keep_s: Annotated[int, Meta(description="How long a session without a connection can be resumed.")] = 120
