#!/bin/sh
# A reader asks for zh-Hant-TW, and the program has zh-Hant and zh (Simplified, as CLDR says). negotiator 1.1.0 (npm)
# and babel 2.19.0 give zh: negotiator knows only the first subtag and all of the rest, babel tries zh_Hant_TW and then
# zh. bcp-47-match 2.0.3 gives the one that the program names first, even "pt" to "pt-BR" where both are there. Only
# @formatjs/intl-localematcher 0.10.1 (npm) gives zh-Hant, for zh-TW, too.
# Guess before: subtags are dropped from the end, one after the other, as RFC 4647 says, by all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check babel==2.19.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" negotiator@1.1.0 bcp-47-match@2.0.3 @formatjs/intl-localematcher@0.10.1 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { match } from "@formatjs/intl-localematcher";
import { lookup } from "bcp-47-match";
import Negotiator from "negotiator";
console.log("pt-BR bcp-47-match", lookup(["pt", "pt-BR"], "pt-BR"));
const offered = ["zh", "zh-Hant"];
for (const wanted of ["zh-Hant-TW", "zh-TW"]) {
  console.log(wanted, "negotiator", new Negotiator({ headers: { "accept-language": wanted } }).languages(offered)[0]);
  console.log(wanted, "bcp-47-match", lookup(offered, wanted), lookup(offered.toReversed(), wanted));
  console.log(wanted, "intl-localematcher", match([wanted], offered, "en"));
}
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
from babel import negotiate_locale

for wanted in ("zh_Hant_TW", "zh_TW"):
    print(wanted, "babel", negotiate_locale([wanted], ["zh", "zh_Hant"]))
PYTHON
)
expected=$(cat <<'SEEN'
pt-BR bcp-47-match pt
zh-Hant-TW negotiator zh
zh-Hant-TW bcp-47-match zh zh-Hant
zh-Hant-TW intl-localematcher zh-Hant
zh-TW negotiator zh
zh-TW bcp-47-match zh zh
zh-TW intl-localematcher zh-Hant
zh_Hant_TW babel zh
zh_TW babel zh
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
