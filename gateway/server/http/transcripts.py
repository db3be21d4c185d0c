"""Transcripts over HTTP: reads a meeting's log and answers in the requested languages and format.

Also erases what was said, for those who may.
Knows: addresses and queries of transcripts, and how to read a meeting's log, or a part of it, while it grows.
Must not know: how the text formats are written (`meeting.subtitles`), other endpoints.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.domain.errors import (
    EngineUnavailable,
    Forbidden,
    InvalidValue,
    LimitExceeded,
    LogUnavailable,
    NotRecorded,
    RateLimited,
    UnknownMeeting,
)
from gateway.domain.grants import Grant, account_of_tenant, hash_of_meeting, meeting_key
from gateway.domain.languages import normalise
from gateway.domain.log import NO_TITLE, Page, Publication, Said, Title, Utterance, UtteranceKey
from gateway.domain.ports import Engine, EventLog, SessionStore
from gateway.meeting.subtitles import marked, plain_text, readable, subrip, webvtt
from gateway.meeting.transcript import Spoken, transcript
from gateway.protocol.checks import check_language_tag, is_meeting_id, supported_language
from gateway.protocol.limits import Limits
from gateway.server.guard.audit import Attempt, Audit
from gateway.server.guard.fair_thread import FairThread
from gateway.server.guard.identity import Identity, client_account
from gateway.server.http import bodies
from gateway.server.http.bodies import TranscriptAnswer, TranscriptText, TranscriptUtterance
from gateway.server.http.responses import problem_response
from gateway.sessions.grants import check_role

_log = logging.getLogger(__name__)

# Format, the end of the address → media type.
MEDIA_TYPES = {
    "json": "application/json",
    "txt": "text/plain",
    "srt": "application/x-subrip",
    "vtt": "text/vtt",
}
# Most utterances of a part of a transcript.
MOST_UTTERANCES = 200

_PAGE = 500

# A part has the translations that came within so many positions of its newest utterance. All there are would need
# the rest of the log, for each part.
_OUTCOMES_WITHIN = 1_000

# What file systems do not take in a name.
_UNSAFE = re.compile(r'[\\/:*?"<>|]')

# Transcripts that one account waits for or is sent at a time; each may have megabytes.
_MOST_WANTED = 4


class Transcripts:
    """The endpoints."""

    def __init__(
        self,
        log: EventLog,
        session_store: SessionStore,
        engine: Engine,
        identity: Identity,
        audit: Audit,
        limits: Limits,
    ) -> None:
        self._identity = identity
        self._audit = audit
        self._log = log
        self._session_store = session_store
        self._engine = engine
        self._limits = limits
        self._thread = FairThread("transcripts")
        # Account → transcripts that are waited for, made or sent.
        self._wanted: Counter[str] = Counter()

    async def transcript(self, request: Request) -> ASGIApp:
        """`GET /v1/meetings/{meeting}/transcript.{format}?lang=ja,en`, JSON also with `last=100&before=812`."""
        meeting, format = request.path_params["meeting"], request.path_params["format"]
        if format not in MEDIA_TYPES:
            detail = f"A transcript ends in one of {', '.join(MEDIA_TYPES)}."
            return problem_response(bodies.status_problem(HTTPStatus.NOT_FOUND, detail))
        with self._audit.attempt("transcript", request) as attempt:
            return await self._transcript(request, meeting, format, attempt)

    async def meeting(self, request: Request) -> Response:
        """`GET /v1/meetings/{meeting}`: what may be told of a meeting before one joins it."""
        meeting = request.path_params["meeting"]
        grant = await self._identity.grant_of(request)
        if not grant.any_meeting and meeting != grant.meeting:
            raise Forbidden("The token is for another meeting.")
        self._check_id(meeting)
        page = await self._log.read(meeting_key(grant.tenant, meeting), 0, 1)
        answer = bodies.MeetingAnswer(meeting, page.title.text, page.title.held_by)
        return Response(
            msgspec.json.encode(answer), headers={"Cache-Control": "no-store"}, media_type="application/json"
        )

    async def _transcript(self, request: Request, meeting: str, format: str, attempt: Attempt) -> ASGIApp:
        attempt.grant = grant = await self._identity.grant_of(request)
        attempt.meeting = meeting
        _check(grant, meeting)
        langs = languages(request.query_params.getlist("lang"), known=self._known(), most=self._limits.languages)
        part = wanted_part(request.query_params, format)
        mark = is_marked(request.query_params, format)
        account = account_of_tenant(grant, client_account(request))
        if self._wanted[account] >= _MOST_WANTED:
            raise RateLimited(f"{_MOST_WANTED} transcripts are under way.", retry_after_ms=1_000)
        self._wanted[account] += 1
        try:
            response = await self._written(account, grant.tenant, meeting, format, langs, part, mark)
        except BaseException:
            self._received(account)
            raise
        return _Sending(response, lambda: self._received(account))

    async def erase(self, request: Request) -> ASGIApp:
        """`DELETE /v1/meetings/{meeting}/transcript`: nothing is kept of what was said."""
        meeting = request.path_params["meeting"]
        with self._audit.attempt("erase", request) as attempt:
            attempt.grant = grant = await self._identity.grant_of(request)
            attempt.meeting = meeting
            if grant.is_open:
                raise Forbidden("Where nobody needs a token, only the operator erases what was said.")
            check_role(grant, "admin")
            if not grant.any_meeting and grant.meeting != meeting:
                raise Forbidden("The token is for another meeting.")
            self._check_id(meeting)
            key = meeting_key(grant.tenant, meeting)
            if await erase(self._log, self._session_store, key):
                hashed = hash_of_meeting(grant.tenant, meeting)
                _log.warning("%s has erased the transcript of meeting %s", grant.subject, hashed)
        return Response(status_code=204, headers={"Cache-Control": "no-store"})

    def _check_id(self, meeting: str) -> None:
        if not is_meeting_id(meeting) or len(meeting) > self._limits.id_chars:
            raise UnknownMeeting("No meeting can have this id.")

    def _received(self, account: str) -> None:
        self._wanted[account] -= 1
        if not self._wanted[account]:
            del self._wanted[account]

    async def _written(
        self,
        account: str,
        tenant: str,
        meeting: str,
        format: str,
        langs: Sequence[str],
        part: Part | None,
        mark: bool,
    ) -> Response:
        # With what is read for it, as that takes memory.
        async with self._thread.turn(account):
            page = await self._kept(tenant, meeting, part)
            # A long transcript takes a while, and live meetings must not wait.
            content = await self._thread.run_now(partial(_content, format, meeting, page, langs, mark, part))
        headers = {
            "Cache-Control": "no-store",
            "Content-Disposition": _disposition(
                meeting, page.title, [*(["-".join(langs)] if langs else []), format]
            ),
            "X-Content-Type-Options": "nosniff",
        }
        return Response(content, headers=headers, media_type=MEDIA_TYPES[format])

    def _known(self) -> Collection[str] | None:
        try:
            return self._engine.profile().languages
        except EngineUnavailable:
            return None

    async def _kept(self, tenant: str, meeting: str, part: Part | None) -> Page:
        """The log of a meeting, or what belongs to a part of it. Raises `UnknownMeeting` or `LogUnavailable`."""
        # There is no log under an id that `session.start` does not accept.
        key = meeting_key(tenant, meeting)
        limit = _PAGE if part is None else 1
        page = await self._log.read(key, 0, limit) if is_meeting_id(meeting) else Page("", first=1, last=0)
        if not page.epoch:
            raise UnknownMeeting(
                f"There is no log of a meeting {meeting[:80]!r}: it never existed, or has expired."
            )
        if not page.recorded:
            raise NotRecorded(f"The meeting {meeting[:80]!r} is not recorded: nothing of it is kept.")
        return await (self._whole(key, page) if part is None else self._part(key, page, part))

    async def _whole(self, key: str, page: Page) -> Page:
        epoch, last = page.epoch, page.last
        held = list(page.publications)
        # Publications appended during the reading are left out; otherwise reading might never end.
        while held and held[-1].offset < last:
            page = await self._next(key, epoch, held[-1].offset, _PAGE)
            held = _joined(held, page.publications)
        if not held:
            return Page(epoch, page.last + 1, page.last, title=page.title)
        return Page(epoch, held[0].offset, held[-1].offset, tuple(held), title=page.title)

    async def _part(self, key: str, page: Page, part: Part) -> Page:
        """What a part is made of; `first` and `last` are those of the whole log."""
        end = min(part.before - 1, page.last) if part.before is not None else page.last
        # Outcomes and corrections that came soon after it.
        later: list[Publication] = []
        high, last = end, min(page.last, end + _OUTCOMES_WITHIN)
        while high < last:
            read = (await self._next(key, page.epoch, high, min(_PAGE, last - high))).publications
            if not read:
                break
            later += [each for each in read if (said := _said(each)) is None or said.replaces]
            high = read[-1].offset
        # Backwards until there are enough utterances. Outcomes of still earlier ones are left out by `transcript`.
        held, high = later, end
        while high >= page.first and len(transcript(_in_place(held)).utterances) < part.last:
            low = max(high - _PAGE, page.first - 1)
            read = (await self._next(key, page.epoch, low, high - low)).publications
            # A log that was trimmed meanwhile goes on behind where the reading ends.
            held = [*(each for each in read if each.offset <= high), *held]
            high = low
        placed = {each.offset for each in _in_place(held)}
        without = [
            said for each in held if each.offset not in placed and each.offset <= end and (said := _said(each))
        ]
        alone = {said.key for said in without if not await self._holds_replaced(key, said)}
        return Page(page.epoch, page.first, page.last, tuple(_in_place(held, alone)), title=page.title)

    async def _holds_replaced(self, key: str, correction: Utterance) -> bool:
        """Whether the log still has something in whose place it stands."""
        for id in correction.replaces:
            if await self._log.find_utterance(key, (correction.participant, id)) is not None:
                return True
        return False

    async def _next(self, key: str, epoch: str, after: int, limit: int) -> Page:
        """Raises `LogUnavailable` if a new log began since the reading began."""
        await asyncio.sleep(0)  # a log in memory does not wait
        page = await self._log.read(key, after, limit)
        if page.epoch != epoch:
            raise LogUnavailable("A new log of the meeting began while it was read.", retry_after_ms=1_000)
        return page


async def erase(log: EventLog, session_store: SessionStore, meeting: str) -> bool:
    """Nothing is kept of what was said, nor of what the meeting was called. Returns whether there was a log.

    meeting: its key. Raises `LogUnavailable`.
    """
    # Before those who are in the meeting come back: a host says again what it was called at first.
    await session_store.entitle(meeting, NO_TITLE)
    return await log.erase(meeting)


def _disposition(meeting: str, title: Title, rest: Sequence[str]) -> str:
    """With the name of the file: the meeting's id, or its title for those who understand RFC 6266."""
    name = ".".join([meeting.strip("."), *rest])
    if not (words := _UNSAFE.sub(" ", title.text).strip(" .")):
        return f'inline; filename="{name}"'
    titled = quote(".".join([" ".join(words.split()), *rest]), safe="")
    return f"inline; filename=\"{name}\"; filename*=UTF-8''{titled}"


