#!/bin/sh
# ttconv 1.2.3 divides cues that overlap at each begin and end. Two people who spoke at the same time are two cues when
# read, and three when written again, from SubRip to SubRip, too: Ana's words are there three times. Who counts words,
# or reads the cues aloud, has them three times.
# Guess before: two cues with the times that they had.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ttconv==1.2.3
seen=$("$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import io
from ttconv.srt.reader import to_model
from ttconv.srt.writer import from_model

text = "1\n00:00:01,000 --> 00:00:05,000\nAna: I think so.\n\n2\n00:00:02,000 --> 00:00:03,000\nBo: Yes.\n"
print(from_model(to_model(io.StringIO(text))).strip())
PYTHON
)
expected=$(cat <<'SEEN'
1
00:00:01,000 --> 00:00:02,000
Ana: I think so.

2
00:00:02,000 --> 00:00:03,000
Ana: I think so.
Bo: Yes.

3
00:00:03,000 --> 00:00:05,000
Ana: I think so.
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
