"""Which failure of a server means what, on real sockets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.domain.errors import StartupError
from gateway.engines.remote.events import GENERATE, Error
from gateway.engines.remote.server import Answer, Lost, NotTaken, Refused, Server, failure
from tests.certificates import certificate
from tests.engines.remote.scripted import DONE, ScriptedServer, chunk, refuses, says, scripted, streams

BODY = b'{"stream": true, "token_ids": [1, 2]}'
PROBE = b'{"stream": false, "token_ids": [1, 2], "sampling_params": {}}'


@asynccontextmanager
async def client(
    url: str, key: str | None = None, ca_file: str | None = None, silence_s: float = 60.0
) -> AsyncIterator[Server]:
    server = Server(url, key, ca_file, silence_s)
    try:
        yield server
    finally:
        await server.close()


async def whole(server: Server) -> bytes:
    answer = await server.open(GENERATE, BODY)
    try:
        return await answer.rest()
    finally:
        answer.close()


async def until_idle(server: ScriptedServer) -> None:
    """The suite's timeout is the bound."""
    while server.running:
        await asyncio.sleep(0.01)


async def test_pages_and_answers_are_read() -> None:
    async with scripted() as there, client(f"{there.url}/") as server:
        there.page = b"vllm:num_requests_running 0\n"
        assert await server.get("/metrics") == Answer(200, there.page)
        there.script = [streams(chunk([5], "stop"), DONE)]
        assert await whole(server) == chunk([5], "stop") + DONE
        there.script = [says([5])]
        assert b"token_ids" in await server.post(GENERATE, PROBE)


async def test_read_answer_frees_the_connection() -> None:
    async with scripted() as there, client(there.url) as server:
        for _ in range(3):
            await whole(server)
        assert len(server._session.connector._conns) == 1


async def test_closing_an_answer_ends_the_request() -> None:
    async with scripted() as there, client(there.url) as server:
        there.script = [streams(chunk([5]), hangs=True)]
        answer = await server.open(GENERATE, BODY)
        assert await answer.read() == chunk([5])
        assert there.running == 1
        answer.close()
        await until_idle(there)


async def test_cancelling_a_request_ends_it() -> None:
    async with scripted() as there, client(there.url) as server:
        there.script = [streams(hangs=True)]
        asking = asyncio.create_task(server.post(GENERATE, PROBE))
        while not there.running:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        await until_idle(there)


async def test_a_server_that_is_not_there_has_taken_nothing() -> None:
    async with scripted() as there:
        url = there.url
    async with client(url) as server:
        with pytest.raises(NotTaken, match="Connect"):
            await server.get("/health")
        with pytest.raises(NotTaken, match="Connect"):
            await server.post(GENERATE, PROBE)


async def test_a_connection_that_is_lost_loses_the_request() -> None:
    async with scripted() as there, client(there.url) as server:
        there.script = [streams(chunk([5]), cut=True)]
        with pytest.raises(Lost):
            await whole(server)
        there.script = [streams(cut=True)]
        with pytest.raises(Lost):
            await server.post(GENERATE, PROBE)


async def test_a_server_that_hangs_loses_the_request() -> None:
    async with scripted() as there, client(there.url, silence_s=0.05) as server:
        there.script = [streams(chunk([5]), hangs=True)]
        with pytest.raises(Lost, match="does not answer in time"):
            await whole(server)


async def test_late_page_is_not_taken() -> None:
    async with scripted() as there, client(there.url) as server:
        with pytest.raises(NotTaken):
            await server.get("/health", timeout_s=1e-6)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (401, Refused),
        (404, Refused),
        (429, NotTaken),
        (500, Lost),
        (502, Lost),
        (503, NotTaken),
        (504, Lost),
    ],
)
async def test_a_status_says_what_has_become_of_a_request(status: int, kind: type[Exception]) -> None:
    async with scripted() as there, client(there.url) as server:
        there.script = [refuses(status, "no.")]
        with pytest.raises(kind, match=rf"^no \(status {status}\)$"):
            await whole(server)
    assert type(failure(Error("no.", status))) is kind


async def test_the_key_goes_with_every_request() -> None:
    async with scripted() as there:
        there.key = "secret"
        async with client(there.url, "secret") as server:
            assert (await server.get("/v1/models")).status == 200
            await whole(server)
        async with client(there.url) as server:
            assert (await server.get("/v1/models")).status == 401
            with pytest.raises(Refused, match="Unauthorized"):
                await whole(server)


# ---------------------------------------------------------------- TLS


async def test_certificate_of_the_named_authority_is_accepted(tmp_path: Path) -> None:
    files = certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(files.cert, files.key)
    async with scripted(tls) as there:
        async with client(there.url, ca_file=str(files.cert)) as server:
            assert (await server.get("/health")).status == 200
            await whole(server)
        async with client(there.url) as server:
            with pytest.raises(Refused, match="certificate") as refused:
                await server.get("/health")
            assert refused.value.status == 0


async def test_a_file_of_authorities_that_is_none_is_named(tmp_path: Path) -> None:
    for file in (tmp_path / "missing.pem", tmp_path / "empty.pem"):
        if file.name == "empty.pem":
            file.write_text("nothing")
        with pytest.raises(StartupError, match=r"engine\.ca_file .* cannot be used"):
            Server("https://127.0.0.1", None, str(file), 60.0)


async def test_the_server_goes_on_with_a_trace() -> None:
    async with scripted() as there, client(there.url) as server:
        for given in ("", f"00-{7:032x}-{7:016x}-01"):
            (await server.open(GENERATE, BODY, given)).close()
            assert there.traceparents.pop() == given
