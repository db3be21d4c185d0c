#!/bin/sh
# lm-format-enforcer 0.11.3 knows an alphabet of ASCII: in a JSON text it forbids every other letter, and the expression
# ".+" forbids Japanese. A model that translates has to write \\u escapes or other words. With `alphabet` in its
# configuration it allows what is listed; a class that names the letter does too.
# Guess before: any character that JSON, or a dot, allows.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lm-format-enforcer==0.11.3
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from lmformatenforcer import CharacterLevelParserConfig, JsonSchemaParser, RegexParser


def accepted(parser, text):
    for position, letter in enumerate(text):
        if letter not in parser.get_allowed_characters():
            return f"no, at {position}"
        parser = parser.add_character(letter)
    return "yes" if parser.can_end() else "unfinished"


schema = {"type": "object", "properties": {"de": {"type": "string"}}, "required": ["de"]}
alphabet = CharacterLevelParserConfig(alphabet='{}":abcdeg\u00fc')
print("plain", accepted(JsonSchemaParser(schema), '{"de":"gut"}'))
print("umlaut", accepted(JsonSchemaParser(schema), '{"de":"\u00fc"}'))
print("escaped", accepted(JsonSchemaParser(schema), '{"de":"\\u00fc"}'))
print("listed", accepted(JsonSchemaParser(schema, alphabet), '{"de":"\u00fc"}'))
print("dot", accepted(RegexParser(".+"), "\u65e5"))
print("class", accepted(RegexParser("[\u65e5]"), "\u65e5"))
PYTHON
)
expected=$(cat <<'SEEN'
plain yes
umlaut no, at 7
escaped yes
listed yes
dot no, at 0
class yes
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
