#!/bin/sh
# @remotion/captions 4.0.529 (npm) reads SubRip, and makes pages of captions for short videos. The two do not meet: a
# page begins only with a caption that has a blank in front, which those from SubRip do not have, so all of a file is
# one page of 50 seconds without blanks. And pauses do not count: words a minute apart are on one page of "500
# milliseconds".
# Guess before: `parseSrt` gives what `createTikTokStyleCaptions` takes, and a pause ends a page.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @remotion/captions@4.0.529 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
const { parseSrt, createTikTokStyleCaptions } = createRequire(import.meta.url)("@remotion/captions");
const show = (captions) => {
  const { pages } = createTikTokStyleCaptions({ captions, combineTokensWithinMilliseconds: 500 });
  console.log(JSON.stringify(pages.map((page) => [page.text, page.startMs, page.durationMs])));
};
show(parseSrt({ input: "1\n00:00:01,000 --> 00:00:02,000\nGood morning.\n\n2\n00:00:50,000 --> 00:00:51,000\nBye.\n" }).captions);
const word = (text, startMs, endMs) => ({ text, startMs, endMs, timestampMs: null, confidence: null });
show([word(" So", 0, 200), word(" yes", 250, 400), word(" bye", 60_000, 60_400), word(" now", 61_000, 61_300)]);
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
[["Good morning.Bye.",1000,50000]]
[["So yes bye",0,61000],["now",61000,300]]
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
