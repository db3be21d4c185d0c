#!/bin/sh
# A search through a transcript in several languages, with each library's defaults. @orama/orama 3.1.18 and elasticlunr
# 0.9.5 (npm) find words in Latin letters only, js-search 2.0.1 some Cyrillic, too: Greek, Hindi, Hebrew, Thai and Korean
# are not found, without a warning, though the very word is there. flexsearch 0.8.212 and minisearch 7.2.0 find all.
# Guess before: a whole word between blanks is found by all.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @orama/orama@3.1.18 elasticlunr@0.9.5 js-search@2.0.1 flexsearch@0.8.212 minisearch@7.2.0 >/dev/null
cat >look.mjs <<'JAVASCRIPT'
import * as orama from "@orama/orama";
import elasticlunr from "elasticlunr";
import flexsearch from "flexsearch";
import * as jsSearch from "js-search";
import MiniSearch from "minisearch";
console.log = ((write) => (...words) => /user configuration/.test(words[0]) || write(...words))(console.log);
const lines = ["budget heute", "привет мир", "Ελλάδα εδώ", "हिंदी में", "שלום עולם", "สวัสดี ครับ", "한국어 회의"];
const rows = lines.map((text, id) => ({ id: String(id), text }));
const words = lines.map((line) => line.split(" ")[0]);
const show = (name, found) => console.log(name, words.filter((_, index) => found[index]).join(" "));

const database = orama.create({ schema: { text: "string" } });
for (const { text } of rows) await orama.insert(database, { text });
show("orama", await Promise.all(words.map(async (term) => (await orama.search(database, { term })).count)));
const elastic = elasticlunr(function () {
  this.addField("text");
});
rows.forEach((row) => elastic.addDoc(row));
show("elasticlunr", words.map((word) => elastic.search(word).length));
const js = new jsSearch.Search("id");
js.addIndex("text");
js.addDocuments(rows);
show("js-search", words.map((word) => js.search(word).length));
const flex = new flexsearch.Index();
rows.forEach(({ id, text }) => flex.add(id, text));
show("flexsearch", words.map((word) => flex.search(word).length));
const mini = new MiniSearch({ fields: ["text"] });
mini.addAll(rows);
show("minisearch", words.map((word) => mini.search(word).length));
JAVASCRIPT
seen=$(node look.mjs)
expected=$(cat <<'SEEN'
orama budget
elasticlunr budget
js-search budget привет
flexsearch budget привет Ελλάδα हिंदी שלום สวัสดี 한국어
minisearch budget привет Ελλάδα हिंदी שלום สวัสดี 한국어
SEEN
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
    printf 'It is not as it was. It was:\n%s\n' "$expected" >&2
    exit 1
}
