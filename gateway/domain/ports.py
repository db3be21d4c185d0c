"""Ports: what the gateway needs from engines and logs, as Protocols that adapters implement.

Knows: the contract of each port. Must not know: any implementation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.engine import EngineCapacity, EngineHealth, EngineProfile, OnEvent, TranslationRequest
from gateway.domain.grants import Grant, Issued, Revocation
from gateway.domain.live import LiveEvent
from gateway.domain.log import (
    Accepted,
    Logged,
    LoggedMeeting,
    LogUsage,
    Page,
    Publication,
    Recent,
    Title,
    Translated,
    Unfinished,
    Untranslated,
    Utterance,
    UtteranceKey,
)
from gateway.domain.quotas import Metered, Totals
from gateway.domain.session_store import (
    UNBOUNDED,
    Bounds,
    Fence,
    Held,
    Hosted,
    Present,
    StoredSession,
    TenantCounts,
)
from gateway.domain.sessions import SessionRecord, UsedToken

# A gateway of which its store has not heard for so long is gone.
LEASE_S = 6.0


class Engine(Protocol):
    """Generates translations, many at a time, each at its own pace.

    Contract of every adapter (`tests/contract/test_engine_contract.py` runs on each):
    - the events of one generation come in order; only the last one has `finish` set;
    - the joined `text` of a generation is the whole translation, prefix included;
    - this text depends neither on what else is running nor on the request's draft;
    - it begins with the request's prefix, unless the tolerance let the model drop it; an engine may leave the
      prefix of a partial unchecked;
    - a generation that ends as `REJECTED` has no text;
    - of the prefix cache it uses only what requests of its own scope left there;
    - cancelling the task that awaits a generation ends it inside the engine, and so does an error of `on_event`;
    - a request that the model cannot take raises `EngineFailed` and harms no other generation;
    - an engine that is not ready raises `EngineUnavailable`, and so do generations that run when it dies;
    - `EngineRestarting` is raised only by a generation that had not begun, while `health` is not `READY` any more
      (of a pool: while that of its lane is not, or the lane is gone);
    - `stop` returns even if the engine's process hangs, and leaves no process behind.
    """

    async def start(self) -> None:
        """Load the model; returns once generations can run. Raises `StartupError`."""

    async def stop(self) -> None:
        """Release everything. Generations still running raise `EngineUnavailable`."""

    async def generate(self, request: TranslationRequest, on_event: OnEvent) -> None:
        """Translate one text; returns after its last event. To abort it, cancel the task that awaits this."""

    def health(self) -> EngineHealth:
        """The state now; never blocks."""

    def capacity(self) -> EngineCapacity:
        """The load now, counted by the engine; never blocks."""

    def profile(self) -> EngineProfile:
        """What the model can do. Raises `EngineUnavailable` until it is known."""

    async def metrics(self, names: Sequence[str] = ()) -> bytes:
        """The engine's own metrics in Prometheus text format: all, or only the samples with these names.

        Never raises. Empty if there are none, or the engine does not answer.
        """


class EventLog(Protocol):
    """What was said and translated in each meeting, in one order that every reader sees.

    Each gateway has one of its own; those of one store share what is in it. Contract of every adapter
    (`tests/contract/test_event_log_contract.py` runs on each, with two gateways on one store):
    - offsets of one meeting are 1, 2, 3 … without gaps within an epoch; an entry never changes;
    - an utterance is accepted once, and each promise made for it is concluded once, however many gateways try,
      however often;
    - when `accept` or `conclude` has returned, the publication can be read, and is delivered soon;
    - a subscriber gets every publication after its subscription, each once, in the order of offsets;
    - what a gateway has promised and not concluded when it is gone, another one can take over;
    - a new log, after the old one was lost or has expired, has another epoch;
    - a log is bounded by count and by age; the oldest entries are trimmed, and `Page.first` moves; what is
      unfinished of them is still owed;
    - reading a meeting that has no log does not create one.

    Everything raises `LogUnavailable` while the store cannot be reached. It may have been done all the same, and
    can be repeated: it is never done twice.
    """

    async def accept(self, meeting: str, utterance: Utterance, fence: Fence | None = None) -> Accepted:
        """Append a final utterance, promised in all languages that are read in the meeting, but in its own.

        It is not appended again if the log has it. Then it is promised, once more or for the first time, in those
        languages that have no translation; if the session has another fence now, in those that have no outcome.
        A segment after which another one follows is known also when it was trimmed (of a meeting, the newest
        1,000 of them); it is promised in nothing more then.
        The caller owns what had no owner before, and is to conclude it. fence: of the session that says it; None
        where that does not matter. Raises `UtteranceFinished` if it is known with another text or language,
        `SessionReplaced` if it is not known and the session has another fence now, `LogUnavailable`.
        """

    async def find_utterance(self, meeting: str, key: UtteranceKey) -> Logged | None:
        """An utterance as it was accepted, and where. None: the log does not hold it. Raises `LogUnavailable`."""

    async def conclude(self, meeting: str, outcome: Translated | Untranslated) -> Publication | None:
        """Append the outcome of what was promised. None if it has one already; then nothing was appended.

        A failure counts only from the gateway that owns the promise, a translation from any. Raises
        `LogUnavailable`.
        """

    async def claim(self, meeting: str, wanted: Mapping[int, Collection[str]]) -> dict[int, tuple[str, ...]]:
        """Promise utterances of the log in more languages. wanted: offset of a `Said` → languages.

        Returns those that the caller now owns: not those that have an outcome, and not what others own, or have
        left: see `take_over`. What the caller has taken over is claimed when its translation begins: if the caller
        dies from then on, that is a try. Raises `LogUnavailable`.
        """

    async def take_over(self) -> tuple[Unfinished, ...]:
        """Own what gateways that are gone left unfinished, in every meeting; some of it, if it is much.

        It is a try if the owner did not `close` and had accepted or claimed it: this text may be what ended it.
        What the owner had taken over itself, and not claimed, had no part in that.
        Also what this gateway owns without knowing, since the answer to its `accept` or `claim` was lost. Raises
        `LogUnavailable`.
        """

    async def read(self, meeting: str, after: int, limit: int = 200) -> Page:
        """At most `limit` publications with offsets above `after`, oldest first. Raises `LogUnavailable`."""

    async def recent(self, meeting: str, utterances: int, limit: int = 200) -> Recent:
        """At most `limit` publications from the oldest of the newest `utterances` on, and what is owed before it.

        That is every utterance with a promise that has no outcome, however old, also when its `Said` was trimmed.
        It takes as long as what is returned, not as the log is. Raises `LogUnavailable`.
        """

    def subscribe(
        self,
        meeting: str,
        deliver: Callable[[Publication], None],
        *,
        account: str = "",
        record: bool | None = None,
        begun_again: Callable[[], None] = lambda: None,
    ) -> AbstractAsyncContextManager[Subscription]:
        """Deliver every new publication while the context lasts. `deliver` must not block and must not raise.

        begun_again: is told when a new log has taken the place of this one, before anything of it is delivered.

        A meeting without a log gets one, for which `account` is charged: if there is no room, the account that
        holds the most loses entries. record: whether that one keeps what is said (None: as the gateway is set
        to); once it has begun, it stays so. A log with subscribers does not expire. Raises `LogUnavailable`.
        """

    async def sweep(self) -> None:
        """Let go of what has expired, and show that this gateway is there; to be called every second.

        One that was not heard of for `LEASE_S` is gone: see `take_over`. Never raises.
        """

    async def usage(self) -> LogUsage:
        """What is held. Raises `LogUnavailable`."""

    async def meetings(self) -> tuple[LoggedMeeting, ...]:
        """Every meeting that has a log. It takes as long as there are meetings. Raises `LogUnavailable`."""

    async def entitle(self, meeting: str, title: Title) -> None:
        """The meeting is called so, for as long as it has this log; one without a log is not. Raises
        `LogUnavailable`."""

    async def erase(self, meeting: str) -> bool:
        """Let go of all that was said. Returns whether there was a log. Raises `LogUnavailable`.

        If it has subscribers, a new log takes its place, and they are told.
        """

    async def start(self) -> None:
        """Be there, before anything else. Raises `StartupError`."""

    async def close(self) -> None:
        """This gateway leaves; what it has not concluded is for others to take over. Never raises."""


@dataclass(eq=False)
class Subscription:
    """The delivery of one meeting's publications to one subscriber."""

    # An empty page with the position at which delivery begins.
    start: Page
    # These languages are read here, and no others any more: in them the next utterances are promised. Returns the
    # offset of the newest publication before that. Raises `LogUnavailable`.
    reads: Callable[[Collection[str]], Awaitable[int]]


