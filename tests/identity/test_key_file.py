"""The key file: what it takes, who may read it, and that no secret is ever shown."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import StartupError
from gateway.domain.quotas import NO_QUOTA, Quota
from gateway.identity.key_file import (
    API_KEY_PREFIX,
    ApiKey,
    KeyFile,
    SigningKey,
    hash_of,
    load,
    new_admin_key,
    new_api_key,
    new_signing_key,
    save,
)

SECRET = "0123456789-secret-0123456789-secret"
SIGNING: dict[str, object] = {"kid": "k", "secret": SECRET}
API: dict[str, object] = {"id": "a", "tenant": "acme", "sha256": hash_of(SECRET)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def written(path: Path, content: object, permissions: int = 0o600) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(permissions)
    return path


# ---------------------------------------------------------------- reading


@given(
    st.lists(st.builds(new_signing_key, st.none() | st.just("acme")), max_size=3),
    st.lists(st.builds(lambda: new_api_key("acme")[0]), max_size=3),
)
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, signing: list[SigningKey], api: list[ApiKey]
) -> None:
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    keys = KeyFile(signing=tuple(signing), api=tuple(api))
    save(path, keys)
    assert load(path) == keys


def test_what_others_write(path: Path) -> None:
    keys = load(written(path, {"signing": [{**SIGNING, "tenant": "acme", "issuer": "backend"}], "api": [API]}))
    assert keys.signing == (SigningKey(kid="k", secret=SECRET, tenant="acme", issuer="backend"),)
    assert keys.api == (ApiKey(id="a", tenant="acme", sha256=hash_of(SECRET)),)
    assert load(written(path, {})) == KeyFile()


@pytest.mark.parametrize(
    ("permissions", "warns"), [(0o600, 0), (0o400, 0), (0o640, 0), (0o660, 0), (0o604, 1), (0o644, 1), (0o444, 1)]
)
def test_world_readable_file_is_warned_about(
    permissions: int, warns: int, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert load(written(path, {}, permissions)) == KeyFile()
    assert caplog.messages == [f"everybody on this machine may read the key file {path}: chmod o= {path}"] * warns


@pytest.mark.parametrize("permissions", [0o602, 0o646, 0o666, 0o777])
def test_files_that_everybody_may_change_are_refused(permissions: int, path: Path) -> None:
    with pytest.raises(StartupError) as refused:
        load(written(path, {"signing": [SIGNING]}, permissions))
    assert refused.value.message == f"Everybody on this machine may change the key file {path}: chmod o-w {path}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not valid JSON."),
        (SECRET.encode(), "is not valid JSON."),
        (b'{"signing": [{"secret": "' + SECRET.encode(), "is not valid JSON."),
        (b'{"signing": [{"secret": "' + SECRET.encode() + b'\xff"}]}', "is not valid JSON."),
        ([SECRET], "is not valid: Expected `object`, got `array`."),
        ({"keys": []}, "is not valid: Object contains unknown field `keys`."),
        ({"signing": SIGNING}, "is not valid: Expected `array`, got `object` - at `$.signing`."),
        ({"signing": [SECRET]}, "is not valid: Expected `object`, got `str` - at `$.signing[0]`."),
        (
            {"signing": [{"kid": "k"}]},
            "is not valid: Object missing required field `secret` - at `$.signing[0]`.",
        ),
        (
            {"signing": [{**SIGNING, "alg": "none"}]},
            "is not valid: Object contains unknown field `alg` - at `$.signing[0]`.",
        ),
        (
            {"signing": [{**SIGNING, "secret": SECRET[:31]}]},
            "is not valid: Expected `str` of length >= 32 - at `$.signing[0].secret`.",
        ),
        (
            {"signing": [{**SIGNING, "kid": ""}]},
            "is not valid: Expected `str` of length >= 1 - at `$.signing[0].kid`.",
        ),
        (
            {"signing": [{**SIGNING, "kid": "k" * 129}]},
            "is not valid: Expected `str` of length <= 128 - at `$.signing[0].kid`.",
        ),
        ({"signing": [SIGNING, SIGNING]}, "is not valid: two keys have the same kid."),
        ({"api": [API, {**API, "tenant": "other"}]}, "is not valid: two keys have the same id."),
    ],
    ids=lambda value: str(value)[:60],
)
def test_files_that_are_no_key_files(content: object, reason: str, path: Path) -> None:
    with pytest.raises(StartupError) as refused:
        load(written(path, content))
    assert refused.value.message == f"The key file {path} {reason}"
    assert SECRET[:31] not in refused.value.message


@pytest.mark.parametrize("part", ["signing", "api"])
@pytest.mark.parametrize("tenant", ["", "a/b", ".", "..", "x" * 65, "a b", "acme\n", 5])
def test_tenants_that_cannot_be(part: str, tenant: object, path: Path) -> None:
    key = SIGNING if part == "signing" else API
    with pytest.raises(StartupError, match=rf"^The key file .* is not valid: .*`\$\.{part}\[0\]\.tenant`\.$"):
        load(written(path, {part: [{**key, "tenant": tenant}]}))


def test_tenant_has_its_own_or_the_default_quota(path: Path) -> None:
    named = load(written(path, {"quotas": {"acme": {"sessions": 5, "characters": 0}}}))
    assert named.quota("acme") == Quota(sessions=5, characters=0)
    assert named.quota("other") == NO_QUOTA
    both = load(written(path, {"quotas": {"acme": {}, "*": {"sessions": 1}}}))
    assert (both.quota("acme"), both.quota("other")) == (NO_QUOTA, Quota(sessions=1))
    save(path, both)
    assert load(path) == both


@pytest.mark.parametrize(
    ("tenant", "quota"),
    [
        ("a/b", {}),
        ("**", {}),
        ("", {}),
        ("acme", {"session": 5}),
        ("acme", {"sessions": -1}),
        ("acme", {"sessions": "5"}),
        ("acme", {"joins": 0}),
        ("acme", {"log_bytes": 2**53}),
        ("acme", {"log_bytes": 1_000}),
    ],
)
def test_quotas_that_cannot_be(tenant: str, quota: dict[str, object], path: Path) -> None:
    with pytest.raises(StartupError, match=r"^The key file .* is not valid: .*quotas"):
        load(written(path, {"quotas": {tenant: quota}}))


@pytest.mark.parametrize("sha256", ["", SECRET, hash_of(SECRET).upper(), hash_of(SECRET) + "\n", None])
def test_hashes_that_cannot_be(sha256: object, path: Path) -> None:
    with pytest.raises(StartupError, match=r"`\$\.api\[0\]\.sha256`\.$") as refused:
        load(written(path, {"api": [{**API, "sha256": sha256}]}))
    assert SECRET not in refused.value.message


def test_no_file(path: Path) -> None:
    with pytest.raises(StartupError) as refused:
        load(path)
    assert refused.value.message == f"The key file {path} cannot be read (No such file or directory)."


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"cannot be read \(Is a directory\)\.$"):
        load(tmp_path)


# ---------------------------------------------------------------- writing


def test_a_new_file_is_the_owners_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        save(path, KeyFile(signing=(new_signing_key(),)))
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("before", "after"), [(0o600, 0o600), (0o640, 0o640), (0o660, 0o660), (0o644, 0o640), (0o400, 0o400)]
)
def test_the_group_may_what_it_might(before: int, after: int, path: Path) -> None:
    save(written(path, {}, before), KeyFile())
    assert mode(path) == after


def test_owner_and_group_stay(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_away: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "chown", lambda _, user, group: given_away.append((user, group)))
    found = written(path, {}).stat()
    save(path, KeyFile())
    assert given_away == [(-1, found.st_gid), (found.st_uid, -1)]


def test_another_group_reads_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chown(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", chown)
    save(written(path, {}, 0o660), KeyFile())
    assert mode(path) == 0o600


def test_a_file_is_replaced_as_a_whole(path: Path) -> None:
    save(path, KeyFile())
    with path.open("rb") as reader:
        save(path, KeyFile(signing=(new_signing_key(),)))
        assert json.loads(reader.read()) == {"signing": [], "api": [], "admin": [], "quotas": {}}
    assert len(load(path).signing) == 1


def test_what_cannot_be_replaced_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*_: object) -> None:
        raise OSError("no space")

    keys = KeyFile(signing=(new_signing_key(),))
    save(path, keys)
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="no space"):
        save(path, KeyFile())
    assert load(path) == keys
    assert list(path.parent.iterdir()) == [path]


# ---------------------------------------------------------------- keys


def test_an_api_key_is_kept_as_its_hash() -> None:
    kept, key = new_api_key("acme")
    assert key.startswith(f"{API_KEY_PREFIX}{kept.id}_")
    assert kept == ApiKey(id=kept.id, tenant="acme", sha256=hash_of(key))
    assert hash_of("gk_a") == "d7f3fb1f9c1b7e2e5d0a372585532c6dae085efb74a6885d353e032cb18c5267"


def test_api_keys_are_found_by_all_of_their_letters() -> None:
    made = [new_api_key(tenant) for tenant in ("acme", "acme", "other")]
    keys = KeyFile(api=tuple(kept for kept, _ in made))
    assert [keys.api_key(key) for _, key in made] == list(keys.api)
    key = made[0][1]
    for wrong in ("", key[:-1], key + "x", key.upper(), keys.api[0].id, keys.api[0].sha256, "\ud800", "é"):
        assert keys.api_key(wrong) is None
    assert KeyFile().api_key(key) is None


def test_every_key_is_new() -> None:
    made = [new_signing_key("acme") for _ in range(20)]
    assert len({key.secret for key in made}) == len({key.kid for key in made}) == 20
    assert all(len(key.secret) >= 43 for key in made)
    assert {key.tenant for key in made} == {"acme"}
    assert len({new_api_key("acme")[1] for _ in range(20)}) == 20


def test_secrets_are_not_shown() -> None:
    key = new_signing_key("acme")
    for shown in (repr(key), str(key), repr(KeyFile(signing=(key,))), f"{[key]}"):
        assert key.kid in shown
        assert key.secret not in shown


def test_operator_key_is_not_an_api_key() -> None:
    kept, key = new_admin_key()
    of_tenant, api_key = new_api_key("acme")
    keys = KeyFile(api=(of_tenant,), admin=(kept,))
    assert (keys.admin_key(key), keys.admin_key(api_key)) == (kept, None)
    assert (keys.api_key(api_key), keys.api_key(key)) == (of_tenant, None)
    with pytest.raises(ValueError, match="same id"):
        KeyFile(admin=(kept, kept))
