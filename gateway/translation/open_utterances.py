"""What is held of an utterance while it is being said, as values.

Knows: which fields there are. Must not know: who changes them and when (`partials`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from gateway.domain.engine import TranslationRequest
from gateway.domain.log import Utterance
from gateway.meeting.live_text import LiveTranslation
from gateway.tracing.utterances import PartialsTrace
from gateway.translation.commit_policy import TOLERANCE, CommitPolicy, Heard
from gateway.translation.scheduling.ticket import PARTIAL, Ticket, request_id


@dataclass(eq=False)
class OpenTranslation:
    """The translation of one open utterance into one language."""

    lang: str
    policy: CommitPolicy
    # What readers have of it.
    shown: LiveTranslation
    # The newest revision.
    revision: Utterance
    # When the last generation was begun, by the monotonic clock.
    begun_s: float
    # The text whose translation readers see.
    translated: str | None = None
    # Of the generation in flight, and the revision that is of.
    ticket: Ticket | None = None
    running: Utterance | None = None
    # The newest revision is still to be translated.
    pending: bool = False
    # Nothing happens to it until another revision comes.
    stopped: bool = False
    # The last generation was ended by a newer revision.
    superseded: bool = False
    # The engine died of it or with it: it is left to the final.
    broken: bool = False
    # The lane that it may have killed.
    died_on: str | None = None
    # What became of its generations; None while there was none, or nothing is traced.
    trace: PartialsTrace | None = None

    @property
    def nothing_to_read(self) -> bool:
        return not self.shown.committed and not self.shown.tentative

    def request(self, scope: str) -> TranslationRequest:
        """Of its newest revision. scope: whose prompts it may share the engine's prefix cache with."""
        said = self.revision
        return TranslationRequest(
            id=request_id("partial"),
            text=said.text,
            source=said.lang,
            target=self.lang,
            options=said.options_for(self.lang),
            final=False,
            priority=PARTIAL,
            prefix=self.policy.committed,
            draft=self.policy.draft,
            tolerance=TOLERANCE,
            cache_scope=scope,
        )


@dataclass(eq=False)
class OpenUtterance:
    """An utterance that is not final."""

    # By language.
    translations: dict[str, OpenTranslation] = field(default_factory=dict)
    # Looks again at which of them are due: the last that was set.
    timer: asyncio.TimerHandle | None = None
    heard: Heard = field(default_factory=Heard)
    # Its live translation has ended, though it may still be revised.
    closed: bool = False
    # Latecomers are shown its caption.
    captioned: bool = False
