#!/bin/sh
# webvtt-py 0.6.0 takes tags out of a cue's text but leaves its entities, and writes them into SubRip, which has none:
# "Q&amp;A at 3 &lt; 4" is what a player shows.
# Guess before: `caption.text` is plain text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check webvtt-py==0.6.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import io
import webvtt

file = webvtt.from_string("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ana>Q&amp;A, <i>3</i> &lt; 4\n")
print(file[0].text, "|", file[0].voice)
output = io.StringIO()
file.write(output, format="srt")
print(output.getvalue().splitlines()[2])
PYTHON
)
expected=$(cat <<'SEEN'
Q&amp;A, 3 &lt; 4 | Ana
Q&amp;A, 3 &lt; 4
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
