#!/bin/sh
# tokenizers 0.23.3: a `DecodeStream` that is given the ids so far, to go on behind them, gives only what is new, unless
# they end within a character (as a translation that is continued by bytes may): then its first piece has the whole text
# so far again, and a reader sees it twice.
# Guess before, not written down: only the character that is now complete.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3
seen=$("$folder/venv/bin/python" - <<'PYTHON'
from tokenizers import Tokenizer, decoders, models
from tokenizers.decoders import DecodeStream

letters = {"<0xE6>": 0, "<0x97>": 1, "<0xA5>": 2, "a": 3, "b": 4}
tokenizer = Tokenizer(models.BPE(letters, [], byte_fallback=True))
tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
ids = [3, 4, 0, 1, 2, 3]
for cut in (2, 3, 4, 5):
    stream = DecodeStream(ids[:cut], True)
    print(cut, [piece for one in ids[cut:] if (piece := stream.step(tokenizer, one))])
PYTHON
)
expected=$(cat <<'SEEN'
2 ['日', 'a']
3 ['ab日', 'a']
4 ['ab日', 'a']
5 ['a']
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
