"""What the store is given of what people said, with and without keys."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

import msgspec
import pytest

from gateway.domain.errors import StartupError
from gateway.stores.sealing import Seal, read_keys
from tests.logs import utterance

OLD, NEW = secrets.token_bytes(32), secrets.token_bytes(32)
SECRET = msgspec.msgpack.encode(utterance("a secret"))


def test_what_is_sealed_can_be_opened_and_tells_nothing() -> None:
    seal = Seal([OLD])
    sealed = seal.close(SECRET)
    assert b"secret" not in sealed
    assert seal.open(sealed) == SECRET
    assert seal.close(SECRET) != sealed


def test_old_and_new_key_both_open() -> None:
    before, both, after = Seal([OLD]), Seal([NEW, OLD]), Seal([NEW])
    assert both.open(before.close(SECRET)) == SECRET
    assert after.open(both.close(SECRET)) == SECRET
    with pytest.raises(ValueError, match="another key"):
        after.open(before.close(SECRET))
    assert both.digest_key == before.digest_key != after.digest_key, "utterances sent again are still recognised"


def test_unsealed_entries_stay_readable_with_a_key() -> None:
    assert Seal().close(SECRET) == SECRET == Seal().open(SECRET)
    assert Seal([NEW]).open(SECRET) == SECRET
    with pytest.raises(ValueError, match="another key"):
        Seal().open(Seal([NEW]).close(SECRET))


def test_what_was_changed_is_not_opened() -> None:
    sealed = bytearray(Seal([NEW]).close(SECRET))
    sealed[-1] ^= 1
    with pytest.raises(ValueError, match="changed"):
        Seal([NEW]).open(bytes(sealed))


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "store.key"
    file.write_text("\n".join(base64.b64encode(key).decode() for key in (NEW, OLD)) + "\n")
    assert read_keys(file) == (NEW, OLD)


@pytest.mark.parametrize("text", ["", "no key", base64.b64encode(b"short").decode()])
def test_file_without_good_keys_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "store.key"
    file.write_text(text)
    with pytest.raises(StartupError, match="openssl rand -base64 32"):
        read_keys(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"nowhere\.key"):
        read_keys(tmp_path / "nowhere.key")
