#!/bin/sh
# safetensors 0.8.0 writes the keys of `metadata` in another order at each save: the same weights with the same notes
# are never the same file, so a digest does not tell whether a model has changed. Without metadata the bytes are the
# same.
# Guess before: the same bytes, as the order of a Python dictionary is fixed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import hashlib

import numpy
from safetensors.numpy import save

notes = {name: "x" for name in "abcdefgh"}
for metadata in (None, notes):
    digests = {hashlib.sha256(save({"w": numpy.zeros(2)}, metadata=metadata)).digest() for _ in range(20)}
    print("notes" if metadata else "no notes", "one file" if len(digests) == 1 else "several files")
PYTHON
)
expected=$(cat <<'SEEN'
no notes one file
notes several files
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
