#!/bin/sh
# pycaption 2.3.14 writes a letter that CEA-608 has no code for (Japanese, Chinese) as a pound sign into SCC, and says
# nothing.
# Guess before: it raises, or writes a question mark.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycaption==2.3.14
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from pycaption import SCCReader, SCCWriter, SRTReader

text = "1\n00:00:01,000 --> 00:00:02,000\nA 日本\n\n2\n00:00:08,000 --> 00:00:09,000\nB\n"
again = SCCReader().read(SCCWriter().write(SRTReader().read(text)))
for caption in again.get_captions("en-US"):
    print(round(caption.start / 1e6), round(caption.end / 1e6), caption.get_text())
PYTHON
)
expected=$(cat <<'SEEN'
1 2 A ££
8 9 B
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
