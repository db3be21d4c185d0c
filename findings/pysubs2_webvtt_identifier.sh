#!/bin/sh
# pysubs2 1.8.1 reads the identifier of a WebVTT cue as the last line of the cue before it.
# The first cue's identifier is dropped, every later one is shown to people. Entities are not decoded either: a caption
# says "Tom &amp; Jerry", and goes on saying so in SubRip, which knows no entities. The speaker of <v Ana> is lost.
# Guess before: identifiers are dropped everywhere, entities are decoded, the speaker becomes the event's name.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysubs2==1.8.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import pysubs2

text = """WEBVTT

first
00:01.000 --> 00:02.000
<v Ana>Tom &amp; Jerry

second
00:03.000 --> 00:04.000
Good morning.
"""
for event in pysubs2.SSAFile.from_string(text):
    print(repr(event.text), repr(event.name))
PYTHON
)
expected=$(cat <<'SEEN'
'Tom &amp; Jerry\\N\\Nsecond' ''
'Good morning.' ''
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
