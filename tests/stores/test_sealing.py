"""What the store is given of what people said, with and without keys."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

import msgspec
import pytest

from gateway.domain.errors import StartupError
from gateway.stores.sealing import Place, Seal, SealError, read_keys
from tests.logs import utterance

OLD, NEW = secrets.token_bytes(32), secrets.token_bytes(32)
HERE = Place("said", "acme/standup", "e1")
SECRET = msgspec.msgpack.encode(utterance("a secret"))


def test_what_is_sealed_can_be_opened_and_tells_nothing() -> None:
    seal = Seal([OLD])
    sealed = seal.close(SECRET, HERE)
    assert b"secret" not in sealed
    assert seal.open(sealed, HERE) == SECRET
    assert seal.close(SECRET, HERE) != sealed


def test_old_and_new_key_both_open() -> None:
    before, both, after = Seal([OLD]), Seal([NEW, OLD]), Seal([NEW])
    assert both.open(before.close(SECRET, HERE), HERE) == SECRET
    assert after.open(both.close(SECRET, HERE), HERE) == SECRET
    with pytest.raises(ValueError, match="another key"):
        after.open(before.close(SECRET, HERE), HERE)
    assert both.digest_key == before.digest_key != after.digest_key, "utterances sent again are still recognised"


def test_unsealed_entries_stay_readable_with_a_key() -> None:
    assert Seal().close(SECRET, HERE) == SECRET == Seal().open(SECRET, HERE)
    assert Seal([NEW]).open(SECRET, HERE) == SECRET
    with pytest.raises(ValueError, match="another key"):
        Seal().open(Seal([NEW]).close(SECRET, HERE), HERE)


def test_what_was_changed_is_not_opened() -> None:
    sealed = bytearray(Seal([NEW]).close(SECRET, HERE))
    sealed[-1] ^= 1
    with pytest.raises(ValueError, match="changed"):
        Seal([NEW]).open(bytes(sealed), HERE)


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (Place("outcome", "acme/standup", "e1"), "another place"),
        (Place("said", "other/standup", "e1"), "another place"),
        (Place("said", "acme/standup", "e2"), "another epoch"),
        (Place("said", "acme/standup", ""), "another epoch"),
    ],
)
def test_what_is_copied_is_not_opened(there: Place, why: str) -> None:
    seal = Seal([NEW])
    with pytest.raises(SealError, match=why):
        seal.open(seal.close(SECRET, HERE), there)


def test_part_may_be_any_where_it_is_not_known() -> None:
    seal = Seal([NEW])
    sealed = seal.close(SECRET, HERE)
    assert seal.open(sealed, Place("said", "acme/standup", None)) == SECRET
    with pytest.raises(SealError, match="another place"):
        seal.open(sealed.replace(b"e1", b"e2"), Place("said", "acme/standup", None))


@pytest.mark.parametrize("size", range(30))
def test_torn_text_is_refused(size: int) -> None:
    seal = Seal([NEW])
    with pytest.raises(SealError):
        seal.open(seal.close(SECRET, HERE)[: size + 1], HERE)


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "store.key"
    new, old = (base64.b64encode(key).decode() for key in (NEW, OLD))
    file.write_text(f"{new}\n{old}\n")
    assert read_keys(file) == (NEW, OLD)


@pytest.mark.parametrize(
    "text", ["", "no key", base64.b64encode(b"short").decode(), base64.b64encode(bytes(32)).decode() + " x"]
)
def test_file_without_good_keys_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "store.key"
    file.write_text(text)
    with pytest.raises(StartupError, match="openssl rand -base64 32"):
        read_keys(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"nowhere\.key"):
        read_keys(tmp_path / "nowhere.key")
