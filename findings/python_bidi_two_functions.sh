#!/bin/sh
# python-bidi 0.6.12 has two functions `get_display`, one in `bidi` (Rust) and one in `bidi.algorithm` (Python), that do
# not give the same. The first does not mirror brackets, and puts the line break of two lines in front of both of them:
# the last line of a caption is glued to the first.
# Guess before: the same result from both, and lines stay lines.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check python-bidi==0.6.12
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import bidi
import bidi.algorithm

for text in ("שלום (עולם)", "שלום\nAna: 12"):
    for name, display in (("bidi", bidi.get_display), ("bidi.algorithm", bidi.algorithm.get_display)):
        print(name, ascii(display(text)))
PYTHON
)
expected=$(cat <<'SEEN'
bidi ')\u05dd\u05dc\u05d5\u05e2( \u05dd\u05d5\u05dc\u05e9'
bidi.algorithm '(\u05dd\u05dc\u05d5\u05e2) \u05dd\u05d5\u05dc\u05e9'
bidi '\n\u05dd\u05d5\u05dc\u05e9Ana: 12'
bidi.algorithm '\u05dd\u05d5\u05dc\u05e9\nAna: 12'
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
