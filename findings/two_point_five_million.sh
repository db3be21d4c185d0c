#!/bin/sh
# "Two point five million" has as many values as there are readers of it. word2number 1.1 says 2, text2num 3.1.0 "2.5
# 1000000", and words-to-numbers 1.5.1 (npm) writes NaN into the sentence. "Twenty twenty four" is 404 to word2number.
# whisper-normalizer 0.1.15 reads both rightly.
# Guess before: 2500000 from all that know "point" and "million"; an error for the year.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check word2number==1.1 text2num==3.1.0 whisper-normalizer==0.1.15
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" words-to-numbers@1.5.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import words from "words-to-numbers";
for (const text of ["We sold two point five million.", "in twenty twenty four"]) console.log("words-to-numbers", words.wordsToNumbers(text));
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
from text_to_num import alpha2digit
from whisper_normalizer.english import EnglishTextNormalizer
from word2number.w2n import word_to_num

for text in ("two point five million", "twenty twenty four"):
    print("word2number", word_to_num(text))
    print("text2num", alpha2digit(text, "en"))
    print("whisper-normalizer", EnglishTextNormalizer()(text))
PYTHON
)
expected=$(cat <<'SEEN'
words-to-numbers We sold NaN.
words-to-numbers in 20 24
word2number 2
text2num 2.5 1000000
whisper-normalizer 2500000
word2number 404
text2num 20 24
whisper-normalizer 2024
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
