// Reads /asyncapi.json with AsyncAPI's own parser, and makes models of it in seven languages: node asyncapi.mjs ADDRESS
import * as modelina from "@asyncapi/modelina";
import { Parser } from "@asyncapi/parser";

const answer = await fetch(`${process.argv[2]}/asyncapi.json`);
const { document, diagnostics } = await new Parser().parse(await answer.text());
for (const { code, message, path } of diagnostics) console.error(`${code}: ${message} (${path.join("/")})`);
if (document === undefined) process.exit(1);
const unnamed = [];
for (const language of ["TypeScript", "Python", "Java", "Go", "CSharp", "Kotlin", "Rust"]) {
  const models = await new modelina[`${language}Generator`]().generate(document);
  unnamed.push(
    ...models
      .filter(({ modelName }) => /anonymous/i.test(modelName))
      .map(({ modelName }) => `${language} ${modelName}`),
  );
}
console.log(
  `${document.messages().length} messages, ${diagnostics.length} diagnostics, ${unnamed.length} models without a name`,
);
console.error(unnamed.join("\n"));
process.exit(diagnostics.length + unnamed.length > 0 ? 1 : 0);
