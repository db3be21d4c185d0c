#!/bin/sh
# pyonmttok 1.38.1, which divides texts for OpenNMT and CTranslate2, takes capitals out as marks and puts them back
# (`case_markup`). The dot of "İstanbul" is gone afterwards, which in Turkish is another letter, and "STRAẞE" comes back
# as "STRAßE". Greek with its two small sigmas is right.
# Guess before: each comes back as it was.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyonmttok==1.38.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import pyonmttok

tokenizer = pyonmttok.Tokenizer("aggressive", joiner_annotate=True, case_markup=True)
for text in ("İstanbul'da", "STRAẞE", "ΟΔΥΣΣΕΎΣ", "NASA's McDonald"):
    print(text, tokenizer.detokenize(tokenizer.tokenize(text)[0]))
PYTHON
)
expected=$(cat <<'SEEN'
İstanbul'da Istanbul'da
STRAẞE STRAßE
ΟΔΥΣΣΕΎΣ ΟΔΥΣΣΕΎΣ
NASA's McDonald NASA's McDonald
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
