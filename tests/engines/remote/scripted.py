"""A vLLM server that follows a script on a real socket, for the faults that a real one cannot be made to have."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from gateway.engines.remote.events import GENERATE

# What one request to the generating route is answered with.
Answer = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]

END = 2


class ScriptedServer:
    """One server. Its answers are taken from `script`, one for each request; the last one is used again."""

    def __init__(self) -> None:
        self.url = ""
        self.health = 200
        self.key: str | None = None
        self.models: list[dict[str, Any]] = [{"id": "model", "root": "/models/model", "max_model_len": 256}]
        self.page = b""
        # What it makes of any text, as its own tokenizer; None: it cannot be asked.
        self.tokens: list[int] | None = None
        self.script: list[Answer] = [says([END])]
        # The bodies of all requests to the generating route.
        self.asked: list[dict[str, Any]] = []
        # Their `traceparent`, empty for none.
        self.traceparents: list[str] = []
        # How many of them are being answered.
        self.running = 0

    def die(self) -> None:
        """Neither health nor answers from now on."""
        self.health, self.script = 503, [refuses(500, "EngineCore encountered an issue.")]

    def live(self) -> None:
        """Health, and answers that end at once."""
        self.health, self.script = 200, [says([END])]

    async def generate(self, request: web.Request) -> web.StreamResponse:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        body = await request.json()
        self.asked.append(body)
        self.traceparents.append(request.headers.get("traceparent", ""))
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        self.running += 1
        try:
            return await answer(request, body)
        finally:
            self.running -= 1

    def _refusal(self, request: web.Request) -> web.Response | None:
        """The refusal of a request without the key."""
        if self.key is None or request.headers.get("Authorization") == f"Bearer {self.key}":
            return None
        return web.json_response({"error": "Unauthorized"}, status=401)

    async def get_health(self, _: web.Request) -> web.Response:
        return web.Response(status=self.health)

    async def get_models(self, request: web.Request) -> web.Response:
        return self._refusal(request) or web.json_response({"object": "list", "data": self.models})

    async def get_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self.page)

    async def tokenize(self, _: web.Request) -> web.Response:
        if self.tokens is None:
            return web.json_response({"detail": "Not Found"}, status=404)
        return web.json_response({"tokens": self.tokens})


@asynccontextmanager
async def scripted(tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """A server that runs while the context lasts."""
    server = ScriptedServer()
    app = web.Application()
    app.router.add_post(GENERATE, server.generate)
    app.router.add_get("/health", server.get_health)
    app.router.add_get("/v1/models", server.get_models)
    app.router.add_get("/metrics", server.get_metrics)
    app.router.add_post("/tokenize", server.tokenize)
    # Handlers are cancelled when their client goes away, as vLLM's are.
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


# ---------------------------------------------------------------- answers


def chunk(ids: list[int], finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "token_ids": ids, "finish_reason": finish}]})


def usage(cached: int) -> bytes:
    return event(
        {"choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": cached}}}
    )


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def streams(*pieces: bytes, cut: bool = False, hangs: bool = False) -> Answer:
    """A stream of these bytes. cut: then the connection is lost. hangs: then nothing more comes."""

    async def answer(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if hangs:
            await asyncio.Event().wait()
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


def says(ids: list[int], *, finish: str = "stop", rows: bool = True, cached: int = 0) -> Answer:
    """These tokens and the end; to a probe, that the model would have chosen what is proposed."""

    async def answer(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body["stream"]:
            pieces = [chunk(ids, finish), usage(cached), DONE]
            return await streams(*pieces)(request, body)
        asked = body["token_ids"]
        told = [None, *({str(token): {"logprob": -0.1, "rank": 1}, "1": {"logprob": -9.0}} for token in asked[1:])]
        choice = {"index": 0, "token_ids": ids[:1], "finish_reason": "length" if ids[:1] != [END] else "stop"}
        has_rows = rows and "prompt_logprobs" in body["sampling_params"]
        return web.json_response({"choices": [choice], "prompt_logprobs": told if has_rows else None})

    return answer


def refuses(status: int, message: str) -> Answer:
    """An error in vLLM's words."""

    async def answer(_request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        error = {"error": {"message": message, "type": "BadRequestError", "code": status}}
        return web.json_response(error, status=status)

    return answer


def dies(code: int = 500) -> bytes:
    """What a stream brings when the engine dies."""
    message = "EngineCore encountered an issue. See stack trace for the root cause."
    return (
        event({"error": {"message": message, "type": "InternalServerError", "param": None, "code": code}}) + DONE
    )
