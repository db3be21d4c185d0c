#!/bin/sh
# jiwer 4.0.0 divides words at U+0020 only. Captions of two lines, as pysubs2 1.8.1 reads them, have a word error rate
# of 0.5 to the same words in one line: "do" and "you" at the break are one word. The same holds for a blank of Japanese
# (U+3000). Its `RemovePunctuation` glues the words that a dash divides.
# Guess before: any white space divides words, as with `str.split()`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check jiwer==4.0.0 pysubs2==1.8.1
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import jiwer
import pysubs2

cue = pysubs2.SSAFile.from_string("1\n00:00:01,000 --> 00:00:02,000\nWhat do\nyou think\n")[0]
print(repr(cue.plaintext), jiwer.wer("What do you think", cue.plaintext), jiwer.wer("What do you think", cue.plaintext.replace("\n", " ")))
print(jiwer.wer("東京 大阪", "東京\u3000大阪"))
print(jiwer.RemovePunctuation()("Stop—now, please."))
PYTHON
)
expected=$(cat <<'SEEN'
'What do\nyou think' 0.5 0.0
1.0
Stopnow please
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
