"""The npm package with msgpack, by the codec that its documentation names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from gateway.conformance.play import play
from gateway.conformance.transcripts import transcripts
from scripts.npm_package import NODE
from tests.conftest import ROOT
from tests.packages.node import output_of
from tests.processes import GatewayProcess

pytestmark = pytest.mark.slow

DOCS = (ROOT / "docs/browser.md").read_text()
(EXAMPLE,) = re.findall(r"^```js\n(import \* as msgpack .*?)^```$", DOCS, re.MULTILINE | re.DOTALL)

# Like codecs that write `undefined` in a way of their own, where this one writes null.
STRICT = """
import * as msgpack from "@msgpack/msgpack";
const codec = {
  decode: msgpack.decode,
  encode(message) {
    if (Object.values(message).includes(undefined)) throw new Error("undefined");
    return msgpack.encode(message);
  },
};
"""


@pytest.fixture(scope="module")
def project(node_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and the codec's."""
    folder = tmp_path_factory.mktemp("msgpack")
    for source, name in [
        (node_project, "translation-gateway-client"),
        (ROOT / ".venv/node", "@msgpack/msgpack"),
    ]:
        shutil.copytree(source / "node_modules" / name, folder / "node_modules" / name)
    return folder


async def test_a_session_speaks_msgpack_and_nothing_else(project: Path, gateway: GatewayProcess) -> None:
    example, loop, lines = EXAMPLE.replace("http://127.0.0.1:8000", gateway.url).partition("for await")
    assert gateway.url in example
    printed = await output_of(
        project,
        """
        const kinds = new Set();
        globalThis.WebSocket = class extends WebSocket {
          constructor(url, subprotocol) {
            super(url, subprotocol);
            console.log(subprotocol);
            this.addEventListener("message", ({ data }) => kinds.add(typeof data));
          }
          send(frame) {
            kinds.add(typeof frame);
            super.send(frame);
          }
        };
        """
        + example
        + """
        client.connect();
        client.listen(({ type }) => {
          if (type !== "translation.final") return;
          console.log(...kinds);
          client.close();
        });
        client.setOptions({ context: "Cars." });
        const id = client.partial({ text: "Let us" });
        client.final({ id, text: "Let us move the launch.", lang: "en", start_ms: 4 });
        """
        + loop
        + lines,
    )
    assert printed == ["translation.v1.msgpack", "object", "[ja] Let us move the launch."]


async def test_message_size_is_measured_as_sent(project: Path, gateway: GatewayProcess) -> None:
    """A quotation mark takes two bytes in JSON and one in msgpack."""
    printed = await output_of(
        project,
        """
        import * as msgpack from "@msgpack/msgpack";
        import { GatewayClient } from "translation-gateway-client";
        const client = new GatewayClient(process.argv[2], { speaks: "en", codec: msgpack });
        const ids = [];
        client.listen((event) => {
          if (event.type === "session.started") {
            const bytes = event.limits.message_bytes;
            ids.push(client.final({ text: '"'.repeat(bytes) }), client.final({ text: '"'.repeat(bytes - 200) }));
          }
          if (event.type === "utterance.refused") console.log(ids.indexOf(event.id), event.code);
          // It has very many segments; the first is enough.
          if (event.type === "caption" && event.utterance === ids[1]) {
            console.log(1, "read");
            client.close();
            client.close();
          }
        });
        client.connect();
        """,
        gateway.url,
    )
    assert printed == ["0 message_too_large", "1 read", "1 closed"]


async def test_a_codec_without_its_functions_is_refused(project: Path) -> None:
    printed = await output_of(
        project,
        """
        import { GatewayClient } from "translation-gateway-client";
        try {
          new GatewayClient("http://127.0.0.1:1", { codec: { encode() {} } });
        } catch (error) {
          console.log(error.name, error.message);
        }
        """,
    )
    assert printed == [
        "TypeError A codec has the functions `encode` and `decode`, as the module @msgpack/msgpack has them."
    ]


async def test_msgpack_client_keeps_to_conformance_transcripts(project: Path) -> None:
    code = (ROOT / "examples/conformance/driver.mjs").read_text()
    told = code.replace("{ ...options,", "{ codec, ...options,")
    assert told != code
    driver = project / "driver.mjs"
    driver.write_text(f"{STRICT}{told}")
    for transcript in transcripts():
        await play(transcript, [str(NODE), str(driver)], wait_s=120)
