#!/bin/sh
# arabic-reshaper 3.1.0 joins Arabic letters for programs that draw captions into a picture. Letters of Kurdish (ێ ە) and
# Pashto (ښ) stay as they are, and their neighbours take the form that joins to nothing, so that words fall apart. With
# its own `language: "Kurdish"` it writes code points of private use, which a font shows as a box. And by default it
# drops the vowel marks.
# Guess before: the marks stay, and the letters of Kurdish and Pashto are joined to their neighbours.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check arabic-reshaper==3.1.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from arabic_reshaper import ArabicReshaper


def forms(text, **options):
    return " ".join(f"{ord(letter):04X}" for letter in ArabicReshaper(configuration=options).reshape(text))


print("Arabic  ", forms("بيت"))
print("Kurdish ", forms("بێت"))
print("Kurdish ", forms("بێت", language="Kurdish"))
print("Pashto  ", forms("بښت"))
print("marks   ", forms("بَيت"))
PYTHON
)
expected=$(cat <<'SEEN'
Arabic   FE91 FEF4 FE96
Kurdish  FE8F 06CE FE95
Kurdish  FE91 E006 FE96
Pashto   FE8F 069A FE95
marks    FE91 FEF4 FE96
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
