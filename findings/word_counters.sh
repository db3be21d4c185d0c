#!/bin/sh
# How many words somebody said, by five libraries (npm). word-count 0.3.1 finds none in Hindi, Bengali, Hebrew, Tamil and
# Thai, wordcount 1.1.1 none in these and in Arabic: a transcript in them is read in 0 minutes and costs nothing.
# words-count 2.0.2, reading-time 1.5.0 and word-count count each syllable of Korean, which has blanks between its words;
# two of them count all of a Thai sentence as one word. alfaaz 1.1.0 is right but for Thai, where it counts letters.
# Guess before: four in the Hindi sentence, two in the Korean one, more than one in the Thai one, from all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" word-count@0.3.1 wordcount@1.1.1 words-count@2.0.2 reading-time@1.5.0 alfaaz@1.1.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import { countWords } from "alfaaz";
import readingTime from "reading-time";
import wordCount from "word-count";
import wordcount from "wordcount";
import wordsCount from "words-count";
const TEXTS = {
  "hi 4": "हिंदी में बात करो",
  "bn 2": "নমস্কার বন্ধু",
  "he 2": "שלום עולם",
  "ar 2": "مرحبا بكم",
  "ta 2": "வணக்கம் நண்பரே",
  "ko 2": "안녕하세요 여러분",
  "th 3": "สวัสดีครับทุกคน",
};
console.log("word-count wordcount words-count reading-time alfaaz");
for (const [name, text] of Object.entries(TEXTS))
  console.log(name, wordCount(text), wordcount(text), (wordsCount.default ?? wordsCount)(text), readingTime(text).words, countWords(text));
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
word-count wordcount words-count reading-time alfaaz
hi 4 0 0 4 4 4
bn 2 0 0 2 2 2
he 2 0 0 2 2 2
ar 2 2 0 2 2 2
ta 2 0 0 2 2 2
ko 2 8 2 8 8 2
th 3 0 0 1 1 15
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
