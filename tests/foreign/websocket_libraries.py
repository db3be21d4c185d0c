"""Holds a session with each WebSocket library of PyPI, as its documentation says: websocket_libraries.py ADDRESS

Says something, reads its translation, ends the session and looks for the close code 1000.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

PROTOCOL = "translation.v1.json"
STEPS = {
    "": {"type": "session.start", "speaks": "en", "reads": ["de"]},
    "session.started": {"type": "utterance.final", "id": "u1", "rev": 1, "text": "Good morning."},
    "translation.final": {"type": "session.end"},
}
# What to send when this came; to begin with, nothing has come.
Say = Callable[[str | bytes], str | None]


async def websockets(library: Any, url: str, say: Say) -> Any:
    async with library.connect(url, subprotocols=[PROTOCOL]) as ws:
        await ws.send(say(""))
        async for text in ws:
            if answer := say(text):
                await ws.send(answer)
    return ws.close_code


async def aiohttp(library: Any, url: str, say: Say) -> Any:
    async with library.ClientSession() as client, client.ws_connect(url, protocols=[PROTOCOL]) as ws:
        await ws.send_str(say(""))
        async for message in ws:
            if answer := say(message.data):
                await ws.send_str(answer)
        return ws.close_code


async def httpx_ws(library: Any, url: str, say: Say) -> Any:
    async with library.aconnect_ws(url, subprotocols=[PROTOCOL]) as ws:
        await ws.send_text(say(""))
        try:
            while True:
                if answer := say(await ws.receive_text()):
                    await ws.send_text(answer)
        except library.WebSocketDisconnect as end:
            return end.code


async def websocket_client(library: Any, url: str, say: Say) -> Any:
    def talk() -> Any:
        ws = library.create_connection(url, subprotocols=[PROTOCOL])
        ws.send(say(""))
        while True:
            opcode, data = ws.recv_data()
            if opcode == library.ABNF.OPCODE_CLOSE:
                return int.from_bytes(data[:2], "big")
            if answer := say(data):
                ws.send(answer)

    return await asyncio.to_thread(talk)


async def simple_websocket(library: Any, url: str, say: Say) -> Any:
    ws = await library.AioClient.connect(url, subprotocols=[PROTOCOL])
    await ws.send(say(""))
    try:
        while True:
            if answer := say(await ws.receive()):
                await ws.send(answer)
    except library.ConnectionClosed as end:
        return int(end.reason)


async def tornado(library: Any, url: str, say: Say) -> Any:
    ws = await library.websocket_connect(url, subprotocols=[PROTOCOL])
    await ws.write_message(say(""))
    while (text := await ws.read_message()) is not None:
        if answer := say(text):
            await ws.write_message(answer)
    return ws.close_code


async def curl_cffi(library: Any, url: str, say: Say) -> Any:
    async with library.AsyncSession() as client:
        ws = await client.ws_connect(url, headers={"Sec-WebSocket-Protocol": PROTOCOL})
        await ws.send_str(say(""))
        while True:
            data, flags = await ws.recv()
            if flags & 8:
                return int.from_bytes(data[:2], "big")
            if answer := say(data):
                await ws.send_str(answer)


async def picows(library: Any, url: str, say: Say) -> Any:
    ended = asyncio.get_running_loop().create_future()

    class Listener(library.WSListener):  # type: ignore[misc]
        def on_ws_connected(self, transport: Any) -> None:
            transport.send(library.WSMsgType.TEXT, (say("") or "").encode())

        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            if frame.msg_type == library.WSMsgType.CLOSE:
                ended.set_result(int(frame.get_close_code()))
                transport.send_close(frame.get_close_code())
                transport.disconnect()
            elif frame.msg_type == library.WSMsgType.TEXT and (answer := say(frame.get_payload_as_utf8_text())):
                transport.send(library.WSMsgType.TEXT, answer.encode())

    await library.ws_connect(Listener, url, extra_headers={"Sec-WebSocket-Protocol": PROTOCOL})
    return int(await ended)


async def trio_websocket(library: Any, url: str, say: Say) -> Any:
    async def talk() -> Any:
        async with library.open_websocket_url(url, subprotocols=[PROTOCOL]) as ws:
            await ws.send_message(say(""))
            try:
                while True:
                    if answer := say(await ws.get_message()):
                        await ws.send_message(answer)
            except library.ConnectionClosed as end:
                return int(end.reason.code)

    return await asyncio.to_thread(import_module("trio").run, talk)


async def autobahn(library: Any, url: str, say: Say) -> Any:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    class Client(library.WebSocketClientProtocol):  # type: ignore[misc]
        def onOpen(self) -> None:
            self.sendMessage((say("") or "").encode())

        def onMessage(self, payload: bytes, isBinary: bool) -> None:
            if answer := say(payload):
                self.sendMessage(answer.encode())

        def onClose(self, wasClean: bool, code: int, reason: str) -> None:
            ended.set_result(code)

    factory = library.WebSocketClientFactory(url, protocols=[PROTOCOL])
    factory.protocol = Client
    await loop.create_connection(factory, factory.host, factory.port)
    return int(await ended)


Talk = Callable[[Any, str, Say], Awaitable[Any]]
# Name on PyPI → module, and how it talks.
LIBRARIES: dict[str, tuple[str, Talk]] = {
    "websockets": ("websockets.asyncio.client", websockets),
    "aiohttp": ("aiohttp", aiohttp),
    "httpx-ws": ("httpx_ws", httpx_ws),
    "websocket-client": ("websocket", websocket_client),
    "simple-websocket": ("simple_websocket", simple_websocket),
    "tornado": ("tornado.websocket", tornado),
    "curl-cffi": ("curl_cffi.requests", curl_cffi),
    "picows": ("picows", picows),
    "trio-websocket": ("trio_websocket", trio_websocket),
    "autobahn": ("autobahn.asyncio.websocket", autobahn),
}


async def works(name: str, url: str) -> bool:
    module, talk = LIBRARIES[name]
    came: list[str] = []

    def say(text: str | bytes) -> str | None:
        kind = json.loads(text)["type"] if text else ""
        came.append(kind)
        return json.dumps(STEPS[kind]) if kind in STEPS else None

    try:
        async with asyncio.timeout(60):
            code = await talk(import_module(module), url, say)
    except Exception:  # it is told, and the next one has its turn
        traceback.print_exc()
        code = None
    done = code == 1000 and "translation.final" in came
    print(f"{name} {version(name)}: {'ok' if done else f'closed with {code} after {came}'}", flush=True)
    return done


async def main() -> int:
    url = f"{sys.argv[1].replace('http', 'ws', 1)}/v1/stream"
    passed = [await works(name, url) for name in LIBRARIES]
    print(f"{sum(passed)} passed, {passed.count(False)} failed")
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
