#!/bin/sh
# pocketsphinx 5.1.1 recognises a word in digital silence ("dog" here, with its own English model) and gives it the
# probability 1, its highest. So a bound on the probability does not keep out what nobody said.
# Guess before: an empty hypothesis, or a low probability.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pocketsphinx==5.1.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from pocketsphinx import Decoder

decoder = Decoder(samprate=16000, loglevel="FATAL")
decoder.start_utt()
decoder.process_raw(bytes(3 * 32_000), full_utt=True)
decoder.end_utt()
print(repr(decoder.hyp().hypstr), decoder.hyp().prob)
PYTHON
)
expected=$(cat <<'SEEN'
'dog' 1.0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