class _Sending(Struct, frozen=True):
    """An answer, and what happens once it was sent or nobody takes it any more."""

    response: Response
    sent: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.response(scope, receive, send)
        finally:
            self.sent()


def _check(grant: Grant, meeting: str) -> None:
    check_role(grant, "transcript")
    if not grant.any_meeting and meeting != grant.meeting:
        raise Forbidden("The token is for another meeting.")
    if grant.langs is not None:
        # A transcript has everything that was said, in the language in which it was said.
        raise Forbidden("The token does not allow every language.")


def _joined(held: list[Publication], read: Sequence[Publication]) -> list[Publication]:
    """`held` and `read` together. If entries between them were trimmed, so was `held`, and only `read` is left."""
    return [*held, *read] if read and read[0].offset == held[-1].offset + 1 else list(read)


# ---------------------------------------------------------------- parts


def _said(publication: Publication) -> Utterance | None:
    event = publication.event
    return event.utterance if isinstance(event, Said) else None


def _in_place(publications: Sequence[Publication], alone: Collection[UtteranceKey] = ()) -> list[Publication]:
    """Without corrections of what is not among them: these belong to another part.

    alone: corrections that belong here, as the log does not have any more what they replace.
    """
    keys: set[UtteranceKey] = set()
    found = []
    for publication in publications:
        if (said := _said(publication)) is not None:
            replaced = [(said.participant, id) for id in said.replaces]
            if replaced and said.key not in alone and keys.isdisjoint(replaced):
                continue
            keys.add(said.key)
        found.append(publication)
    return found


