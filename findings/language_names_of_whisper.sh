#!/bin/sh
# Whisper calls languages by usual English names. Of fourteen of them pycountry 26.2.16 finds two, as ISO says "Modern Greek
# (1453-)" or "Malay (macrolanguage)", and python-iso639 2026.7.23 six: a program that looks up what Whisper has heard
# does not know Greek.
# Guess before: both find all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pycountry==26.2.16 python-iso639==2026.7.23
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import pycountry
from iso639 import Language, LanguageNotFoundError

NAMES = (
    "Greek Malay Swahili Nepali Punjabi Myanmar Cantonese Mandarin Castilian Flemish Occitan Pashto Persian Hebrew"
).split()


def found(name, find, error):
    try:
        return find(name) is not None
    except error:
        return False


print("pycountry does not find", *(name for name in NAMES if not found(name, pycountry.languages.lookup, LookupError)))
print("python-iso639 does not find", *(name for name in NAMES if not found(name, Language.match, LanguageNotFoundError)))
PYTHON
)
expected=$(cat <<'SEEN'
pycountry does not find Greek Malay Swahili Nepali Punjabi Myanmar Cantonese Mandarin Castilian Flemish Occitan Pashto
python-iso639 does not find Greek Malay Swahili Nepali Myanmar Cantonese Mandarin Occitan
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
