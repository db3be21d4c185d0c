#!/bin/sh
# Where a SubRip time has one digit behind the comma, as some devices write it, libraries do not agree what it is.
# pysubs2 1.8.1 reads ",5" as half a second; srt 3.5.3 and pycaption 2.3.14 read 5 ms. A cue is 495 ms early or late.
# Guess before: all three read a decimal fraction.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysubs2==1.8.1 srt==3.5.3 pycaption==2.3.14
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import pysubs2
import srt
from pycaption import SRTReader

text = "1\n00:00:01,5 --> 00:00:03,000\nGood morning.\n"
print("pysubs2", pysubs2.SSAFile.from_string(text)[0].start)
print("srt", round(next(srt.parse(text)).start.total_seconds() * 1000))
print("pycaption", SRTReader().read(text).get_captions("en-US")[0].start / 1000)
PYTHON
)
expected=$(cat <<'SEEN'
pysubs2 1500
srt 1005
pycaption 1005.0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
