#!/bin/sh
# @msgpack/msgpack 3.1.3 writes half of a surrogate pair, which JavaScript strings may hold (a text cut at 100 units),
# as three bytes that are not UTF-8; strict decoders refuse the whole message. It reads a byte that is not UTF-8 as if it
# were Latin-1. msgpackr 2.1.4 writes and reads U+FFFD in both cases, as TextEncoder and TextDecoder do.
# Guess before: both do what TextEncoder does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @msgpack/msgpack@3.1.3 msgpackr@2.1.4 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import * as msgpack from "@msgpack/msgpack";
import { pack, unpack } from "msgpackr";
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const cut = "😀".slice(0, 1);
console.log("write", hex(msgpack.encode(cut)), hex(pack(cut)));
const latin = Buffer.from("a1ff", "hex");
console.log("read", msgpack.decode(latin).codePointAt(0).toString(16), unpack(latin).codePointAt(0).toString(16));
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
write a3eda0bd a3efbfbd
read ff fffd
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
