"""Public keys of an address: which ones are used, and when it is asked."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import get_default_algorithms

from gateway.identity import jwks
from gateway.identity.jwks import PublicKeys, fetch, parse
from gateway.identity.tokens import verify
from tests.identity.forging import AUDIENCE, ISSUER, private, token

PUBLIC = ("RS256", "ES256", "EdDSA")


def jwk(algorithm: str = "ES256", material: Any = None, **more: object) -> dict[str, object]:
    """A public key as an address gives it; its `kid` is the algorithm's name."""
    public = private(algorithm).public_key() if material is None else material
    signer: Any = get_default_algorithms()[algorithm]
    return {**signer.to_jwk(public, as_dict=True), "kid": algorithm, **more}


def key_set(*keys: object) -> bytes:
    return json.dumps({"keys": keys}).encode()


# ---------------------------------------------------------------- which keys


@pytest.mark.parametrize("more", [{}, {"use": "sig", "key_ops": ["verify"], "x5t": "a"}], ids=str)
@pytest.mark.parametrize("algorithm", PUBLIC)
def test_each_kind_verifies_its_tokens(algorithm: str, more: dict[str, object]) -> None:
    for named in (jwk(algorithm, **more), jwk(algorithm, alg=algorithm, **more)):
        found = parse(key_set(named), ISSUER)
        assert {kid: (key.kid, key.algorithm, key.issuer, key.tenant) for kid, key in found.items()} == {
            algorithm: (algorithm, algorithm, ISSUER, None)
        }
        assert verify(token(algorithm=algorithm), found.get, audience=AUDIENCE).sub == "ana"


@pytest.mark.parametrize("algorithm", PUBLIC)
def test_what_is_private_is_left(algorithm: str) -> None:
    signer: Any = get_default_algorithms()[algorithm]
    whole = {**signer.to_jwk(private(algorithm), as_dict=True), "kid": "k"}
    assert "d" in whole
    material = parse(key_set(whole), ISSUER)["k"].material
    raw = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert material.public_bytes(*raw) == private(algorithm).public_key().public_bytes(*raw)


USELESS: dict[str, object] = {
    "no kid": {name: value for name, value in jwk().items() if name != "kid"},
    "a kid that is no text": jwk(kid=1),
    "for encryption": jwk(use="enc"),
    "for what": jwk(use=None),
    "another algorithm of its kind": jwk("RS256", alg="PS256"),
    "the algorithm of another kind": jwk("RS256", alg="ES256"),
    "a shared secret": {
        "kty": "oct",
        "kid": "k",
        "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA",
        "alg": "HS256",
    },
    "a secret as an elliptic key": {"kty": "EC", "crv": "P-256", "kid": "k", "k": "c2VjcmV0"},
    "a short key": jwk("RS256", rsa.generate_private_key(65_537, 1_024).public_key()),  # noqa: S505
    "another curve": jwk("ES256", ec.generate_private_key(ec.SECP384R1()).public_key()),
    "not on the curve": jwk(y="AAAA"),
    "a curve of the wrong kind": jwk("EdDSA", crv="P-256"),
    "an unknown kind": jwk(kty="XYZ"),
    "a kind that is a list": jwk(kty=["EC"]),
    "a curve that is an object": jwk(crv={}),
    "no coordinates": {"kty": "EC", "crv": "P-256", "kid": "k"},
    "coordinates that are no text": jwk(x=[], y={}),
    "no numbers": jwk("RS256", n="", e=""),
    "numbers that are none": jwk("RS256", n="ä!", e=None),
    "no object": "key",
    "nothing": None,
}