class Part(Struct, frozen=True):
    """The newest `last` utterances of those before a position in the log; None: of all."""

    last: int
    before: int | None = None


def wanted_part(query: Mapping[str, str], format: str) -> Part | None:
    """The part of `last=100&before=812`; None for all of it. Raises `InvalidValue` or `LimitExceeded`."""
    last, before = _whole_number(query, "last"), _whole_number(query, "before")
    if last is None:
        if before is not None:
            raise InvalidValue("`before` goes together with `last`.", field="before")
        return None
    if format != "json":
        raise InvalidValue(
            "Only JSON comes in parts: the times of the other formats are those of a whole.", field="last"
        )
    if last > MOST_UTTERANCES:
        raise LimitExceeded(f"`last` is at most {MOST_UTTERANCES}.", field="last")
    return Part(last, before)


def is_marked(query: Mapping[str, str], format: str) -> bool:
    """Whether translations that are unsure have a sign before them. Raises `InvalidValue`."""
    value = query.get("mark")
    if value not in (None, "unsure"):
        raise InvalidValue("`mark` can only be `unsure`.", field="mark")
    if value is not None and format == "json":
        raise InvalidValue("JSON has the field `unsure` instead of a mark.", field="mark")
    return value is not None or format == "txt"


def _whole_number(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name)
    if value is None:
        return None
    # As many digits as the positions of a log can have.
    if not re.fullmatch(r"[1-9][0-9]{0,14}", value):
        raise InvalidValue(f"`{name}` has to be a whole number above 0.", field=name)
    return int(value)


