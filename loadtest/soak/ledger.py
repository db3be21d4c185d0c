"""The checker: from what every client saw, whether anything accepted was lost, and whether anything came twice.

Knows: the promises, and records. Must not know: processes, sockets, clocks, how faults are made.

A session of a client is checked from its `session.started` (position J) to its end (position P). Resumed with
`recovered: true` it goes on; with `recovered: false` it is over, and the client has another.

- Log: what all clients together received, by (meeting, epoch, offset). Two clients must not see different things
  at one offset, and there must be one caption and one outcome a language for an utterance.
- Gap rule: of the log, a session is owed everything in (J, P] that is meant for it and was said behind J. What
  another client had received before this one sent a ping that was answered counts as within P.
- Acceptance rule: a session that was there when all was quiet is owed the caption of every utterance accepted
  behind J that is its own or in a language it reads, and one outcome in every other language it reads.
- Snapshot rule: of a new session, J lies before the newest utterances, so that the other rules cover them.

Owed and not received is lost.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from loadtest.soak.records import (
    Accepted,
    Cancelled,
    Flushed,
    Got,
    Joined,
    Kind,
    Left,
    Record,
    Refused,
    Said,
    Stopped,
    Told,
    seat_of,
)
from loadtest.soak.verdict import Rules, Verdict

__all__ = ["Ledger"]

# So many examples of what went wrong are kept.
_EXAMPLES = 100

# The outcome of a translation that its speaker took back.
_CANCELLED = "cancelled"

# How exactly times of different processes can be compared, and how long before its time a publication may go.
_SECOND_S = 1.0
_EXPIRY_S = 10.0

# (meeting, participant, utterance)
_Utterance = tuple[str, str, str]
# The same with a language, and whether it is the caption.
_Item = tuple[str, str, str, str, bool]


class _Entry(Struct, frozen=True):
    """What the log has at one offset. seen_at: when the first client received it."""

    kind: Kind
    participant: str
    utterance: str
    lang: str
    rev: int
    code: str
    seen_at: float

    def is_same(self, got: Got) -> bool:
        mine = (self.kind, self.participant, self.utterance, self.lang, self.rev, self.code)
        return mine == (got.kind, got.participant, got.utterance, got.lang, got.rev, got.code)


@dataclass
class _Session:
    """One session of a client. position: the highest offset received. flushed_at: of the newest answered ping."""

    joined: Joined
    position: int
    flushed_at: float = 0.0
    last: bool = False

    @property
    def log(self) -> tuple[str, str]:
        return (self.joined.meeting, self.joined.epoch)

    def wants(self, entry: _Entry) -> bool:
        """Captions go to readers of their language and to their speaker, outcomes to readers of theirs."""
        own = entry.kind is Kind.CAPTION and entry.participant == self.joined.participant
        return own or entry.lang in self.joined.reads


@dataclass
class _Client:
    """arrived: how often, for each session of a client that records the wire, else over all of them.

    said: language of each final, by its id. open: ids without `accepted` or an error. heard_at: of the newest
    record from the gateway; moved_at: of the newest that changed its position; stopped_at: when its process was
    stopped, until it has a session again. previous: the newest offset of this session.
    """

    sessions: list[_Session] = field(default_factory=list)
    arrived: Counter[tuple[int, _Item]] = field(default_factory=Counter)
    has: set[_Item] = field(default_factory=set)
    said: dict[str, str] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    heard_at: float = 0.0
    moved_at: float = 0.0
    stopped_at: float = math.inf
    previous: int = 0


class _Acceptance(Struct, frozen=True):
    """lang: that it was said in."""

    at: float
    epoch: str
    offset: int
    lang: str


class Ledger:
    """Add every record, in the order of each client; then `judge`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._clients: defaultdict[str, _Client] = defaultdict(_Client)
        self._log: defaultdict[tuple[str, str], dict[int, _Entry]] = defaultdict(dict)
        self._accepted: dict[_Utterance, _Acceptance] = {}
        # Offset of the caption, by (epoch, meeting, participant, utterance).
        self._said_at: dict[tuple[str, str, str, str], int] = {}
        self._transcribed: set[_Utterance] = set()
        self._counts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._problems: list[str] = []
        self._problem_counts: Counter[str] = Counter()

    # ------------------------------------------------------------ adding

    @property
    def accepted(self) -> int:
        """Utterances accepted so far."""
        return len(self._accepted)

    @property
    def delivered(self) -> int:
        """Publications that clients received so far."""
        return self._counts["got"]

    def add(self, record: Record) -> None:
        """Take one record."""
        if isinstance(record, Stopped):
            for name, stopped in self._clients.items():
                if seat_of(name) in record.seats:
                    stopped.stopped_at = min(stopped.stopped_at, record.at)
            return
        client = self._clients[record.client]
        match record:
            case Joined():
                self._joined(client, record)
            case Got():
                self._got(client, record)
            case Said(utterance=utterance, lang=lang):
                client.said[utterance] = lang
                client.open.add(utterance)
                self._counts["said"] += 1
            case Accepted():
                self._acceptance(client, record)
            case Refused(utterance=utterance, code=code):
                self._refused[code] += 1
                client.open.discard(utterance)
            case Cancelled(utterance=utterance):
                client.cancelled.add(utterance)
            case Flushed(sent_at=sent_at, last=last):
                session = client.sessions[-1]
                session.flushed_at, session.last = sent_at, session.last or last
            case Told(code=code):
                self._told[code] += 1
            case Left(clean=clean, reason=reason):
                self._left(record.client, client, clean=clean, reason=reason)
            case _:
                pass  # what it says of the gateway is in other records
        if isinstance(record, (Joined, Got, Accepted, Flushed, Told)):
            client.heard_at = record.at
        if isinstance(record, Got) or (isinstance(record, Joined) and not record.recovered):
            client.moved_at = record.at  # a session that goes on is where it was

    def transcript(self, meeting: str, utterances: Iterable[tuple[str, str]]) -> None:
        """What a transcript of the meeting held when it was asked for: (participant, utterance) each."""
        for (participant, utterance), count in Counter(utterances).items():
            self._transcribed.add((meeting, participant, utterance))
            if count > 1:
                self._problem("transcript_twice", f"{utterance} of {participant} {count} times in {meeting}")

    def _joined(self, client: _Client, joined: Joined) -> None:
        self._noted(client, joined)
        client.stopped_at = math.inf

    def _noted(self, client: _Client, joined: Joined) -> None:
        if joined.recovered and client.sessions:
            before = client.sessions[-1].joined
            if (joined.session, joined.epoch) != (before.session, before.epoch):
                self._problem("conflicts", f"{joined.client} resumed, and got another session or epoch")
            self._counts["resumed"] += 1
            return
        if joined.recovered is False:
            self._counts["not_resumed"] += 1
            silent_s = joined.at - min(client.heard_at, client.stopped_at)
            lagging_s = joined.at - min(client.moved_at, client.stopped_at)
            # What lies behind its position may have expired though it was for others only.
            expired = lagging_s > self._rules.log_keep_s - _EXPIRY_S
            if client.sessions and silent_s < self._rules.keep_s - 1 and not expired:
                self._problem("unrecovered", f"{joined.client}, which was silent for {silent_s:.1f} s")
        self._counts["sessions"] += 1
        client.sessions.append(_Session(joined, joined.offset))
        client.previous = 0

    def _got(self, client: _Client, got: Got) -> None:
        self._counts["got"] += 1
        session = client.sessions[-1]
        caption = got.kind is Kind.CAPTION
        item = (session.joined.meeting, got.participant, got.utterance, got.lang, caption)
        client.has.add(item)
        # A snapshot of another session repeats what a client that records the wire had in the one before.
        scope = len(client.sessions) if session.joined.wire else 0
        client.arrived[(scope, item)] += 1
        if client.arrived[(scope, item)] > 1:
            name = "wire_duplicates" if session.joined.wire else "duplicates"
            self._problem(name, f"{got.client} got {_words(item)} again at offset {got.offset}")
        if got.offset <= client.previous:
            self._problem(
                "out_of_order", f"{got.client} got offset {got.offset} of {item[0]} behind {client.previous}"
            )
        client.previous = got.offset
        session.position = max(session.position, got.offset)
        entries = self._log[session.log]
        entry = entries.get(got.offset)
        if entry is None or got.at < entry.seen_at:
            entries[got.offset] = _Entry(
                got.kind, got.participant, got.utterance, got.lang, got.rev, got.code, got.at
            )
        if entry is not None and not entry.is_same(got):
            self._problem("conflicts", f"offset {got.offset} of {item[0]} is {_words(item)} to {got.client}")

    def _acceptance(self, client: _Client, accepted: Accepted) -> None:
        session = client.sessions[-1]
        utterance = (session.joined.meeting, accepted.participant, accepted.utterance)
        client.open.discard(accepted.utterance)
        lang = client.said.get(accepted.utterance, "")
        fresh = _Acceptance(accepted.at, session.joined.epoch, accepted.offset, lang)
        known = self._accepted.setdefault(utterance, fresh)
        # Acknowledged again, the offset is any that the log had reached by then.
        if known.epoch == fresh.epoch and fresh.offset < known.offset:
            self._accepted[utterance] = fresh

    def _left(self, name: str, client: _Client, *, clean: bool, reason: str) -> None:
        if not clean:
            self._problem("gave_up", f"{name}: {reason}")
            return
        for utterance in sorted(client.open):
            self._problem("unanswered", f"{utterance} of {name}")

    # ------------------------------------------------------------ judging

    def judge(self) -> Verdict:
        """The verdict on all that was added; once, at the end."""
        self._check_log()
        for utterance, accepted in self._accepted.items():
            self._said_at.setdefault((accepted.epoch, *utterance), accepted.offset)
        behind = self._accepted_by_log()
        owed = delivered = 0
        for name, client in self._clients.items():
            items: set[_Item] = set()
            for session in client.sessions:
                items.update(self._by_gap(session))
                if session.last:
                    items.update(self._by_acceptance(session, behind[session.log]))
                for utterance in self._hidden(session, behind[session.log]):
                    self._problem("not_shown", f"{name} was not shown {utterance[2]} by {utterance[1]}")
            owed += len(items)
            delivered += len(items & client.has)
            for item in sorted(items - client.has):
                self._problem("lost", f"{name} never got {_words(item)}")
        failed = self._failures()
        for utterance in sorted(self._accepted.keys() - self._transcribed):
            self._problem("transcript_missing", f"{utterance[2]} of {utterance[1]} in {utterance[0]}")
        return Verdict(
            said=self._counts["said"],
            accepted=len(self._accepted),
            unanswered=self._problem_counts["unanswered"],
            refused=dict(self._refused),
            clients=sum(1 for client in self._clients.values() if client.sessions),
            sessions=self._counts["sessions"],
            resumed=self._counts["resumed"],
            not_resumed=self._counts["not_resumed"],
            gave_up=self._problem_counts["gave_up"],
            owed=owed,
            delivered=delivered,
            lost=self._problem_counts["lost"],
            not_shown=self._problem_counts["not_shown"],
            duplicates=self._problem_counts["duplicates"],
            wire_duplicates=self._problem_counts["wire_duplicates"],
            twice_in_log=self._problem_counts["twice_in_log"],
            conflicts=self._problem_counts["conflicts"],
            out_of_order=self._problem_counts["out_of_order"],
            failed=failed,
            failed_unexpectedly=self._problem_counts["failed_unexpectedly"],
            transcript_missing=self._problem_counts["transcript_missing"],
            transcript_twice=self._problem_counts["transcript_twice"],
            unrecovered=self._problem_counts["unrecovered"],
            told=dict(self._told),
            problems=self._problems,
        )

    def _check_log(self) -> None:
        for (meeting, epoch), entries in self._log.items():
            places: defaultdict[_Item, list[int]] = defaultdict(list)
            for offset, entry in entries.items():
                places[_item(meeting, entry)].append(offset)
                if entry.kind is Kind.CAPTION:
                    self._said_at[(epoch, meeting, entry.participant, entry.utterance)] = offset
            for item, offsets in places.items():
                if len(offsets) > 1:
                    self._problem("twice_in_log", f"{_words(item)} at offsets {sorted(offsets)}")
                accepted = self._accepted.get(item[:3])
                if item[4] and accepted and accepted.epoch == epoch and accepted.offset not in offsets:
                    self._problem(
                        "conflicts", f"{_words(item)} is at {offsets}, and was accepted at {accepted.offset}"
                    )

    def _accepted_by_log(self) -> defaultdict[tuple[str, str], list[tuple[int, _Acceptance, _Utterance]]]:
        """What was accepted into each log, in the order of offsets."""
        found: defaultdict[tuple[str, str], list[tuple[int, _Acceptance, _Utterance]]] = defaultdict(list)
        for utterance, accepted in sorted(self._accepted.items(), key=lambda item: item[1].offset):
            found[(utterance[0], accepted.epoch)].append((accepted.offset, accepted, utterance))
        return found

    def _by_gap(self, session: _Session) -> Iterator[_Item]:
        for offset, entry in self._log[session.log].items():
            reached = offset <= session.position or entry.seen_at < session.flushed_at
            if offset > session.joined.offset and reached and session.wants(entry):
                item = _item(session.joined.meeting, entry)
                # A newcomer is not shown how what was said before its time is translated.
                if (
                    item[4]
                    or self._said_at.get((session.joined.epoch, *item[:3]), math.inf) > session.joined.offset
                ):
                    yield item

    def _by_acceptance(
        self, session: _Session, accepted: list[tuple[int, _Acceptance, _Utterance]]
    ) -> Iterator[_Item]:
        reads = session.joined.reads
        for offset, acceptance, utterance in accepted:
            if offset <= session.joined.offset:
                continue
            if acceptance.lang in reads or utterance[1] == session.joined.participant:
                yield (*utterance, acceptance.lang, True)
            yield from ((*utterance, lang, False) for lang in reads if lang != acceptance.lang)

    def _hidden(
        self, session: _Session, accepted: list[tuple[int, _Acceptance, _Utterance]]
    ) -> Iterator[_Utterance]:
        """The newest utterances before it that lie before J, and so were not shown to it."""
        joined, rules = session.joined, self._rules
        # When something was accepted is known to the second; and what expires is not shown any more.
        before = [each for each in accepted if each[1].at <= joined.at + _SECOND_S]
        oldest_s = joined.at - rules.log_keep_s + _EXPIRY_S
        for offset, acceptance, utterance in before[-rules.snapshot :] if rules.snapshot else ():
            if oldest_s <= acceptance.at <= joined.at - _SECOND_S and offset <= joined.offset:
                yield utterance

    def _failures(self) -> dict[str, int]:
        taken_back = {
            (session.joined.meeting, session.joined.participant, utterance)
            for client in self._clients.values()
            for session in client.sessions
            for utterance in client.cancelled
        }
        codes: Counter[str] = Counter()
        for (meeting, _), entries in self._log.items():
            for entry in entries.values():
                if entry.kind is not Kind.FAILED:
                    continue
                codes[entry.code] += 1
                item = _item(meeting, entry)
                if entry.code != _CANCELLED or item[:3] not in taken_back:
                    self._problem("failed_unexpectedly", f"{_words(item)}: {entry.code}")
        return dict(codes)

    def _problem(self, name: str, words: str) -> None:
        self._problem_counts[name] += 1
        if self._problem_counts[name] <= _EXAMPLES // 10 and len(self._problems) < _EXAMPLES:
            self._problems.append(f"{name}: {words}")


def _item(meeting: str, entry: _Entry) -> _Item:
    return (meeting, entry.participant, entry.utterance, entry.lang, entry.kind is Kind.CAPTION)


def _words(item: _Item) -> str:
    meeting, participant, utterance, lang, caption = item
    return f"the {'caption' if caption else 'translation'} ({lang}) of {utterance} by {participant} in {meeting}"
