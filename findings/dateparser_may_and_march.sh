#!/bin/sh
# dateparser 1.5.0 looks for dates in what was said, to put them in a calendar. It finds a month in "I may call you" and one
# in "We march on", a Saturday in "Sat down", a Sunday in "on the sun deck", and in "We agree" a Wednesday.
# Guess before, written down for the first sentence alone: only its date, "March 5".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dateparser==1.5.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from dateparser.search import search_dates

for text in ("I may call you on March 5", "We march on", "Sat down on the sun deck", "one of 5 people", "We agree"):
    print(text, "|", [words for words, _ in search_dates(text, languages=["en"]) or []])
PYTHON
)
expected=$(cat <<'SEEN'
I may call you on March 5 | ['may', 'on March 5']
We march on | ['We march on']
Sat down on the sun deck | ['Sat', 'on the sun']
one of 5 people | ['one of 5']
We agree | ['We']
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
