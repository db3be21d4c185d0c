"""`/qr.svg`: which links become a code, that it says what was asked for, and that nothing else gets into it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from io import BytesIO
from xml.etree import ElementTree

import httpx
import pytest
import segno
from PIL import Image
from starlette.applications import Starlette

from gateway.server.http.bodies import QR_LINK_CHARS
from gateway.server.http.qr import drawing
from tests.qr_codes import read_qr_code
from tests.server.http.api_routes import api_routes

LINK = "https://translate.example.org/?meeting=stand-up_2026~1"
# No repetition: OpenCV does not find the code of a long one.
LONGEST = f"https://example.org/{''.join(map(str, range(QR_LINK_CHARS)))}"[:QR_LINK_CHARS]
QUIET = 4
SVG = "{http://www.w3.org/2000/svg}"


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[httpx.AsyncClient]:
    routes = api_routes()
    transport = httpx.ASGITransport(Starlette(routes=routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


def dark_modules(svg: str) -> tuple[int, set[tuple[int, int]]]:
    """The width of the drawing, and (x, y) of every dark module."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    left, top, width, height = map(int, root.attrib["viewBox"].split())
    assert (left, top, width) == (0, 0, height)
    ground, code = root.iter(f"{SVG}path")
    assert (ground.attrib["fill"], ground.attrib["d"]) == ("#fff", f"M0 0h{width}v{width}H0z")
    shapes = re.findall(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z", code.attrib["d"])
    assert "".join("M{} {}h{}v1h-{}z".format(*shape) for shape in shapes) == code.attrib["d"]
    modules = set()
    for x, y, there, back in (map(int, shape) for shape in shapes):
        assert there == back
        modules |= {(x + n, y) for n in range(there)}
    return width, modules


async def test_a_link_becomes_a_code() -> None:
    async with serving() as client:
        response = await client.get("/qr.svg", params={"link": LINK})
        head = await client.head("/qr.svg", params={"link": LINK})
    assert (response.status_code, head.status_code, head.content) == (200, 200, b"")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["cache-control"] == "private, max-age=86400"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'"
    width, modules = dark_modules(response.text)
    matrix = segno.make(LINK, error="m", micro=False, boost_error=False).matrix
    assert width == len(matrix) + 2 * QUIET
    assert modules == {(x, y) for y, row in enumerate(matrix, QUIET) for x, dark in enumerate(row, QUIET) if dark}


@pytest.mark.parametrize("link", [LINK, LONGEST, "http://192.168.0.7:8000/?meeting=a&lang=ja#x"])
def test_another_reader_finds_the_link_in_it(link: str) -> None:
    width, modules = dark_modules(drawing(link))
    picture = Image.new("L", (width, width), 255)
    for module in modules:
        picture.putpixel(module, 0)
    png = BytesIO()
    picture.resize((6 * width, 6 * width)).save(png, "png")
    assert read_qr_code(png.getvalue()) == link


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "invalid_value"),
        ("link=", "invalid_value"),
        ("link=example.org", "invalid_value"),
        ("link=javascript:alert(1)", "invalid_value"),
        ("link=javascript://example.org/%250aalert(1)", "invalid_value"),
        ("link=ftp://example.org/", "invalid_value"),
        ("link=https://", "invalid_value"),
        ("link=https:///path", "invalid_value"),
        ("link=https://example.org/a%20b", "invalid_value"),
        ("link=https://example.org/%0A", "invalid_value"),
        ("link=https://example.org/%00", "invalid_value"),
        ("link=https://example.org/%7F", "invalid_value"),
        ("link=https://example.org/%E4%BC%9A", "invalid_value"),
        ("link=%20https://example.org/", "invalid_value"),
        (f"link={LONGEST}a", "limit_exceeded"),
    ],
)
async def test_what_is_no_link_is_refused(query: str, code: str) -> None:
    async with serving() as client:
        response = await client.get(f"/qr.svg?{query}")
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, problem["code"], problem["field"]) == (422, code, "link")


async def test_markup_in_a_link_is_only_dots() -> None:
    async with serving() as client:
        response = await client.get("/qr.svg", params={"link": "https://example.org/?<script>\"'&amp;</svg>"})
    assert response.status_code == 200
    assert {node.tag for node in ElementTree.fromstring(response.text).iter()} == {f"{SVG}svg", f"{SVG}path"}  # noqa: S314


async def test_link_with_a_secret_is_posted_uncached() -> None:
    secret = f"{LINK}#invite=secret"
    before = drawing.cache_info()
    async with serving() as client:
        response = await client.post("/qr.svg", content=secret)
        refusals = [await client.post("/qr.svg", content=body) for body in (b"", b"\xff", f"{LONGEST}a".encode())]
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["cache-control"] == "no-store"
    assert drawing.cache_info() == before
    assert response.text == drawing(secret)
    codes = [(refusal.status_code, refusal.json()["code"]) for refusal in refusals]
    assert codes == [(422, "invalid_value"), (422, "invalid_value"), (422, "limit_exceeded")]


@pytest.mark.parametrize("link", ["HTTPS://EXAMPLE.ORG/", "http://[::1]:8000/", LONGEST])
async def test_every_web_address_is_a_link(link: str) -> None:
    async with serving() as client:
        assert (await client.get("/qr.svg", params={"link": link})).status_code == 200
