#!/bin/sh
# gettext-converter 1.3.4 (npm) does not look at the formula of a PO file when it writes JSON for i18next. In Latvian, with
# the formula that all use, the text for most numbers is written nowhere: "2 files" has no translation. In Slovenian,
# with the formula of gettext's own manual, each text goes to another number: one file is said as two. Polish is right.
# Guess before: each text under the name that the file's own formula gives it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" gettext-converter@1.3.4 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import converter from "gettext-converter";
const po = (language, forms, texts) => `msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: ${language}\\n"
"Plural-Forms: ${forms}\\n"

msgid "%d file"
msgid_plural "%d files"
${texts.map((text, form) => `msgstr[${form}] "${text}"`).join("\n")}
`;
const show = (...file) => console.log(file[0], JSON.stringify(converter.po2i18next(po(...file), { compatibilityJSON: "v4" })));
show("lv", "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);", ["%d fails", "%d faili", "%d failu"]);
show("pl", "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);", ["%d plik", "%d pliki", "%d plików"]);
show("sl", "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);", ["%d datoteka", "%d datoteki", "%d datoteke", "%d datotek"]);
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
lv {"%d file_one":"%d fails","%d file_zero":"%d failu"}
pl {"%d file_one":"%d plik","%d file_few":"%d pliki","%d file_many":"%d plików"}
sl {"%d file_other":"%d datoteka","%d file_one":"%d datoteki","%d file_two":"%d datoteke","%d file_few":"%d datotek"}
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
