#!/bin/sh
# A program that writes WAV to a pipe or into an HTTP response does not know its length, and writes 0xFFFFFFFF for it, as
# ffmpeg and speech services do. tinytag 2.3.2 and mutagen 1.48.1 say that one second of such sound lasts 37 hours, and
# `getnframes` of Python's wave that it has 2147483647 frames. soundfile 0.14.0 and music-metadata 11.16.1 (npm) look at
# what is there.
# Guess before: what is there, from all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tinytag==2.3.2 mutagen==1.48.1 soundfile==0.14.0 numpy==2.4.6
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" music-metadata@11.16.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { writeFileSync } from "node:fs";
import { parseFile } from "music-metadata";
const header = Buffer.alloc(44);
header.write("RIFF", 0);
header.write("WAVEfmt ", 8);
header.write("data", 36);
for (const [at, value] of [[4, 0xffffffff], [16, 16], [24, 16000], [28, 32000], [40, 0xffffffff]]) header.writeUInt32LE(value, at);
for (const [at, value] of [[20, 1], [22, 1], [32, 2], [34, 16]]) header.writeUInt16LE(value, at);
writeFileSync("stream.wav", Buffer.concat([header, Buffer.alloc(32000)]));
console.log("music-metadata", (await parseFile("stream.wav")).format.duration);
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
import wave

import mutagen.wave
import soundfile
import tinytag

print("soundfile", soundfile.info("stream.wav").duration)
print("tinytag", round(tinytag.TinyTag.get("stream.wav").duration))
print("mutagen", round(mutagen.wave.WAVE("stream.wav").info.length))
with wave.open("stream.wav") as sound:
    print("wave", sound.getnframes(), len(sound.readframes(sound.getnframes())) // 2)
PYTHON
)
expected=$(cat <<'SEEN'
music-metadata 1
soundfile 1.0
tinytag 134218
mutagen 134218
wave 2147483647 16000
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
