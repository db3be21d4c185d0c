"""The React example: the component in a page of another origin, with the installed npm package, in Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from gateway.protocol.messages import ParticipantLeft
from scripts.npm_package import NODE, TSC
from tests.browser.conftest import SCRIPT, StartGateway, start_gateway
from tests.browser.test_browser_docs import served
from tests.conftest import ROOT
from tests.packages.test_examples import ana, joined
from tests.processes import GatewayProcess

__all__ = ["start_gateway"]

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PACKAGES = ROOT / ".venv" / "node" / "node_modules"
COMPONENT = ROOT / "examples/react/Captions.tsx"
# Module → its file; React comes as CommonJS, which browsers do not know.
REACT = {
    "react": "react/cjs/react.production.js",
    "react/jsx-runtime": "react/cjs/react-jsx-runtime.production.js",
    "react-dom": "react-dom/cjs/react-dom.production.js",
    "react-dom/client": "react-dom/cjs/react-dom-client.production.js",
    "scheduler": "scheduler/cjs/scheduler.production.js",
}
MAIN = """
import { StrictMode, createElement } from "react";
import { createRoot } from "react-dom/client";
import { Captions } from "./Captions.js";
const gateway = new URLSearchParams(location.search).get("gateway");
window.root = createRoot(document.querySelector("main"));
root.render(createElement(StrictMode, null, createElement(Captions, { gateway, meeting: "react", lang: "ja" })));
"""


def tsc(folder: Path, *options: str | Path) -> str:
    done = subprocess.run(
        [NODE, TSC, "--ignoreConfig", "--target", "es2023", "--module", "esnext", *options],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    return done.stdout


def as_module(code: str) -> str:
    """A CommonJS file as an ES module with the same exports."""
    required = sorted(set(re.findall(r'require\("([^"]+)"\)', code)))
    imports = [f"import r{n} from {json.dumps(name)};" for n, name in enumerate(required)]
    known = ", ".join(f"{json.dumps(name)}: r{n}" for n, name in enumerate(required))
    names = ", ".join(sorted(set(re.findall(r"^exports\.(\w+) =", code, re.MULTILINE)) - {"default"}))
    return "\n".join(
        [
            *imports,
            "const module = { exports: {} };",
            f"const require = (name) => ({{ {known} }})[name];",
            f"(function (exports) {{ {code}\n}})(module.exports);",
            "export default module.exports;",
            f"export const {{ {names} }} = module.exports;",
        ]
    )


def write_app(folder: Path, node_project: Path) -> None:
    """The page, the component as the compiler makes it, React, and the npm package as it is."""
    folder.mkdir()
    shutil.copytree(node_project / "node_modules/translation-gateway-client", folder / "client")
    imports = {"translation-gateway-client": "./client/client.js"}
    for number, (name, file) in enumerate(REACT.items()):
        (folder / f"react{number}.js").write_text(as_module((PACKAGES / file).read_text()))
        imports[name] = f"./react{number}.js"
    (folder / "main.js").write_text(MAIN)
    component = COMPONENT.with_suffix(".jsx")
    assert tsc(folder, "--allowJs", "--jsx", "react-jsx", "--outDir", folder, component) == ""
    (folder / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>React</title><link rel="icon" href="data:,"><main></main>'
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>'
        '<script type="module" src="./main.js"></script>'
    )


# As much of React's own types as the component needs: they are a package that is not here.
REACT_TYPES = """
declare module "react" {
  export function useState<T>(first: T): [T, (next: T | ((before: T) => T)) => void];
  export function useEffect(effect: () => () => void, dependencies: readonly unknown[]): void;
}
declare module "react/jsx-runtime" {
  export namespace JSX { interface IntrinsicElements { [name: string]: object } }
}
"""


def test_the_component_has_the_types_of_the_client(node_project: Path, tmp_path: Path) -> None:
    (tmp_path / "react.d.ts").write_text(REACT_TYPES)
    shutil.copy(COMPONENT, tmp_path)
    (tmp_path / "node_modules").symlink_to(node_project / "node_modules")
    strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--noEmit"]
    options = [*strict, "--jsx", "react-jsx", "--moduleResolution", "bundler"]
    assert tsc(tmp_path, *options, "react.d.ts", "Captions.tsx") == ""
    wrong = COMPONENT.read_text().replace("failure }) =>", "failed }) =>")
    (tmp_path / "Captions.tsx").write_text(wrong)
    assert "Property 'failed' does not exist" in tsc(tmp_path, *options, "react.d.ts", "Captions.tsx")


def test_the_component_in_javascript_is_the_one_in_typescript(tmp_path: Path) -> None:
    """Without its types: what the compiler leaves of it, but for empty lines."""
    tsc(tmp_path, "--noCheck", "--jsx", "preserve", "--outDir", tmp_path, COMPONENT)
    shutil.copy(ROOT / ".prettierrc.json", tmp_path)
    prettier = ROOT / ".venv/node/node_modules/prettier/bin/prettier.cjs"
    subprocess.run([NODE, prettier, "--log-level", "warn", "--write", "Captions.jsx"], check=True, cwd=tmp_path)

    def lines(file: Path) -> list[str]:
        return [line for line in file.read_text().splitlines() if line]

    assert lines(COMPONENT.with_suffix(".jsx")) == lines(tmp_path / "Captions.jsx")


async def speak(gateway: GatewayProcess) -> None:
    """Ana says three things, once the page has joined, and leaves."""
    async with ana(gateway, "react") as session:
        await joined(session)
        await session.partial("Let us move", "u1")
        await session.final("Let us move the launch to Friday.", "u1")
        await session.final("A text that will fail.")
        await session.final("See you.")
        await session.end()
        async for _ in session:
            pass


async def test_the_component_shows_live_captions(
    start_gateway: StartGateway, node_project: Path, browser: Browser, tmp_path: Path, artifacts: Path
) -> None:
    write_app(tmp_path / "app", node_project)
    with served(tmp_path / "app") as origin:
        gateway = start_gateway(f'allowed_origins = ["{origin}"]\n{SCRIPT}').ready()
        async with await browser.new_page(viewport={"width": 680, "height": 300}) as page:
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            await page.goto(f"{origin}/index.html?gateway={gateway.url}")
            await speak(gateway)
            await expect(page.locator("p")).to_have_text(
                [
                    "Ana: [ja] Let us move the launch to Friday.",
                    re.compile(r"Ana: \(.*fails.*\)"),
                    "Ana: [ja] See you.",
                ]
            )
            await page.screenshot(path=artifacts / "react_captions.png")
            # Taken from the page, it leaves the meeting.
            async with ana(gateway, "react") as session:
                await page.evaluate("root.unmount()")
                async for event in session:
                    if isinstance(event, ParticipantLeft):
                        break
            await expect(page.locator("p")).to_have_count(0)
            assert complaints == []
