"""`gateway key` and `gateway token`: what they print, what they never print, and that it is valid."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.cli.main import main
from gateway.domain.errors import Unauthenticated
from gateway.domain.grants import Grant
from gateway.domain.roles import Role
from gateway.identity.authenticator import Keys
from gateway.identity.key_file import KeyFile, load
from tests.usual import usual

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def ran(capsys: Capture, *argv: object) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    capsys.readouterr()
    status = main([str(each) for each in argv])
    out, err = capsys.readouterr()
    return status, out, err


def secrets_of(keys: KeyFile) -> list[str]:
    return [*(key.secret for key in keys.signing), *(key.sha256 for key in keys.api)]


# ---------------------------------------------------------------- keys


def test_a_signing_key(path: Path, capsys: Capture) -> None:
    status, out, err = ran(capsys, "key", "new", "--keys", path)
    (key,) = load(path).signing
    assert (status, out) == (0, "")
    assert (
        err == f"gateway: A new key signs tokens of every tenant: {key.kid}, in {path}. Keep this file secret.\n"
    )
    assert key.tenant is None
    assert key.secret not in err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_operators_key_is_made_listed_and_removed(path: Path, capsys: Capture) -> None:
    status, out, err = ran(capsys, "key", "admin", "--keys", path)
    (kept,) = load(path).admin
    assert (status, load(path).admin_key(out.strip())) == (0, kept)
    assert err == f"gateway: A key for operators: {kept.id}. It is shown only now.\n"
    assert ran(capsys, "key", "list", "--keys", path)[1] == f"{kept.id}\tadmin\tthe whole gateway\n"
    assert ran(capsys, "key", "remove", kept.id, "--keys", path)[0] == 0
    assert load(path).admin == ()


def test_a_new_signing_key_is_the_first(path: Path, capsys: Capture) -> None:
    ran(capsys, "key", "new", "--keys", path)
    ran(capsys, "key", "api", "--keys", path)
    old = load(path)
    status, _, err = ran(capsys, "key", "new", "--keys", path, "--tenant", "acme")
    assert status == 0
    assert "A new key signs tokens of tenant acme: " in err
    new, *others = load(path).signing
    assert new.tenant == "acme"
    assert (tuple(others), load(path).api) == (old.signing, old.api)


@pytest.mark.parametrize(("flags", "tenant"), [((), "default"), (("--tenant", "acme"), "acme")])
async def test_an_api_key_is_shown_once(flags: tuple[str, ...], tenant: str, path: Path, capsys: Capture) -> None:
    status, out, err = ran(capsys, "key", "api", "--keys", path, *flags)
    (kept,) = load(path).api
    key = out.removesuffix("\n")
    assert status == 0
    assert err == f"gateway: An API key of tenant {tenant}: {kept.id}. It is shown only now.\n"
    assert key not in err
    assert key not in repr(kept)
    assert (await usual(Keys, path).verify(key)).tenant == tenant


def test_the_list_has_no_secrets(path: Path, capsys: Capture) -> None:
    made = ""
    for flags in (["new"], ["new", "--tenant", "acme"], ["api", "--tenant", "acme"], ["api"]):
        made += ran(capsys, "key", *flags, "--keys", path)[1]
    keys = load(path)
    status, out, err = ran(capsys, "key", "list", "--keys", path)
    assert (status, err) == (0, "")
    acme, every = keys.signing
    assert out.splitlines() == [
        f"{acme.kid}\tsigning\tacme",
        f"{every.kid}\tsigning\tevery tenant",
        f"{keys.api[0].id}\tapi\tacme",
        f"{keys.api[1].id}\tapi\tdefault",
    ]
    assert [secret for secret in (*secrets_of(keys), *made.split()) if secret in out] == []


def test_keys_are_removed_by_their_id(path: Path, capsys: Capture) -> None:
    for action in ("new", "new", "api", "api"):
        ran(capsys, "key", action, "--keys", path)
    keys = load(path)
    for id in (keys.signing[0].kid, keys.api[1].id):
        removed = f"gateway: The key {id} is removed from {path}.\n"
        assert ran(capsys, "key", "remove", id, "--keys", path) == (0, "", removed)
    left = KeyFile(signing=keys.signing[1:], api=keys.api[:1])
    assert load(path) == left
    gone = keys.signing[0].kid
    unknown = f"gateway: There is no key {gone} in {path}.\n"
    assert ran(capsys, "key", "remove", gone, "--keys", path) == (3, "", unknown)
    assert load(path) == left


def test_the_file_is_keys_json_if_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran(capsys, "key", "new")[0] == 0
    assert (
        ran(capsys, "key", "list")[1] == f"{load(tmp_path / 'keys.json').signing[0].kid}\tsigning\tevery tenant\n"
    )
    assert ran(capsys, "token", "--sub", "ana")[0] == 0


# ---------------------------------------------------------------- files that cannot be used

EVERY = (("key", "new"), ("key", "api"), ("key", "list"), ("key", "remove", "a"), ("token", "--sub", "ana"))


@pytest.mark.parametrize("argv", EVERY, ids=" ".join)
@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        ("{", 0o600, "is not valid JSON"),
        (
            '{"signing": [{"kid": "a", "secret": "hunter2"}]}',
            0o600,
            "is not valid: Expected `str` of length >= 32",
        ),
        ("{}", 0o666, "Everybody on this machine may "),
    ],
)
def test_a_broken_file_is_left_as_it_is(
    argv: tuple[str, ...], content: str, mode: int, reason: str, path: Path, capsys: Capture
) -> None:
    path.write_text(content)
    path.chmod(mode)
    status, out, err = ran(capsys, *argv, "--keys", path)
    assert (status, out) == (1, "")
    assert re.fullmatch(rf"gateway: .*{re.escape(reason)}.*\n", err)
    assert str(path) in err
    assert "hunter2" not in err
    assert path.read_text() == content


@pytest.mark.parametrize("argv", EVERY[2:], ids=" ".join)
def test_no_file(argv: tuple[str, ...], path: Path, capsys: Capture) -> None:
    sentence = f"gateway: The key file {path} cannot be read (No such file or directory).\n"
    assert ran(capsys, *argv, "--keys", path) == (1, "", sentence)


@pytest.mark.parametrize("action", ["new", "api"])
@pytest.mark.parametrize(
    ("name", "reason"), [("nowhere/keys.json", "No such file or directory"), ("x" * 300, "File name too long")]
)
def test_a_file_that_cannot_be_written(
    action: str, name: str, reason: str, tmp_path: Path, capsys: Capture
) -> None:
    sentence = f"gateway: The key file {tmp_path / name} cannot be written ({reason}).\n"
    assert ran(capsys, "key", action, "--keys", tmp_path / name) == (1, "", sentence)


# ---------------------------------------------------------------- tokens


async def granted(path: Path, capsys: Capture, *flags: str) -> tuple[Grant, float]:
    """What the token that a command prints allows, and for how long."""
    status, out, err = ran(capsys, "token", "--keys", path, *flags)
    assert (status, err) == (0, "")
    keys = usual(Keys, path)
    grant = await (keys.invited(out.strip()) if "--invite" in flags else keys.verify(out.strip()))
    assert grant.token_id
    assert grant.expires_s is not None
    return replace(grant, token_id="", issued_s=0.0, expires_s=None), grant.expires_s - grant.issued_s


BOTH: frozenset[Role] = frozenset({"speak", "read"})


@pytest.mark.parametrize(
    ("flags", "grant", "life_s"),
    [
        ("", Grant(subject="operator", roles=BOTH), 600),
        ("--meeting standup --sub ana", Grant(subject="ana", roles=BOTH, meeting="standup"), 600),
        ("--name Ana --once", Grant(subject="Ana", name="Ana", roles=BOTH, once=True), 600),
        ("--name Ana --sub 7 --tenant acme", Grant(subject="7", name="Ana", tenant="acme", roles=BOTH), 600),
        (
            "--role admin --role transcript --role admin",
            Grant(subject="operator", roles=frozenset({"admin", "transcript"})),
            600,
        ),
        (
            "--langs ja,de-CH,ja --speaks en-US --max-s 60 --expires 1",
            Grant(
                subject="operator", roles=BOTH, langs=frozenset({"ja", "de"}), speaks=frozenset({"en"}), max_s=60
            ),
            1,
        ),
        ("--invite", Grant(subject="operator", roles=BOTH), 86_400),
        ("--invite --once --expires 604800", Grant(subject="operator", roles=BOTH, once=True), 604_800),
    ],
)
async def test_what_a_token_allows(flags: str, grant: Grant, life_s: float, path: Path, capsys: Capture) -> None:
    ran(capsys, "key", "new", "--keys", path)
    assert await granted(path, capsys, *flags.split()) == (grant, life_s)


@pytest.mark.parametrize("url", ["https://translate.example.com", "https://translate.example.com/"])
async def test_the_link_of_an_invite(url: str, path: Path, capsys: Capture) -> None:
    ran(capsys, "key", "new", "--keys", path)
    status, out, _ = ran(capsys, "token", "--keys", path, "--meeting", "standup", "--invite", "--url", url)
    assert status == 0
    link, _, invite = out.strip().partition("#invite=")
    assert link == "https://translate.example.com/"
    assert (await usual(Keys, path).invited(invite)).meeting == "standup"


async def test_a_token_for_another_audience(path: Path, capsys: Capture) -> None:
    ran(capsys, "key", "new", "--keys", path)
    token = ran(capsys, "token", "--keys", path, "--audience", "staging")[1].strip()
    assert (await usual(Keys, path, audience="staging").verify(token)).subject == "operator"
    with pytest.raises(Unauthenticated):
        await usual(Keys, path).verify(token)


@pytest.mark.parametrize(("flags", "life"), [((), "600"), (("--invite",), "86400"), (("--expires", "90"), "90")])
def test_a_terminal_says_how_long(
    flags: tuple[str, ...], life: str, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    ran(capsys, "key", "new", "--keys", path)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert ran(capsys, "token", "--keys", path, *flags)[2] == f"gateway: It is valid for {life} s.\n"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--tenant other", "There is no key that may sign tokens of this tenant; `gateway key new` makes one."),
        ("--tenant acme --expires 601", "expires_s has to be 1 to 600 here."),
        ("--tenant acme --invite --expires 604801", "expires_s has to be 1 to 604800 here."),
        (
            f"--tenant acme --name {'x' * 81}",
            "No token may say this: Expected `str` of length <= 80 - at `$.gw.name`.",
        ),
        ("--tenant acme --sub \udcff", "No token may say this: "),
    ],
    ids=["tenant", "life", "life of an invite", "name", "a name that is no text"],
)
def test_tokens_that_cannot_be_issued(flags: str, sentence: str, path: Path, capsys: Capture) -> None:
    ran(capsys, "key", "new", "--keys", path, "--tenant", "acme")
    status, out, err = ran(capsys, "token", "--keys", path, *flags.split())
    assert (status, out) == (3, "")
    assert err.startswith(f"gateway: {sentence}")
    assert err.count("\n") == 1
