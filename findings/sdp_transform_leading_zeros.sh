#!/bin/sh
# sdp-transform 1.1.0 (PyPI) makes a number of whatever looks like one, and loses zeros in front. The name "0012" by which
# the two sides of a call know each other becomes 12, shorter than the standard allows, and the media id "00" becomes 0:
# one call in many thousands cannot connect. sdp-transform 3.0.0 (npm), which it follows, keeps them.
# Guess before: names stay texts.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check sdp-transform==1.1.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" sdp-transform@3.0.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { writeFileSync } from "node:fs";
import sdp from "sdp-transform";
const text = `v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 00
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=ice-ufrag:0012
a=ice-pwd:0123456789012345678901
a=mid:00
a=rtpmap:111 opus/48000/2
`.replaceAll("\n", "\r\n");
writeFileSync("offer.sdp", text);
const lines = sdp.write(sdp.parse(text)).split("\r\n");
console.log("npm", lines.filter((line) => /ice-|mid|group/.test(line)).join(" "));
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
from pathlib import Path

import sdp_transform

text = Path("offer.sdp").read_bytes().decode()
lines = sdp_transform.write(sdp_transform.parse(text)).split("\r\n")
print("PyPI", *(line for line in lines if any(word in line for word in ("ice-", "mid", "group"))))
PYTHON
)
expected=$(cat <<'SEEN'
npm a=group:BUNDLE 00 a=mid:00 a=ice-ufrag:0012 a=ice-pwd:0123456789012345678901
PyPI a=group:BUNDLE 0 a=ice-ufrag:12 a=ice-pwd:123456789012345678901 a=mid:0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
