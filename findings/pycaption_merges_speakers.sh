#!/bin/sh
# pycaption 2.3.14 writes two SubRip cues of the same times as one cue: what two people said at once becomes two lines
# of one. Its WebVTT writer keeps them apart. The number of cues differs by format.
# Guess before: as many cues as were read.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycaption==2.3.14
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from pycaption import SRTReader, SRTWriter, WebVTTWriter

text = "1\n00:00:01,000 --> 00:00:02,000\nAna: yes\n\n2\n00:00:01,000 --> 00:00:02,000\nBo: no\n"
captions = SRTReader().read(text)
print("read", len(captions.get_captions("en-US")))
print("SubRip", SRTWriter().write(captions).count("-->"))
print("WebVTT", WebVTTWriter().write(captions).count("-->"))
PYTHON
)
expected=$(cat <<'SEEN'
read 2
SubRip 1
WebVTT 2
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
