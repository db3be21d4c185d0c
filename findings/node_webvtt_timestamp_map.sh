#!/bin/sh
# In HLS, a segment of WebVTT says with X-TIMESTAMP-MAP where it belongs in the video. node-webvtt 2.0.0 (npm) divides
# that line at its first colon: half of its value is in the key, and a segment that is read and written again has a
# blank between "LOCAL:" and the time, which the format does not have.
# Guess before: `meta` has the whole value under X-TIMESTAMP-MAP, and it is written as it was read.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" node-webvtt@2.0.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import webvtt from "node-webvtt";
const text = "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\n\n00:01.000 --> 00:02.000\nGood morning.\n";
const read = webvtt.parse(text, { meta: true });
console.log(JSON.stringify(read.meta));
console.log(webvtt.compile(read).split("\n")[1]);
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
{"X-TIMESTAMP-MAP=LOCAL":"00:00:00.000,MPEGTS:900000"}
X-TIMESTAMP-MAP=LOCAL: 00:00:00.000,MPEGTS:900000
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
