#!/bin/sh
# zhconv 1.4.3 writes the unit in "three kilometres" (公里) and the name of Lisbon (里斯本) for Taiwan with the letter for
# "inside" (裡). It knows phrases, and is right in "inside" and in "hair" (头发). OpenCC 1.4.2 is right everywhere.
# Guess before: both are right for words this usual.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check zhconv==1.4.3 opencc==1.4.2
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import opencc
import zhconv

for text in ("三公里", "里斯本", "里面", "头发"):
    print(text, zhconv.convert(text, "zh-tw"), opencc.OpenCC("s2tw").convert(text))
PYTHON
)
expected=$(cat <<'SEEN'
三公里 三公裡 三公里
里斯本 裡斯本 里斯本
里面 裡面 裡面
头发 頭髮 頭髮
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
