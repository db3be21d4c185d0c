#!/bin/sh
# One ICU message is not one sentence. "l'{lang}", as French writes it, is text in braces to intl-messageformat 12.1.5 and
# format-message 6.2.4, as ICU says, and the language's name to @messageformat/core 3.4.1 and @lingui/core 6.8.0, unless
# a second apostrophe follows. icu-minify 4.14.8 does not subtract `offset:1`: "Ana and 2 others" are one too many.
# "::percent" of 2 is 2% to one, 200% to two, 2 to another, and raises a RangeError in the fifth.
# Guess before, written down for the apostrophe and the offset: the same sentence from all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" intl-messageformat@12.1.5 @messageformat/core@3.4.1 format-message@6.2.4 icu-minify@4.14.8 @lingui/core@6.8.0 @lingui/message-utils@6.8.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { setupI18n } from "@lingui/core";
import { compileMessage } from "@lingui/message-utils/compileMessage";
import MessageFormat from "@messageformat/core";
import formatMessage from "format-message";
import compile from "icu-minify/compile";
import format from "icu-minify/format";
import { IntlMessageFormat } from "intl-messageformat";
const values = { lang: "EN", n: 2 };
const formatters = {
  getNumberFormat: (...of) => new Intl.NumberFormat(...of),
  getPluralRules: (...of) => new Intl.PluralRules(...of),
};
formatMessage.setup({ missingTranslation: "ignore" });
const libraries = {
  "intl-messageformat": (text) => new IntlMessageFormat(text, "en").format(values),
  "@messageformat/core": (text) => new MessageFormat("en").compile(text)(values),
  "format-message": (text) => formatMessage(text, values),
  "icu-minify": (text) => format(compile(text), "en", values, { formatters }),
  lingui: (text) => setupI18n({ locale: "en", messages: { en: { id: compileMessage(text) } } })._("id", values),
};
for (const text of ["l'{lang}", "{n, plural, offset:1 one{Ana and # other} other{Ana and # others}}", "{n, number, ::percent}"])
  for (const [name, say] of Object.entries(libraries)) {
    try {
      console.log(name, say(text));
    } catch (error) {
      console.log(name, error.name);
    }
  }
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
intl-messageformat l{lang}
@messageformat/core l'EN
format-message l{lang}
icu-minify l{lang}
lingui l'EN
intl-messageformat Ana and 1 other
@messageformat/core Ana and 1 other
format-message Ana and 1 other
icu-minify Ana and 2 others
lingui Ana and 1 other
intl-messageformat 200%
@messageformat/core 2%
format-message 2
icu-minify 200%
lingui RangeError
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
