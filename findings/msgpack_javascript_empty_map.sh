#!/bin/sh
# @msgpack/msgpack 3.1.3 writes a Map, a Set and an ArrayBuffer as an empty map: what was in them is gone, also the
# sound of `await blob.arrayBuffer()`. No error, though it raises for a BigInt and a function. A Uint8Array is written
# as bytes. msgpackr 2.1.4 writes all three with their contents.
# Guess before: a map, a list and bytes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @msgpack/msgpack@3.1.3 msgpackr@2.1.4 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { encode } from "@msgpack/msgpack";
import { pack } from "msgpackr";
const values = { Map: new Map([["a", 1]]), Set: new Set([1]), ArrayBuffer: new Uint8Array([1, 2]).buffer };
values.Uint8Array = new Uint8Array([1, 2]);
for (const [name, value] of Object.entries(values)) {
  console.log(name, Buffer.from(encode(value)).toString("hex"), Buffer.from(pack(value)).toString("hex"));
}
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
Map 80 81a16101
Set 80 9101
ArrayBuffer 80 c4020102
Uint8Array c4020102 c4020102
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
