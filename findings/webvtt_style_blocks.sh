#!/bin/sh
# ttconv 1.2.3 writes the colour of a SubRip text as a STYLE block of WebVTT. node-webvtt 2.0.0 (npm) refuses the whole
# file then ("Cue identifier needs to be followed by timestamp"), unless told not to be strict. With a cue that is
# called "NOTEBOOK" it says nothing, and leaves the cue out: to it, whatever begins with NOTE is a comment.
# Guess before: blocks that a reader does not know are skipped; NOTE is a word.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ttconv==1.2.3
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" node-webvtt@2.0.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const { parse } = createRequire(import.meta.url)("node-webvtt");
const styled = readFileSync("styled.vtt", "utf8");
try {
  parse(styled);
} catch (error) {
  console.log(error.message);
}
console.log(JSON.stringify(parse(styled, { strict: false }).cues.map((cue) => cue.text)));
const named = (name) => parse(`WEBVTT\n\n${name}\n00:01.000 --> 00:02.000\nHello\n`).cues.length;
console.log(named("BOOK"), named("NOTEBOOK"));
JAVASCRIPT
"$folder/venv/bin/python" - >styled.vtt 2>/dev/null <<'PYTHON'
import io
from ttconv.srt.reader import to_model
from ttconv.vtt.writer import from_model

text = '1\n00:00:01,000 --> 00:00:02,000\n<font color="#ff0000">Hello</font>\n'
print(from_model(to_model(io.StringIO(text))))
PYTHON
seen=$(
    sed -n 3p styled.vtt
    node look.mjs
)
expected=$(cat <<'SEEN'
STYLE
Cue identifier needs to be followed by timestamp (cue #0)
["<c.red>Hello</c>"]
1 0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
