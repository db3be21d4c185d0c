"""The npm package on other platforms than browsers and Node: in Deno, and with what React Native has."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.conformance.play import play
from gateway.conformance.transcripts import transcripts
from scripts.npm_package import NODE, TSC
from tests.conftest import ROOT
from tests.packages.node import output_of
from tests.packages.test_npm_package import ADDRESS, EXAMPLES
from tests.processes import GatewayProcess

pytestmark = pytest.mark.long

DRIVER = (ROOT / "examples/conformance/driver.mjs").read_text()
IMPORTED = '"translation-gateway-client"'


async def keeps_to_every_transcript(command: Sequence[str]) -> None:
    for transcript in transcripts():
        await play(transcript, command, wait_s=120)


# ------------------------------------------------------------ Deno

_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
DENO = str(ROOT / f".venv/node/node_modules/@deno/linux-{_MACHINE}-glibc/deno")
# The network and the folder are all it may use. It asks nobody for packages, as npm has installed them.
RUN: list[str] = [
    DENO,
    "run",
    "--quiet",
    "--no-remote",
    "--node-modules-dir=manual",
    "--allow-net=127.0.0.1",
    "--allow-read=.",
]


def deno(folder: Path, program: str) -> list[str]:
    """What a program prints in Deno until it ends, which has to be without an error."""
    file = folder / "program.mjs"
    file.write_text(program)
    environment = {**os.environ, "DENO_DIR": str(folder / ".deno"), "DENO_NO_UPDATE_CHECK": "1"}
    done = subprocess.run([*RUN, str(file)], cwd=folder, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_first_example_translates_in_deno(node_project: Path, gateway: GatewayProcess) -> None:
    printed = deno(node_project, EXAMPLES[0].replace(ADDRESS, gateway.url))
    assert sorted(printed) == ["de [de] Good morning, everyone.", "ja [ja] Good morning, everyone."]


def test_deno_gets_a_transcript(node_project: Path, gateway: GatewayProcess) -> None:
    printed = deno(
        node_project,
        f"""
        import {{ fetchTranscript, TranscriptError }} from {IMPORTED};
        const error = await fetchTranscript("{gateway.url}", "nobody").catch((reason) => reason);
        console.log(error instanceof TranscriptError, error.code);
        """,
    )
    assert printed == ["true unknown_meeting"]


async def test_deno_client_keeps_to_conformance_transcripts(
    node_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = node_project / "driver.mjs"
    driver.write_text(DRIVER)
    monkeypatch.setenv("DENO_DIR", str(node_project / ".deno"))
    monkeypatch.chdir(node_project)
    await keeps_to_every_transcript([*RUN, str(driver)])


# ------------------------------------------------------------ React Native

# What is there, as React Native's own types and those of its polyfills say; nothing else may be used.
GLOBALS = """
declare function setTimeout(run: () => void, ms?: number): number;
declare function clearTimeout(id: number | undefined): void;
declare function queueMicrotask(run: () => void): void;
declare const console: { error(text: string): void; warn(text: string): void };
declare const performance: { now(): number };
declare class TextEncoder { encode(text: string): Uint8Array }
declare const WebSocket: new (url: string, protocols?: string | string[]) => any;
declare function fetch(url: string, options?: object): Promise<any>;
declare const reportError: ((error: unknown) => void) | undefined;
type AbortSignal = object;
"""


@pytest.fixture(scope="module")
def react_native(node_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as Metro compiles it, whose `react_native.mjs` runs it."""
    folder = tmp_path_factory.mktemp("react_native")
    package = folder / "package"
    shutil.copytree(node_project / "node_modules/translation-gateway-client", package)
    for declarations in package.rglob("*.d.ts"):
        declarations.unlink()
    (folder / "globals.d.ts").write_text(GLOBALS)
    options = {
        # The library is that of ES2020: what came later, Hermes has in part.
        **{"allowJs": True, "checkJs": True, "strict": True, "lib": ["es2020"], "types": []},
        **{"target": "es2020", "module": "commonjs", "rootDir": "package", "outDir": "compiled"},
    }
    config = {"compilerOptions": options, "files": ["globals.d.ts", "package/client.js"]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    done = subprocess.run([NODE, TSC, "-p", folder / "tsconfig.json"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    shutil.copy(Path(__file__).parent / "react_native.mjs", folder)
    return folder


async def test_react_native_session_translates_and_gives_transcript(
    react_native: Path, gateway: GatewayProcess
) -> None:
    """The client runs with what React Native has."""
    printed = await output_of(
        react_native,
        """
        import { fetchTranscript, GatewayClient } from "./react_native.mjs";
        const [address] = process.argv.slice(2);
        const client = new GatewayClient(address, { meeting: "native", name: "Ana", speaks: "en", reads: ["ja"] });
        const translated = new Promise((resolve) => {
          client.listen(({ type, text }) => type === "translation.final" && resolve(text));
        });
        client.connect();
        client.final({ text: "Good morning." });
        console.log(await translated);
        client.close();
        const { utterances } = await fetchTranscript(address, "native", { languages: ["ja"] });
        for (const { speaker, translations } of utterances) console.log(speaker, translations.ja.text);
        """,
        gateway.url,
    )
    assert printed == ["[ja] Good morning.", "Ana [ja] Good morning."]


async def test_react_native_session_survives_a_replaced_connection(
    react_native: Path, gateway: GatewayProcess
) -> None:
    """Its `WebSocket` closes with 1000 where no code is given, which would end the session."""
    printed = await output_of(
        react_native,
        """
        import { GatewayClient } from "./react_native.mjs";
        const client = new GatewayClient(process.argv[2], { name: "Ana" });
        client.listen((event) => {
          if (event.type !== "session.started") return;
          console.log(event.recovered, client.name);
          if (client.name === "Ana") client.rename("Ben");
          else client.close();
        });
        client.connect();
        """,
        gateway.url,
    )
    assert printed == ["null Ana", "true Ben"]


async def test_react_native_client_keeps_to_conformance_transcripts(
    react_native: Path,
) -> None:
    """The client runs with what React Native has."""
    driver = react_native / "driver.mjs"
    driver.write_text(DRIVER.replace(IMPORTED, '"./react_native.mjs"'))
    await keeps_to_every_transcript([str(NODE), str(driver)])