# ---------------------------------------------------------------- languages


def languages(values: Sequence[str], *, known: Collection[str] | None, most: int) -> tuple[str, ...]:
    """The languages of `lang=ja,en`, normalised, each once; empty without the parameter.

    values: of every `lang` in the query. known: languages of the model; None while the engine is not ready.
    Raises `InvalidValue`, `UnsupportedLanguage` or `LimitExceeded`.
    """
    found: dict[str, None] = {}
    for tag in (tag.strip() for value in values for tag in value.split(",")):
        check_language_tag(tag, "lang")
        lang = normalise(tag) if known is None else supported_language(tag, known, "lang")
        found[lang] = None
        if len(found) > most:
            raise LimitExceeded(f"More than {most} languages.", field="lang")
    return tuple(found)


# ---------------------------------------------------------------- formats


def _json(meeting: str, page: Page, langs: Sequence[str], part: Part | None) -> bytes:
    spoken = transcript(page.publications).utterances
    if part is not None:
        spoken = spoken[-part.last :]
    if not langs:  # every language there is
        langs = sorted({lang for each in spoken for lang in (*each.translations, *each.failures)})
    head = TranscriptAnswer(
        meeting=meeting,
        epoch=page.epoch,
        from_offset=page.first,
        to_offset=page.last,
        title=page.title.text or UNSET,
        held_by=page.title.held_by or UNSET,
        complete=page.first == 1,
        languages=list(langs),
        utterances=[],
    )
    # Each utterance by itself: to encode megabytes in one call would stop the event loop for as long.
    utterances = [msgspec.json.encode(_utterance(each, langs)) for each in spoken]
    return msgspec.json.encode(head).removesuffix(b"]}") + b",".join(utterances) + b"]}"


def _utterance(spoken: Spoken, langs: Sequence[str]) -> TranscriptUtterance:
    said = spoken.utterance
    return TranscriptUtterance(
        participant=said.participant,
        utterance=said.id,
        speaker=said.speaker,
        lang=said.lang,
        rev=said.rev,
        text=said.text,
        at_ms=spoken.at_ms,
        start_ms=said.start_ms,
        end_ms=said.end_ms,
        translations={lang: _text(spoken, lang) for lang in langs},
        offset=spoken.offset,
        replaces=list(spoken.replaces) or UNSET,
    )


def _text(spoken: Spoken, lang: str) -> TranscriptText:
    if lang == spoken.utterance.lang:
        return TranscriptText("original", spoken.utterance.text)
    if (text := spoken.translations.get(lang)) is not None:
        return TranscriptText("translated", text, unsure=lang in spoken.unsure or UNSET)
    if (code := spoken.failures.get(lang)) is not None:
        return TranscriptText("failed", None, code)
    return TranscriptText("missing", None)


def _content(format: str, meeting: str, page: Page, langs: Sequence[str], mark: bool, part: Part | None) -> bytes:
    """The file in one of `MEDIA_TYPES`."""
    if format == "json":
        return _json(meeting, page, langs, part)
    spoken = transcript(page.publications)
    if mark:
        spoken = marked(spoken)
    match format:
        case "txt":
            text = (f"{page.title}\n\n" if page.title.text else "") + plain_text(spoken, langs)
        case "srt":
            text = subrip(readable(spoken), langs)
        case _:
            title = f"{page.title}, " if page.title.text else ""
            note = f"Meeting {meeting}, {title}{', '.join(langs) or 'as it was said'}"
            text = webvtt(readable(spoken), langs, note=note)
    return text.encode()
