#!/bin/sh
# subtitle 4.2.2 (npm) refuses a WebVTT file whose cues have names: "expected timestamp". Numbers as names pass.
# And a cue at 100 hours, which it reads rightly, is written at 04:00:00 with nine digits behind the point.
# Guess before: names are kept or dropped; hours have as many digits as they need.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" subtitle@4.2.2 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import subtitle from "subtitle";
try {
  subtitle.parseSync("WEBVTT\n\nintro\n00:01.000 --> 00:02.000\nGood morning.\n");
} catch (error) {
  console.log(error.message);
}
const [cue] = subtitle.parseSync("1\n100:00:00,000 --> 100:00:01,000\nlate\n");
console.log(cue.data.start / 3_600_000, subtitle.stringifySync([cue], { format: "SRT" }).split("\n")[1]);
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
expected timestamp at row 3, but received: "intro"
100 04:00:00,345600000 --> 04:00:01,345600000
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
