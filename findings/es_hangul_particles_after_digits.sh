#!/bin/sh
# A Korean particle depends on the last sound of the word before it. es-hangul 2.4.0 (npm) takes each digit and each Latin
# letter for an open syllable: "3가", "10가" and "Kim가", where people say "3이", "10이" and "Kim이". So a message that has
# a count or a name of a meeting's member in it is wrong for more than half of them. josa 3.0.1 (npm) knows how digits
# and Latin letters sound.
# Guess before: both know digits.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" es-hangul@2.4.0 josa@3.0.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { josa as esHangul } from "es-hangul";
import { josa } from "josa";
for (const word of ["사람", "3", "2", "10", "Kim", "Zoom"]) console.log("es-hangul", esHangul(word, "이/가"), "josa", josa(`${word}#{이}`));
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
es-hangul 사람이 josa 사람이
es-hangul 3가 josa 3이
es-hangul 2가 josa 2가
es-hangul 10가 josa 10이
es-hangul Kim가 josa Kim이
es-hangul Zoom가 josa Zoom이
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
