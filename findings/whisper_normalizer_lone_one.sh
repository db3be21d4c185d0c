#!/bin/sh
# whisper-normalizer 0.1.15 prepares texts for counting errors, and changes what was said where a number is 1 or
# negative. "$1.50" becomes "one.50" ("$2.50" stays), "Oh no" becomes "0 no", and "-2" loses its sign, though "minus
# two" becomes "-2". So jiwer 4.0.0 finds no error where a recogniser heard 2 degrees for -2, and one where it wrote the
# same number in digits.
# Guess before: words and digits of the same number become the same, and a sign is kept.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check whisper-normalizer==0.1.15 jiwer==4.0.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import jiwer
from whisper_normalizer.english import EnglishTextNormalizer

normal = EnglishTextNormalizer()
for text in ("$1.50", "$2.50", "Oh no", "point one", "point two", "minus two", "-2"):
    print(text, "=>", normal(text).strip())
for said, heard in (("It is -2 degrees.", "It is 2 degrees."), ("minus two", "-2")):
    print(said, "|", heard, "|", jiwer.wer(normal(said), normal(heard)))
PYTHON
)
expected=$(cat <<'SEEN'
$1.50 => one.50
$2.50 => $2.50
Oh no => 0 no
point one => one
point two => .2
minus two => -2
-2 => 2
It is -2 degrees. | It is 2 degrees. | 0.0
minus two | -2 | 1.0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
