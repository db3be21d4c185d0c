"""`/v1/tokens`, `/v1/revocations`, and every other endpoint where the gateway has keys."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from gateway.config import AuthSettings, Settings
from gateway.domain.errors import InvalidValue
from gateway.domain.grants import Grant, Issued, Revocation
from gateway.domain.log import Said, Utterance
from gateway.identity import key_file
from gateway.identity.authenticator import Keys
from gateway.identity.key_file import KeyFile, new_api_key, new_signing_key
from gateway.protocol.messages import Error, Resume, SessionStart, SessionStarted, TranslationFinal
from gateway.server.http.tokens import (
    REVOCATION,
    TOKEN,
    InviteAnswer,
    TokenAnswer,
)
from tests.gateways import Running, running
from tests.logs import append
from tests.meetings import say
from tests.usual import usual


def test_an_order_says_all_that_a_grant_has() -> None:
    body = TOKEN.decode(
        b'{"sub": "ana", "meeting": "standup", "roles": ["read"], "langs": ["ja"], "speaks": ["en"],'
        b'"name": "Ana", "max_s": 60, "once": true, "expires_s": 30}'
    )
    assert body.grant("acme") == Grant(
        tenant="acme",
        subject="ana",
        roles=frozenset({"read"}),
        meeting="standup",
        langs=frozenset({"ja"}),
        speaks=frozenset({"en"}),
        name="Ana",
        max_s=60,
        once=True,
    )
    assert body.valid_s == 30


def test_an_order_may_write_a_language_in_other_ways() -> None:
    grant = TOKEN.decode(b'{"sub": "ana", "langs": ["EN-us", "zh_TW"], "speaks": ["De"]}').grant("acme")
    assert (grant.langs, grant.speaks) == (frozenset({"en", "zh-hant"}), frozenset({"de"}))


def test_what_is_not_said() -> None:
    token, invite = TOKEN.decode(b'{"sub": "ana"}'), TOKEN.decode(b'{"invite": true}')
    assert token.grant("acme") == Grant(tenant="acme", subject="ana", roles=frozenset({"speak", "read"}))
    assert invite.grant("acme").subject == "guests"
    assert (token.valid_s, invite.valid_s) == (600, 86_400)


def test_an_answer_tells_what_was_issued() -> None:
    grant = Grant(subject="ana", roles=frozenset({"speak", "read"}), meeting="m", issued_s=1_000, expires_s=1_600)
    at = datetime.fromtimestamp(1_600, UTC)
    everything = TokenAnswer("t", at, 600, "m", ["read", "speak"], None, langs=None, speaks=None, once=False)
    assert TokenAnswer.from_issued(Issued("t", grant)) == everything
    assert InviteAnswer.from_issued(Issued("t", grant)) == InviteAnswer("t", at, "invite=t")


def test_answer_tells_languages_and_single_use() -> None:
    grant = Grant(langs=frozenset({"ja", "de"}), speaks=frozenset(), once=True, record=False)
    assert TOKEN.decode(b'{"sub": "ana", "record": false}').grant("acme").record is False
    answer = TokenAnswer.from_issued(Issued("t", grant))
    assert (answer.langs, answer.speaks, answer.once, answer.record) == (["de", "ja"], [], True, False)
    exchanged = Issued("t", Grant())
    assert TokenAnswer.from_issued(exchanged, invited=grant).once
    assert not TokenAnswer.from_issued(exchanged, invited=Grant()).once


def test_revocation_covers_what_the_tenant_issued_before() -> None:
    body = REVOCATION.decode(b'{"jti": "1", "sub": "ana", "meeting": "m"}')
    assert body.revocation("acme", 5.0) == Revocation(
        tenant="acme", before_s=5.0, token_id="1", subject="ana", meeting="m"
    )
    everything = REVOCATION.decode(b'{"all": true}').revocation("acme", 5.0)
    assert everything == Revocation(tenant="acme", before_s=5.0)


@pytest.mark.parametrize("body", [b"{}", b'{"all": true, "sub": "ana"}', b'{"all": false}'])
def test_a_revocation_says_of_what(body: bytes) -> None:
    with pytest.raises(InvalidValue):
        REVOCATION.decode(body).revocation("acme", 5.0)


def test_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"roles\[0\]"):
        TOKEN.decode(b'{"sub": "ana", "roles": ["root"]}')


GUEST = "a secret of sixteen or more"
TRANSLATE = {"text": "hi", "source_lang": "en", "target_lang": "ja"}


class Door:
    """A gateway with keys, as backends of two tenants see it."""

    def __init__(self, gateway: Running, client: httpx.AsyncClient, keys: dict[str, str], path: Path) -> None:
        self.path = path
        self.gateway = gateway
        self.client = client
        self.keys = keys

    async def post(self, path: str, body: dict[str, Any], bearer: str | None = None) -> httpx.Response:
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        return await self.client.post(path, json=body, headers=headers)

    async def token(self, of: str = "acme", /, **body: Any) -> str:
        response = await self.post("/v1/tokens", {"sub": "ana", **body}, self.keys[of])
        assert response.status_code == 200, response.text
        token: str = response.json()["invite" if body.get("invite") is True else "token"]
        return token

    async def transcript(self, bearer: str, meeting: str = "standup") -> httpx.Response:
        return await self.client.get(
            f"/v1/meetings/{meeting}/transcript.json", headers={"Authorization": f"Bearer {bearer}"}
        )


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    made = {tenant: new_api_key(tenant) for tenant in ("acme", "other")}
    path = tmp_path / "keys.json"
    key_file.save(path, KeyFile(signing=(new_signing_key(),), api=tuple(kept for kept, _ in made.values())))
    settings = Settings(auth=AuthSettings(keys_file=str(path)))
    async with (
        running(settings) as gateway,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}") as client,
    ):
        yield Door(gateway, client, {tenant: key for tenant, (_, key) in made.items()}, path)


def check(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    assert ("WWW-Authenticate" in response.headers) == (status == 401)


async def test_backends_token_opens_one_bound_session(door: Door) -> None:
    asked = {"sub": "ana", "meeting": "standup", "roles": ["read"], "name": "Ana", "expires_s": 60, "max_s": 900}
    answer = (await door.post("/v1/tokens", asked, door.keys["acme"])).json()
    assert (answer["meeting"], answer["roles"], answer["name"], answer["expires_in_s"]) == (
        "standup",
        ["read"],
        "Ana",
        60,
    )
    async with door.gateway.peer() as peer:
        await peer.send(SessionStart(reads=["ja"], token=answer["token"]), say("u1"))
        started, refused = await peer.until(Error)
        assert isinstance(started, SessionStarted)
        assert started.meeting == "standup"
        assert refused.code == "forbidden"


@pytest.mark.parametrize("bearer", [None, "nonsense", "gk_0_nonsense"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/tokens", {"sub": "ana"}),
        ("POST", "/v1/revocations", {"all": True}),
        ("POST", "/v1/translate", TRANSLATE),
        ("GET", "/v1/meetings/standup/transcript.txt", None),
    ],
)
async def test_nobody_is_served_without_a_valid_token(
    door: Door, method: str, path: str, body: dict[str, Any] | None, bearer: str | None
) -> None:
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    response = await door.client.request(method, path, json=body, headers=headers)
    check(response, 401, "unauthenticated")
    assert response.json()["detail"] == "This gateway needs a valid token."


async def test_what_needs_no_token(door: Door) -> None:
    for path in (
        "/",
        "/healthz",
        "/readyz",
        "/v1/languages",
        "/openapi.json",
        "/asyncapi.json",
        "/errors/forbidden",
    ):
        assert (await door.client.get(path)).status_code == 200, path
    assert (await door.client.get("/readyz")).json()["auth"] == "token"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"meeting": "standup"}, "sub"),
        ({"sub": "ana", "meeting": "a/b"}, "meeting"),
        ({"sub": "ana", "meeting": ".."}, "meeting"),
        ({"sub": "ana", "roles": ["root"]}, "roles[0]"),
        ({"sub": "ana", "langs": ["?"]}, "langs[0]"),
        ({"sub": "ana", "expires_s": 601}, "expires_s"),
        ({"invite": True, "expires_s": 604_801}, "expires_s"),
        ({"sub": "ana", "max_s": 86_401}, "max_s"),
        ({"invite": "eyJ", "guest": "short"}, "guest"),
        ({"sub": "ana", "role": ["read"]}, None),
    ],
)
async def test_a_wrong_order_names_its_field(door: Door, body: dict[str, Any], field: str | None) -> None:
    response = await door.post("/v1/tokens", body, door.keys["acme"])
    assert response.status_code in (400, 422)
    assert response.json()["field"] == field


async def test_token_revokes_only_as_admin_of_its_meeting(door: Door) -> None:
    admin = await door.token(meeting="standup", roles=["admin"])
    check(await door.post("/v1/tokens", {"sub": "eve", "meeting": "standup"}, admin), 403, "forbidden")
    check(await door.post("/v1/revocations", {"meeting": "board"}, admin), 403, "forbidden")
    check(await door.post("/v1/revocations", {"all": True}, admin), 403, "forbidden")
    reader = await door.token(meeting="standup", roles=["read"])
    check(await door.post("/v1/revocations", {"meeting": "standup"}, reader), 403, "forbidden")
    assert (await door.post("/v1/revocations", {"meeting": "standup"}, admin)).json() == {"sessions": 0}
    check(await door.transcript(admin), 401, "unauthenticated")


async def test_an_admin_of_no_meeting_revokes_nothing(door: Door) -> None:
    admin = await door.token(roles=["admin"])
    for body in ({"all": True}, {"sub": "ana"}, {"jti": "1"}):
        check(await door.post("/v1/revocations", body, admin), 403, "forbidden")


async def test_what_is_issued_right_after_a_revocation_is_valid(door: Door) -> None:
    before = await door.token(meeting="standup", roles=["transcript"])
    assert (await door.post("/v1/revocations", {"sub": "ana"}, door.keys["acme"])).status_code == 200
    check(await door.transcript(before), 401, "unauthenticated")
    after = await door.token(meeting="standup", roles=["transcript"])
    check(await door.transcript(after), 404, "unknown_meeting")


async def test_a_guest_who_is_thrown_out_stays_out(door: Door) -> None:
    invite = await door.token(invite=True, meeting="standup")
    await door.post("/v1/tokens", {"invite": invite, "guest": GUEST})
    keys = usual(Keys, door.path)
    thrown_out = keys.admit(await keys.invited(invite), GUEST).grant.subject
    await door.post("/v1/revocations", {"sub": thrown_out}, door.keys["acme"])
    check(await door.post("/v1/tokens", {"invite": invite, "guest": GUEST}), 401, "unauthenticated")
    other = await door.post("/v1/tokens", {"invite": invite, "guest": f"another {GUEST}"})
    assert other.status_code == 200


async def test_invite_gives_guests_tokens_until_revoked(door: Door) -> None:
    invite = await door.token(invite=True, meeting="standup")

    async def enter(guest: str) -> httpx.Response:
        return await door.post("/v1/tokens", {"invite": invite, "guest": guest})

    answer = (await enter(GUEST)).json()
    assert (answer["meeting"], answer["roles"]) == ("standup", ["read", "speak"])
    check(await door.post("/v1/translate", TRANSLATE, invite), 401, "unauthenticated")
    async with door.gateway.peer() as ana, door.gateway.peer() as eve:
        await ana.send(SessionStart(reads=["ja"], token=answer["token"]))
        [started] = await ana.until(SessionStarted)
        # Somebody else with the same invite does not get this session, even with its secret.
        other = (await enter(f"another {GUEST}")).json()["token"]
        resume = {"session": started.session, "epoch": started.epoch, "offset": started.offset}
        await eve.connection.send(
            f'{{"type": "session.start", "reads": ["ja"], "token": "{other}", "resume": {json.dumps(resume)}}}'
        )
        assert (await eve.until(Error))[-1].code == "forbidden"
        assert (await door.post("/v1/revocations", {"sub": "guests"}, door.keys["other"])).json() == {
            "sessions": 0
        }
        revoked = await door.post("/v1/revocations", {"meeting": "standup"}, door.keys["acme"])
        assert revoked.json() == {"sessions": 1}
        assert (await ana.until(Error))[-1].code == "meeting_ended"
        with pytest.raises(ConnectionClosed) as closed:
            await ana.connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4505
    check(await enter(GUEST), 401, "unauthenticated")


async def test_an_invite_for_one_guest_is_that_guests_alone(door: Door) -> None:
    invite = await door.token(invite=True, meeting="standup", once=True)
    guests = [f"{GUEST} {n}" for n in range(8)]
    answers = await asyncio.gather(
        *(door.post("/v1/tokens", {"invite": invite, "guest": guest}) for guest in guests)
    )
    [first] = [n for n, answer in enumerate(answers) if answer.status_code == 200]
    assert {answer.status_code for answer in answers} == {200, 401}
    again = await door.post("/v1/tokens", {"invite": invite, "guest": guests[first]})
    assert again.status_code == 200


async def test_what_was_said_is_erased_by_whoever_may(door: Door) -> None:
    said = Said(Utterance("1", 1, "to be erased", "en", "p", "Ana", final=True))
    await append(door.gateway.gateway.log, "acme/standup", said)

    async def erase(bearer: str, meeting: str = "standup") -> httpx.Response:
        headers = {"Authorization": f"Bearer {bearer}"}
        return await door.client.delete(f"/v1/meetings/{meeting}/transcript", headers=headers)

    for bearer in (
        await door.token(meeting="standup", roles=["speak", "read", "transcript"]),
        await door.token(meeting="board", roles=["admin"]),
    ):
        check(await erase(bearer), 403, "forbidden")
    check(await erase("nobody"), 401, "unauthenticated")
    # Another tenant's meeting of this id.
    assert (await erase(door.keys["other"])).status_code == 204
    assert "to be erased" in (await door.transcript(door.keys["acme"])).text
    assert (await erase(await door.token(meeting="standup", roles=["admin"]))).status_code == 204
    check(await door.transcript(door.keys["acme"]), 404, "unknown_meeting")
    assert (await erase(door.keys["acme"], "never")).status_code == 204
    assert (await erase(door.keys["acme"], "a" * 64)).status_code == 204
    for impossible in ("a" * 65, "a b", "..."):
        check(await erase(door.keys["acme"], impossible), 404, "unknown_meeting")
        headers = {"Authorization": f"Bearer {door.keys['acme']}"}
        check(await door.client.get(f"/v1/meetings/{impossible}", headers=headers), 404, "unknown_meeting")


async def test_title_goes_with_what_was_said_while_people_are_in_the_meeting(door: Door) -> None:
    async with door.gateway.peer() as ana, door.gateway.peer() as bo, door.gateway.peer() as again:
        host = await door.token(meeting="standup", roles=["host", "speak", "read"])
        await ana.send(SessionStart(reads=["ja"], token=host, title="Weekly"))
        [started] = await ana.until(SessionStarted)
        assert started.title == "Weekly"
        headers = {"Authorization": f"Bearer {door.keys['acme']}"}
        erased = await door.client.delete("/v1/meetings/standup/transcript", headers=headers)
        assert erased.status_code == 204
        await bo.send(SessionStart(reads=["ja"], token=await door.token(sub="bo", meeting="standup")))
        assert (await bo.until(SessionStarted))[-1].title is msgspec.UNSET
        # The host's client comes back by itself, and says again what the meeting was called at first.
        resume = Resume(started.session, started.epoch, started.offset)
        await again.send(SessionStart(reads=["ja"], token=host, title="Weekly", resume=resume))
        assert (await again.until(SessionStarted))[-1].title is msgspec.UNSET


async def test_where_nobody_needs_a_token_nobody_erases() -> None:
    async with running() as gateway, httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}") as client:
        check(await client.delete("/v1/meetings/standup/transcript"), 403, "forbidden")


async def test_transcripts_and_translations_are_held_against_the_token(door: Door) -> None:
    async with door.gateway.peer() as peer:
        speaks = await door.token(meeting="standup")
        await peer.send(SessionStart(reads=["ja"], speaks="en", token=speaks), say("u1", "the plan"))
        await peer.until(TranslationFinal)
    allowed = await door.token(meeting="standup", roles=["transcript"])
    assert (await door.transcript(allowed)).json()["utterances"][0]["text"] == "the plan"
    assert (await door.transcript(door.keys["acme"])).status_code == 200
    check(await door.transcript(speaks), 403, "forbidden")
    check(await door.transcript(allowed, "board"), 403, "forbidden")
    narrow = await door.token(meeting="standup", roles=["transcript"], langs=["ja"])
    check(await door.transcript(narrow), 403, "forbidden")
    # Another tenant's meeting of the same name is another meeting.
    check(await door.transcript(door.keys["other"]), 404, "unknown_meeting")
    check(
        await door.transcript(await door.token("other", meeting="standup", roles=["transcript"])),
        404,
        "unknown_meeting",
    )

    assert (await door.post("/v1/translate", TRANSLATE, door.keys["acme"])).status_code == 200
    assert (await door.post("/v1/translate", TRANSLATE, await door.token())).status_code == 200
    for roles in (["speak"], ["read"]):
        check(await door.post("/v1/translate", TRANSLATE, await door.token(roles=roles)), 403, "forbidden")
    narrow_ones: list[dict[str, Any]] = [{"langs": ["de"]}, {"speaks": ["de"]}]
    for langs in narrow_ones:
        check(await door.post("/v1/translate", TRANSLATE, await door.token(**langs)), 403, "forbidden")


async def test_a_gateway_without_keys_has_no_tokens() -> None:
    async with (
        running() as gateway,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}") as client,
    ):
        response = await client.post("/v1/tokens", json={"sub": "ana"})
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
