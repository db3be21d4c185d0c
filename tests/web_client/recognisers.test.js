// Every recording of tests/recordings/, which the Python library is held to as well.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Recogniser } from "../../web_demo/client/recognisers/recogniser.js";
import { said } from "./recordings.js";

const FORMS = ["lines", "states", "browser"];

for (const form of FORMS) {
  const recordings = JSON.parse(readFileSync(new URL(`../recordings/${form}.json`, import.meta.url), "utf8"));
  for (const [name, steps] of Object.entries(recordings)) {
    test(`${form}: ${name}`, () => {
      const expected = steps.map(([, said]) => said);
      assert.deepEqual([...said(Recogniser, steps).entries()], [...expected.entries()]);
    });
  }
}
