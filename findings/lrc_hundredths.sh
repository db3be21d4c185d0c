#!/bin/sh
# lrc-kit 1.2.1 (npm) writes the hundredths of an LRC time without their zero: 1.05 s, which it reads rightly, becomes
# "[00:01.50]", 0.45 s late, and so do all lines in the first tenth of a second. clrc 3.1.4 (npm) calls "[00:01.5]" no
# line of lyrics; lrc-kit, paroles 2.3.0 (npm) and pylrc 0.1.2 read 1.5 s.
# Guess before: all read a decimal fraction of any length, and what was read is written with the same time.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pylrc==0.1.2
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" lrc-kit@1.2.1 clrc@3.1.4 paroles@2.3.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { parse } from "clrc";
import lrcKit from "lrc-kit";
import { Lyrics } from "paroles";
const text = "[00:01.05]early\n";
const kit = lrcKit.Lrc.parse(text);
console.log("lrc-kit", kit.lyrics[0].timestamp, kit.toString().trim(), lrcKit.Lrc.parse(kit.toString()).lyrics[0].timestamp);
console.log("lrc-kit", lrcKit.Lrc.parse("[00:01.5]half").lyrics[0].timestamp);
console.log("clrc", parse("[00:01.5]half")[0].type, parse("[00:01.50]half")[0].startMillisecond);
console.log("paroles", new Lyrics("[00:01.5]half").lines[0].time);
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
import pylrc

print("pylrc", pylrc.parse("[00:01.5]half")[0].time)
PYTHON
)
expected=$(cat <<'SEEN'
lrc-kit 1.05 [00:01.50]early 1.5
lrc-kit 1.5
clrc invalid 1500
paroles 1.5
pylrc 1.5
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
