#!/bin/sh
# WebVTT needs "<" and "&" escaped, SubRip has no escapes. pycaption 2.3.14 escapes them when it writes SubRip as
# WebVTT; ttconv 1.2.3, pysubs2 1.8.1, aeidon 2.0.1, subsrt-ts 2.1.2, srt-to-vtt 1.1.3 and subtitle-converter 3.0.12
# (npm) do not. Players drop all that follows "<": of "3 < 4 is true" media-captions 1.0.4 shows "3 ".
# Guess before: those that know both formats escape, above all ttconv, which has a model between them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycaption==2.3.14 ttconv==1.2.3 pysubs2==1.8.1 aeidon==2.0.1
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" subsrt-ts@2.1.2 srt-to-vtt@1.1.3 subtitle-converter@3.0.12 media-captions@1.0.4 >/dev/null
printf '1\n00:00:01,000 --> 00:00:02,000\n3 < 4 is true\n' >said.srt
cat >look.mjs <<'JAVASCRIPT'
import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { createRequire } from "node:module";
import { renderVTTCueString, VTTCue } from "media-captions";
const require = createRequire(import.meta.url);
const text = readFileSync("said.srt", "utf8");
const cue = (file) => file.split(/\r?\n/).find((line) => line.includes("is true"));
const subsrt = require("subsrt-ts");
console.log("subsrt-ts", cue((subsrt.default ?? subsrt).convert(text, { format: "vtt" })));
console.log("subtitle-converter", cue(require("subtitle-converter").convert(text, ".vtt", {}).subtitle));
const parts = [];
const output = Readable.from([Buffer.from(text)]).pipe(require("srt-to-vtt")());
output.on("data", (part) => parts.push(part));
await new Promise((resolve) => output.on("end", resolve));
console.log("srt-to-vtt", cue(parts.join("")));
for (const shown of ["3 < 4 is true", "3 &lt; 4 is true"]) console.log("shown", JSON.stringify(renderVTTCueString(new VTTCue(0, 1, shown))));
JAVASCRIPT
seen=$(
    "$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import io
from pathlib import Path
import aeidon
import pysubs2
from pycaption import SRTReader, WebVTTWriter
from ttconv.srt.reader import to_model
from ttconv.vtt.writer import from_model

text = Path("said.srt").read_text()
project = aeidon.Project()
project.open_main("said.srt", "utf_8")
project.save_main(aeidon.files.new(aeidon.formats.WEBVTT, "said.vtt", "utf_8"))
for name, file in (
    ("pycaption", WebVTTWriter().write(SRTReader().read(text))),
    ("ttconv", from_model(to_model(io.StringIO(text)))),
    ("pysubs2", pysubs2.SSAFile.from_string(text).to_string("vtt")),
    ("aeidon", Path("said.vtt").read_text()),
):
    print(name, next(line for line in file.splitlines() if "is true" in line))
PYTHON
    node look.mjs
)
expected=$(cat <<'SEEN'
pycaption 3 &lt; 4 is true
ttconv 3 < 4 is true
pysubs2 3 < 4 is true
aeidon 3 < 4 is true
subsrt-ts 3 < 4 is true
subtitle-converter 3 < 4 is true
srt-to-vtt 3 < 4 is true
shown "3 "
shown "3 < 4 is true"
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
