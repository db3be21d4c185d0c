"""One connection to a real Redis, and what its errors mean."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway.domain.errors import StartupError
from gateway.stores.redis.connection import Connection, Full, Lost, NotLoaded, Refused, address_of, is_local
from tests.redis_server import shared_server


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    connection = Connection(shared_server().url)
    await connection.connect()
    yield connection
    await connection.close()


async def test_answers_come_in_the_order_of_commands(connection: Connection) -> None:
    await connection.send([("ECHO", "one"), ("ECHO", "二"), ("ECHO", b"\x00\xff"), ("ECHO", 4)])
    assert [await connection.receive() for _ in range(4)] == [b"one", "二".encode(), b"\x00\xff", b"4"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("ERR no such thing", Refused),
        ("OOM command not allowed", Full),
        ("MISCONF errors writing to the AOF file", Full),
        ("LOADING the dataset in memory", Lost),
        ("READONLY You can't write against a replica", Lost),
        ("BUSY running a script", Lost),
        ("MASTERDOWN link with the primary is down", Lost),
    ],
)
async def test_what_an_error_means(connection: Connection, answer: str, error: type[Exception]) -> None:
    await connection.send([("EVAL", f'return redis.error_reply("{answer}")', 0)])
    with pytest.raises(error) as raised:
        await connection.receive()
    assert type(raised.value) is error


async def test_a_script_that_is_not_there(connection: Connection) -> None:
    await connection.send([("EVALSHA", "0" * 40, 0), ("ECHO", "next")])
    with pytest.raises(NotLoaded):
        await connection.receive()
    assert await connection.receive() == b"next"


async def test_a_connection_that_ended_is_lost(connection: Connection) -> None:
    await connection.send([("QUIT",)])
    assert await connection.receive() == b"OK"
    with pytest.raises(Lost):
        await connection.receive()
    with pytest.raises(Lost):
        await connection.send([("ECHO", "more")])


async def test_a_server_that_is_not_there() -> None:
    with pytest.raises(Lost):
        await Connection("unix:///nowhere/redis.sock").connect()


def test_an_address_that_is_none() -> None:
    with pytest.raises(StartupError):
        Connection("http://store")


def test_an_address_is_shown_without_its_password() -> None:
    assert address_of("redis://ana:secret@store:6379/2") == "redis://store:6379/2"
    assert address_of("unix:///run/redis.sock") == "unix:///run/redis.sock"


def test_only_a_unix_socket_is_local() -> None:
    assert is_local("unix:///run/redis.sock")
    assert not is_local("redis://localhost")
