#!/bin/sh
# timecode 1.5.1 adds and multiplies counts of frames that begin with 1, so that one second plus one second is two
# seconds and a frame, and ten of them are ten frames late. A difference is a frame short, and one of equal times
# raises. Plus a number of frames is right.
# Guess before: a time code is a duration, and sums are exact.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check timecode==1.5.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from timecode import Timecode

second = Timecode("25", "00:00:01:00")
print(second + second, second + 25, second * 2)
total = Timecode("25", "00:00:00:00")
for _ in range(10):
    total += second
print(total)
print(Timecode("25", "00:00:10:00") - second)
try:
    print(second - second)
except ValueError as error:
    print(error)
PYTHON
)
expected=$(cat <<'SEEN'
00:00:02:01 00:00:02:00 00:00:02:01
00:00:10:10
00:00:08:24
Timecode.frames should be a positive integer bigger than zero, not 0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
