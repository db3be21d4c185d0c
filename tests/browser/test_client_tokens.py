"""`web_demo/client.js` at a gateway that wants tokens, in a real browser. A scripted gateway plays it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.protocol.messages import (
    Error,
    ParticipantJoined,
    SessionRefresh,
    SessionRefreshed,
    SessionStart,
    SessionUpdate,
    TokenExpiring,
)
from tests.browser.test_client import Client, StartClient, client_of, closed, of, scripted_gateway
from tests.processes import GatewayProcess
from tests.scripted_gateway import STARTED, Peer, refused, resumed

__all__ = ["client_of"]
pytestmark = pytest.mark.browser

# The client, with a source of tokens no two of which are the same, unless the options have one. What is in `fails`
# is thrown instead, the first one first.
_SET_UP = """async ({ stream, options }) => {
    const { GatewayClient } = await import(new URL("/client.js", location.href));
    const url = new URL("/v1/stream", stream);
    url.protocol = "ws:";
    window.asked = 0;
    window.fails = [];
    window.hangs = false;
    window.heard = [];
    const token = async () => {
        window.asked += 1;
        if (hangs) await new Promise(() => {});
        if (fails.length > 0) throw fails.shift();
        return `secret-${asked}`;
    };
    window.client = new GatewayClient(url.href, { token, reads: ["fr"], ...options });
    client.listen((event) => heard.push(event));
}"""
UNAUTHENTICATED = Error("unauthenticated", "This gateway needs a valid token.")
EXPIRED = Error("token_expired", "The session's time is over.")


async def set_up(client: Client, stream: str, **options: Any) -> None:
    await client.do(_SET_UP, {"stream": stream, "options": options})


async def begun(peer: Peer) -> str | None:
    """The token of a start that is answered."""
    return (await peer.start()).token


async def refreshed(peer: Peer) -> str:
    """The token of a refresh that is answered."""
    token = (await peer.expect(SessionRefresh)).token
    await peer.say(SessionRefreshed(600_000))
    return token


@pytest.mark.parametrize(
    ("options", "tokens"), [({}, ["secret-1", "secret-2"]), ({"token": "secret"}, ["secret"] * 2)]
)
async def test_every_connection_has_a_token_of_its_own_and_tells_it_nobody_but_the_gateway(
    gateway: GatewayProcess, client_of: StartClient, options: dict[str, Any], tokens: list[str]
) -> None:
    starts: list[SessionStart] = []
    paths: set[str] = set()

    async def play(peer: Peer) -> None:
        assert peer.connection.request is not None
        paths.add(peer.connection.request.path)
        starts.append(await peer.start())
        if peer.visit == 1:
            return peer.drop()
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        client.allow("ERR_")
        await set_up(client, stream, **options)
        await client.do("client.connect()")
        await client.until(f"{of('session.started')}.length === 2")
        assert [start.token for start in starts] == tokens
        assert starts[1].resume is not None
        assert paths == {"/v1/stream"}
        everything = "JSON.stringify([heard, client, { ...localStorage }, { ...sessionStorage }])"
        assert "secret" not in await client.do(everything)


async def test_without_tokens_a_start_is_what_it_was(gateway: GatewayProcess, client_of: StartClient) -> None:
    async with client_of(gateway, reads=["fr"]) as client:
        await client.open()
        (start,) = client.frames("session.start")
        assert "token" not in start


async def test_a_start_that_is_repeated_has_another_token(gateway: GatewayProcess, client_of: StartClient) -> None:
    tokens: list[str | None] = []

    async def play(peer: Peer) -> None:
        tokens.append((await peer.expect(SessionStart)).token)
        await peer.say(refused("engine_unavailable", "The engine is loading.", retry_after_ms=10))
        tokens.append(await begun(peer))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.open()
        assert tokens == ["secret-1", "secret-2"]


@pytest.mark.parametrize("source", ["async", "sync", "string"])
async def test_a_session_is_refreshed_and_nobody_notices(
    gateway: GatewayProcess, client_of: StartClient, source: str
) -> None:
    tokens: list[str] = []

    async def play(peer: Peer) -> None:
        await begun(peer)
        await peer.say(TokenExpiring(60_000))
        tokens.append(await refreshed(peer))
        await peer.say(TokenExpiring(60_000))
        tokens.append(await refreshed(peer))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream, **({"token": "secret"} if source == "string" else {}))
        if source == "sync":
            await client.do(
                """(stream) => {
                const { constructor } = client;
                window.client = new constructor(stream, { token: () => `secret-${(asked += 1)}` });
                client.listen((event) => heard.push(event));
            }""",
                stream.replace("http:", "ws:"),
            )
        await client.do("client.connect()")
        await client.until(f"{of('session.refreshed')}.length === 2")
        assert tokens == (["secret"] * 2 if source == "string" else ["secret-2", "secret-3"])
        assert [event["state"] for event in await client.heard("state")] == ["connecting", "open"]
        assert await client.heard("error") == []
        assert "secret" not in await client.do("JSON.stringify(heard)")


async def test_a_refresh_that_fails_is_tried_again_and_the_session_goes_on(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    tokens: list[str] = []

    async def play(peer: Peer) -> None:
        await begun(peer)
        await peer.say(TokenExpiring(600_000))
        await peer.take()
        for code in ("unauthenticated", "forbidden"):
            tokens.append((await peer.expect(SessionRefresh)).token)
            await peer.say(refused(code, "Not this one."), ParticipantJoined(code, "", None, []))
        tokens.append(await refreshed(peer))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.own_clock()
        await client.do("""() => {
            client.listen((event) => { if (event.type === "session.started") fails.push(new Error("Down.")); });
            client.connect();
        }""")
        await client.until(f"{of('token.expiring')}.length === 1")
        # It failed at once, and what is said meanwhile arrives.
        await client.do("""client.final({ text: "One.", lang: "en" })""")
        await client.until(f"{of('utterance.accepted')}.length === 1")
        for refusals in (1, 2):
            await client.later(4_000)
            await client.until(f"{of('participant.joined')}.length === {refusals}")
        await client.later(4_000)
        await client.until(f"{of('session.refreshed')}.length === 1")
        assert tokens == ["secret-3", "secret-4", "secret-5"]
        assert [event["state"] for event in await client.heard("state")] == ["connecting", "open"]
        assert await client.heard("error") == []


async def test_what_else_is_refused_during_a_refresh_is_told(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        await begun(peer)
        await peer.say(TokenExpiring(60_000))
        assert {type(await peer.receive()) for _ in range(2)} == {SessionRefresh, SessionUpdate}
        await peer.say(replace(refused("forbidden", "This language may not be read."), field="reads[0]"))
        await peer.say(SessionRefreshed(None))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.do("""() => {
            client.listen((event) => { if (event.type === "token.expiring") client.read(["de"]); });
            client.connect();
        }""")
        await client.until(f"{of('session.refreshed')}.length === 1")
        assert [error["field"] for error in await client.heard("error")] == ["reads[0]"]
        assert await client.do("client.reads") == ["fr"]


async def test_when_its_time_is_over_the_session_goes_on_with_a_new_token(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    tokens: list[str | None] = []

    async def play(peer: Peer) -> None:
        if peer.visit == 1:
            tokens.append(await begun(peer))
            return await peer.leave(4401, EXPIRED)
        start = await peer.expect(SessionStart)
        tokens.append(start.token)
        await peer.say(resumed(start))
        await peer.take()
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.do("client.connect()")
        await client.until(f"{of('session.started')}.length === 2")
        await client.do("""client.final({ text: "One.", lang: "en" })""")
        await client.until(f"{of('utterance.accepted')}.length === 1")
        assert tokens == ["secret-1", "secret-2"]
        assert await client.heard("error") == []
        told = [(event["state"], event["code"]) for event in await client.heard("state")]
        assert told[2:] == [("reconnecting", "token_expired"), ("connecting", ""), ("open", "")]


@pytest.mark.parametrize(
    ("code", "status", "started"),
    [("unauthenticated", 4501, False), ("token_revoked", 4503, False), ("token_revoked", 4503, True)],
)
async def test_without_access_it_is_over(
    gateway: GatewayProcess, client_of: StartClient, code: str, status: int, *, started: bool
) -> None:
    visits = 0

    async def play(peer: Peer) -> None:
        nonlocal visits
        visits += 1
        await peer.expect(SessionStart)
        if started:
            await peer.say(STARTED)
        await peer.leave(status, Error(code, "No."))

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.own_clock()
        await client.do("client.connect()")
        assert await closed(client) == (code, "")
        assert (await client.heard("state"))[-1]["reason"] == "No."
        await client.later(60_000)
        assert await client.do("[client.state, asked]") == ["closed", 1]
    assert visits == 1


async def test_a_source_that_fails_is_a_failed_attempt(gateway: GatewayProcess, client_of: StartClient) -> None:
    visits: list[str | None] = []

    async def play(peer: Peer) -> None:
        visits.append(await begun(peer))
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        # What an answer that cannot be parsed complains about may be the token itself.
        await client.do("""fails.push(new SyntaxError('"secret" is not valid JSON'), "gone")""")
        await client.do(
            """() => { client.connect(); client.connect(); client.final({ text: "One.", lang: "en" }); }"""
        )
        await client.until("client.state === 'open'")
        assert visits == ["secret-3"]
        states = [(event["state"], event["code"]) for event in await client.heard("state")]
        failed = [("connecting", ""), ("reconnecting", "token_unavailable")]
        assert states == [*failed, *failed, ("connecting", ""), ("open", "")]
        assert "secret" not in await client.do("JSON.stringify(heard)")


async def test_a_source_that_does_not_answer_is_asked_again(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        assert await begun(peer) == "secret-2"
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.own_clock()
        await client.do("() => { hangs = true; client.connect(); }")
        await client.later(29_000)
        assert await client.do("[client.state, asked]") == ["connecting", 1]
        await client.do("() => { hangs = false; }")
        await client.later(2_000)
        await client.until("client.state !== 'connecting'")
        await client.later(1_000)
        await client.until("client.state === 'open'")


async def test_a_source_that_has_no_hope_ends_it_with_its_reason(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        raise AssertionError("nobody has a token")

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.own_clock()
        await client.do("fails.push(Object.assign(new Error('The subscription has ended.'), { permanent: true }))")
        await client.do("""() => { client.connect(); client.final({ text: "One.", lang: "en" }); }""")
        assert await closed(client) == ("token_unavailable", "")
        assert (await client.heard("state"))[-1]["reason"] == "The subscription has ended."
        assert [event["code"] for event in await client.heard("utterance.refused")] == ["closed"]
        await client.later(60_000)
        assert await client.do("[client.state, asked]") == ["closed", 1]


async def test_a_token_that_comes_after_close_opens_nothing(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    visits: list[int] = []

    async def play(peer: Peer) -> None:
        visits.append(peer.visit)
        await begun(peer)
        await peer.connection.wait_closed()

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream)
        await client.do("""() => { client.connect(); client.close(); client.connect(); }""")
        await client.until("client.state === 'open'")
        assert await client.do("asked") == 2
    assert visits == [1]


async def test_no_access_is_not_taken_for_a_setting_that_is_refused(
    gateway: GatewayProcess, client_of: StartClient
) -> None:
    async def play(peer: Peer) -> None:
        if peer.visit == 1:
            await begun(peer)
            return await peer.connection.wait_closed()
        await peer.expect(SessionStart)
        await peer.leave(4501, UNAUTHENTICATED)

    async with scripted_gateway(play) as stream, client_of(gateway, stream) as client:
        await set_up(client, stream, name="Ana")
        await client.do("client.connect()")
        await client.until("client.state === 'open'")
        await client.do("client.rename('Bo')")
        assert await closed(client) == ("unauthenticated", "")
        assert await client.do("[client.name, asked]") == ["Bo", 2]
