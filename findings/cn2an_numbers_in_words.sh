#!/bin/sh
# cn2an 0.5.24 has a function for whole sentences, which takes the numerals out of words: "we go to Sichuan together"
# becomes "we go to 4-chuan 1-gether" (四川, 一起), "very grateful" (十分) "10 minutes grateful". "What if" (万一) is left
# alone.
# Guess before: only numbers are changed, or an error, as it raises in strict mode.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cn2an==0.5.24
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import cn2an

for text in ("我们一起去四川", "十分感谢", "万一下雨", "三月三日", "百分之五十"):
    print(text, cn2an.transform(text, "cn2an"))
PYTHON
)
expected=$(cat <<'SEEN'
我们一起去四川 我们1起去4川
十分感谢 10分感谢
万一下雨 万一下雨
三月三日 3月3日
百分之五十 50%
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
