#!/bin/sh
# joserfc 1.8.0 skips a key of a kind that it does not know when it reads a set, as the standard advises, but not a key
# of a known kind on a curve that it does not know (Brainpool here, of European identity cards): the whole set fails,
# with a bare KeyError. So one new key at an identity provider stops all logins. PyJWT 2.15.1 skips both.
# Guess before: both skip both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check joserfc==1.8.0 PyJWT==2.15.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import jwt
from joserfc.jwk import KeySet, RSAKey

good = RSAKey.generate_key(2048).as_dict(private=False, kid="good")
point = {"x": "AA", "y": "AA", "kid": "new"}
for name, new in (
    ("new kind", {"kty": "AKP", "alg": "ML-DSA-65", "pub": "AA", "kid": "new"}),
    ("new curve", {"kty": "EC", "crv": "brainpoolP256r1", **point}),
):
    keys = {"keys": [new, good]}
    try:
        print(name, "joserfc", [key.kid for key in KeySet.import_key_set(keys).keys])
    except Exception as error:
        print(name, "joserfc", type(error).__name__)
    print(name, "PyJWT", [key.key_id for key in jwt.PyJWKSet.from_dict(keys).keys])
PYTHON
)
expected=$(cat <<'SEEN'
new kind joserfc ['good']
new kind PyJWT ['good']
new curve joserfc KeyError
new curve PyJWT ['good']
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
