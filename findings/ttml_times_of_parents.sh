#!/bin/sh
# In TTML a paragraph's times count from the begin of the element around it. imsc 1.1.5 (npm) shows a paragraph at 1 s in
# a body at 10 s from 11 s on. pycaption 2.3.14 shows it at 1 s. ttconv 1.2.3 writes nothing at all, unless the body has
# an end, too.
# Guess before: all three say 11 s.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycaption==2.3.14 ttconv==1.2.3
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" imsc@1.1.5 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
const { fromXML } = createRequire(import.meta.url)("imsc/src/main/js/doc.js");
import { readFileSync } from "node:fs";
console.log("imsc", JSON.stringify(fromXML(readFileSync("live.ttml", "utf8")).getMediaTimeEvents()));
JAVASCRIPT
cat >live.ttml <<'TTML'
<tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en"><body begin="10s"><div><p begin="1s" end="2s">Hello</p></div></body></tt>
TTML
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import xml.etree.ElementTree as tree
from pathlib import Path
from pycaption import DFXPReader
from ttconv.imsc.reader import to_model
from ttconv.srt.writer import from_model

text = Path("live.ttml").read_text()
caption = DFXPReader().read(text).get_captions("en")[0]
print("pycaption", caption.start / 1e6, caption.end / 1e6)
for name, body in (("ttconv", text), ("ttconv, with an end", text.replace('"10s"', '"10s" end="60s"'))):
    print(name, from_model(to_model(tree.ElementTree(tree.fromstring(body)))).splitlines()[1:2])
PYTHON
)
expected=$(cat <<'SEEN'
imsc [0,10,11,12]
pycaption 1.0 2.0
ttconv []
ttconv, with an end ['00:00:11,000 --> 00:00:12,000']
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
