#!/bin/sh
# num2words 0.5.14 says -3 in Vietnamese as "mười bảy", seventeen, and in Bengali as three; in Polish and Czech it
# raises. In Vietnamese, Turkish and Arabic 0.05 is "point five" and 0.5 "point fifty"; in Bengali and Persian both are
# the same words. So a translation that is read aloud says another temperature or price than its text.
# Guess before: a word for minus in each language it lists; a zero for each zero behind the point, as in English.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check num2words==0.5.14
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from num2words import num2words

for lang in ("en", "vi", "bn", "pl", "cs"):
    try:
        print(lang, num2words(-3, lang=lang), "|", num2words(17, lang=lang))
    except ValueError as error:
        print(lang, type(error).__name__)
for lang in ("en", "vi", "tr", "bn", "ar", "fa"):
    print(lang, num2words(0.05, lang=lang), "|", num2words(0.5, lang=lang))
PYTHON
)
expected=$(cat <<'SEEN'
en minus three | seventeen
vi mười bảy | mười bảy
bn তিন | সতের
pl ValueError
cs ValueError
en zero point zero five | zero point five
vi không phẩy năm | không phẩy năm mươi
tr sıfırvirgülbeş | sıfırvirgülelli
bn শূন্য দশমিক পাঁচ | শূন্য দশমিক পাঁচ
ar , خمس | , خمسون
fa نیم | نیم
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
