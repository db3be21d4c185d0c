#!/bin/sh
# korean-romanizer 0.28.0 writes Korean names letter by letter where the rules that it names (Revised Romanization, as on
# street signs) write the sound: Jongno becomes Jongro, Silla Sinra, Dongnimmun Dokripmun, and "together" gati. es-hangul
# 2.4.0 (npm) writes all of them as the signs do.
# Guess before: the names on the signs, from both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check korean-romanizer==0.28.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" es-hangul@2.4.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { romanize } from "es-hangul";
for (const word of ["종로", "신라", "독립문", "같이", "국민", "한국어"]) console.log("es-hangul", word, romanize(word));
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
from korean_romanizer.romanizer import Romanizer

for word in ("종로", "신라", "독립문", "같이", "국민", "한국어"):
    print("korean-romanizer", word, Romanizer(word).romanize())
PYTHON
)
expected=$(cat <<'SEEN'
es-hangul 종로 jongno
es-hangul 신라 silla
es-hangul 독립문 dongnimmun
es-hangul 같이 gachi
es-hangul 국민 gungmin
es-hangul 한국어 hangugeo
korean-romanizer 종로 jongro
korean-romanizer 신라 sinra
korean-romanizer 독립문 dokripmun
korean-romanizer 같이 gati
korean-romanizer 국민 gukmin
korean-romanizer 한국어 hangugeo
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
