// Every recording of tests/recordings/, which the Python library is held to as well.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Recogniser } from "../../web_demo/client/recognisers/recogniser.js";

const FORMS = ["lines", "states", "browser"];

/** What is to be said after a step. */
function heard(recogniser, result) {
  if (result.rest) return recogniser.rest();
  if (result.restarted === undefined) return recogniser.hear(result);
  recogniser.restarted(result.restarted ?? undefined);
  return [];
}

/** As it stands in a recording: without times that are not known at its end. */
function short({ kind, id, text, start_ms = null, end_ms = null }) {
  const said = [kind, id, text, start_ms, end_ms];
  while (said.at(-1) === null) said.pop();
  return said;
}

for (const form of FORMS) {
  const recordings = JSON.parse(readFileSync(new URL(`../recordings/${form}.json`, import.meta.url), "utf8"));
  for (const [name, steps] of Object.entries(recordings)) {
    test(`${form}: ${name}`, () => {
      const recogniser = new Recogniser();
      for (const [number, [result, expected]] of steps.entries())
        assert.deepEqual([number + 1, heard(recogniser, result).map(short)], [number + 1, expected]);
    });
  }
}
