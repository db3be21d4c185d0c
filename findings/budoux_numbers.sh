#!/bin/sh
# BudouX divides text where a line may end. The Chinese model of budoux 0.10.1 divides inside numbers and names: "1,250"
# ends a line after the comma, "GPT-4o" after GP, "Wi-Fi" after the hyphen. The Japanese one keeps these, and divides the
# year 2024 after 202.
# Guess before: never inside a number or a name in Latin letters.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check budoux==0.10.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import budoux

chinese = budoux.load_default_simplified_chinese_parser()
for text in ("价格是1,250元。", "使用GPT-4o翻译。", "连接Wi-Fi。", "我们的会议10:30开始。"):
    print(" | ".join(chinese.parse(text)))
japanese = budoux.load_default_japanese_parser()
for text in ("売上は1,250万円でした。", "GPT-4oを使う。", "2024年11月30日に", "2026年11月30日に"):
    print(" | ".join(japanese.parse(text)))
PYTHON
)
expected=$(cat <<'SEEN'
价格 | 是 | 1, | 250元。
使用 | GP | T-4o | 翻译。
连接Wi- | Fi。
我们 | 的 | 会议 | 10:30 | 开始。
売上は | 1,250万円でした。
GPT-4oを | 使う。
202 | 4年11月30日に
202 | 6年11月30日に
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
