"""Tokens as others write them: valid ones, and what somebody may try instead."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from gateway.identity.tokens import Key

NOW = 2_000_000_000
ISSUER = "https://issuer.example"
AUDIENCE = "gateway.example"
ALGORITHMS = ("HS256", "RS256", "ES256", "EdDSA")

# A field with this value is left out.
MISSING = object()

_SIGNERS = get_default_algorithms()


@cache
def private(algorithm: str) -> Any:
    """The private key of all tokens of this algorithm: made once, as this takes a while."""
    match algorithm:
        case "RS256":
            return rsa.generate_private_key(65_537, 2_048)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
    return b"the secret that only tests know of"


def key(algorithm: Any = "HS256", tenant: str | None = None) -> Key:
    """What verifies the tokens of this algorithm; its `kid` is the algorithm's name."""
    own = private(algorithm)
    return Key(algorithm, algorithm, own if isinstance(own, bytes) else own.public_key(), ISSUER, tenant)


def find(kid: str) -> Key | None:
    return key(kid) if kid in ALGORITHMS else None


def claims(gw: object = None, **changes: object) -> dict[str, object]:
    """What a valid token says, with these changes."""
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "jti": "t1", "iat": NOW, "exp": NOW + 600}
    return _changed(said, {"gw": {"roles": ["read"]} if gw is None else gw, **changes})


def token(
    payload: Mapping[str, object] | bytes | None = None,
    algorithm: str = "HS256",
    *,
    # Who signs, if not the key that the algorithm belongs to.
    signer: Any = None,
    raw_header: bytes | None = None,
    **header: Any,
) -> str:
    """A token that is signed, whatever it says. header: changes to a valid one."""
    valid = {"alg": algorithm, "kid": algorithm, "typ": "JWT"}
    head = json.dumps(_changed(valid, header)).encode() if raw_header is None else raw_header
    body = payload if isinstance(payload, bytes) else json.dumps(claims() if payload is None else payload).encode()
    return signed(f"{encoded(head)}.{encoded(body)}", algorithm, signer)


def signed(text: str, algorithm: str = "HS256", signer: Any = None) -> str:
    """A header and contents, however they are written, with a signature."""
    signature = _SIGNERS[algorithm].sign(text.encode(), private(algorithm) if signer is None else signer)
    return f"{text}.{encoded(signature)}"


def encoded(data: bytes) -> str:
    """base64url, as in tokens."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _changed(what: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in {**what, **changes}.items() if value is not MISSING}
