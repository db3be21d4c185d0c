#!/bin/sh
# lrc-kit 1.2.1 (npm) rounds hundredths without a carry: 1.996 s is written as "[00:01.100]", which it and others read
# as 1.1 s. One line in two hundred is 0.9 s early. It keeps `[offset:500]` and does not apply it; pylrc 0.1.2 does, and
# adds it, so that lines come later, where descriptions of the format say sooner.
# Guess before: "[00:02.00]"; the offset is applied, or left to the caller, by both alike.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pylrc==0.1.2
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" lrc-kit@1.2.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
const { Lrc } = createRequire(import.meta.url)("lrc-kit");
const written = Lrc.parse("[00:01.996]Hello\n").toString();
console.log(written, Lrc.parse(written).lyrics[0].timestamp);
console.log("lrc-kit", Lrc.parse("[offset:500]\n[00:02.00]Hello\n").lyrics[0].timestamp);
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" -c 'import pylrc; print("pylrc", pylrc.parse("[offset:500]\n[00:02.00]Hello\n")[0].time)'
)
expected=$(cat <<'SEEN'
[00:01.100]Hello 1.1
lrc-kit 2
pylrc 2.5
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
