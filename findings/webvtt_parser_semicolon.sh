#!/bin/sh
# webvtt-parser 2.2.0 (npm), which is also used to validate WebVTT, leaves the semicolon of an escape in the text:
# "Q&amp;A" is read as "Q&;A", without an error, and written again with two of them.
# Guess before: "Q&A".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" webvtt-parser@2.2.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
const { WebVTTParser, WebVTTSerializer } = createRequire(import.meta.url)("webvtt-parser");
const { cues, errors } = new WebVTTParser().parse("WEBVTT\n\n00:01.000 --> 00:02.000\nQ&amp;A, 3 &lt; 4\n", "subtitles");
console.log(cues[0].tree.children.map((part) => part.value).join(""), errors.length);
console.log(new WebVTTSerializer().serialize(cues).trim().split("\n").at(-1));
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
Q&;A, 3 <; 4 0
Q&amp;;A, 3 &lt;; 4
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
