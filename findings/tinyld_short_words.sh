#!/bin/sh
# tinyld 1.3.4 (npm), a detector for short texts, calls "Hello" Italian and "Yes, I agree." Berber, at accuracies of
# 0.2 and 0.11; English is in its list with a fifteenth of that. With `only` it is right.
# Guess before: English for both, or nothing.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" tinyld@1.3.4 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { detect, detectAll } from "tinyld";
for (const text of ["Hello", "Yes, I agree."]) {
  const [best] = detectAll(text);
  console.log(text, best.lang, best.accuracy.toFixed(2), detect(text, { only: ["en", "de", "ja"] }));
}
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
Hello it 0.20 en
Yes, I agree. ber 0.11 en
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
