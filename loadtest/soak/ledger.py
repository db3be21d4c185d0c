"""The checker: from what every client saw, whether anything accepted was lost, and whether anything came twice.

Knows: the promises, and records. Must not know: processes, sockets, clocks, how faults are made.

A session of a client is checked from its `session.started` (position J) to its end (position P). Resumed with
`recovered: true` it goes on; with `recovered: false` it is over, and the client has another.

- Log: what all clients together received, by (meeting, epoch, offset). Two clients must not see different things
  at one offset, and there must be one caption and one outcome a language for an utterance.
- Gap rule: of the log, a session is owed everything in (J, P] that is meant for it and was said behind J. What
  another client had received before this one sent a ping that was answered counts as within P.
- Segments: each is an utterance. Of what was accepted, as many are owed as the highest that is in the log by the
  offset of the acceptance; a settled segment of what was not accepted is owed by the gap rule alone.
- Acceptance rule: a session that was there when all was quiet is owed the caption of every utterance accepted
  behind J that is its own or in a language it reads, and one outcome in every other language it reads. Of what was
  said before anybody read that language, only if another client has it: catching up is best effort.
- Snapshot rule: of a new session, J lies before the newest utterances, so that the other rules cover them.
- Transcripts: every accepted utterance is in one once, with every outcome that a reader had got before.
Owed and not received is lost.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.domain.log import segment_id, segment_number, whole_id
from gateway.protocol.messages import (
    Caption,
    Error,
    SessionDraining,
    TranslationFailed,
    TranslationFinal,
    UtteranceAccepted,
)
from loadtest.soak.records import (
    Again,
    Cancelled,
    Entry,
    Flushed,
    Heard,
    Joined,
    Left,
    Message,
    Publication,
    Record,
    Said,
    Stopped,
    seat_of,
)
from loadtest.soak.report import Verdict

# Examples of broken promises that are kept, in all and of each kind.
_EXAMPLES, _EACH = 100, 10

# The outcome of a translation that its speaker took back.
_CANCELLED = "cancelled"

# How exactly times of different processes can be compared, and how long before its time a publication may go.
_SECOND_S = 1.0
_EXPIRY_S = 10.0

# (meeting, participant, utterance)
_Utterance = tuple[str, str, str]
# An utterance with a language, and whether it is the caption.
_Item = tuple[str, str, str, str, bool]
# (meeting, epoch)
_Log = tuple[str, str]


class Rules(Struct, frozen=True):
    """What the gateway was configured for, and so what it owes."""

    # How long a session without connection can be resumed.
    keep_s: float
    # Utterances shown to a new session.
    snapshot: int
    # How long a publication can be read again.
    log_keep_s: float
    # With a store: how much later a publication may be at one gateway than at another, of which an answered ping
    # says nothing. No other rule differs.
    apart_s: float = 0.0


class _Session:
    """One session of a client."""

    def __init__(self, joined: Joined) -> None:
        self.began_at = joined.at
        self.started = joined.started
        self.reads = joined.reads
        self.log = (joined.started.meeting, joined.started.epoch)
        # The highest offset received.
        self.position = joined.started.offset
        # When the newest ping was sent that was answered.
        self.flushed_at = 0.0
        # Whether the client was there when all was quiet.
        self.last = False
        # When it was heard of last, and when the client had gone for good.
        self.heard_at = joined.at
        self.left_at = math.inf

    def wants(self, message: Publication) -> bool:
        """Captions go to readers of their language and to their speaker, outcomes to readers of theirs."""
        own = isinstance(message, Caption) and message.participant == self.started.participant
        return own or message.lang in self.reads


@dataclass
class _Client:
    sessions: list[_Session] = field(default_factory=list)
    has: set[_Item] = field(default_factory=set)
    # Finals by their id.
    said: dict[str, Said] = field(default_factory=dict)
    # Ids without `accepted` or an error.
    open: set[str] = field(default_factory=set)
    # When the newest record came that changed the position.
    moved_at: float = 0.0
    # When its process was stopped, until it has a session again.
    stopped_at: float = math.inf
    # The newest offset of this session.
    previous: int = 0


class _Acceptance(Struct, frozen=True):
    # When it was said, and when its speaker heard that it was accepted.
    said_at: float
    at: float
    epoch: str
    offset: int
    # The language that was spoken.
    lang: str


class Ledger:
    """Add every record, in the order of each client; then `judge`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._clients: defaultdict[str, _Client] = defaultdict(_Client)
        # By offset, what any client received first, and when.
        self._log: defaultdict[_Log, dict[int, tuple[float, Publication]]] = defaultdict(dict)
        self._accepted: dict[_Utterance, _Acceptance] = {}
        self._acknowledged: defaultdict[_Utterance, set[int]] = defaultdict(set)
        # Everything that any client received.
        self._received: set[_Item] = set()
        # Sessions that read a language in a log.
        self._readers: defaultdict[tuple[_Log, str], list[_Session]] = defaultdict(list)
        # Accepted utterance → how many segments it has; those that are not here have one.
        self._segments: dict[_Utterance, int] = {}
        # Offset of the caption, by (epoch, meeting, participant, utterance).
        self._caption_offsets: dict[tuple[str, str, str, str], int] = {}
        # When accepted finals were said and accepted.
        self._answered: list[tuple[float, float]] = []
        # By utterance and language, when any client received the outcome first.
        self._outcomes: defaultdict[_Utterance, dict[str, float]] = defaultdict(dict)
        self._transcribed: set[_Utterance] = set()
        self._cancelled: set[_Utterance] = set()
        # By the names of the verdict.
        self._counts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._problems: list[str] = []
        # Publications that clients received so far.
        self.received = 0

    # ------------------------------------------------------------ adding

    @property
    def accepted(self) -> int:
        """Utterances accepted so far."""
        return len(self._accepted)

    def accepted_since(self, at: float) -> float | None:
        """When the first final was accepted of those that were said after `at`; None while none is."""
        return min((accepted for said, accepted in self._answered if said >= at), default=None)

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
            case Heard(message=message):
                self._heard(client, record, message)
            case Said(utterance=utterance):
                client.said[utterance] = record
                client.open.add(utterance)
                self._counts["said"] += 1
            case Again(offset=offset):
                self._problem("wire_duplicates", f"offset {offset} arrived again at {record.client}")
            case Cancelled(utterance=utterance):
                started = client.sessions[-1].started
                self._cancelled.add((started.meeting, started.participant, utterance))
            case Flushed(sent_at=sent_at, last=last):
                session = client.sessions[-1]
                session.flushed_at, session.last = sent_at, session.last or last
            case Left(clean=True):
                for utterance in sorted(client.open):
                    self._problem("unanswered", f"{utterance} of {record.client}")
            case Left(reason=reason):
                self._problem("gave_up", f"{record.client}: {reason}")
        if isinstance(record, (Joined, Heard, Flushed, Left)) and client.sessions:
            session = client.sessions[-1]
            session.heard_at = record.at
            session.left_at = record.at if isinstance(record, Left) else math.inf

    def transcript(self, meeting: str, entries: Iterable[Entry], asked_at: float) -> None:
        """What a transcript of the meeting held that was asked for at that time."""
        counts: Counter[_Utterance] = Counter()
        for entry in entries:
            said = (meeting, entry.participant, entry.utterance)
            counts[said] += 1
            for lang, seen_at in self._outcomes[said].items():
                if seen_at < asked_at and lang not in entry.outcomes:
                    self._problem("outcome_missing", _words((*said, lang, False)))
        self._transcribed |= counts.keys()
        for (_, participant, utterance), count in counts.items():
            if count > 1:
                self._problem("transcript_twice", f"{utterance} of {participant} {count} times in {meeting}")

    def _joined(self, client: _Client, joined: Joined) -> None:
        started = joined.started
        stopped_at, client.stopped_at = client.stopped_at, math.inf
        if started.recovered and client.sessions:
            before = client.sessions[-1].started
            if (started.session, started.epoch) != (before.session, before.epoch):
                self._problem("conflicts", f"{joined.client} resumed, and got another session or epoch")
            self._counts["resumed"] += 1
            return
        if started.recovered is False:
            self._counts["not_resumed"] += 1
            heard_at = client.sessions[-1].heard_at if client.sessions else joined.at
            silent_s = joined.at - min(heard_at, stopped_at)
            # What lies behind its position may have expired though it was for others only. What came to it late is
            # as old as where it came first.
            log = self._log.get(client.sessions[-1].log, {}) if client.sessions else {}
            came_first = log[client.previous][0] if client.previous in log else math.inf
            lagging_s = joined.at - min(client.moved_at, came_first, stopped_at)
            expired = lagging_s > self._rules.log_keep_s - _EXPIRY_S
            if client.sessions and silent_s < self._rules.keep_s - 1 and not expired:
                before = client.sessions[-1].started
                self._problem(
                    "unrecovered",
                    f"{joined.client} at {joined.at:.1f} s, which was silent for {silent_s:.1f} s; "
                    f"had {before.epoch} up to {client.previous}, got {started.epoch} from {started.offset}",
                )
        client.sessions.append(session := _Session(joined))
        for lang in joined.reads:
            self._readers[session.log, lang].append(session)
        client.previous = 0
        client.moved_at = joined.at

    def _heard(self, client: _Client, heard: Heard, message: Message) -> None:
        match message:
            case Caption(offset=int(offset)) | TranslationFinal(offset=offset) | TranslationFailed(offset=offset):
                self._got(client, heard, message, offset)
            case UtteranceAccepted(id=id, offset=offset):
                client.open.discard(id)
                self._acceptance(client, heard.at, id, offset)
            case Error(code=code, utterance=id, retryable=False) if id in client.open:
                client.open.discard(id)
                self._refused[code] += 1
            case Error(code=code):
                self._told[code] += 1
            case SessionDraining():
                self._told["session.draining"] += 1

    def _got(self, client: _Client, heard: Heard, message: Publication, offset: int) -> None:
        self.received += 1
        client.moved_at = heard.at
        session, name = client.sessions[-1], heard.client
        meeting = session.started.meeting
        item = _item(meeting, message)
        if item in client.has:
            self._problem("duplicates", f"{name} got {_words(item)} again at offset {offset}")
        client.has.add(item)
        self._received.add(item)
        if offset <= client.previous:
            self._problem("out_of_order", f"{name} got offset {offset} of {meeting} behind {client.previous}")
        client.previous = offset
        session.position = max(session.position, offset)
        if not item[4]:
            self._outcomes[item[:3]].setdefault(item[3], heard.at)
        first_at, first = self._log[session.log].setdefault(offset, (heard.at, message))
        if heard.at < first_at:
            self._log[session.log][offset] = (heard.at, message)
        if _identity(first) != _identity(message):
            self._problem("conflicts", f"offset {offset} of {meeting} is {_words(item)} to {name}")

    def _acceptance(self, client: _Client, at: float, id: str, offset: int) -> None:
        started = client.sessions[-1].started
        utterance = (started.meeting, started.participant, id)
        said = client.said.get(id)
        fresh = _Acceptance(said.at if said else at, at, started.epoch, offset, said.lang if said else "")
        if said and utterance not in self._accepted:
            self._answered.append((said.at, at))
        known = self._accepted.get(utterance, fresh)
        # Acknowledged again, it is any offset that the client or the log had reached by then.
        self._acknowledged[utterance].add(offset)
        self._accepted[utterance] = fresh if fresh.epoch == known.epoch and fresh.offset < known.offset else known

    # ------------------------------------------------------------ judging

    def judge(self) -> Verdict:
        """The verdict on all that was added; once, at the end."""
        self._check_log()
        behind = self._accepted_by_log()
        for name, client in self._clients.items():
            items: set[_Item] = set()
            for session in client.sessions:
                items.update(self._by_gap(session))
                if session.last:
                    items.update(self._by_acceptance(session, behind[session.log]))
                for utterance in self._hidden(session, behind[session.log]):
                    self._problem("not_shown", f"{name} was not shown {utterance[2]} by {utterance[1]}")
            self._counts["owed"] += len(items)
            self._counts["delivered"] += len(items & client.has)
            for item in sorted(items - client.has):
                self._problem("lost", f"{name} never got {_words(item)}")
        owed = {segment for utterance in self._accepted for segment in self._segments_of(utterance)}
        for utterance in sorted(owed - self._transcribed):
            self._problem("transcript_missing", f"{utterance[2]} of {utterance[1]} in {utterance[0]}")
        found = {
            "accepted": len(self._accepted),
            "clients": sum(1 for client in self._clients.values() if client.sessions),
            "refused": self._refused,
            "failed": self._failures(),
            "told": self._told,
            "problems": self._problems,
        }
        return msgspec.convert({**self._counts, **found}, Verdict)

    def _check_log(self) -> None:
        for (meeting, epoch), entries in self._log.items():
            places: defaultdict[_Item, list[int]] = defaultdict(list)
            for offset, (_, message) in entries.items():
                item = _item(meeting, message)
                places[item].append(offset)
                if item[4]:
                    self._caption_offsets[(epoch, *item[:3])] = offset
            for item, offsets in places.items():
                if len(offsets) > 1:
                    kinds = ", ".join(f"{type(entries[each][1]).__name__} at {each}" for each in sorted(offsets))
                    self._problem("twice_in_log", f"{_words(item)}: {kinds}")
            self._check_accepted(meeting, epoch, {item: offsets for item, offsets in places.items() if item[4]})

    def _check_accepted(self, meeting: str, epoch: str, captions: dict[_Item, list[int]]) -> None:
        """The last segment of an accepted utterance is where its speaker was told; the others are before it."""
        at: defaultdict[_Utterance, dict[int, list[int]]] = defaultdict(dict)
        for (_, participant, utterance, _, _), offsets in captions.items():
            said = (meeting, participant, whole_id(utterance))
            at[said].setdefault(segment_number(utterance), []).extend(offsets)
        for said, segments in at.items():
            accepted, told = self._accepted.get(said), self._acknowledged[said]
            if accepted is None or accepted.epoch != epoch:
                continue
            last = max(segments)
            if told.isdisjoint(segments[last]):
                self._problem(
                    "conflicts",
                    f"segment {last} of {_named(said)} is at {segments[last]}, and was accepted at {sorted(told)}",
                )
            in_order = sorted(segments)
            if any(min(segments[one]) > min(segments[other]) for one, other in pairwise(in_order)):
                self._problem("conflicts", f"the segments of {_named(said)} are not in order in the log")
            self._segments[said] = last

    def _accepted_by_log(self) -> defaultdict[_Log, list[tuple[_Acceptance, _Utterance]]]:
        """What was accepted into each log, in the order of offsets."""
        found: defaultdict[_Log, list[tuple[_Acceptance, _Utterance]]] = defaultdict(list)
        owed: set[tuple[str, _Utterance]] = set()
        for utterance, accepted in self._accepted.items():
            for segment in self._segments_of(utterance):
                # Where its caption is: an acknowledgement of what the log has tells how far its gateway was.
                offset = self._caption_offsets.get((accepted.epoch, *segment), accepted.offset)
                # It may have been settled, and shown, before all of it was said.
                seen_at, _ = self._log[utterance[0], accepted.epoch].get(offset, (math.inf, None))
                of_it = replace(accepted, offset=offset, said_at=min(accepted.said_at, seen_at))
                found[utterance[0], accepted.epoch].append((of_it, segment))
                owed.add((accepted.epoch, segment))
        # Settled segments of other utterances are shown to newcomers, too; no client was told of an acceptance.
        for (epoch, *caption), offset in self._caption_offsets.items():
            meeting, participant, id = caption
            if (epoch, (meeting, participant, id)) not in owed:
                seen_at = self._log[meeting, epoch][offset][0]
                settled = _Acceptance(seen_at, math.inf, epoch, offset, "")
                found[meeting, epoch].append((settled, (meeting, participant, id)))
        for each in found.values():
            each.sort(key=lambda item: item[0].offset)
        return found

    def _segments_of(self, utterance: _Utterance) -> Iterator[_Utterance]:
        """What an accepted utterance is to readers."""
        meeting, participant, id = utterance
        for number in range(1, self._segments.get(utterance, 1) + 1):
            yield meeting, participant, segment_id(id, number)

    def _by_gap(self, session: _Session) -> Iterator[_Item]:
        started, oldest_s = session.started, self._oldest_s(session)
        for offset, (seen_at, message) in self._log[session.log].items():
            reached = offset <= session.position or seen_at < session.flushed_at - self._rules.apart_s
            if offset > started.offset and reached and seen_at >= oldest_s and session.wants(message):
                item = _item(started.meeting, message)
                # A newcomer is not shown how what was said before its time is translated.
                if item[4] or self._caption_offsets.get((started.epoch, *item[:3]), math.inf) > started.offset:
                    yield item

    def _by_acceptance(self, session: _Session, accepted: list[tuple[_Acceptance, _Utterance]]) -> Iterator[_Item]:
        reads, oldest_s = session.reads, self._oldest_s(session)
        for acceptance, utterance in accepted:
            if acceptance.offset <= session.started.offset or acceptance.at == math.inf:
                continue
            if acceptance.at < oldest_s:
                continue
            if acceptance.lang in reads or utterance[1] == session.started.participant:
                yield (*utterance, acceptance.lang, True)
            for lang in (lang for lang in reads if lang != acceptance.lang):
                item = (*utterance, lang, False)
                if item in self._received or self._was_read(session, acceptance, lang):
                    yield item

    def _was_read(self, session: _Session, acceptance: _Acceptance, lang: str) -> bool:
        """Whether a session read the language for sure when this was accepted, so that it was promised in it."""
        if session.began_at <= acceptance.said_at:
            return True
        # A session that could be resumed reads, too.
        return any(
            each.began_at <= acceptance.said_at
            and acceptance.at <= min(each.left_at, each.heard_at + self._rules.keep_s)
            for each in self._readers[session.log, lang]
        )

    def _hidden(self, session: _Session, accepted: list[tuple[_Acceptance, _Utterance]]) -> Iterator[_Utterance]:
        """The newest utterances before it that lie before J, and so were not shown to it."""
        rules, began_at = self._rules, session.began_at
        # When something was accepted is known to the second; and what expires is not shown any more. What was said
        # may be in the log, and shown, long before its speaker hears of it.
        before = [each for each in accepted if each[0].said_at <= began_at + _SECOND_S]
        oldest_s = self._oldest_s(session)
        for acceptance, utterance in before[-rules.snapshot :] if rules.snapshot else ():
            shown = acceptance.offset > session.started.offset
            if oldest_s <= acceptance.at <= began_at - _SECOND_S and not shown:
                yield utterance

    def _oldest_s(self, session: _Session) -> float:
        """What was accepted before may have expired when the session began, or before it was read for it."""
        return session.began_at - self._rules.log_keep_s + _EXPIRY_S

    def _failures(self) -> Counter[str]:
        codes: Counter[str] = Counter()
        for (meeting, _), entries in self._log.items():
            for message in (each for _, each in entries.values() if isinstance(each, TranslationFailed)):
                codes[message.code] += 1
                item = _item(meeting, message)
                said = (meeting, message.participant, whole_id(message.utterance))
                if message.code != _CANCELLED or said not in self._cancelled:
                    self._problem("failed_unexpectedly", f"{_words(item)}: {message.code}")
        return codes

    def _problem(self, name: str, words: str) -> None:
        self._counts[name] += 1
        if self._counts[name] <= _EACH and len(self._problems) < _EXAMPLES:
            self._problems.append(f"{name}: {words}")


def _item(meeting: str, message: Publication) -> _Item:
    return (meeting, message.participant, message.utterance, message.lang, isinstance(message, Caption))


def _named(utterance: _Utterance) -> str:
    meeting, participant, id = utterance
    return f"{id} by {participant} in {meeting}"


def _identity(message: Publication) -> tuple[object, ...]:
    """What has to be the same for everybody at one offset."""
    code = message.code if isinstance(message, TranslationFailed) else ""
    return (type(message), *_item("", message), message.rev, code)


def _words(item: _Item) -> str:
    meeting, participant, utterance, lang, caption = item
    return f"the {'caption' if caption else 'translation'} ({lang}) of {utterance} by {participant} in {meeting}"
