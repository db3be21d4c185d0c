"""What a session asks for in answer to a message, as values.

Knows: what each effect is about. Must not know: when it is asked for (`machine`), how it is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gateway.domain.close_codes import CloseCode
from gateway.domain.errors import GatewayError
from gateway.domain.log import Utterance
from gateway.domain.sessions import Stability
from gateway.protocol.messages import Resume, ServerMessage


class Reply(Struct, frozen=True):
    """Send this to this session's client alone."""

    message: ServerMessage


class Join(Struct, frozen=True):
    """Enter a meeting, a private one if it is None, or come back to one; send `session.started`."""

    meeting: str | None
    name: str
    speaks: str | None
    reads: tuple[str, ...]
    stability: Stability = "live"
    resume: Resume | None = None
    originals: bool = False
    # Whether the meeting is to be recorded; None: as it is, or as the gateway is set to.
    record: bool | None = None
    # Its languages that the gateway does not have → why: only a session that has them already goes on with them.
    gone: Mapping[str, GatewayError] = {}


class Update(Struct, frozen=True):
    """Other languages are spoken or read, or what is said is read in another way, from now on."""

    speaks: str | None
    reads: tuple[str, ...]
    stability: Stability = "live"
    originals: bool = False


class Refresh(Struct, frozen=True):
    """Verify a new token and go on with what it allows; send `session.refreshed`."""

    token: str

    def __repr__(self) -> str:
        return "Refresh(token=…)"  # it must not be logged


class Show(Struct, frozen=True):
    """Show a partial utterance to the readers of its language, and translate it for the others."""

    utterance: Utterance


class Accept(Struct, frozen=True):
    """Take on a final utterance: log it, acknowledge it, show its caption, translate it.

    again: it was accepted before and some translation of it failed; only what is missing is to be done.
    """

    utterance: Utterance
    again: bool = False


class Acknowledge(Struct, frozen=True):
    """A final that was accepted before was sent again: acknowledge it once more, do nothing else."""

    id: str
    rev: int


class Cancel(Struct, frozen=True):
    """Stop the translations of an accepted utterance."""

    id: str


class Withdraw(Struct, frozen=True):
    """An utterance that was begun will not be finished: it goes from every screen.

    wait_s: so much later, and not if it goes on until then.
    """

    id: str
    wait_s: float = 0.0


class Close(Struct, frozen=True):
    """Close the connection, after everything before it was sent."""

    code: CloseCode
    reason: GatewayError | None = None


Effect = Reply | Join | Refresh | Update | Show | Accept | Acknowledge | Cancel | Withdraw | Close
