#!/bin/sh
# pythainlp 5.4.0 does not know eleven o'clock, whose word begins with that for ten: สิบเอ็ดโมงเช้า, eleven in the morning,
# is 10:00, and สิบเอ็ดโมง 22:00. A bare แปดโมง, which is eight in the morning (the evening has hours and a word of its
# own, ทุ่ม), is 20:00. With the word for morning behind it, eight and ten are right.
# Guess before: each time of day is read as Thais say it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pythainlp==5.4.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from pythainlp.util import thaiword_to_time

for text in ("สิบโมงเช้า", "สิบเอ็ดโมงเช้า", "สิบเอ็ดโมง", "สิบเอ็ดนาฬิกา", "แปดโมงเช้า", "แปดโมง", "สองทุ่ม"):
    print(text, thaiword_to_time(text))
PYTHON
)
expected=$(cat <<'SEEN'
สิบโมงเช้า 10:00
สิบเอ็ดโมงเช้า 10:00
สิบเอ็ดโมง 22:00
สิบเอ็ดนาฬิกา 11:00
แปดโมงเช้า 08:00
แปดโมง 20:00
สองทุ่ม 20:00
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
