#!/bin/sh
# Two segmenters that know abbreviations do not know the most usual title of a language each: sentencex 1.0.32 ends a
# French sentence after "M." (Monsieur), pysbd 0.3.4 a Spanish one after "Sr." (Señor). In "3 p. m. ayer" both end one.
# Guess before: both know both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysbd==0.3.4 sentencex==1.0.32
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import pysbd
import sentencex

for lang, text in (("fr", "M. Dupont est là."), ("es", "El Sr. López llegó a las 3 p. m. ayer.")):
    print(lang, "sentencex", list(sentencex.segment(lang, text)))
    print(lang, "pysbd", pysbd.Segmenter(language=lang, clean=False).segment(text))
PYTHON
)
expected=$(cat <<'SEEN'
fr sentencex ['M. ', 'Dupont est là.']
fr pysbd ['M. Dupont est là.']
es sentencex ['El Sr. López llegó a las 3 p. m. ', 'ayer.']
es pysbd ['El Sr. ', 'López llegó a las 3 p. ', 'm. ', 'ayer.']
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