class SessionStore(Protocol):
    """Who is in which meeting, whose session each gateway has, and which tokens are not valid any more.

    A session is known by the SHA-256 of its secret; the secret itself is not kept. Each gateway has a
    session store of its own; those of one store share what is in it. Contract of every adapter
    (`tests/contract/test_session_store_contract.py` runs on each, with two gateways on one store):
    - a session has one owner; a gateway that takes it counts its fence up, and what is written with an older
      fence is not done;
    - bounds hold over all gateways, also when they are reached at the same time; but with several stores, sessions
      that begin on two of them at once may exceed those of a tenant;
    - a participant is present from the session's begin until its end, whichever gateway has it;
    - a session whose gateway is gone is away since that gateway was last heard of, and one without a gateway ends
      once it was away for `keep_s`. Only time in which some gateway is there counts.

    Everything raises `LogUnavailable` while the store cannot be reached, unless it says that it never raises. It
    may have been done all the same, and can be repeated: it is never done twice.
    """

    async def open(self, moved: Callable[[bytes, bool], None], revoked: Callable[[Revocation], None]) -> None:
        """Begin. Every revocation that other gateways know is told before this returns. Raises `LogUnavailable`.

        moved: is told of each session that this gateway has lost, and whether another one has it; if none has,
        it has ended. revoked: is told of each revocation by another gateway, within a second. Neither must raise.
        """

    def can_hold(self, session: bytes, meeting: str) -> bool:
        """Whether a session with this digest can begin in the meeting; if not, draw another secret.

        A session is found by its digest alone, and has to be on the same store as its meeting.
        """

    async def begin(
        self, session: bytes, record: SessionRecord, bounds: Bounds = UNBOUNDED, used: UsedToken | None = None
    ) -> int:
        """Begin a session that `can_hold` holds with its meeting. Returns its fence. used: the token it uses up.

        Raises `MeetingLocked` for all but hosts, `LimitExceeded`, `QuotaExceeded`, `RateLimited`,
        `Unauthenticated` if another user has used the token, or `LogUnavailable`.
        """

    async def find(self, session: bytes) -> Held | None:
        """A session, wherever it is. Raises `LogUnavailable`."""

    async def take(
        self,
        session: bytes,
        fence: int,
        record: SessionRecord,
        bounds: Bounds = UNBOUNDED,
        used: UsedToken | None = None,
    ) -> int | None:
        """Own a session, which continues as `record`; the gateway that had it is told. Returns the new fence.

        None if its fence is not `fence` any more. Raises what `begin` raises; of quotas only `joins` counts.
        """

    async def save(
        self,
        session: bytes,
        fence: int,
        record: SessionRecord,
        *,
        away_s: float | None = None,
        bounds: Bounds = UNBOUNDED,
    ) -> bool:
        """A session of this gateway is like this now. away_s: for how long its client is away; None: it is there.

        False if this gateway has lost it. Raises `LimitExceeded` or `LogUnavailable`.
        """

    async def release(self, session: bytes, fence: int) -> None:
        """This gateway lets go of a session, which is away and can be taken. Raises `LogUnavailable`."""

    async def end(self, session: bytes, fence: int, unused: UsedToken | None = None) -> None:
        """A session of this gateway ends; if it has not begun yet, it never will. Raises `LogUnavailable`.

        unused: the token that it has used up, if its client was never told of it: others may use it again.
        """

    def subscribe(
        self,
        meeting: str,
        deliver: Callable[[str, Present | None], None],
        hosted: Callable[[Hosted], None] = lambda _: None,
    ) -> AbstractAsyncContextManager[None]:
        """Deliver who is present, and every change of that: the participant's id, and None once they left.

        hosted: is told what hosts have set there, before anybody is delivered if that is something, and of every
        change.

        Everybody who is present was delivered when the context is entered, in the order in which they came. If
        much changes at once, what was in between may be left out. `deliver` must not block and must not raise.
        Raises `LogUnavailable`.
        """

    async def lock(self, meeting: str, locked: bool) -> None:
        """No session but a host's begins in the meeting until it is unlocked, or nobody is left in it.

        Subscribers are told: see `Hosted`.

        Raises `LogUnavailable`.
        """

    async def mute(self, meeting: str, who: str, muted: bool) -> None:
        """Somebody in the meeting is muted until that is undone, or nobody is left in it. who: as in `Hosted`.

        Raises `LimitExceeded` if too many are, or `LogUnavailable`.
        """

    async def entitle(self, meeting: str, title: Title) -> None:
        """All gateways are told that a meeting with somebody in it is called so now. Raises `LogUnavailable`."""

    async def use(self, used: UsedToken, session: bytes = b"") -> bool:
        """Use up a token for its user, who may use it again. Returns whether it was unused before.

        session: of which it is for the begin; if that session was to end before it had begun, the token is
        refused. Raises `Unauthenticated` or `LogUnavailable`.
        """

    async def revoke(self, revocation: Revocation) -> None:
        """Every other gateway is to know of this. Raises `LogUnavailable`."""

    async def count_revoked_by(self, revocation: Revocation, but: Collection[bytes]) -> int:
        """How many sessions a revocation means over all gateways, besides these. Raises `LogUnavailable`."""

    async def counts(self, tenant: str) -> TenantCounts:
        """What a tenant has over all gateways. Raises `LogUnavailable`."""

    async def sessions(self, meeting: str | None = None) -> tuple[StoredSession, ...]:
        """Every session over all gateways, or those in one meeting. Raises `LogUnavailable`.

        It takes as long as there are sessions, of one meeting: as long as its tenant has some.
        """

    async def sweep(self) -> None:
        """Show that this gateway is there, end what was away for too long; to be called every second.

        One that was not heard of for `LEASE_S` is gone. Never raises.
        """

    async def close(self) -> None:
        """This gateway leaves; its sessions are away, and can be taken. Never raises."""


