#!/bin/sh
# langdetect 1.0.9 calls a Chinese sentence ("the meeting is tomorrow at three in the afternoon") and the word for Tokyo
# Korean, with a probability above 0.9999, though there is no Hangul in them. py3langid 0.4.0 says Chinese to both.
# Guess before: Chinese; a language of another script is out of the question.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langdetect==1.0.9 py3langid==0.4.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import langdetect
import py3langid

langdetect.DetectorFactory.seed = 0
for text in ("明天下午三点开会", "東京"):
    best = langdetect.detect_langs(text)[0]
    print(best.lang, best.prob > 0.9999, py3langid.classify(text)[0])
PYTHON
)
expected=$(cat <<'SEEN'
ko True zh
ko True zh
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
