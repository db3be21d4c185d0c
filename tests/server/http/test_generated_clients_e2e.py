"""Clients that are generated from a gateway's `/openapi.json`, in Python and TypeScript, call that gateway."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateways import running
from tests.keys import Keyring

pytestmark = pytest.mark.slow

VENV = Path(__file__).parents[3] / ".venv"
NODE = str(VENV / "bin" / "node")
NODE_MODULES = VENV / "node" / "node_modules"
# Apart from the rest, with a TypeScript of its own.
OPENAPI_TYPESCRIPT = VENV / "node" / "openapi" / "node_modules" / "openapi-typescript" / "bin" / "cli.js"

EXPECTED = {
    "one": "[ja] hi",
    "batch": ["[de] one", None],
    "error": "engine_failed",
    "languages": {"ja": "[ja] Guten Morgen zusammen", "de": "Guten Morgen zusammen"},
    "detected": "de",
    "problem": ["unsupported_language", "target_lang"],
    "known": ["en", "ja", "es", "de", "fr", "zh"],
    "status": "ready",
    "tenant": "acme",
}


@pytest.fixture
def keys(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path)


@pytest.fixture
async def address(keys: Keyring) -> AsyncIterator[str]:
    async with running(keys.settings()) as gateway:
        yield f"http://127.0.0.1:{gateway.port}"


async def run(*command: str, **environment: str) -> str:
    """What a command says; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


# ---------------------------------------------------------------- Python

# Its command line needs another version of its own tools than is installed here.
GENERATE = """
import sys
from pathlib import Path

import openapi_python_client
from openapi_python_client.config import Config, ConfigFile, MetaType

source, target = sys.argv[1:]
config = Config.from_sources(
    ConfigFile(post_hooks=[]), MetaType.NONE, source, "utf-8", True, Path(target)
)
for error in openapi_python_client.generate(config=config):
    print(error.header)
"""

PYTHON = """
import asyncio
import json
import sys

from generated.api.default import languages, readyz, translate, usage
from generated.client import AuthenticatedClient
from generated.models import (
    BatchAnswer,
    Languages,
    LanguagesAnswer,
    Problem,
    Readiness,
    TextAnswer,
    TextError,
    TranslateBody,
    TranslateBodyFormalityType0,
    TranslateBodyGlossaryType0,
    UsageAnswer,
)


async def main() -> None:
    async with AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2]) as client:
        body = TranslateBody(text="hi", source_lang="en", target_lang="ja")
        one = await translate.asyncio(client=client, body=body)
        assert isinstance(one, TextAnswer)
        glossary = TranslateBodyGlossaryType0()
        glossary["one"] = "eins"
        body = TranslateBody(
            texts=["one", "FAIL"],
            source_lang="en",
            target_lang="de",
            glossary=glossary,
            formality=TranslateBodyFormalityType0.FORMAL,
        )
        batch = await translate.asyncio(client=client, body=body)
        assert isinstance(batch, BatchAnswer)
        error = batch.translations[1].error
        assert isinstance(error, TextError)
        body = TranslateBody(text="Guten Morgen zusammen", target_langs=["ja", "de"])
        several = await translate.asyncio(client=client, body=body)
        assert isinstance(several, LanguagesAnswer)
        by_language = several.translations[0].additional_properties
        problem = await translate.asyncio(client=client, body=TranslateBody(text="hi", target_lang="tlh"))
        assert isinstance(problem, Problem)
        known = await languages.asyncio(client=client)
        assert isinstance(known, Languages)
        ready = await readyz.asyncio(client=client)
        assert isinstance(ready, Readiness)
        used = await usage.asyncio(client=client)
        assert isinstance(used, UsageAnswer)
    found = {
        "one": one.translation,
        "batch": [item.translation for item in batch.translations],
        "error": error.code,
        "languages": {lang: item.translation for lang, item in by_language.items()},
        "detected": by_language["ja"].source_lang,
        "problem": [problem.code, problem.field],
        "known": [item.tag for item in known.languages],
        "status": ready.status.value,
        "tenant": used.tenant,
    }
    print(json.dumps(found))


asyncio.run(main())
"""