class Meter(Protocol):
    """Adds up over all gateways what tenants have had translated in a day, and what waits.

    Contract of every adapter (`tests/contract/test_meter_contract.py` runs on each, with two gateways on one
    store):
    - what has one number is counted once, however often it is told;
    - a minute of a meeting and a language is counted once, whichever gateways tell of it within ten minutes;
    - what waits at a gateway that was not heard of for `LEASE_S` does not count.
    """

    async def record(self, metered: Metered) -> Totals:
        """Add what this gateway has had translated. Raises `LogUnavailable`; then it is to be recorded again."""


class LiveChannel(Protocol):
    """Passes on to other gateways what happens in a meeting and is not logged.

    Contract of every adapter (`tests/contract/test_live_channel_contract.py` runs on each, with two gateways):
    - what one gateway sends in a meeting, others that listen there get in its order, or not at all;
    - a gateway does not get what it has sent itself;
    - a gateway that may have missed something is told so.
    """

    def listen(
        self, meeting: str, deliver: Callable[[str, LiveEvent], None], missed: Callable[[], None]
    ) -> AbstractAsyncContextManager[None]:
        """Deliver what others send, with the id of the gateway that has, while the context lasts.

        missed: is called soon after it has begun, and whenever something may have been lost. Neither must block or
        raise. Raises `LogUnavailable`.
        """

    def is_heard(self, meeting: str) -> bool:
        """Whether another gateway may be listening."""

    def send(self, meeting: str, event: LiveEvent) -> None:
        """To every other gateway that listens there. Never blocks or raises; dropped if it cannot be sent."""


class Authenticator(Protocol):
    """Verifies what clients present."""

    async def verify(self, presented: str) -> Grant:
        """What this token or API key allows. Raises `Unauthenticated`."""

    def stands(self, grant: Grant) -> bool:
        """False once an API key was taken away; a token stands until its end."""

    async def reload(self) -> None:
        """Take notice of changed keys; called every second. Never raises."""


class Issuer(Protocol):
    """Signs tokens and invites with the gateway's own keys."""

    def issue(self, grant: Grant, *, for_s: float, invite: bool = False) -> Issued:
        """Sign what `grant` says, for `for_s` seconds from now. Raises `InvalidValue` or `Forbidden`."""

    async def invited(self, invite: str) -> Grant:
        """What an invite allows. Raises `Unauthenticated`."""

    def admit(self, invited: Grant, guest: str) -> Issued:
        """A token for a guest with an invite. guest: a secret of theirs, by which they are known again."""
