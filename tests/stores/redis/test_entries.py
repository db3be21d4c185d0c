"""What is written into the store, and what is read from it."""

from __future__ import annotations

import msgspec
import pytest

from gateway.domain.log import Owed, Page, Publication, Recent, Said, Translated, Unfinished, Untranslated
from gateway.stores.redis import entries
from gateway.stores.redis.entries import Position, Push
from gateway.stores.sealing import Seal
from tests.logs import translated, untranslated, utterance

HELLO = utterance("hello\nworld", id="1")
HERE = Position("e1", 0, 1, 9)
IN = "acme/standup"


@pytest.fixture(params=[(), (bytes(32),)], ids=["plain", "sealed"])
def seal(request: pytest.FixtureRequest) -> Seal:
    return Seal(request.param)


@pytest.mark.parametrize("outcome", [translated("やあ\n"), untranslated("no luck")])
def test_an_outcome_is_read_as_it_was_written(outcome: Translated | Untranslated, seal: Seal) -> None:
    payload = entries.encode(outcome, seal, IN, "e1")
    page = entries.page_of(IN, HERE, [(b"2-0", [b"d", payload, b"t", b"1700"])], seal)
    assert page == Page("e1", 1, 9, (Publication(2, 1_700, outcome),))
    assert entries.push_of(IN, b"e1 2 1700 -\n" + payload, seal) == Push("e1", 2, page.publications[0])


@pytest.mark.parametrize(("written", "languages"), [(b"", ()), (b"de,zh-Hant", ("de", "zh-Hant"))])
def test_an_utterance_is_read_with_its_languages(written: bytes, languages: tuple[str, ...], seal: Seal) -> None:
    payload = entries.encode(HELLO, seal, IN, "e1")
    fields = [b"d", payload, b"t", b"1700", b"l", written, b"k", b"key", b"s", b"en"]
    page = entries.page_of(IN, HERE, [(b"7-0", fields)], seal)
    assert page.publications == (Publication(7, 1_700, Said(HELLO, languages)),)
    assert entries.push_of(IN, b"e1 7 1700 %b\n%b" % (written, payload), seal).publication == page.publications[0]


def test_what_a_newer_gateway_has_added_is_passed_over(seal: Seal) -> None:
    newer = msgspec.msgpack.encode({**msgspec.to_builtins(HELLO), "mood": "cheerful"})
    assert entries.push_of(IN, b"e1 7 1700 \n" + newer, seal).publication == Publication(7, 1_700, Said(HELLO))


def test_unreadable_entry_is_left_out_and_unlogged(caplog: pytest.LogCaptureFixture, seal: Seal) -> None:
    unknown = msgspec.msgpack.encode({"type": "sung", "text": "a secret"})
    assert entries.push_of(IN, b"e1 7 1700 -\n" + unknown, seal) == Push("e1", 7, None)
    known = entries.encode(translated("やあ"), seal, IN, "e1")
    page = entries.page_of(
        IN, HERE, [(b"7-0", [b"d", unknown, b"t", b"1"]), (b"8-0", [b"d", known, b"t", b"2"])], seal
    )
    assert [each.offset for each in page.publications] == [8]
    assert entries.unfinished_of((b"standup", b"7", b"ja", 1, b"", unknown, b""), seal) is None
    assert "offset 7" in caplog.text
    assert "secret" not in caplog.text


def test_what_is_unfinished(seal: Seal) -> None:
    reply = (b"acme/standup", b"7", b"de,ja", 2, b"acme", entries.encode(HELLO, seal, IN, "e1"), b"e1")
    assert entries.unfinished_of(reply, seal) == Unfinished("acme/standup", HELLO, 7, ("de", "ja"), 2, "acme")


def test_what_is_recent(seal: Seal) -> None:
    payload = entries.encode(HELLO, seal, IN, "e1")
    entry = (b"9-0", [b"d", payload, b"t", b"1700", b"l", b"ja", b"k", b"key", b"s", b"en"])
    unreadable = [b"4", b"ja", b"", b"unreadable"]
    reply = [[b"e1", b"0", b"3", b"9", b"0"], [entry], [[b"2", b"de,ja", b"fr:1,it:0", payload], unreadable]]
    assert entries.recent_of(IN, reply, seal) == Recent(
        Page("e1", 3, 9, (Publication(9, 1_700, Said(HELLO, ("ja",))),)),
        (Owed(HELLO, 2, ("de", "ja"), {"fr": True, "it": False}),),
    )


def test_a_position() -> None:
    assert entries.position_of([b"e1", b"0", b"3", b"2", b"0", b""]) == Position("e1", 0, 3, 2)
    assert entries.position_of([b"e1", b"0", b"3", b"2", b"1", b""]) == Position("e1", 0, 3, 2, recorded=False)


def test_digests_tell_keys_and_texts_apart() -> None:
    keys = [("ana", "1"), ("an", "a1"), ("ana1", ""), ("ben", "1")]
    assert len({entries.key_digest(key) for key in keys}) == len(keys)
    texts = [utterance("hello"), utterance("hello "), utterance("hello", lang="de")]
    assert len({entries.text_digest(each) for each in texts}) == len(texts)
    assert entries.text_digest(HELLO) == entries.text_digest(utterance(HELLO.text, id="2", rev=9))
    assert len(entries.text_digest(HELLO)) == len(entries.key_digest(("", ""))) == 16


def test_with_a_key_nobody_can_try_texts() -> None:
    assert entries.text_digest(HELLO, Seal([bytes(32)]).digest_key) != entries.text_digest(HELLO)


def test_what_is_sealed_with_another_key_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    payload = entries.encode(HELLO, Seal([bytes(32)]), IN, "e1")
    assert entries.push_of(IN, b"e1 7 1700 \n" + payload, Seal()).publication is None
    assert "another key" in caplog.text
