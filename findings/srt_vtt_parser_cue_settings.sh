#!/bin/sh
# @plussub/srt-vtt-parser 2.0.5 (npm) has no end for a WebVTT cue with settings ("align:start"): `to` is NaN, and no
# error. The SubRip time 00:00:01,5, with one digit behind the comma, is read as 15 ms.
# Guess before: settings are dropped; 1500 or 1005 ms.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @plussub/srt-vtt-parser@2.0.5 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
const { parse } = createRequire(import.meta.url)("@plussub/srt-vtt-parser");
const cue = (text) => parse(text).entries[0];
console.log(cue("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n").to, cue("WEBVTT\n\n00:01.000 --> 00:02.000 align:start\nHello\n").to);
console.log(cue("1\n00:00:01,5 --> 00:00:03,000\nHello\n").from);
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
2000 NaN
15
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
