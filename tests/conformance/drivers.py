"""The drivers of both clients, from this tree; the Python client's also with faults."""

from __future__ import annotations

import sys
from urllib.parse import quote

from scripts.npm_package import NODE
from tests.conftest import ROOT

DRIVER = ROOT / "examples" / "conformance" / "driver.py"

# The driver imports the client by the name of its package, which is not installed here.
_FROM_THIS_TREE = f"""
import {{ registerHooks }} from "node:module";
const url = "{(ROOT / "web_demo" / "client" / "gateway_client.js").as_uri()}";
registerHooks({{
  resolve: (name, context, next) =>
    name === "translation-gateway-client" ? {{ url, shortCircuit: true }} : next(name, context),
}});
"""


def python_driver(fault: str = "") -> list[str]:
    """The command. fault: Python that breaks the client before it starts."""
    program = f"import runpy, sys\n{fault}\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    return [sys.executable, "-c", program, str(DRIVER)]


def javascript_driver() -> list[str]:
    """The command."""
    driver = ROOT / "examples" / "conformance" / "driver.mjs"
    return [str(NODE), "--import", f"data:text/javascript,{quote(_FROM_THIS_TREE)}", str(driver)]


def printing(program: str) -> list[str]:
    """A program that is not a driver."""
    return [sys.executable, "-c", program]
