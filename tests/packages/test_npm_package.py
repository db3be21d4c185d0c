"""The npm package, installed in an empty folder without a network: its README, its types, other platforms."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gateway import __version__
from gateway.conformance.play import play
from gateway.conformance.transcripts import transcripts
from gateway.domain.engine import Formality
from gateway.protocol.asyncapi import asyncapi
from gateway.protocol.messages import (
    Error,
    Ping,
    Pong,
    SessionEnd,
    SessionStart,
    SessionUpdate,
    SessionUpdated,
    server_messages,
)
from scripts.npm_package import NODE, TSC
from tests.conftest import ROOT
from tests.packages.node import node, output_of
from tests.processes import GatewayProcess
from tests.scripted_gateway import Peer, scripted_gateway

pytestmark = pytest.mark.slow

README = (ROOT / "web_demo/client/README.md").read_text()
EXAMPLES = re.findall(r"^```js\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8000"


class Client(Peer):
    """A client whose pings are answered in passing."""

    async def receive(self) -> Any:
        while isinstance(message := await super().receive(), Ping):
            await self.say(Pong(message.nonce))
        return message


# ------------------------------------------------------------ the archive


def test_archive_has_client_and_types_without_dependencies(npm_archive: Path, node_project: Path) -> None:
    with tarfile.open(npm_archive) as archive:
        names = [name.removeprefix("package/") for name in archive.getnames()]
    scripts = [name for name in names if name.endswith(".js")]
    assert {"package.json", "README.md", "LICENSE", "client.js"} <= set(names)
    typed = [name.removesuffix(".d.ts") + ".js" for name in names if name.endswith(".d.ts")]
    assert set(typed) <= set(scripts)
    # A script that has only types of others has no declarations of its own to give.
    assert {"client.js", "client/gateway_client.js", "client/messages.js"} <= set(typed)
    package = json.loads((node_project / "node_modules/translation-gateway-client/package.json").read_text())
    assert package["version"] == __version__
    assert not any("ependencies" in key for key in package)
    assert [path.name for path in (node_project / "node_modules").iterdir() if path.name[0] != "."] == [
        "translation-gateway-client"
    ]


def test_the_documented_size_is_that_of_the_archive(npm_archive: Path) -> None:
    [told] = re.findall(r"no dependency, in (\d+) kB", (ROOT / "docs" / "browser.md").read_text())
    assert npm_archive.stat().st_size / 1000 == pytest.approx(int(told), rel=0.1)


# ------------------------------------------------------------ the README, in Node


async def test_the_first_example_translates_and_ends(node_project: Path, gateway: GatewayProcess) -> None:
    printed = await output_of(node_project, EXAMPLES[0].replace(ADDRESS, gateway.url))
    assert sorted(printed) == ["de [de] Good morning, everyone.", "ja [ja] Good morning, everyone."]


async def test_one_example_reads_what_another_says(node_project: Path, gateway: GatewayProcess) -> None:
    _, reading, speaking = (example.replace(ADDRESS, gateway.url) for example in EXAMPLES)
    async with node(node_project, reading) as reader:
        assert reader.stdout is not None
        await output_of(node_project, speaking)
        assert await reader.stdout.readline() == b"Ana: [ja] Let us move the launch to Friday.\n"
        reader.terminate()
    transcript = json.loads(gateway.get("/v1/meetings/standup/transcript.json"))
    (said,) = transcript["utterances"]
    assert (said["start_ms"], said["end_ms"]) == (400, 2400)


async def test_a_wrong_path_ends_the_session_with_a_sentence(node_project: Path, gateway: GatewayProcess) -> None:
    printed = await output_of(
        node_project,
        """
        import { GatewayClient } from "translation-gateway-client";
        const client = new GatewayClient(`${process.argv[2]}/api`, { reads: ["ja"] });
        client.on("state", ({ state }) => console.log(state));
        const end = await client.finals().next().catch((error) => error);
        console.log(end.code, end.message);
        """,
        gateway.url,
    )
    origin = gateway.url.replace("http:", "ws:")
    assert "closed" in printed
    assert printed[-1] == (
        f"not_found There is no gateway at {origin}/api: it answers with HTTP status 404."
        f" Is the path right? Without a proxy in front, the address is {origin}."
    )


@pytest.mark.parametrize("wrong", ["scheme", "port"])
async def test_a_wrong_scheme_or_port_is_said(node_project: Path, gateway: GatewayProcess, wrong: str) -> None:
    host = gateway.url.removeprefix("http://")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{unused.getsockname()[1]}"
        printed = await output_of(
            node_project,
            """
            import { GatewayClient } from "translation-gateway-client";
            const client = new GatewayClient(process.argv[2], { reads: ["ja"] });
            client.on("state", ({ state, code, reason }) => {
              if (!/speaks|listens/.test(reason)) return;
              console.log(state, code, reason);
              client.close();
            });
            client.connect();
            """,
            f"https://{host}" if wrong == "scheme" else f"http://{nobody}",
        )
    assert (
        printed[0]
        == "reconnecting unreachable "
        + {
            "scheme": f"The server at {host} speaks http, not https: the address is http://{host}.",
            "port": f"Nothing listens at {nobody}. Is the port right?",
        }[wrong]
    )


async def test_the_transcript_has_what_was_said_before(node_project: Path, gateway: GatewayProcess) -> None:
    printed = await output_of(
        node_project,
        """
        import { eraseTranscript, fetchTranscript } from "translation-gateway-client";
        import { GatewayClient, TranscriptError } from "translation-gateway-client";
        const [address] = process.argv.slice(2);
        const client = new GatewayClient(address, { meeting: "before", name: "Ana", speaks: "en", reads: ["ja"] });
        const translated = new Promise((resolve) => {
          client.listen(({ type }) => type === "translation.final" && resolve());
        });
        client.connect();
        client.final({ text: "One." });
        await translated;
        client.close();
        const { utterances } = await fetchTranscript(address, client.meeting, { languages: ["ja"] });
        for (const said of utterances) console.log(JSON.stringify([said.speaker, said.text, said.translations]));
        const [newest] = (await fetchTranscript(address, client.meeting, { last: 1 })).utterances;
        const earlier = await fetchTranscript(address, client.meeting, { last: 1, before: newest.offset });
        console.log(newest.text, earlier.utterances.length);
        const signal = AbortSignal.abort(new Error("enough"));
        const given = await fetchTranscript(address, client.meeting, { signal }).catch((reason) => reason);
        console.log(given.message);
        const error = await fetchTranscript(`${address}/`, "nobody was here").catch((reason) => reason);
        console.log(error instanceof TranscriptError, error.code, error.status);
        const refused = await eraseTranscript(address, client.meeting).catch((reason) => reason);
        console.log(refused instanceof TranscriptError, refused.code, refused.status);
        """,
        gateway.url,
    )
    japanese = {"ja": {"status": "translated", "text": "[ja] One.", "code": None}}
    assert json.loads(printed[0]) == ["Ana", "One.", japanese]
    assert printed[1:] == ["One. 0", "enough", "true unknown_meeting 404", "true forbidden 403"]


# ------------------------------------------------------------ what a session is told


async def test_options_times_and_the_language_reach_the_gateway(node_project: Path) -> None:
    heard: list[Any] = []

    async def play(connection: Peer) -> None:
        peer = Client(connection.connection)
        heard.append(await peer.start())
        heard.append(await peer.take())
        heard.append(await peer.expect(SessionUpdate))
        await peer.say(SessionUpdated([], "en", "live", True), Error("unsupported_option", "No.", field="context"))
        # Only a new start can take back the formality, or the language.
        heard.append(await Client(connection.connection).expect(SessionEnd))
        await peer.leave(1000)

    async with scripted_gateway(play) as address:
        printed = await output_of(
            node_project,
            """
            import { GatewayClient } from "translation-gateway-client";
            const client = new GatewayClient(process.argv[2], {
              speaks: "en", glossary: { ja: { launch: "発売" } }, context: "Cars.", formality: "formal",
            });
            client.listen((event) => {
              const { options, languages } = client.started ?? {};
              if (event.type === "session.started") console.log(options.join(), languages.join());
              if (event.type === "utterance.accepted") {
                client.setOptions({ glossary: {}, context: "Boats.", originals: true });
              }
              if (event.type === "error") {
                console.log(event.code, event.field);
                client.close();
              }
            });
            client.connect();
            const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            client.final({ text: "The launch.", start_ms: 100, end_ms: 900, traceparent });
            """,
            address,
        )
    start, final, update, _ = heard
    assert (start.glossary, start.context, start.formality) == (
        {"ja": {"launch": "発売"}},
        "Cars.",
        "formal",
    )
    assert (final.text, final.lang, final.start_ms, final.end_ms) == ("The launch.", "en", 100, 900)
    assert final.traceparent == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert update == SessionUpdate(glossary={}, context="Boats.", originals=True)
    assert printed == ["glossary,context,formality en,ja,de,fr", "unsupported_option context"]


async def test_a_new_start_takes_back_a_formality(node_project: Path) -> None:
    starts: list[SessionStart] = []

    async def play(connection: Peer) -> None:
        peer = Client(connection.connection)
        starts.append(await peer.start())
        if connection.visit > 1:
            await peer.end()
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as address:
        await output_of(
            node_project,
            """
            import { GatewayClient } from "translation-gateway-client";
            const client = new GatewayClient(process.argv[2], { formality: "informal" });
            let starts = 0;
            client.listen((event) => {
              if (event.type !== "session.started") return;
              starts += 1;
              if (starts === 1) client.setOptions({ formality: null });
              else client.close();
            });
            client.connect();
            """,
            address,
        )
    informal: Formality = "informal"
    assert [start.formality for start in starts] == [informal, None]
    assert starts[1].resume is not None


async def test_with_a_token_the_glossary_follows_the_start(node_project: Path) -> None:
    """A start with a token may not be long. An update that is refused for good is not sent again."""
    heard: list[Any] = []

    async def play(connection: Peer) -> None:
        peer = Client(connection.connection)
        heard.append(await peer.start())
        heard.append(await peer.expect(SessionUpdate))
        await peer.say(Error("limit_exceeded", "Too many terms.", field="glossary"))
        heard.append(await peer.take())
        heard.append(await peer.expect(SessionUpdate))
        await peer.say(SessionUpdated([], "en", "live"))
        heard.append(await peer.expect(SessionEnd))
        await peer.leave(1000)

    async with scripted_gateway(play) as address:
        await output_of(
            node_project,
            """
            import { GatewayClient } from "translation-gateway-client";
            const client = new GatewayClient(process.argv[2], {
              speaks: "en", token: async () => "t".repeat(100),
              glossary: { ja: { launch: "発売" } }, context: "Cars.",
            });
            client.listen((event) => event.type === "session.updated" && client.close());
            client.connect();
            client.final({ text: "The launch." });
            """,
            address,
        )
    start, update, final, without, end = heard
    assert (start.token, start.glossary, start.context) == ("t" * 100, None, None)
    assert update == SessionUpdate(glossary={"ja": {"launch": "発売"}}, context="Cars.")
    assert without == SessionUpdate(context="Cars.")
    assert final.text == "The launch."
    assert isinstance(end, SessionEnd)


# ------------------------------------------------------------ other platforms


async def test_it_needs_only_what_the_documentation_names(node_project: Path, gateway: GatewayProcess) -> None:
    """As on a platform with a WebSocket of its own, and without `crypto` and `fetch`."""
    printed = await output_of(
        node_project,
        """
        const Platforms = globalThis.WebSocket;
        const [address] = process.argv.slice(2);
        const missing = ["WebSocket", "crypto", "fetch", "reportError", "process", "navigator"];
        for (const name of missing) delete globalThis[name];
        const { GatewayClient } = await import("translation-gateway-client");
        const opened = [];
        class Own extends Platforms {
          constructor(url, subprotocol) {
            super(url, subprotocol);
            opened.push([url, subprotocol]);
          }
        }
        const client = new GatewayClient(address, { speaks: "en", reads: ["ja"], WebSocket: Own });
        client.listen((event) => {
          if (event.type === "translation.final") console.log(event.text);
          if (event.type === "state" && event.state === "open") client.close();
        });
        client.connect();
        client.final({ text: "Good morning." });
        console.log(...opened[0]);
        """,
        gateway.url,
    )
    stream = gateway.url.replace("http", "ws") + "/v1/stream"
    assert printed == [f"{stream} translation.v1.json", "[ja] Good morning."]


async def test_unreachable_and_lost_gateways_are_reported(node_project: Path) -> None:
    async def play(connection: Peer) -> None:
        await Client(connection.connection).start()
        await connection.leave(1012)

    async with scripted_gateway(play, statuses=(503,)) as address:
        printed = await output_of(
            node_project,
            """
            import { GatewayClient } from "translation-gateway-client";
            const client = new GatewayClient(process.argv[2]);
            let outages = 0;
            client.listen(({ type, state, reason, code }) => {
              if (type !== "state" || state !== "reconnecting") return;
              console.log(reason + code);
              outages += 1;
              if (outages === 2) client.close();
            });
            client.connect();
            """,
            address,
        )
    assert printed == [
        "The connection to the gateway was lost.",
        "No gateway can be reached at this address.unreachable",
    ]


async def test_closing_reason_is_what_the_gateway_says(node_project: Path) -> None:
    """To a page whose origin it does not allow it sends no error."""

    async def play(connection: Peer) -> None:
        await connection.connection.close(4504, "This page may not.")

    async with scripted_gateway(play) as address:
        printed = await output_of(
            node_project,
            """
            import { GatewayClient } from "translation-gateway-client";
            const client = new GatewayClient(process.argv[2]);
            client.listen(({ type, state, reason }) => type === "state" && console.log(state, reason));
            client.connect();
            """,
            address,
        )
    assert printed == ["connecting ", "closed This page may not."]


async def test_impossible_gateway_address_is_refused_at_once(node_project: Path) -> None:
    printed = await output_of(
        node_project,
        """
        import { fetchTranscript, GatewayClient } from "translation-gateway-client";
        for (const address of ["127.0.0.1:8000", "ftp://gateway", "https://", "/v1/stream"]) {
          try {
            new GatewayClient(address);
          } catch ({ name, message }) {
            console.log(name, message);
          }
          await fetchTranscript(address, "standup").catch(({ name }) => console.log(name));
        }
        """,
    )
    assert printed[:2] == [
        'TypeError "127.0.0.1:8000" is not the address of a gateway, such as https://gateway.example.com.',
        "TypeError",
    ]
    assert [line.split()[0] for line in printed] == ["TypeError"] * 8


async def test_an_error_in_a_listener_is_not_swallowed(node_project: Path, gateway: GatewayProcess) -> None:
    program = """
        import { GatewayClient } from "translation-gateway-client";
        const client = new GatewayClient(process.argv[2]);
        client.listen(() => { throw new Error("a bug of mine"); });
        client.connect();
        """
    async with node(node_project, program, gateway.url) as process:
        _, err = await process.communicate()
    assert process.returncode == 1
    assert "a bug of mine" in err.decode()


# ------------------------------------------------------------ types

STRICT = {
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noEmit": True,
    "skipLibCheck": False,
    "module": "nodenext",
    "target": "es2023",
    # Without the types of browsers: programs for Node and React Native have none.
    "lib": ["es2023"],
    "types": [],
}

PROGRAM = """
import { fetchTranscript, GatewayClient, Recogniser, TranscriptError } from "translation-gateway-client";
import type { ClientEvent, Codec, SessionOptions, SocketClass } from "translation-gateway-client";
import type { ClientEventMap, Line, ReconnectPolicy } from "translation-gateway-client";
import type { RecognisedSpeech, TokenSource, Transcript } from "translation-gateway-client";

