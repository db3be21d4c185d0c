#!/bin/sh
# cn2an 0.5.24 writes the numbers of Chinese sentences in digits, as after speech recognition, and takes words for numbers:
# Monday (星期一) becomes 星期1, "some people" 1些人, the May Fourth Movement the number 54, "many thanks" 10分感谢. The
# other way round it says "1,250" as "one, two hundred and fifty". wetext 0.1.8 keeps the first three words; in Japanese
# it writes the town of Chiba (千葉) as 1000葉.
# Guess before, for cn2an: days, "some" and names stay words. The guesses for wetext and 千葉 were not written down.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cn2an==0.5.24 wetext==0.1.8
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import cn2an
from wetext import Normalizer

chinese = Normalizer(lang="zh", operator="itn")
for text in ("星期一", "一些人", "五四运动", "十分感谢", "百分之三十", "万一下雨"):
    print(text, cn2an.transform(text, "cn2an"), chinese.normalize(text))
print(cn2an.transform("1,250元", "an2cn"), cn2an.transform("1250元", "an2cn"))
print(Normalizer(lang="ja", operator="itn").normalize("千葉"))
PYTHON
)
expected=$(cat <<'SEEN'
星期一 星期1 星期一
一些人 1些人 一些人
五四运动 54运动 五四运动
十分感谢 10分感谢 10分感谢
百分之三十 30% 30%
万一下雨 万一下雨 万一下雨
一,二百五十元 一千二百五十元
1000葉
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
