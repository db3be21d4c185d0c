#!/bin/sh
# media-captions 1.0.4 (npm), which plays SubStation Alpha in browsers, shows a `Comment:` line that follows a
# `Dialogue:` line: it becomes text of the cue before, with all its fields. And text is not escaped on its way to
# WebVTT: of "3 < 4", "3 " is shown.
# Guess before: comments are left out, and a text is shown as it is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" media-captions@1.0.4 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { parseText, renderVTTCueString } from "media-captions";
const text = `[Script Info]
ScriptType: v4.00+

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.50,0:00:03.20,Default,,0,0,0,,Hello
Comment: 0,0:00:05.50,0:00:06.25,Default,,0,0,0,,ask Ana
Dialogue: 0,0:00:07.00,0:00:09.00,Default,,0,0,0,,3 < 4
`;
const { cues, errors } = await parseText(text, { type: "ass" });
for (const cue of cues) console.log(cue.startTime, JSON.stringify(renderVTTCueString(cue)));
console.log(errors.length);
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
1.5 "Hello\nComment: 0,0:00:05.50,0:00:06.25,Default,,0,0,0,,ask Ana"
7 "3 "
0
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
