#!/bin/sh
# outlines-core 0.2.14 makes a regular expression of a JSON schema, to which a model is then held. It does not look at
# minimum and maximum: a confidence of 7 passes where at most 1 is allowed, without a warning. What it forbids is valid:
# "1e3", a date with "+09:00", an object over several lines, and the escape of a letter. jsonschema 4.26.0 says what is
# valid.
# Guess before: bounds are kept; escapes and line breaks pass. For the date and 1e3 none was written down.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check outlines-core==0.2.14 jsonschema==4.26.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import json
import re

import jsonschema
from outlines_core.json_schema import build_regex_from_schema

CASES = (
    ({"type": "integer", "minimum": 0, "maximum": 1}, "7"),
    ({"type": "integer", "minimum": 0, "maximum": 1}, "-1"),
    ({"type": "number"}, "1e3"),
    ({"type": "string", "format": "date-time"}, '"2026-11-30T10:00:00+09:00"'),
    ({"type": "object", "properties": {"text": {"type": "string"}}}, '{\n  "text": "a"\n}'),
    ({"type": "string"}, '"caf\\u00e9"'),
    ({"type": "string"}, '"caf\u00e9"'),
)
for schema, text in CASES:
    passes = re.fullmatch(build_regex_from_schema(json.dumps(schema)), text) is not None
    print(ascii(text), "passes" if passes else "is forbidden", end=", ")
    print("valid" if jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)) else "not valid")
PYTHON
)
expected=$(cat <<'SEEN'
'7' passes, not valid
'-1' passes, not valid
'1e3' is forbidden, valid
'"2026-11-30T10:00:00+09:00"' is forbidden, valid
'{\n  "text": "a"\n}' is forbidden, valid
'"caf\\u00e9"' is forbidden, valid
'"caf\xe9"' passes, valid
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
