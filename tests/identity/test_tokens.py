"""Which tokens are valid, and that everything else is refused in one and the same way, without a trace."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.domain.errors import Unauthenticated
from gateway.domain.grants import Grant
from gateway.domain.languages import NAMES
from gateway.domain.roles import ROLES
from gateway.identity.tokens import INVITE_MAX_S, TOKEN_BYTES, Claims, Key, sign, verify
from tests.identity.forging import (
    ALGORITHMS,
    AUDIENCE,
    ISSUER,
    MISSING,
    NOW,
    claims,
    encoded,
    find,
    key,
    private,
    signed,
    token,
)


def read(presented: str, keys: Callable[[str], Key | None] = find) -> Claims:
    return verify(presented, keys, audience=AUDIENCE)


# ---------------------------------------------------------------- what the log says


@pytest.mark.parametrize(
    ("presented", "why"),
    [
        ("nonsense", "malformed"),
        (token(raw_header=b"{}"), "malformed"),
        (token(b"[]"), "malformed"),
        (token(claims(exp=NOW - 31, iat=NOW - 600)), "expired"),
        (token(claims(iat=NOW + 60, exp=NOW + 100)), "not_yet_valid"),
        (token(claims(nbf=NOW + 60)), "not_yet_valid"),
        (token(claims(aud="another")), "wrong_audience"),
        (token(claims(iss="another")), "wrong_issuer"),
        (token(kid="another"), "unknown_key"),
        (token(kid="RS256"), "wrong_algorithm"),
        (token(signer=b"another secret that nobody here knows of"), "bad_signature"),
        # Whose it is comes first: others learn nothing.
        (token(claims(exp=NOW - 31), signer=b"another secret that nobody here knows of"), "bad_signature"),
        (token(claims(exp=NOW + 601)), "bad_claims"),
        (token(claims(jti=MISSING)), "bad_claims"),
        (token(claims(gw={"roles": ["owner"]})), "bad_claims"),
    ],
)
def test_the_reason_is_a_code(presented: str, why: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        read(presented)
    assert (refused.value.why, refused.value.message) == (why, "This gateway needs a valid token.")


# ---------------------------------------------------------------- valid


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm(algorithm: str) -> None:
    said = read(token(algorithm=algorithm))
    assert said.grant() == Grant(
        subject="ana", token_id="t1", roles=frozenset({"read"}), issued_s=NOW, expires_s=NOW + 600
    )


@pytest.mark.parametrize(
    "payload",
    [
        claims(aud=["another", AUDIENCE]),
        claims(gw={}),
        claims(favourite="blue", gw={}),
        claims(exp=NOW + 599.5, iat=NOW - 0.5),
        claims(iat=NOW - 600, exp=NOW - 29),
        claims(iat=NOW + 30, exp=NOW + 630),
        claims(nbf=NOW + 30),
        claims(nbf=NOW - 0.5),
        claims(sub="x" * 128, jti="ü" * 128),
        claims(gw={"tenant": "a" * 64, "meeting": ".a_~-9"}),
        claims(gw={"tenant": "...x", "name": "Ana Müller 🙂", "max_s": 86_400, "invite": "i"}),
    ],
    ids=str,
)
def test_valid_contents(payload: Mapping[str, object]) -> None:
    assert read(token(payload)).sub == payload["sub"]


@pytest.mark.parametrize("typ", ["JWT", "jwt", "at+JWT", MISSING])
def test_types_of_tokens(typ: object) -> None:
    assert read(token(typ=typ)).sub == "ana"


def test_a_key_has_the_longest_name() -> None:
    assert read(token(kid="k" * 128), lambda _: key()).sub == "ana"


def test_what_it_allows() -> None:
    gw = {"tenant": "acme", "meeting": "standup", "roles": ["speak", "read", "read"], "name": "Ana", "max_s": 60}
    gw |= {"langs": ["en-US", "EN", "zh_TW", "tlh"], "speaks": [], "once": True, "invite": "i1"}
    assert read(token(claims(gw))).grant() == Grant(
        tenant="acme",
        subject="ana",
        token_id="t1",
        roles=frozenset({"speak", "read"}),
        meeting="standup",
        langs=frozenset({"en", "zh-hant", "tlh"}),
        speaks=frozenset(),
        name="Ana",
        issued_s=NOW,
        expires_s=NOW + 600,
        max_s=60,
        once=True,
        invite_id="i1",
    )


def test_a_key_of_one_tenant() -> None:
    assert read(token(claims({"tenant": "acme"})), lambda _: key(tenant="acme")).gw.tenant == "acme"


def test_a_longer_life_where_it_is_allowed() -> None:
    long = token(claims(exp=NOW + INVITE_MAX_S))
    assert verify(long, find, audience=AUDIENCE, most_s=INVITE_MAX_S).exp == NOW + INVITE_MAX_S


def of_length(most: int) -> str:
    """The longest token up to this length."""
    return next(found for size in range(most, 0, -1) if len(found := token(claims(pad="x" * size))) <= most)


def test_the_longest_token() -> None:
    longest = of_length(TOKEN_BYTES)
    assert len(longest) >= TOKEN_BYTES - 1
    assert read(longest).sub == "ana"


# ---------------------------------------------------------------- refused


def public_pem() -> bytes:
    pem: bytes = private("RS256").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def unsigned(alg: str) -> str:
    return token(alg=alg).rpartition(".")[0] + "."


def raw(payload: Mapping[str, object], old: str, new: str) -> bytes:
    """JSON that no encoder writes."""
    text = json.dumps(payload)
    assert old in text
    return text.replace(old, new).encode()


def tampered(part: int, change: Callable[[str], str]) -> str:
    parts = token().split(".")
    parts[part] = change(parts[part])
    return ".".join(parts)


def appended(part: int, text: str) -> str:
    return tampered(part, lambda old: old + text)


DEEP = "[" * 1_500 + "]" * 1_500

_TIMES: dict[str, object] = {
    "true": True,
    "a string": str(NOW + 60),
    "null": None,
    "a list": [NOW],
    "negative": -1,
    "immense": 10**300,
}

GW: list[object] = [
    [],
    "read",
    {"role": ["read"]},
    {"any_meeting": True},
    {"roles": ["owner"]},
    {"roles": ["Read"]},
    {"roles": "read"},
    {"roles": [1]},
    {"roles": None},
    {"langs": "en"},
    {"langs": ["e"]},
    {"langs": ["e" * 33]},
    {"speaks": [None]},
    {"name": "x" * 81},
    {"name": "\udfff"},
    {"max_s": 0},
    {"max_s": 86_401},
    {"max_s": 1.5},
    {"max_s": True},
    {"once": 1},
    {"invite": ""},
    {"tenant": None},
]

HEADERS: dict[str, Any] = {
    "jku": "https://evil.example/keys",
    "x5u": "https://evil.example/cert",
    "jwk": {"kty": "oct", "k": "AAAA"},
    "x5c": ["AAAA"],
    "crit": ["exp"],
    "b64": True,
    "zip": "DEF",
}

BAD: dict[str, str] = {
    # How it is signed.
    **{f"alg {alg}, unsigned": unsigned(alg) for alg in ("none", "None", "NONE", "nOnE", "")},
    **{f"alg {alg}, signed": token(alg=alg) for alg in ("none", "None", "", "hs256", None, ["HS256"])},
    "no alg": token(alg=MISSING),
    "no signature": unsigned("HS256"),
    "HMAC with a public key, HS256": token(algorithm="HS256", signer=public_pem(), kid="RS256"),
    "HMAC with a public key, RS256": token(signer=public_pem(), kid="RS256", alg="RS256"),
    **{
        f"{alg} with the name of the key for {kid}": token(algorithm=alg, kid=kid)
        for alg in ALGORITHMS
        for kid in ALGORITHMS
        if alg != kid
    },
    **{
        f"{alg} with the key for {kid}": token(algorithm=alg, signer=private(kid), kid=kid)
        for alg, kid in [("HS512", "HS256"), ("HS384", "HS256"), ("RS512", "RS256"), ("PS256", "RS256")]
    },
    "another secret": token(signer=b"another secret of about the same size"),
    "another token's signature": tampered(2, lambda _: token(claims(sub="bob")).rpartition(".")[2]),
    "the first letter of the signature": tampered(2, lambda text: ("B" if text[0] == "A" else "A") + text[1:]),
    "half a signature": tampered(2, lambda text: text[:20]),
    "other contents": tampered(1, lambda _: encoded(json.dumps(claims(sub="bob")).encode())),
    "another header": tampered(0, lambda _: encoded(b'{"alg":"HS256","kid":"HS256"}')),
    # Which key.
    **{
        f"kid {name}": token(kid=kid)
        for name, kid in {
            "missing": MISSING,
            "null": None,
            "empty": "",
            "unknown": "another",
            "a number": 1,
            "a list": ["HS256"],
            "an object": {"HS256": 1},
        }.items()
    },
    # Header.
    **{f"header {name}": token(**{name: value}) for name, value in HEADERS.items()},
    **{
        f"typ {typ}": token(typ=typ)
        for typ in ("JWE", "", "JWT ", "dpop+jwt", None, 1, ["JWT"], "application/at+jwt")
    },
    # Issuer and audience.
    **{f"iss {iss}": token(claims(iss=iss)) for iss in ("https://other", "", 1, [ISSUER], None)},
    **{
        f"aud {aud}": token(claims(aud=aud))
        for aud in (
            "other",
            "",
            [],
            ["other"],
            1,
            None,
            [AUDIENCE, 1],
            {AUDIENCE: 1},
            AUDIENCE.upper(),
            f"{AUDIENCE}/invite",
        )
    },
    # Times.
    "expired": token(claims(iat=NOW - 600, exp=NOW - 30)),
    "expired long ago": token(claims(iat=1, exp=500)),
    "not yet": token(claims(nbf=NOW + 31)),
    "not for years": token(claims(nbf=NOW + 10**8)),
    "issued in the future": token(claims(iat=NOW + 31, exp=NOW + 60)),
    "a long life": token(claims(exp=NOW + 601)),
    "a slightly long life": token(claims(exp=NOW + 600.5)),
    "no life": token(claims(exp=NOW)),
    "over before it begins": token(claims(iat=NOW + 20, exp=NOW + 10)),
    **{
        f"{name} {what}": token(claims(**{name: value}))
        for name in ("iat", "exp", "nbf")
        for what, value in _TIMES.items()
    },
    **{
        f"{name} {number}": token(raw(claims(**{name: "X"}), '"X"', number))
        for name in ("iat", "exp", "nbf")
        for number in ("1e400", "-1e400", "NaN", "Infinity", "-Infinity", "1" * 5_000)
    },
    # Contents.
    **{
        f"no {name}": token(claims(**{name: MISSING})) for name in ("iss", "aud", "sub", "jti", "iat", "exp", "gw")
    },
    **{
        f"{name} {what}": token(claims(**{name: value}))
        for name in ("sub", "jti")
        for what, value in {
            "empty": "",
            "long": "x" * 129,
            "5": 5,
            "null": None,
            "half a letter": "\ud800",
        }.items()
    },
    **{f"gw {gw}"[:60]: token(claims(gw)) for gw in GW},
    **{
        f"{which} {name!r}"[:60]: token(claims({which: name}))
        for which in ("tenant", "meeting")
        for name in ("", "a/b", "/", ".", "..", "...", "x" * 65, "a b", "ä", "a\n", "a\0", "%2e", "..\n", 5)
    },
    # Form.
    "the same header twice": token(raw_header=b'{"alg":"HS256","kid":"HS256","kid":"HS256"}'),
    "the same claim twice": token(raw(claims(), '{"iss"', '{"sub": "ana", "iss"')),
    "the same field of gw twice": token(raw(claims({"once": True}), '"once"', '"once": true, "once"')),
    "a nested header": token(raw_header=f'{{"alg":"HS256","kid":{DEEP}}}'.encode()),
    "a nested claim": token(raw(claims({"roles": "X"}), '"X"', DEEP)),
    "64 KiB": token(claims(pad="x" * 65_536)),
    "a bit too long": token(claims(pad="x" * (len(of_length(TOKEN_BYTES)) * 3 // 4))),
    "64 KiB of nothing": "." * 65_536,
    "empty": "",
    "dots": "..",
    "a word": "password",
    "two parts": token().rpartition(".")[0],
    "four parts": token() + ".AAAA",
    "five parts, as an encrypted one": token() + ".AAAA.AAAA",
    "no header": tampered(0, lambda _: ""),
    "no contents": tampered(1, lambda _: ""),
    "a list as header": token(raw_header=b'["HS256"]'),
    "a list as contents": token(b"[1]"),
    "no JSON": token(b"{"),
    "a number that JSON does not know": token(raw(claims(pad="X"), '"X"', "NaN")),
    "UTF-16": token(json.dumps(claims()).encode("utf-16")),
    "bytes that are no text": token(b'{"\xff":1}'),
    **{
        f"{text!r} after part {part}": appended(part, text)
        for part in (0, 1, 2)
        for text in ("=", "==", " ", "\n", "!", "A", "\0", "é", "\ud800", "+", "%")
    },
    "white space in front": " " + token(),
    **{
        f"signed, with {text!r} after part {part}": signed(appended(part, text).rpartition(".")[0])
        for part in (0, 1)
        for text in ("=", "==", "\n", " ")
    },
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tokens_are_refused_without_a_trace(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert_refused(BAD[name], caplog)


def assert_refused(bad: str, caplog: pytest.LogCaptureFixture, keys: Callable[[str], Key | None] = find) -> None:
    with pytest.raises(Unauthenticated) as refused:
        read(bad, keys)
    assert refused.value.message == "This gateway needs a valid token."
    said = "".join(traceback.format_exception(refused.value)) + caplog.text
    assert said.count("Traceback") == 1
    assert [part for part in (bad, *bad.split(".")) if len(part) > 8 and part in said] == []


@pytest.mark.parametrize(
    ("payload", "header", "only_key"),
    [
        (claims({"tenant": "acme"}), {"kid": "k" * 129}, key()),
        (claims({"tenant": "acme"}), {}, key(tenant="other")),
        (claims({}), {}, key(tenant="acme")),
        (claims({"tenant": "ACME"}), {}, key(tenant="acme")),
    ],
    ids=["a kid that is too long", "another tenant's key", "no tenant, a tenant's key", "the tenant in capitals"],
)
def test_keys_that_may_not(
    payload: Mapping[str, object], header: dict[str, Any], only_key: Key, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert_refused(token(payload, **header), caplog, lambda _: only_key)


def test_a_key_is_not_shown() -> None:
    assert repr(key(tenant="acme")) == "Key('HS256', HS256, …)"


# ---------------------------------------------------------------- properties

names = st.from_regex(r"\A(?!\.+\Z)[A-Za-z0-9._~-]{1,64}\Z")
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)
langs = st.none() | st.frozensets(st.sampled_from(sorted(NAMES)))
grants = st.builds(
    Grant,
    tenant=names,
    subject=texts,
    token_id=texts,
    roles=st.frozensets(st.sampled_from(sorted(ROLES))),
    meeting=st.none() | names,
    langs=langs,
    speaks=langs,
    name=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    issued_s=st.just(float(NOW)),
    expires_s=st.integers(NOW + 1, NOW + 600).map(float),
    max_s=st.none() | st.integers(1, 86_400),
    once=st.booleans(),
    invite_id=st.just("") | texts,
)


@given(grants)
def test_what_is_signed_is_what_is_verified(grant: Grant) -> None:
    said = Claims.of_grant(grant, issuer=ISSUER, audience=AUDIENCE)
    found = read(sign(said, key()))
    assert (found, found.grant()) == (said, grant)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": ""},
        {"subject": "\ud800"},
        {"token_id": ""},
        {"tenant": "a/b"},
        {"tenant": "a\n"},
        {"meeting": ".."},
        {"roles": frozenset({"owner"})},
        {"langs": frozenset({"e"})},
        {"name": "x" * 81},
        {"max_s": 0.5},
        {"langs": frozenset(map(str, range(10_000, 12_000)))},
    ],
    # A set has another order in each process.
    ids=lambda change: str(change) if len(str(change)) < 40 else f"long {next(iter(change))}",
)
def test_what_no_token_may_say(change: dict[str, object]) -> None:
    valid = Grant(subject="ana", token_id="t1", issued_s=NOW, expires_s=NOW + 60)
    with pytest.raises(ValueError, match=r"^(Expected|Invalid|'utf-8'|it would)") as refused:
        sign(Claims.of_grant(replace(valid, **change), issuer=ISSUER, audience=AUDIENCE), key())
    assert "\n" not in str(refused.value)


changes = st.lists(
    st.tuples(st.sampled_from(["flip", "insert", "delete"]), st.integers(0, 2**20), st.integers(1, 255)),
    min_size=1,
    max_size=4,
)


@given(st.sampled_from(ALGORITHMS), changes)
def test_a_changed_token_says_what_it_said_or_nothing(algorithm: str, todo: list[tuple[str, int, int]]) -> None:
    original = token(algorithm=algorithm)
    letters = bytearray(original.encode())
    for what, where, byte in todo:
        place = where % len(letters)
        if what == "flip":
            letters[place] ^= byte
        elif what == "insert":
            letters.insert(place, byte)
        else:
            del letters[place]
    try:
        said = read(changed := letters.decode("latin-1"))
    except Unauthenticated:
        return
    # The last letter of a signature has bits that mean nothing.
    assert changed[:-1] == original[:-1]
    assert said == read(original)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_last_letter_changes_only_the_spelling(algorithm: str) -> None:
    original = token(algorithm=algorithm)
    ends = [
        original[:-1] + letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    ]
    valid = [end for end in ends if _reads(end)]
    assert original in valid
    assert len({read(end).jti for end in valid}) == 1


def _reads(presented: str) -> bool:
    try:
        return bool(read(presented))
    except Unauthenticated:
        return False


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
headers = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64"]), json_values, max_size=2)
contents = st.dictionaries(
    st.sampled_from(["iss", "aud", "sub", "jti", "iat", "exp", "nbf", "gw"]), json_values, max_size=2
)


@given(headers, contents)
def test_anything_signed_is_read_or_refused(header: dict[str, Any], changed: dict[str, object]) -> None:
    try:
        read(token({**claims(), **changed}, **header))
    except Unauthenticated as error:
        assert error.message == "This gateway needs a valid token."
