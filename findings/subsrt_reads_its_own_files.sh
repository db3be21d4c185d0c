#!/bin/sh
# subsrt-ts 2.1.2 (npm) does not read what it wrote. SubStation Alpha loses the first letter of each text, and a text of
# one letter; SAMI loses all cues. MicroDVD comes back right, but only to itself: it counts milliseconds times the frame
# rate, so that 1.5 s at 25 frames a second is frame 37500, which is 25 minutes to pysubs2 1.8.1.
# Guess before: each format comes back as it was, and other programs read it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysubs2==1.8.1
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" subsrt-ts@2.1.2 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
const required = createRequire(import.meta.url)("subsrt-ts");
const subsrt = required.default ?? required;
const cues = subsrt.parse("1\n00:00:01,500 --> 00:00:03,000\nGood morning.\n\n2\n00:00:04,000 --> 00:00:05,000\nB\n\n");
for (const format of ["vtt", "ass", "smi", "sub"]) {
  const again = subsrt.parse(subsrt.build(cues, { format }), { format }).filter((cue) => cue.type === "caption");
  console.log(format, JSON.stringify(again.map((cue) => [cue.start, cue.text.trim()])));
}
writeFileSync("again.sub", subsrt.build(cues, { format: "sub", fps: 25 }));
JAVASCRIPT
seen=$(
    node look.mjs
    head -n 1 again.sub | tr -d '\r'
    "$folder/venv/bin/python" -c 'import pysubs2; print(pysubs2.load("again.sub", fps=25)[0].start / 60_000)'
)
expected=$(cat <<'SEEN'
vtt [[1500,"Good morning."],[4000,"B"]]
ass [[1500,"ood morning."],[4000,""]]
smi []
sub [[1500,"Good morning."],[4000,"B"]]
{37500}{75000}Good morning.
25.0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
