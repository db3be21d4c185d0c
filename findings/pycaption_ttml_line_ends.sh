#!/bin/sh
# pycaption 2.3.14 reads a paragraph of TTML up to its first line end, and drops the rest of it: files that a program has
# written with indents, or folded at a width, lose words. In TTML a line end is a blank. ttconv 1.2.3 shows all of it;
# ttml2srt 1.2.4 (npm) raises a TypeError.
# Guess before: "Hello world" from all three.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycaption==2.3.14 ttconv==1.2.3
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" ttml2srt@1.2.4 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
const ttml2srt = createRequire(import.meta.url)("ttml2srt");
const text = `<tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en"><body><div><p begin="1s" end="2s">
  Hello
  world
</p></div></body></tt>`;
writeFileSync("indented.ttml", text);
console.info = console.warn = () => {};
try {
  console.log("ttml2srt", JSON.stringify((ttml2srt.default ?? ttml2srt)(text)));
} catch (error) {
  console.log("ttml2srt", error.name);
}
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
import xml.etree.ElementTree as tree
from pathlib import Path

from pycaption import DFXPReader, SRTWriter
from ttconv.imsc.reader import to_model
from ttconv.srt.writer import from_model

text = Path("indented.ttml").read_text()
print("pycaption", SRTWriter().write(DFXPReader().read(text)).splitlines()[2:])
print("pycaption, in one line", SRTWriter().write(DFXPReader().read(" ".join(text.split()))).splitlines()[2:])
print("ttconv", from_model(to_model(tree.ElementTree(tree.fromstring(text)))).splitlines()[2:])
PYTHON
)
expected=$(cat <<'SEEN'
ttml2srt TypeError
pycaption ['Hello']
pycaption, in one line ['Hello world']
ttconv ['Hello world']
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
