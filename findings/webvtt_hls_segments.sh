#!/bin/sh
# Two libraries divide WebVTT into segments of 10 seconds for HLS, and mean something else by it. webvtt-py 0.6.0 makes
# one for each 10 seconds, and repeats a cue that lasts longer in each. node-webvtt 2.0.0 (npm) begins a segment only at
# the times of cues: a pause of five minutes makes a segment of 336 seconds, which is then the target duration, and a
# cue that lasts through a border is missing behind it.
# Guess before: segments of 10 seconds, and a cue in each segment in which it is seen, from both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check webvtt-py==0.6.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" node-webvtt@2.0.0 >/dev/null
printf 'WEBVTT\n\n00:01.000 --> 00:35.000\nlong\n\n00:45.000 --> 00:46.000\nlate\n' >a.vtt
printf 'WEBVTT\n\n00:01.000 --> 00:02.000\nbefore\n\n05:45.000 --> 05:46.000\nbehind\n' >b.vtt
cat >look.mjs <<'JAVASCRIPT'
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const { hls } = createRequire(import.meta.url)("node-webvtt");
for (const name of ["a.vtt", "b.vtt"]) {
  const text = readFileSync(name, "utf8");
  console.log("node-webvtt", name, hls.hlsSegmentPlaylist(text, 10).match(/(?<=EXTINF:|DURATION:)[0-9.]+/g).join(" "));
  console.log(hls.hlsSegment(text, 10).map((segment) => segment.content.match(/^[a-z]+$/gm)?.join("+") ?? "-").join(" "));
}
JAVASCRIPT
seen=$(
    "$folder/venv/bin/python" - <<'PYTHON'
import re
from pathlib import Path
import webvtt

for name in ("a.vtt", "b.vtt"):
    folder = Path(name + ".segments")
    webvtt.segment(name, str(folder), seconds=10)
    times = re.findall("(?:EXTINF:|DURATION:)([0-9.]+)", (folder / "prog_index.m3u8").read_text())
    print("webvtt-py", name, times[0], len(times) - 1, "segments of", *sorted(set(times[1:])))
    files = sorted(folder.glob("*.webvtt"), key=lambda file: int(re.sub("[^0-9]", "", file.name)))
    if len(files) < 9:
        print(*("+".join(re.findall("(?m)^[a-z]+$", file.read_text())) or "-" for file in files))
PYTHON
    node look.mjs
)
expected=$(cat <<'SEEN'
webvtt-py a.vtt 10 5 segments of 10.00000
long long long long late
webvtt-py b.vtt 10 35 segments of 10.00000
node-webvtt a.vtt 30 30.00000 16.00000
long late
node-webvtt b.vtt 336 10.00000 336.00000
before behind
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