declare class AbortController {
  signal: {
    readonly aborted: boolean;
    addEventListener(type: string, listener: () => void): void;
    removeEventListener(type: string, listener: () => void): void;
  };
}
const token: TokenSource = async () => "token";
const options: SessionOptions = {
  meeting: "standup", name: "Ana", speaks: "en", reads: ["ja"], stability: "stable", originals: true,
  glossary: { ja: { launch: "発売" } }, context: "Cars.", formality: "formal", token,
};
const client = new GatewayClient("https://gateway.example.com", options);
const shown: string[] = [];
const stop: () => void = client.listen((event: ClientEvent) => {
  switch (event.type) {
    case "translation.final":
      shown.push(event.speaker, event.text, event.timings.total_ms.toFixed());
      // @ts-expect-error: only deltas have it
      shown.push(event.committed);
      break;
    case "state":
      // @ts-expect-error: there is no such state
      if (event.state === "opened") shown.push(event.reason);
      break;
    case "session.started":
      shown.push(...event.languages, ...(event.targets?.["en"] ?? []));
      break;
    case "error":
      shown.push(event.field ?? "");
  }
});
client.on("translation.final", (event) => shown.push(event.text), { signal: new AbortController().signal });
client.on("utterance.refused", ({ code }: ClientEventMap["utterance.refused"]) => shown.push(code));
// @ts-expect-error: only deltas have it
client.on("translation.final", (event) => shown.push(event.committed));
// @ts-expect-error: there is no such event
client.on("translation.finale", () => undefined);
for await (const line of client.lines()) shown.push(line.failure ?? line.text);
const first: IteratorResult<Line, void> = await client.finals().next();
const reconnect: ReconnectPolicy = { giveUpMs: 60_000 };
new GatewayClient("https://gateway.example.com", { reconnect, signal: new AbortController().signal });
new GatewayClient("https://gateway.example.com", { reconnect: false });
const id: string = client.partial({ text: "let us" });
client.final({ id, text: "Let us.", lang: "en", start_ms: 0, end_ms: 900 });
const heard: RecognisedSpeech[] = new Recogniser("ana-").hear({ partial: "let us" });
for (const said of heard) if (said.kind === "final") client.final(said);
client.setOptions({ formality: null });
// @ts-expect-error: a language is a string
client.read([7]);
// @ts-expect-error: a session has no such option
new GatewayClient("https://gateway.example.com", { language: "ja" });
const limit: number | undefined = client.limits?.text_chars ?? client.started?.limits.text_chars;
const transcript: Promise<Transcript> = fetchTranscript("https://gateway.example.com", "standup", {
  token, last: 9, before: 812, signal: new AbortController().signal,
});
declare const Own: SocketClass;
declare const codec: Codec;
new GatewayClient("wss://gateway.example.com/v1/stream", { WebSocket: Own, codec });
// @ts-expect-error: it is for both directions
new GatewayClient("wss://gateway.example.com/v1/stream", { codec: { encode: codec.encode } });
export { first, limit, stop, transcript, TranscriptError };
"""


def compiled(folder: Path, name: str, program: str) -> str:
    """What the compiler complains about."""
    file = folder / f"{name}.mts"
    file.write_text(program)
    config = folder / f"{name}.json"
    config.write_text(json.dumps({"compilerOptions": STRICT, "files": [file.name]}))
    return subprocess.run([NODE, TSC, "-p", config], capture_output=True, text=True).stdout


def test_a_strict_program_compiles_against_the_types(node_project: Path) -> None:
    assert compiled(node_project, "strict", PROGRAM) == ""


def typescript(schema: Any, schemas: dict[str, Any]) -> str:
    """The type of what a JSON Schema describes. A field with a default is always sent."""
    if "$ref" in schema:
        return typescript(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "allOf" in schema:
        return typescript(schema["allOf"][0], schemas)
    if "anyOf" in schema:
        return " | ".join(typescript(each, schemas) for each in schema["anyOf"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    match schema["type"]:
        case "array":
            return f"({typescript(schema['items'], schemas)})[]"
        case "object" if "properties" in schema:
            fields = []
            for name, field in schema["properties"].items():
                mark = "" if name in schema["required"] or "default" in field else "?"
                fields.append(f"{name}{mark}: {typescript(field, schemas)}")
            return "{" + "; ".join(fields) + "}"
        case "object":
            return "{[key: string]: " + typescript(schema["additionalProperties"], schemas) + "}"
        case kind:
            return {"integer": "number"}.get(kind, str(kind))


def test_the_types_are_those_of_the_gateways_messages(node_project: Path) -> None:
    """Each is as wide as the schema says, and no wider; only errors are also made by the client."""
    schemas = asyncapi()["components"]["schemas"]
    lines = [
        'import type { ServerMessage } from "translation-gateway-client";',
        "type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;",
        "type Sent<T> = T extends { type: 'error' } ? Required<T> : T;",
    ]
    for cls in server_messages():
        tag = json.dumps(cls.__struct_config__.tag)
        declared = f"Sent<Extract<ServerMessage, {{ type: {tag} }}>>"
        generated = typescript(schemas[cls.__name__], schemas)
        lines.append(f"export const {cls.__name__}: Same<{declared}, {generated}> = true;")
    tags = " | ".join(json.dumps(cls.__struct_config__.tag) for cls in server_messages())
    lines.append(f"export const all: Same<ServerMessage['type'], {tags}> = true;")
    assert compiled(node_project, "messages", "\n".join(lines)) == ""


async def test_node_client_keeps_to_conformance_transcripts(node_project: Path) -> None:
    driver = node_project / "driver.mjs"
    driver.write_text((ROOT / "examples/conformance/driver.mjs").read_text())
    for transcript in transcripts():
        await play(transcript, [str(NODE), str(driver)], wait_s=120)
