"""Who is who by token and API key, what happens when the key file changes, and what is issued."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.config import AuthSettings
from gateway.domain.errors import Forbidden, InvalidValue, StartupError, Unauthenticated
from gateway.domain.grants import Grant, Issued
from gateway.domain.roles import ROLES
from gateway.identity import key_file
from gateway.identity.authenticator import Keys, issue
from gateway.identity.jwks import PublicKeys
from gateway.identity.key_file import ApiKey, KeyFile, SigningKey, new_api_key, new_signing_key, save
from gateway.identity.tokens import INVITE_MAX_S, TOKEN_MAX_S
from tests.identity.forging import AUDIENCE, ISSUER, NOW, claims, private, token
from tests.identity.test_jwks import Address, jwk, key_set
from tests.usual import usual

ANA = Grant(subject="ana", roles=frozenset({"speak", "read"}), meeting="standup")
# The key of `forging.token`, as the file has it.
FORGED = SigningKey(kid="HS256", secret=private("HS256").decode(), issuer=ISSUER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


class Clock:
    now_s: float = NOW

    def __call__(self) -> float:
        return self.now_s


def authenticator(
    path: Path | None, keys: KeyFile | None = None, public: PublicKeys | None = None, clock: Clock | None = None
) -> Keys:
    if path is not None and keys is not None:
        save(path, keys)
    return usual(Keys, path, public, audience=AUDIENCE, clock=clock or Clock())


def public_keys(*keys: dict[str, object]) -> PublicKeys:
    async def fetch() -> bytes:
        return key_set(*keys)

    return PublicKeys(ISSUER, fetch)


async def refused(keys: Keys, presented: str) -> bool:
    try:
        await keys.verify(presented)
    except Unauthenticated:
        return True
    return False


async def test_tokens_wait_for_no_work_of_others(path: Path) -> None:
    """Whatever fills the threads of the process: a token is verified without one."""
    keys, gate = authenticator(path, KeyFile(signing=(FORGED,))), threading.Event()
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(1)
    loop.set_default_executor(executor)
    busy = loop.run_in_executor(None, gate.wait)
    try:
        assert not await refused(keys, token())
    finally:
        gate.set()
        await busy


# ---------------------------------------------------------------- API keys


async def test_an_api_key(path: Path) -> None:
    kept, key = new_api_key("acme")
    keys = authenticator(path, KeyFile(api=(kept,)))
    assert await keys.verify(key) == Grant(
        tenant="acme",
        subject=f"api-key:{kept.id}",
        token_id=f"api-key:{kept.id}",
        roles=ROLES,
        any_meeting=True,
        issued_s=math.inf,
    )
    assert keys.required


@pytest.mark.parametrize("wrong", ["gk_", "gk_a_b", "gk_\ud800", "gk_ä", "gk_" + "x" * 65_536])
async def test_wrong_api_keys(wrong: str, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    keys = authenticator(path, KeyFile(api=(new_api_key("acme")[0],)))
    with pytest.raises(Unauthenticated):
        await keys.verify(wrong)
    assert wrong not in caplog.text


async def test_an_immense_api_key_is_not_even_looked_at(path: Path) -> None:
    immense = "gk_" + "x" * 8_190
    kept = ApiKey(id="a", tenant="acme", sha256=key_file.hash_of(immense))
    assert await refused(authenticator(path, KeyFile(api=(kept,))), immense)


async def test_an_api_key_stands_until_it_is_removed(path: Path) -> None:
    (gone, gone_key), (kept, kept_key) = new_api_key("acme"), new_api_key("acme")
    keys = authenticator(path, KeyFile(signing=(FORGED,), api=(gone, kept)))
    grants = [await keys.verify(presented) for presented in (gone_key, kept_key, token())]
    assert [keys.stands(grant) for grant in grants] == [True, True, True]
    save(path, KeyFile(api=(kept,)))
    await keys.reload()
    assert [keys.stands(grant) for grant in grants] == [False, True, True]
    assert await refused(keys, gone_key)


async def test_token_named_like_an_api_key_is_a_token(path: Path) -> None:
    keys = authenticator(path, KeyFile(signing=(FORGED,)))
    grant = await keys.verify(token(claims(sub="api-key:a")))
    assert not grant.any_meeting
    assert keys.stands(grant)


# ---------------------------------------------------------------- tokens


async def test_tokens_of_the_key_file(path: Path) -> None:
    keys = authenticator(path, KeyFile(signing=(new_signing_key(), FORGED)))
    assert (await keys.verify(token())).subject == "ana"
    assert await refused(keys, token(claims(aud=AuthSettings().audience)))
    assert await refused(keys, token(signer=b"another secret of about the same size"))
    assert await refused(keys, token(algorithm="EdDSA"))


async def test_a_key_of_one_tenant_signs_for_no_other(path: Path) -> None:
    keys = authenticator(path, KeyFile(signing=(replace(FORGED, tenant="acme"),)))
    assert (await keys.verify(token(claims({"tenant": "acme"})))).tenant == "acme"
    assert await refused(keys, token(claims({"tenant": "other"})))


@pytest.mark.parametrize("with_file", [False, True])
async def test_tokens_of_public_keys(with_file: bool, path: Path) -> None:
    public = public_keys(jwk("EdDSA"), jwk("RS256"))
    keys = authenticator(path if with_file else None, KeyFile(signing=(FORGED,)), public)
    assert (await keys.verify(token(algorithm="EdDSA"))).subject == "ana"
    assert (await keys.verify(token(algorithm="RS256"))).subject == "ana"
    assert await refused(keys, token(algorithm="ES256"))
    assert await refused(keys, token()) is not with_file
    await keys.reload()


async def test_the_key_file_wins_over_public_keys(path: Path) -> None:
    public = public_keys(jwk("EdDSA", kid="HS256"))
    keys = authenticator(path, KeyFile(signing=(FORGED,)), public)
    await public.look_for("HS256")
    assert (await keys.verify(token())).subject == "ana"
    assert await refused(keys, token(algorithm="EdDSA", kid="HS256"))


@pytest.mark.parametrize(
    "bad",
    [
        *("", "..", "a.b.c", "\ud800", "é.é.é", "x" * 65_536),
        token(kid=1),
        token(kid=["EdDSA"]),
        token(raw_header=b"[]"),
        token(raw_header=b'{"kid": ' + b"[" * 2_000 + b"]" * 2_000 + b"}"),
        token(raw_header=b"[" * 2_000),
        token(crit=["b64"], b64=False),
        token(kid="HS256", pad="x" * 8_192),
        token().rpartition(".")[0],
    ],
    ids=lambda bad: bad[:40],
)
async def test_address_is_not_asked_about_bad_tokens(bad: str) -> None:
    address = Address()
    assert await refused(authenticator(None, public=address.keys), bad)
    assert address.asked == 0


async def test_address_is_not_asked_about_file_keys(path: Path) -> None:
    address = Address()
    assert not await refused(authenticator(path, KeyFile(signing=(FORGED,)), address.keys), token())
    assert address.asked == 0


# ---------------------------------------------------------------- tenants that are never recorded


async def test_nothing_overrules_that_a_tenant_is_never_recorded(path: Path) -> None:
    kept, key = new_api_key("acme")
    file = KeyFile(signing=(new_signing_key(),), api=(kept,), unrecorded=("acme",))
    keys = authenticator(path, file)
    asked = keys.issue(replace(ANA, tenant="acme", record=True), for_s=60).token
    assert [(await keys.verify(presented)).record for presented in (key, asked)] == [False, False]
    for record in (None, True, False):
        other = keys.issue(replace(ANA, tenant="other", record=record), for_s=60).token
        assert (await keys.verify(other)).record is record
    save(path, replace(file, unrecorded=("*",)))
    await keys.reload()
    assert (await keys.verify(other)).record is False


# ---------------------------------------------------------------- the key file changes


async def test_a_changed_file_is_read_again(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    kept, key = new_api_key("acme")
    keys = authenticator(path, KeyFile(signing=(FORGED,)))
    await keys.reload()
    assert caplog.messages == []
    save(path, KeyFile(api=(kept,)))
    assert await refused(keys, key)
    await keys.reload()
    await keys.reload()
    assert caplog.messages == [f"the keys were read again from {path}"]
    assert (await keys.verify(key)).tenant == "acme"
    assert await refused(keys, token())


def broken(path: Path, how: str) -> None:
    match how:
        case "gone":
            path.unlink()
        case "for everybody":
            path.chmod(0o666)
        case "a folder":
            path.unlink()
            path.mkdir()
        case _:
            path.write_text(how)


@pytest.mark.parametrize("how", ["", "{", '{"signing": "none"}', "gone", "for everybody", "a folder"])
async def test_a_broken_file_changes_nothing(how: str, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    kept, key = new_api_key("acme")
    keys = authenticator(path, KeyFile(signing=(FORGED,), api=(kept,)))
    broken(path, how)
    await keys.reload()
    await keys.reload()
    (message,) = caplog.messages
    assert message.startswith("the keys stay as they were: ")
    assert str(path) in message
    assert FORGED.secret not in caplog.text
    assert (await keys.verify(token())).subject == "ana"
    assert keys.stands(await keys.verify(key))


async def test_file_is_read_once_it_is_protected(path: Path) -> None:
    keys = authenticator(path, KeyFile())
    save(path, KeyFile(signing=(FORGED,)))
    broken(path, "for everybody")
    await keys.reload()
    assert await refused(keys, token())
    os.chmod(path, 0o600)
    await keys.reload()
    assert not await refused(keys, token())


async def test_a_file_that_comes_back_is_read(path: Path) -> None:
    keys = authenticator(path, KeyFile(signing=(FORGED,)))
    os.rename(path, away := path.with_name("away"))
    await keys.reload()
    assert not await refused(keys, token())
    save(away, KeyFile())
    os.rename(away, path)
    await keys.reload()
    assert await refused(keys, token())


async def test_what_changes_while_it_is_read_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, KeyFile())
    load = key_file.load

    def slowly(path: Path) -> KeyFile:
        found = load(path)
        save(path, KeyFile(signing=(FORGED,)))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(key_file, "load", slowly)
        keys = authenticator(path)
    await keys.reload()
    assert (await keys.verify(token())).subject == "ana"


def test_without_a_usable_file_there_are_no_keys(path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be read"):
        authenticator(path)


# ---------------------------------------------------------------- issuing


@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_what_is_issued_is_valid(tenant: str | None, path: Path) -> None:
    keys = authenticator(path, KeyFile(signing=(new_signing_key(tenant),)))
    grant = replace(
        ANA, tenant="acme", langs=frozenset({"ja"}), speaks=frozenset(), name="Ana", max_s=60, once=True
    )
    issued = keys.issue(grant, for_s=60)
    assert issued.grant == replace(grant, token_id=issued.grant.token_id, issued_s=NOW, expires_s=NOW + 60)
    assert await keys.verify(issued.token) == issued.grant
    assert keys.issue(grant, for_s=60).grant.token_id != issued.grant.token_id


async def test_the_first_key_that_may_signs(path: Path) -> None:
    made = [new_signing_key(tenant) for tenant in ("other", "acme", None)]
    keys = authenticator(path, KeyFile(signing=tuple(made)))
    issued = {tenant: keys.issue(replace(ANA, tenant=tenant), for_s=60) for tenant in ("acme", "third")}
    save(path, KeyFile(signing=(made[1],)))
    await keys.reload()
    assert not await refused(keys, issued["acme"].token)
    assert await refused(keys, issued["third"].token)


@pytest.mark.parametrize("signing", [(), (new_signing_key("other"),)], ids=["no key", "another tenant's"])
def test_no_key_for_the_tenant(signing: tuple[SigningKey, ...], path: Path) -> None:
    keys = authenticator(path, KeyFile(signing=signing, api=(new_api_key("acme")[0],)))
    with pytest.raises(
        Forbidden, match=r"^There is no key that may sign tokens of this tenant; `gateway key new` makes one\.$"
    ):
        keys.issue(replace(ANA, tenant="acme"), for_s=60)


@pytest.mark.parametrize("invite", [False, True])
def test_how_long(invite: bool) -> None:
    most_s = INVITE_MAX_S if invite else TOKEN_MAX_S
    keys = KeyFile(signing=(new_signing_key(),))
    for for_s in (1, 1.9, 60, most_s):
        issued = usual(issue, keys, ANA, for_s=for_s, now_s=NOW + 0.9, invite=invite)
        # In steps of which sums are exact.
        assert issued.grant.issued_s == int((NOW + 0.9) * 65_536) / 65_536
        assert issued.grant.expires_s == issued.grant.issued_s + int(for_s)
    for for_s in (0, -1, 0.9, most_s + 0.1, most_s + 1, math.inf, -math.inf, math.nan):
        with pytest.raises(InvalidValue, match=rf"^expires_s has to be 1 to {most_s} here\.$") as wrong:
            usual(issue, keys, ANA, for_s=for_s, now_s=NOW, invite=invite)
        assert wrong.value.field == "expires_s"


def test_what_no_token_may_say() -> None:
    with pytest.raises(InvalidValue, match=r"^No token may say this: .*\.$"):
        usual(issue, KeyFile(signing=(FORGED,)), replace(ANA, meeting="a/b"), for_s=60, now_s=NOW)


def test_an_issued_token_is_not_shown() -> None:
    issued = usual(issue, KeyFile(signing=(FORGED,)), ANA, for_s=60, now_s=NOW)
    assert issued.token not in repr(issued)


# ---------------------------------------------------------------- invites


def invited(path: Path, clock: Clock | None = None, **change: Any) -> tuple[Keys, Issued]:
    keys = authenticator(path, KeyFile(signing=(FORGED,)), clock=clock)
    return keys, keys.issue(replace(ANA, **change), for_s=86_400, invite=True)


async def test_invite_is_not_a_token(path: Path) -> None:
    keys, invite = invited(path)
    assert await keys.invited(invite.token) == invite.grant
    assert await refused(keys, invite.token)
    with pytest.raises(Unauthenticated):
        await keys.invited(keys.issue(ANA, for_s=60).token)
    with pytest.raises(Unauthenticated):
        await keys.invited(new_api_key("default")[1])


async def test_who_has_the_same_secret_is_the_same_guest(path: Path) -> None:
    keys, invite = invited(path, tenant="acme", name="Guest", max_s=60, langs=frozenset({"ja"}), once=True)
    _, other = invited(path, tenant="acme")
    tokens = [keys.admit(invite.grant, guest) for guest in ("secret a", "secret a", "secret b", "\ud800")]
    tokens.append(keys.admit(other.grant, "secret a"))
    subjects = [(await keys.verify(each.token)).subject for each in tokens]
    assert subjects[0] == subjects[1]
    assert len(set(subjects)) == 4
    assert all(subject.startswith("guest:") and "secret" not in subject for subject in subjects)
    # Everything else is what the invite says; `once` is about guests, not about their sessions.
    first = tokens[0].grant
    assert first == replace(
        invite.grant,
        subject=first.subject,
        token_id=first.token_id,
        invite_id=invite.grant.token_id,
        expires_s=NOW + 600,
        once=False,
    )
    assert len({each.grant.token_id for each in tokens}) == 5


@pytest.mark.parametrize(
    ("left_s", "life_s"),
    [(86_400, 600), (600.5, 600), (599.9, 599), (20, 20), (20.5, 20), (1, 1), (0, 1), (-10, 1)],
)
async def test_a_guests_token_ends_with_the_invite(left_s: float, life_s: int, path: Path) -> None:
    clock = Clock()
    keys, invite = invited(path, clock)
    assert invite.grant.expires_s is not None
    clock.now_s = invite.grant.expires_s - left_s
    grant = keys.admit(invite.grant, "guest").grant
    assert grant.expires_s is not None
    assert grant.expires_s - grant.issued_s == life_s
    assert grant.expires_s <= max(invite.grant.expires_s, clock.now_s + 1)


def test_default_clock_is_the_real_one(path: Path) -> None:
    save(path, KeyFile(signing=(FORGED,)))
    before_s = time.time()
    issued = usual(Keys, path).issue(ANA, for_s=60)
    assert math.floor(before_s) <= issued.grant.issued_s <= time.time()


async def test_nothing_of_a_key_is_in_the_log(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    kept, key = new_api_key("acme")
    keys, invite = invited(path)
    save(path, KeyFile(signing=(FORGED,), api=(kept,)))
    await keys.reload()
    issued = keys.admit(await keys.invited(invite.token), "the guest's secret")
    for presented in (key, issued.token, token(), token(claims(exp=NOW + 601)), "gk_wrong-key"):
        await refused(keys, presented)
    said = caplog.text + repr(keys) + json.dumps([record.args for record in caplog.records], default=repr)
    for secret in (
        FORGED.secret,
        key,
        kept.sha256,
        invite.token,
        issued.token,
        "the guest's secret",
        "gk_wrong-key",
    ):
        assert secret not in said
