#!/bin/sh
# samplerate 0.2.4 takes sound in pieces, as it comes from a microphone, and is told with `end_of_input` which is the last.
# It does not give out what it still holds then: of one second in pieces of 20 ms the last 9 ms are missing, of three
# pieces 15 %. More calls with nothing give nothing; a piece of silence behind it does. The same sound in one call is
# whole. soxr 1.1.0 gives all with `last`.
# Guess before: as many samples in pieces as in one call.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check samplerate==0.2.4 soxr==1.1.0 numpy==2.4.6
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import samplerate
import soxr

sound = np.sin(np.arange(48_000) / 20).astype(np.float32)
for seconds in (1, 0.06):
    whole = sound[: int(48_000 * seconds)]
    pieces = np.split(whole, len(whole) // 960)
    last = len(pieces) - 1
    resampler = samplerate.Resampler("sinc_best", 1)
    parts = [resampler.process(piece, 1 / 3, end_of_input=at == last) for at, piece in enumerate(pieces)]
    parts.append(resampler.process(sound[:0], 1 / 3, end_of_input=True))
    stream = soxr.ResampleStream(48_000, 16_000, 1, dtype="float32")
    others = [stream.resample_chunk(piece, last=at == last) for at, piece in enumerate(pieces)]
    print("samplerate", len(samplerate.resample(whole, 1 / 3, "sinc_best")), "in pieces", sum(map(len, parts)))
    print("soxr", len(soxr.resample(whole, 48_000, 16_000)), "in pieces", sum(map(len, others)))
PYTHON
)
expected=$(cat <<'SEEN'
samplerate 16000 in pieces 15857
soxr 16000 in pieces 16000
samplerate 960 in pieces 817
soxr 960 in pieces 960
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
