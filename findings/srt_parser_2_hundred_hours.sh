#!/bin/sh
# srt-parser-2 1.2.3 (npm) does not see a cue that begins at 100 hours or later: its number, times and text become
# text of the cue before. No error.
# Guess before: three digits of hours are read, or an error.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" srt-parser-2@1.2.3 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
const required = createRequire(import.meta.url)("srt-parser-2");
const Parser = required.default ?? required;
const text = "1\n99:59:58,000 --> 99:59:59,000\nearly\n\n2\n100:00:00,000 --> 100:00:01,000\nlate\n";
console.log(JSON.stringify(new Parser().fromSrt(text).map((cue) => cue.text)));
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
["early\n\n2\n100:00:00,000 --> 100:00:01,000\nlate"]
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
