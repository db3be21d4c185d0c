"""The handover file: whole or not there, private, there until discarded, refused where anything is odd."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from gateway.domain.errors import StartupError
from gateway.domain.glossaries import Dictionary, Glossary, KeptGlossary
from gateway.domain.grants import Grant, Revocation
from gateway.domain.log import (
    LoggedEvent,
    Publication,
    Said,
    Timings,
    Translated,
    Untranslated,
    Utterance,
)
from gateway.domain.quotas import DayOfTenant
from gateway.domain.roles import ROLES
from gateway.domain.sessions import HANDOVER_VERSION, Handover, KeptMeeting, KeptSession, UsedToken
from gateway.stores import handover_file
from gateway.stores.memory_log import MemoryEventLog, MemoryStore
from tests.logs import utterance
from tests.usual import usual

ANA = KeptSession(
    session="s" * 32,
    participant="0a1b2c3d",
    meeting="standup",
    private=False,
    name="Ana 🎤",
    speaks="en",
    reads=("ja", "de"),
    left_s=271.5,
    since=3,
    stopped={"fr": 5, "pt-BR": 4},
)
BEN = KeptSession("4e5f6a7b", "p-1", True, "Ben", None, (), session="t" * 32, left_s=300.0)
GRANT = Grant(
    tenant="acme",
    subject="api-key:k",
    token_id="t1",
    roles=ROLES,
    meeting="standup",
    langs=frozenset({"ja", "de"}),
    issued_s=math.inf,
    max_s=600.0,
)
EVENTS: tuple[LoggedEvent, ...] = (
    Said(
        Utterance(
            id="1",
            rev=2,
            text="Good morning.",
            lang="en",
            participant="0a1b2c3d",
            speaker="Ana 🎤",
            final=True,
            start_ms=0,
            end_ms=900,
            glossary=(("ja", (("standup", "朝会"),)),),
            context=("Before.",),
            formality="informal",
        ),
        languages=("ja", "de"),
    ),
    Translated("0a1b2c3d", "1", "Ana 🎤", "ja", 2, "おはよう。", Timings(0.5, 80.0, 412.5), tokens=7, said=3),
    Untranslated("0a1b2c3d", "1", "Ana 🎤", "de", 2, "engine_failed", "The engine failed.", said=3),
)
FULL = Handover(
    meetings=(
        KeptMeeting("standup", "00ff00ff", 3, 5, tuple(Publication(n, 17, e) for n, e in enumerate(EVENTS, 3))),
        KeptMeeting("p-1", "12345678", 1, 0, ()),
    ),
    sessions=(ANA, BEN, structs.replace(BEN, session="u" * 32, grant=GRANT)),
    revocations=(Revocation(tenant="acme", before_s=17.5, token_id="t1"),),
    used_tokens=(UsedToken("acme", "t2", "0a1b2c3d", 1_700_000_000.5),),
    days=(DayOfTenant(tenant="acme", day=20_000, characters=7, minutes=2),),
    glossaries=(
        KeptGlossary(
            "acme", Glossary(id="g", name="n", created_s=1.5, dictionaries=(Dictionary("en", "de", {"a": "b"}),))
        ),
    ),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "handover"


def place(path: Path, content: object, mode: int = 0o600) -> None:
    path.write_bytes(content if isinstance(content, bytes) else msgspec.msgpack.encode(content))
    path.chmod(mode)


def test_what_was_written_is_read_until_it_is_discarded(path: Path) -> None:
    handover_file.write(path, FULL)
    read = handover_file.read(path)
    assert read == FULL
    assert read is not None
    hash(read.meetings)  # tuples all the way down
    assert handover_file.read(path) == FULL, "a start that failed has not eaten it"
    handover_file.discard(path)
    assert handover_file.read(path) is None
    assert list(path.parent.iterdir()) == []


def test_optional_fields_of_a_session_may_be_absent(path: Path) -> None:
    needed = {field.name for field in structs.fields(KeptSession) if field.required}
    place(path, {"version": HANDOVER_VERSION, "sessions": [{name: getattr(BEN, name) for name in needed}]})
    read = handover_file.read(path)
    assert read == Handover(sessions=(BEN,))
    assert read is not None
    assert (read.sessions[0].since, read.sessions[0].stopped) == (0, {})


def test_where_there_is_none_nothing_is_read(path: Path) -> None:
    assert handover_file.read(path) is None
    assert handover_file.read(path / "in" / "no" / "folder") is None


def test_it_is_for_this_user_alone_whatever_the_umask(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    encode = msgspec.msgpack.encode

    def watched(value: object) -> bytes:
        modes.extend(stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir())
        return encode(value)

    monkeypatch.setattr(msgspec.msgpack, "encode", watched)
    before = os.umask(0)
    try:
        handover_file.write(path, FULL)
    finally:
        os.umask(before)
    modes.append(stat.S_IMODE(path.stat().st_mode))
    assert modes == [0o600, 0o600], "from before anything is in it"


def test_it_is_on_disk_before_it_has_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        order.append(("fsync", os.fstat(descriptor).st_size))
        fsync(descriptor)

    def watched_replace(source: str, target: Path) -> None:
        order.append(("replace", os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    handover_file.write(path, FULL)
    size = len(msgspec.msgpack.encode(FULL))
    assert order == [("fsync", size), ("replace", size)]


def test_a_newer_one_replaces_it(path: Path) -> None:
    handover_file.write(path, FULL)
    handover_file.write(path, Handover(sessions=(BEN,)))
    assert handover_file.read(path) == Handover(sessions=(BEN,))


def test_failed_write_leaves_everything_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handover_file.write(path, FULL)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            handover_file.write(path, Handover())
    assert list(path.parent.iterdir()) == [path]
    assert handover_file.read(path) == FULL


def test_without_its_folder_it_cannot_be_written(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        handover_file.write(path / "handover", FULL)


def test_writing_does_not_follow_a_link(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("precious")
    path.symlink_to(other)
    handover_file.write(path, FULL)
    assert other.read_text() == "precious"
    assert handover_file.read(path) == FULL


def refused(path: Path, why: str) -> None:
    """It says why and what to do, in one sentence, and leaves the file for a look at it."""
    with pytest.raises(StartupError) as caught:
        handover_file.read(path)
    assert why in caught.value.message
    assert f"{path}" in caught.value.message
    assert ": delete it to start without" in caught.value.message
    assert caught.value.message.endswith(".")
    assert os.path.lexists(path)


def test_a_link_is_refused(path: Path) -> None:
    other = path.with_name("other")
    handover_file.write(other, FULL)
    path.symlink_to(other)
    refused(path, "is a symbolic link")
    assert other.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_one_that_others_can_use_is_refused(path: Path, mode: int) -> None:
    place(path, FULL, mode)
    refused(path, "can be read or written by other users")


def test_one_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handover_file.write(path, FULL)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    refused(path, "belongs to another user")


def test_what_is_no_file_is_refused(path: Path) -> None:
    path.mkdir()
    refused(path, "is not a regular file")
    path.rmdir()
    os.mkfifo(path, 0o600)  # nobody writes: waiting for it would hang
    refused(path, "is not a regular file")


def test_one_that_cannot_be_opened_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handover_file.write(path, FULL)

    def denied(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    refused(path, "cannot be read (Permission denied)")


def test_another_version_is_refused_whatever_else_is_in_it(path: Path) -> None:
    place(path, {"version": HANDOVER_VERSION + 1, "meetings": "somewhere else"})
    refused(path, f"is of version {HANDOVER_VERSION + 1}, and this gateway reads version {HANDOVER_VERSION}")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode(FULL)[:-1],
        msgspec.msgpack.encode(FULL) + b"x",
        {"meetings": []},
        {"version": "1"},
        {"version": HANDOVER_VERSION, "sessions": [{"session": "secret words"}]},
        {
            "version": HANDOVER_VERSION,
            "meetings": [{"meeting": "m", "epoch": "e", "first": 1, "last": 10**15, "publications": []}],
        },
    ],
)
def test_damaged_file_is_refused_without_its_contents(path: Path, content: object) -> None:
    place(path, content)
    refused(path, "is damaged or not a handover file")
    with pytest.raises(StartupError) as caught:
        handover_file.read(path)
    assert caught.value.__cause__ is None
    assert "secret" not in caught.value.message


ENCODED = msgspec.msgpack.encode(FULL)


@settings(deadline=None)
@given(at=st.integers(0, len(ENCODED) - 1), byte=st.integers(0, 255), cut=st.integers(0, 3))
def test_damage_is_refused_or_decodes(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    place(path, ENCODED[:at] + bytes([byte]) + ENCODED[at + 1 : len(ENCODED) - cut])
    try:
        assert isinstance(handover_file.read(path), Handover)
    except StartupError as error:
        assert "delete it" in error.message


# Discarding


def test_discarding_what_is_not_there_is_no_trouble(path: Path) -> None:
    handover_file.discard(path)
    handover_file.write(path, FULL)
    handover_file.discard(path)
    handover_file.discard(path)
    handover_file.discard(path / "in" / "no" / "folder")


def test_discarding_a_link_spares_its_target(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("precious")
    path.symlink_to(other)
    handover_file.discard(path)
    assert [*path.parent.iterdir()] == [other]
    assert other.read_text() == "precious"


def test_what_cannot_be_discarded_is_heard_of(path: Path) -> None:
    path.mkdir()
    with pytest.raises(OSError, match="handover"):
        handover_file.discard(path)
    assert path.is_dir()


# With the log


async def test_a_memory_log_goes_through_the_file(path: Path) -> None:
    log = MemoryEventLog(store := usual(MemoryStore))
    for event in EVENTS:
        store.logs.append("standup", event)
    handover_file.write(path, Handover(meetings=log.kept_meetings(), sessions=(ANA,)))
    before = await log.read("standup", after=0)

    read = handover_file.read(path)
    assert read is not None
    log = MemoryEventLog(usual(MemoryStore, earlier=read.meetings))
    assert await log.read("standup", after=0) == before
    assert (await log.accept("standup", utterance("new"))).offset == 4


def test_unwritable_path_is_refused_at_the_start(tmp_path: Path) -> None:
    handover_file.check(tmp_path / "handover")
    with pytest.raises(StartupError, match="is a folder: name a file in it"):
        handover_file.check(tmp_path)
    with pytest.raises(StartupError, match="There is no folder"):
        handover_file.check(tmp_path / "nowhere" / "handover")


def test_folder_that_others_change_is_no_place_for_it(tmp_path: Path) -> None:
    path = tmp_path / "handover"
    handover_file.write(path, Handover())
    tmp_path.chmod(0o777)
    for use in (handover_file.check, handover_file.read):
        with pytest.raises(StartupError, match=f"{tmp_path} can be changed by other users"):
            use(path)
    tmp_path.chmod(0o1777)
    handover_file.check(path)
    assert handover_file.read(path) == Handover()


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StartupError, match="cannot be written to"):
        handover_file.check(tmp_path / "handover")


EARLIER = Path(__file__).parent / "earlier" / "handover"


def test_what_an_earlier_gateway_has_left_is_read(path: Path) -> None:
    # Written by revision 5d2b083: before glossaries, and before languages were detected. What is added to a value
    # of the handover needs a default, or this version has to read both.
    place(path, EARLIER.read_bytes())
    left = handover_file.read(path)
    assert left is not None
    (meeting,) = left.meetings
    said, done, failed = (each.event for each in meeting.publications)
    assert isinstance(said, Said)
    assert (said.utterance.text, said.languages, said.utterance.detected) == ("Good morning.", ("ja", "de"), False)
    assert isinstance(done, Translated)
    assert (done.text, done.source) == ("Guten Morgen.", "")
    assert isinstance(failed, Untranslated)
    assert (meeting.unfinished[0].utterance, meeting.unfinished[0].languages) == (said.utterance, ("ja",))
    assert (left.sessions[0].session, left.sessions[0].reads) == ("s" * 32, ("ja", "de"))
    assert (left.revocations[0].token_id, left.used_tokens[0].token_id) == ("t1", "t2")
    assert (left.days[0].characters, left.glossaries) == (7, ())


def test_what_a_later_gateway_adds_is_passed_over(path: Path) -> None:
    handover_file.write(path, FULL)
    left = msgspec.msgpack.decode(path.read_bytes())
    left["added"] = left["sessions"][0]["added"] = [{"of": "another kind"}]
    place(path, left)
    assert handover_file.read(path) == FULL
