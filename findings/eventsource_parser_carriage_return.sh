#!/bin/sh
# eventsource-parser 3.1.1 (npm, also inside `eventsource` 4.1.1) gives an event whose lines end with a carriage return
# alone, which the standard allows, only when the next bytes arrive: each caption is one late, and the last one of a
# stream is lost. Lines that end with a line feed, or with both, are at once.
# Guess before: at once; a line feed that follows is skipped.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" eventsource-parser@3.1.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createParser } from "eventsource-parser";
for (const [name, end] of [["CR", "\r"], ["LF", "\n"], ["CR LF", "\r\n"]]) {
  const events = [];
  const parser = createParser({ onEvent: (event) => events.push(event.data) });
  for (const caption of ["one", "two", "three"]) {
    parser.feed(`data: ${caption}${end}${end}`);
    console.log(name, caption, JSON.stringify(events));
  }
}
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
CR one []
CR two ["one"]
CR three ["one","two"]
LF one ["one"]
LF two ["one","two"]
LF three ["one","two","three"]
CR LF one ["one"]
CR LF two ["one","two"]
CR LF three ["one","two","three"]
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
