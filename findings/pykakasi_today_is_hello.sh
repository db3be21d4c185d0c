#!/bin/sh
# pykakasi 2.3.0 reads every "今日は" as "konnichiha": "Today the weather is good" is read, and shown as ruby, "Hello the
# weather is good". fugashi 1.5.2 with unidic-lite 1.0.8 reads "kyou" and "ha".
# Guess before: "kyou" and "ha".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pykakasi==2.3.0 fugashi==1.5.2 unidic-lite==1.0.8
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import fugashi
import pykakasi

text = "今日は良い天気です"
print(*(part["hepburn"] for part in pykakasi.kakasi().convert(text)))
print(*(word.feature.kana for word in fugashi.Tagger()(text)))
PYTHON
)
expected=$(cat <<'SEEN'
konnichiha yoi tenki desu
キョウ ハ ヨイ テンキ デス
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
