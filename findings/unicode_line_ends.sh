#!/bin/sh
# JSON texts may hold U+2028 and U+0085, and JavaScript writes them as they are. Three Python libraries take them for ends
# of lines. ndjson 0.3.1 reads a comma in their place, without an error. requests 2.34.2 cuts the text in two with
# `iter_lines(decode_unicode=True)`, not without. deepl 1.32.0 refuses a glossary with them ("does not contain separator").
# jsonlines 4.0.0 and ndjson's own `reader` read them rightly.
# Guess before: a line ends with a line feed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ndjson==0.3.1 jsonlines==4.0.0 requests==2.34.2 deepl==1.32.0
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import io
import json

import deepl
import jsonlines
import ndjson
import requests

lines = json.dumps({"text": "one\u2028two"}, ensure_ascii=False) + "\n"
print("ndjson", ascii(ndjson.loads(lines)))
print("ndjson.reader", ascii(list(ndjson.reader(io.StringIO(lines)))))
print("jsonlines", ascii(list(jsonlines.Reader(io.StringIO(lines)))))
for decode in (True, False):
    response = requests.Response()
    response.encoding = "utf-8"
    response.raw = io.BytesIO(lines.encode())
    print("requests", decode, len(list(response.iter_lines(decode_unicode=decode))))
try:
    print(deepl.convert_tsv_to_dict("chair\u2028woman\tVorsitzende\n"))
except ValueError as error:
    print("deepl", ascii(error))
PYTHON
)
expected=$(cat <<'SEEN'
ndjson [{'text': 'one,two'}]
ndjson.reader [{'text': 'one\u2028two'}]
jsonlines [{'text': 'one\u2028two'}]
requests True 2
requests False 1
deepl ValueError('Entry 1 does not contain separator: chair')
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
