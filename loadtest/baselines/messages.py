"""What goes through the queues between the front and its workers.

Knows: fields and units. Must not know: queues. All times are of `time.monotonic`, which processes share.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Answer", "Answers", "Begun", "Broken", "Job", "Ready", "Report", "Translation"]


class Job(Struct, frozen=True):
    """One text for one language. queued_s: when the front put it into the queue."""

    id: int
    text: str
    source: str
    target: str
    queued_s: float


class Translation(Struct, frozen=True):
    """What an engine made of a job. first_token_s: when it had the first token; null where it does not tell.
    failed: a sentence; null when it was translated."""

    text: str = ""
    tokens: int = 0
    first_token_s: float | None = None
    failed: str | None = None


class Answer(Struct, frozen=True):
    """A translation with its job's id."""

    job: int
    translation: Translation


class Ready(Struct, frozen=True):
    """A worker's engine takes texts."""

    worker: int


class Begun(Struct, frozen=True):
    """A worker has taken these from the queue."""

    worker: int
    jobs: list[int]


class Answers(Struct, frozen=True):
    """All that were taken together. began_s, ended_s: when the engine had them."""

    worker: int
    began_s: float
    ended_s: float
    answers: list[Answer]


class Broken(Struct, frozen=True):
    """A worker cannot go on; `reason` is a sentence."""

    worker: int
    reason: str


Report = Ready | Begun | Answers | Broken
