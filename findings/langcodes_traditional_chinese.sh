#!/bin/sh
# langcodes 3.5.1 finds no match for a reader of zh-TW among (zh, en, de), though Swiss German finds German: the distance
# between the scripts, 54, is above its default limit of 25. Cantonese and Croatian (to Serbian) find none either. Who
# serves "zh" alone has to raise `max_distance`, and then Ukrainian finds Russian.
# Guess before: zh.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langcodes==3.5.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import langcodes

for wanted, supported in (("zh-TW", "zh"), ("yue", "zh"), ("hr", "sr"), ("gsw", "de"), ("pt-PT", "pt-BR")):
    match = langcodes.closest_supported_match(wanted, [supported, "en"])
    print(wanted, supported, match, langcodes.tag_distance(wanted, supported))
print(langcodes.closest_supported_match("uk", ["ru", "zh"], max_distance=54))
PYTHON
)
expected=$(cat <<'SEEN'
zh-TW zh None 54
yue zh None 64
hr sr None 59
gsw de de 8
pt-PT pt-BR pt-BR 5
ru
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
