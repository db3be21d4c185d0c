#!/bin/sh
# Three libraries do not read the Latin letters that they write for Japanese. jaconv 0.5.0 writes "no smoking" (kin'en) as
# "kinen", and reads "anniversary"; a bookshop (hon'ya) loses a syllable, "konnichiha" and "onna" a letter. wanakana
# 5.3.1 (npm) leaves a "t" of its own "matcha" in Latin; hepburn 1.3.0 (npm) does not know its own long vowels in
# hiragana. romkan 0.2.1 reads all that it writes.
# Guess before: the same word from each of them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check jaconv==0.5.0 romkan==0.2.1
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" wanakana@5.3.1 hepburn@1.3.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import hepburn from "hepburn";
import wanakana from "wanakana";
console.log("wanakana", wanakana.toRomaji("まっちゃ"), wanakana.toHiragana(wanakana.toRomaji("まっちゃ")));
console.log("wanakana", wanakana.toRomaji("きんえん"), wanakana.toHiragana(wanakana.toRomaji("きんえん")));
console.log("hepburn", hepburn.fromKana("ラーメン"), hepburn.toHiragana(hepburn.fromKana("ラーメン")));
JAVASCRIPT
seen=$(
    node look.mjs
    "$folder/venv/bin/python" - <<'PYTHON'
import jaconv
import romkan

for word in ("きんえん", "ほんや", "こんにちは", "おんな", "まっちゃ"):
    latin, other = jaconv.kana2alphabet(word), romkan.to_roma(word)
    print(word, "jaconv", latin, jaconv.alphabet2kana(latin), "romkan", other, romkan.to_hiragana(other))
PYTHON
)
expected=$(cat <<'SEEN'
wanakana matcha まtちゃ
wanakana kin'en きんえん
hepburn RĀMEN RĀめん
きんえん jaconv kinen きねん romkan kin'en きんえん
ほんや jaconv honya ほにゃ romkan hon'ya ほんや
こんにちは jaconv konnichiha こんいちは romkan kon'nichiha こんにちは
おんな jaconv onna おんあ romkan on'na おんな
まっちゃ jaconv maccha まっちゃ romkan maccha まっちゃ
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