async def test_a_python_client_with_typed_bodies(address: str, keys: Keyring, tmp_path: Path) -> None:
    said = await run(sys.executable, "-c", GENERATE, f"{address}/openapi.json", str(tmp_path / "generated"))
    # What it cannot make: an image as an answer, and a text as a body.
    assert [line for line in said.splitlines() if line.startswith("WARNING")] == [
        "WARNING parsing GET /qr.svg within default.",
        "WARNING parsing POST /qr.svg within default. Endpoint will not be generated.",
    ]
    program = tmp_path / "program.py"
    program.write_text(PYTHON)
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\nfollow_imports = silent\n")
    await run(
        *(sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(tmp_path / "cache")),
        str(program),
        MYPYPATH=str(tmp_path),
    )
    assert json.loads(await run(sys.executable, str(program), address, keys.api_key)) == EXPECTED


# ---------------------------------------------------------------- TypeScript

TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { components, paths } from "./api.d.ts";

type Body = components["schemas"]["TranslateBody"];

const [, , baseUrl = "", key] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

async function translate(body: Body) {
  const { data, error } = await client.POST("/v1/translate", { body });
  if (error !== undefined) throw new Error(error.detail);
  // It would be a stream, had one been asked for.
  if (typeof data === "string") throw new Error("a stream");
  return data;
}

const one = await translate({ text: "hi", source_lang: "en", target_lang: "ja" });
const batch = await translate({
  texts: ["one", "FAIL"],
  source_lang: "en",
  target_lang: "de",
  glossary: { one: "eins" },
  formality: "formal",
});
const several = await translate({ text: "Guten Morgen zusammen", target_langs: ["ja", "de"] });
const asAsked =
  "translation" in one && "target_lang" in batch && "translations" in batch && "target_langs" in several;
if (!asAsked) throw new Error("another answer than was asked for");
const ofText = several.translations[0] ?? {};
const refused = await client.POST("/v1/translate", { body: { text: "hi", target_lang: "tlh" } });
const known = await client.GET("/v1/languages");
const ready = await client.GET("/readyz");
const used = await client.GET("/v1/usage");

// What must not compile: a field that does not exist, and one of the wrong type.
// @ts-expect-error
const misspelt: Body = { text: "hi", target_language: "ja" };
// @ts-expect-error
const wrong: Body = { text: 1, target_lang: "ja" };

console.log(JSON.stringify({
  one: one.translation,
  batch: batch.translations.map((item) => item.translation),
  error: batch.translations[1]?.error?.code,
  languages: Object.fromEntries(Object.entries(ofText).map(([lang, item]) => [lang, item.translation])),
  detected: ofText["ja"]?.source_lang,
  problem: [refused.error?.code, refused.error?.field],
  known: known.data?.languages.map((language) => language.tag),
  status: ready.data?.status,
  tenant: used.data?.tenant,
}));
"""

TSCONFIG = {
    "compilerOptions": {
        "strict": True,
        "noUncheckedIndexedAccess": True,
        "exactOptionalPropertyTypes": True,
        "noEmit": True,
        "target": "es2022",
        "lib": ["es2022", "dom", "dom.iterable"],
        "module": "nodenext",
        "moduleResolution": "nodenext",
        "allowImportingTsExtensions": True,
        "types": ["node"],
    },
    "files": ["program.mts"],
}


async def test_a_typescript_client_under_strict_rules(address: str, keys: Keyring, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    (tmp_path / "program.mts").write_text(TYPESCRIPT)
    (tmp_path / "tsconfig.json").write_text(json.dumps(TSCONFIG))
    await run(NODE, str(OPENAPI_TYPESCRIPT), f"{address}/openapi.json", "-o", str(tmp_path / "api.d.ts"))
    await run(NODE, str(NODE_MODULES / "typescript" / "bin" / "tsc"), "-p", str(tmp_path))
    # Node runs TypeScript as it is, without its types.
    program = str(tmp_path / "program.mts")
    said = await run(NODE, "--disable-warning=ExperimentalWarning", program, address, keys.api_key)
    assert json.loads(said) == EXPECTED
