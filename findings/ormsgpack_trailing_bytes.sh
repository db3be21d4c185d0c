#!/bin/sh
# ormsgpack 1.13.1 reads the first object of what it is given and ignores the rest: of two messages that arrived in one
# read the second is lost without a word. msgpack 1.2.4 and msgspec 0.22.0 raise.
# Guess before: it raises, as they do.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ormsgpack==1.13.1 msgpack==1.2.4 msgspec==0.22.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import msgpack
import msgspec
import ormsgpack

two = ormsgpack.packb({"id": 1}) + ormsgpack.packb({"id": 2})
for name, unpack in (("ormsgpack", ormsgpack.unpackb), ("msgpack", msgpack.unpackb), ("msgspec", msgspec.msgpack.decode)):
    try:
        print(name, unpack(two))
    except Exception as error:
        print(name, type(error).__name__)
PYTHON
)
expected=$(cat <<'SEEN'
ormsgpack {'id': 1}
msgpack ExtraData
msgspec DecodeError
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
