"""Who is let in to the administration."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from gateway.identity import key_file
from gateway.identity.key_file import KeyFile
from tests.administration import Operator, administered
from tests.keys import Keyring
from tests.over_http import NO_TLS, check_problem

EVERYTHING = [
    ("GET", "/admin/meetings"),
    ("GET", "/admin/sessions"),
    ("GET", "/admin/meetings/default/m"),
    ("DELETE", "/admin/meetings/default/m"),
    ("DELETE", "/admin/meetings/default/m/participants/p"),
    ("DELETE", "/admin/meetings/default/m/transcript"),
    ("GET", "/admin/lanes"),
    ("POST", "/admin/lanes/default/drain"),
    ("GET", "/admin/workers"),
    ("POST", "/admin/workers/1/drain"),
    ("GET", "/admin/log-level"),
    ("PUT", "/admin/log-level"),
]


async def test_nothing_is_there_without_an_operators_key(tmp_path: Path) -> None:
    keys, operator = Keyring(tmp_path), Operator(tmp_path)
    token = keys.token(roles=frozenset({"admin", "speak", "read", "transcript"}))
    async with administered(operator, keys.settings()) as (gateway, client):
        for method, path in EVERYTHING:
            for presented in (None, *(f"Bearer {each}" for each in (keys.api_key, token, f"{operator.key}x"))):
                headers = {"Authorization": presented} if presented else {}
                del client.headers["Authorization"]
                answer = await client.request(method, path, headers=headers)
                client.headers.update(operator.bearer)
                check_problem(answer, 401, "unauthenticated")
                assert answer.headers["www-authenticate"] == "Bearer"
        # An operator's key opens nothing else.
        usage = f"http://127.0.0.1:{gateway.port}/v1/usage"
        check_problem(await client.get(usage), 401, "unauthenticated")


async def test_the_gateways_own_address_has_nothing_of_it(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    async with (
        administered(operator) as (gateway, _),
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{gateway.port}", verify=NO_TLS, headers=operator.bearer
        ) as client,
    ):
        for method, path in EVERYTHING:
            assert (await client.request(method, path)).status_code in (404, 405)


async def test_removed_operator_key_opens_nothing(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    async with administered(operator) as (_, client):
        assert (await client.get("/admin/meetings")).status_code == 200
        key_file.save(operator.path, KeyFile())
        check_problem(await client.get("/admin/meetings"), 401, "unauthenticated")


@pytest.mark.parametrize("path", ["/admin/nothing", "/admin/meetings/default", "/admin/admin.py"])
async def test_other_addresses_are_explained(tmp_path: Path, path: str) -> None:
    async with administered(Operator(tmp_path)) as (_, client):
        check_problem(await client.get(path), 404, "not_found")
