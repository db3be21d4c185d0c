#!/bin/sh
# msgpackr 2.1.4 and cbor-x 1.6.9 read each whole number that was written in eight bytes as a BigInt, also one that a
# number holds exactly, such as milliseconds of today from Python. `Date.now() - sent` then raises, JSON.stringify too,
# and `===` is false; with msgpackr's `int64AsType: "auto"` it is a number. @msgpack/msgpack 3.1.3 reads a number.
# msgpackr does not agree with itself: what it wrote is a number.
# Guess before: a BigInt only above Number.MAX_SAFE_INTEGER.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check msgspec==0.23.0 cbor2==6.3.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @msgpack/msgpack@3.1.3 msgpackr@2.1.4 cbor-x@1.6.9 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import * as msgpack from "@msgpack/msgpack";
import { pack, unpack } from "msgpackr";
import { decode } from "cbor-x";
const [msgpackBytes, cborBytes] = process.argv.slice(2).map((hex) => Buffer.from(hex, "hex"));
console.log("@msgpack/msgpack", typeof msgpack.decode(msgpackBytes));
console.log("msgpackr", typeof unpack(msgpackBytes), "its own", typeof unpack(pack(1_764_400_000_000)));
console.log("cbor-x", typeof decode(cborBytes));
try {
  console.log(Date.now() - unpack(msgpackBytes));
} catch (error) {
  console.log(error.name);
}
JAVASCRIPT
seen=$("$folder/venv/bin/python" - <<'PYTHON'
import subprocess

import cbor2
import msgspec

sent = 1_764_400_000_000
print(subprocess.run(["node", "look.mjs", msgspec.msgpack.encode(sent).hex(), cbor2.dumps(sent).hex()],
                     capture_output=True, text=True, check=True).stdout.strip())
PYTHON
)
expected=$(cat <<'SEEN'
@msgpack/msgpack number
msgpackr bigint its own number
cbor-x bigint
TypeError
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