@pytest.mark.parametrize("useless", USELESS.values(), ids=USELESS)
def test_useless_keys_do_not_spoil_the_others(useless: object) -> None:
    assert list(parse(key_set(useless, jwk("EdDSA", kid="good"), useless), ISSUER)) == ["good"]
    with pytest.raises(ValueError, match=r"^no usable key$"):
        parse(key_set(useless), ISSUER)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": 5}',
        b"\xff",
        b"<html>",
        key_set(),
    ],
    ids=str,
)
def test_what_is_no_key_set(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(content, ISSUER)


fields = st.dictionaries(
    st.sampled_from(["kty", "crv", "kid", "x", "y", "n", "e", "use", "alg", "d"]),
    st.none() | st.integers() | st.text(max_size=5) | st.lists(st.text(), max_size=2),
    max_size=3,
)


@given(st.sampled_from(PUBLIC), fields)
def test_no_key_spoils_another(algorithm: str, changed: dict[str, object]) -> None:
    assert "good" in parse(key_set({**jwk(algorithm), **changed}, jwk("EdDSA", kid="good")), ISSUER)


# ---------------------------------------------------------------- when the address is asked


class Address:
    """An address that answers what it is told to, and the clock of whoever asks it."""

    def __init__(self) -> None:
        self.content: bytes | Exception = key_set(jwk("EdDSA", kid="a"))
        self.asked = 0
        self.now_s = 1_000.0
        self.open = asyncio.Event()
        self.open.set()
        self.keys = PublicKeys(ISSUER, self._fetch, lambda: self.now_s)

    async def _fetch(self) -> bytes:
        self.asked += 1
        await self.open.wait()
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    async def knows(self, kid: str) -> bool:
        await self.keys.look_for(kid)
        return self.keys.find(kid) is not None

    async def is_asked(self, times: int) -> bool:
        """Whether it has been asked so often, once nobody waits for it any more."""
        while self.keys._asking is not None:
            await asyncio.sleep(0.001)
        return self.asked == times


async def test_nothing_is_asked_before_it_is_needed() -> None:
    address = Address()
    assert address.keys.find("a") is None
    assert address.asked == 0
    assert await address.knows("a")
    assert address.asked == 1


async def test_fresh_key_is_not_fetched_again() -> None:
    address = Address()
    await address.knows("a")
    address.now_s += 299.9
    assert await address.knows("a")
    assert address.asked == 1
    address.now_s += 0.1
    address.content = key_set(jwk("EdDSA", kid="b"))
    assert await address.knows("a"), "it is good until there is an answer"
    assert await address.is_asked(2)
    assert not await address.knows("a")
    assert await address.knows("b")
    assert await address.is_asked(2)


async def test_whoever_has_a_known_key_does_not_wait() -> None:
    address = Address()
    await address.knows("a")
    address.now_s += 300
    address.open.clear()
    assert await address.knows("a")
    address.open.set()
    assert await address.is_asked(2)


async def test_invented_keys_are_rarely_asked_for() -> None:
    address = Address()
    for number in range(10):
        assert not await address.knows(f"invented {number}")
    assert address.asked == 1
    address.now_s += 14.9
    assert not await address.knows("b")
    address.now_s += 0.1
    address.content = key_set(jwk("EdDSA", kid="b"))
    assert await address.knows("b")
    assert address.asked == 2


@pytest.mark.parametrize(
    "failure",
    [OSError("secret address"), b"{", key_set(), TimeoutError(), RuntimeError("secret"), b"[" * 100_000],
    ids=lambda failure: repr(failure)[:20],
)
async def test_while_the_address_fails_the_keys_stay(
    failure: bytes | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    address = Address()
    assert await address.knows("a")
    good, address.content = address.content, failure
    address.now_s += 300
    assert await address.knows("a")
    assert await address.is_asked(2)
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.message.startswith("the address of the public keys does not answer with keys (")
    assert "secret" not in caplog.text
    # It is asked again after a pause that doubles up to the usual one.
    for times, pause_s in enumerate((1, 2, 4, 8, 15, 15), 2):
        address.now_s += pause_s - 0.1
        assert await address.knows("a")
        assert await address.is_asked(times)
        address.now_s += 0.1
        assert await address.knows("a")
        assert await address.is_asked(times + 1)
    assert "failures in a row: 7; it may be asked again in 15 s" in caplog.text
    address.content = good
    address.now_s += 15
    assert await address.knows("a")
    assert await address.is_asked(9)
    # All is as before.
    address.now_s += 300
    address.content = failure
    await address.knows("a")
    await address.is_asked(10)
    assert "failures in a row: 1; it may be asked again in 1 s" in caplog.records[-1].message


async def _begun(address: Address) -> None:
    while not address.asked:
        await asyncio.sleep(0.001)


async def test_concurrent_lookups_share_one_request() -> None:
    address = Address()
    address.open.clear()
    first = [asyncio.create_task(address.knows("a")) for _ in range(20)]
    await _begun(address)
    later = [asyncio.create_task(address.knows("a")) for _ in range(20)]
    await asyncio.sleep(0)
    address.open.set()
    assert all(await asyncio.gather(*first, *later))
    assert address.asked == 1


async def test_nobody_waits_for_keys_that_others_invent() -> None:
    address = Address()
    await address.knows("a")
    address.asked = 0
    address.now_s += 15
    address.open.clear()
    other = asyncio.create_task(address.knows("invented"))
    await _begun(address)
    assert await address.knows("a")
    address.open.set()
    assert not await other


async def test_whoever_leaves_does_not_take_the_answer_away() -> None:
    address = Address()
    address.open.clear()
    first = asyncio.create_task(address.knows("a"))
    await _begun(address)
    second = asyncio.create_task(address.knows("a"))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    address.open.set()
    assert await second
    assert address.asked == 1


# ---------------------------------------------------------------- over HTTP


@contextmanager
def serving(status: int, content: bytes) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Location", "http://127.0.0.1:1/")  # nobody follows it
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/keys"
        finally:
            server.shutdown()
            thread.join()


async def test_keys_over_http() -> None:
    with serving(200, key_set(jwk("EdDSA", kid="a"))) as url:
        keys = PublicKeys(ISSUER, lambda: fetch(url))
        await keys.look_for("a")
    assert keys.find("a") is not None


@pytest.mark.parametrize("more", [0, 1, 1_000_000])
async def test_an_immense_answer(more: int) -> None:
    with serving(200, b"x" * (jwks._SET_BYTES + more)) as url:
        if not more:
            assert len(await fetch(url)) == jwks._SET_BYTES
        else:
            with pytest.raises(ValueError, match=r"^more than 262144 bytes$"):
                await fetch(url)


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """An address that answers with this, and then for ever with a byte now and then."""
    gone = threading.Event()

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.sendall(head)
            while not gone.wait(0.01):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/keys"
        finally:
            gone.set()
            thread.join()


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "head", [b"", HEAD, HEAD + b"X: ", HEAD + b"\r\n", HEAD + b"Content-Length: 9999999\r\n\r\n"]
)
async def test_dripping_answer_is_cut(head: bytes) -> None:
    with dripping(head) as url, pytest.raises((TimeoutError, aiohttp.ClientError)):
        await fetch(url, request_s=0.2)


@pytest.mark.parametrize("status", [302, 307, 404, 500])
async def test_errors_of_the_address(status: int) -> None:
    with serving(status, key_set(jwk())) as url, pytest.raises(ValueError, match=str(status)):
        await fetch(url)
