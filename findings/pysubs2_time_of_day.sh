#!/bin/sh
# pysubs2 1.8.1 cannot write times of 10 hours and more as SubStation Alpha: all become 9:59:59.99, with a warning.
# So captions that count from midnight are all at one moment, and none has a length. SubRip does the same at 100 hours.
# Guess before: the hours get a second digit, as ffmpeg and Aegisub read them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysubs2==1.8.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import warnings
import pysubs2

warnings.simplefilter("ignore")
file = pysubs2.SSAFile()
file.events = [pysubs2.SSAEvent(start=hour * 3_600_000, end=hour * 3_600_000 + 2_000, text="x") for hour in (9, 14, 15)]
print(*[line for line in file.to_string("ass").splitlines() if line.startswith("Dialogue")], sep="\n")
PYTHON
)
expected=$(cat <<'SEEN'
Dialogue: 0,9:00:00.00,9:00:02.00,Default,,0,0,0,,x
Dialogue: 0,9:59:59.99,9:59:59.99,Default,,0,0,0,,x
Dialogue: 0,9:59:59.99,9:59:59.99,Default,,0,0,0,,x
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
