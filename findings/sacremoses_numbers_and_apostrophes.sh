#!/bin/sh
# sacremoses 0.2.0 prepares texts for translation and scoring. Its punctuation normaliser makes a million of English with
# no-break blanks, 1 000 000, into 1.000.000, which in English is no number, and moves the full stop of `"yes".` into the
# quotation. Its detokeniser does not put together what its tokeniser divided: Italian "un po' di" and Finnish "EU:n" get
# a blank in another place, Catalan "d'avui" and "l'home" too.
# Guess before: no-break blanks become plain ones, and each sentence comes back as it was.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sacremoses==0.2.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

for text in ("1\u00a0000\u00a0000 people", 'He said "yes".'):
    print(MosesPunctNormalizer(lang="en").normalize(text))
for lang, text in (
    ("en", "I can't; he said \"yes\"."),
    ("fr", "L'homme d'aujourd'hui dit : oui !"),
    ("it", "C'è un po' di tempo."),
    ("fi", "EU:n osuus on 3,5."),
    ("ca", "L'home d'avui."),
):
    back = MosesDetokenizer(lang=lang).detokenize(MosesTokenizer(lang=lang).tokenize(text))
    print(lang, "the same" if back == text else back)
PYTHON
)
expected=$(cat <<'SEEN'
1.000.000 people
He said "yes."
en the same
fr the same
it C'è un po 'di tempo.
fi EU: n osuus on 3,5.
ca L 'home d' avui.
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
