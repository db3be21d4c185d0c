"""The page over HTTP: what is served where, with which headers, and that the product's own page hangs together."""

from __future__ import annotations

import gzip
import json
import re
import struct
from pathlib import Path, PurePosixPath
from urllib.parse import urljoin

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.types import Message
from starlette.websockets import WebSocketDisconnect

from gateway.domain.errors import StartupError
from gateway.server.page import admin_routes, hash_of_sources
from gateway.server.page import routes as page_routes
from tests.usual import usual

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "web_demo"

# The address that pages elsewhere import the client from (docs/browser.md).
PUBLIC_CLIENT = "client.js"
# What no browser loads for the page: the client's public address, its reader of transcripts, its npm package.
FOR_OTHERS = {
    PUBLIC_CLIENT,
    "client/history/transcript.js",
    "client/package.json",
    "client/README.md",
    # No browser loads them, but they have to go wherever the fonts go.
    "page/fonts/LICENSE-commissioner.txt",
    "page/fonts/LICENSE-vazirmatn.txt",
    *(f"client/recognisers/{each}.js" for each in ("lines", "recogniser", "states")),
}

# What the first view may weigh, headers included, and in how many requests it may come: a budget, to be kept.
MOST_BYTES = 125_000
MOST_REQUESTS = 10

INDEX = """<!doctype html>
<link rel="icon" href="./icon.svg"><link rel="stylesheet" href="./style.css">
<script type="module" src="./app.js"></script>
<a href="https://example.com/">away</a><a href="./missing.html">nowhere</a><a href="#top">top</a>
"""
FILES = {
    "index.html": INDEX,
    "app.js": 'import "./client/setting.js";\n' * 20,
    "client/setting.js": "export const setting = 1;\n" * 20,
    "style.css": "body { color: red; }\n" * 20,
    "icon.svg": "<svg/>",
    ".hidden.js": "secret",
    "app.js.orig": "an editor's copy",
    "notes.txt": "for developers",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "page", FILES)


def client_of(folder: Path | None) -> TestClient:
    # Nothing but what a test says.
    return TestClient(Starlette(routes=usual(page_routes, folder)), headers={"Accept-Encoding": "identity"})


@pytest.fixture
def client(folder: Path) -> TestClient:
    return client_of(folder)


def assets(client: TestClient) -> str:
    """The address where the page's files never change, as its document names it."""
    found = re.search(r'"\./(assets/[^/"]+/)(?:page/|built/)?app\.js"', client.get("/").text)
    assert found is not None
    return found[1]


# ---------------------------------------------------------------- the document and its files


def test_the_document_names_its_files_where_they_never_change(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    own = assets(client)
    assert re.fullmatch(r"assets/[0-9a-f]{16}/", own)
    assert page.text == (
        INDEX.replace('"./icon.svg', f'"./{own}icon.svg')
        .replace('"./style.css', f'"./{own}style.css')
        .replace('"./app.js', f'"./{own}app.js')
    )
    assert client.get("/index.html").text == page.text


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("app.js", "text/javascript; charset=utf-8"),
        ("client/setting.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_versioned_file_is_immutable_plain_one_revalidated(client: TestClient, path: str, media_type: str) -> None:
    kept, plain = client.get(f"/{assets(client)}{path}"), client.get(f"/{path}")
    assert (kept.status_code, plain.status_code) == (200, 200)
    assert kept.text == plain.text == FILES[path]
    assert kept.headers["content-type"] == plain.headers["content-type"] == media_type
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("change", ["another letter", "another name", "one more", "another document"])
def test_any_change_changes_the_address_of_all_files(folder: Path, change: str) -> None:
    before = client_of(folder)
    if change == "another letter":
        write(folder, {"client/setting.js": FILES["client/setting.js"].replace("1", "2")})
    elif change == "another name":
        (folder / "style.css").rename(folder / "styles.css")
    elif change == "one more":
        write(folder, {"client/empty.js": ""})
    else:
        write(folder, {"index.html": INDEX + "<p>"})
    after = client_of(folder)
    assert assets(before) != assets(after)
    assert after.get(f"/{assets(before)}app.js").status_code == 404


def test_the_address_depends_on_nothing_else(folder: Path, tmp_path: Path) -> None:
    again = write(tmp_path / "again", {**FILES, "notes.txt": "other notes"})
    assert assets(client_of(folder)) == assets(client_of(again))


def test_page_is_the_one_at_the_start(folder: Path) -> None:
    client = client_of(folder)
    own = assets(client)
    (folder / "style.css").unlink()
    write(folder, {"app.js": "half a new", "new.js": "new"})
    assert client.get("/app.js").text == client.get(f"/{own}app.js").text == FILES["app.js"]
    assert client.get("/style.css").text == FILES["style.css"]
    assert client.get("/new.js").status_code == 404


def test_built_page_is_served_while_of_these_sources(folder: Path) -> None:
    built = f'<!-- {hash_of_sources(folder)} --><script type="module" src="./built/app.js"></script>'
    write(folder, {"built/index.html": built, "built/app.js": "all();"})
    client = client_of(folder)
    own = assets(client)
    assert client.get("/").text == built.replace("./built", f"./{own}built")
    assert client.get(f"/{own}built/app.js").text == "all();"
    assert client.get("/app.js").text == FILES["app.js"]
    write(folder, {"app.js": "// newer\n"})
    client = client_of(folder)
    assert "./app.js" in client.get("/").text.replace(assets(client), "")
    assert client.get("/built/app.js").status_code == 404


def test_it_works_below_any_path(folder: Path) -> None:
    client = TestClient(Starlette(routes=[Mount("/gateways/one", routes=usual(page_routes, folder))]))
    page = "http://testserver/gateways/one/"
    references = re.findall(r'(?:src|href)="(\./assets/[^"]+)"', client.get(page).text)
    assert len(references) == 3
    for reference in references:
        assert client.get(urljoin(page, reference)).status_code == 200
    assert client.get(urljoin(page, "client/setting.js")).status_code == 200


def test_without_a_page_the_gateway_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"There is no page in .*index\.html is missing"):
        usual(page_routes, tmp_path)


# ---------------------------------------------------------------- addresses with nothing behind them


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/client",
        "/client/",
        "/notes.txt",
        "/app.js.orig",
        "/.hidden.js",
        "/app.js/",
        "/../gateway/web.py",
        "/%2e%2e/gateway/web.py",
        "/..%2fgateway%2fweb.py",
        "//etc/passwd",
        "/assets/",
        "/assets/0123456789abcdef/app.js",
        "/assets/0123456789abcdef/index.html",
    ],
)
def test_everything_else_is_a_problem_that_nobody_keeps(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["code"] == "not_found"
    assert "etag" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/app.js"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_is_for_reading_only(client: TestClient, path: str, method: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert answer.json()["code"] == "method_not_allowed"


def test_a_websocket_elsewhere_is_refused(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/nothing"):
        pass


# ---------------------------------------------------------------- HTTP


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("path", ["/", "/app.js", "/icon.svg"])
def test_head_says_what_get_would(client: TestClient, path: str, encoding: str) -> None:
    head = client.head(path, headers={"Accept-Encoding": encoding})
    get = client.get(path, headers={"Accept-Encoding": encoding})
    assert head.status_code == 200
    assert head.headers == get.headers


async def test_head_itself_sends_no_body(folder: Path) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("there is nothing to read")

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "HEAD", "path": "/app.js", "headers": []}
    await Starlette(routes=usual(page_routes, folder))(scope, receive, send)
    assert [message.get("body", b"") for message in sent] == [b"", b""]
    assert (b"content-length", str(len(FILES["app.js"])).encode()) in sent[0]["headers"]


@pytest.mark.parametrize(
    "accepts", ["gzip", "GZIP", "br, gzip", "gzip;q=0.1", "gzip; q=1.0", "*", "identity;q=0.5, *;q=0.1"]
)
def test_text_is_compressed_for_those_who_take_it(client: TestClient, accepts: str) -> None:
    with client.stream("GET", "/app.js", headers={"Accept-Encoding": accepts}) as answer:
        body = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-length"] == str(len(body))
    assert len(body) < len(FILES["app.js"])
    assert gzip.decompress(body).decode() == FILES["app.js"]


@pytest.mark.parametrize(
    "accepts", ["", "identity", "br", "gzip;q=0", "gzip;q=0.000", "*;q=0", "gzip;q=0, *", "gzip;q=much", "gzippy"]
)
def test_and_for_nobody_else(client: TestClient, accepts: str) -> None:
    answer = client.get("/app.js", headers={"Accept-Encoding": accepts})
    assert "content-encoding" not in answer.headers
    assert answer.text == FILES["app.js"]


def test_incompressible_file_is_sent_as_it_is(client: TestClient) -> None:
    assert "content-encoding" not in client.get("/icon.svg", headers={"Accept-Encoding": "gzip"}).headers


def test_two_starts_compress_to_the_same_bytes(folder: Path) -> None:
    bodies = []
    for _ in range(2):
        with client_of(folder).stream("GET", "/app.js", headers={"Accept-Encoding": "gzip"}) as answer:
            bodies.append(b"".join(answer.iter_raw()))
    assert bodies[0] == bodies[1]
    # A time in it would make every start another file.
    assert bodies[0][4:8] == bytes(4)


@pytest.mark.parametrize("path", ["/", "/app.js", "/client/setting.js"])
@pytest.mark.parametrize("form", ["{}", '"other", {}', "*", "strong"])
def test_who_has_it_already_is_told_so(client: TestClient, path: str, form: str) -> None:
    first = client.get(path)
    etag = first.headers["etag"]
    known = etag.removeprefix("W/") if form == "strong" else form.format(etag)
    again = client.get(path, headers={"If-None-Match": known})
    assert (again.status_code, again.content) == (304, b"")
    for name in ("etag", "cache-control", "vary", "content-security-policy"):
        assert again.headers.get(name) == first.headers.get(name)
    assert "content-type" not in again.headers


def test_who_has_another_gets_it(client: TestClient) -> None:
    other = client.get("/style.css").headers["etag"]
    answer = client.get("/app.js", headers={"If-None-Match": other})
    assert (answer.status_code, answer.text) == (200, FILES["app.js"])


def test_both_encodings_are_one_file_to_whoever_asks_again(client: TestClient) -> None:
    etag = client.get("/app.js", headers={"Accept-Encoding": "gzip"}).headers["etag"]
    assert etag.startswith("W/")
    assert client.get("/app.js", headers={"If-None-Match": etag}).status_code == 304


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize("path", ["/", "/index.html", "/icon.svg", "/nothing", "/assets/old/app.js"])
def test_documents_a_browser_may_show_are_isolated(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "manifest-src": "'self'",
        "worker-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "service-worker",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "microphone=(self), camera=()" in headers["permissions-policy"]


def test_policy_allows_only_what_is_written_inline(folder: Path) -> None:
    write(folder, {"index.html": "<style>b{}</style><script>one()</script><script src='./app.js'></script>"})
    client = client_of(folder)
    parts = client.get("/").headers["content-security-policy"].split("; ")
    # openssl dgst -sha256 -binary | base64
    assert "style-src 'self' 'sha256-7yqHVAesot11p6HczDsgKRipvI5UPgs97z80zNXlans='" in parts
    assert "script-src 'self' 'sha256-HR7iaask9daLMRRskMI++QeJtjWDOjyPA6lGzYGzKW4='" in parts
    assert "sha256" not in client.get("/nothing").headers["content-security-policy"]


def test_only_scripts_are_importable_from_elsewhere(client: TestClient) -> None:
    own = assets(client)
    for path in ("/client/setting.js", "/app.js", f"/{own}app.js"):
        headers = client.get(path, headers={"Origin": "https://meet.example.com"}).headers
        assert headers["access-control-allow-origin"] == "*"
        assert headers["cross-origin-resource-policy"] == "cross-origin"
    for path in ("/", "/style.css", f"/{own}icon.svg", "/nothing.js"):
        headers = client.get(path, headers={"Origin": "https://meet.example.com"}).headers
        assert "access-control-allow-origin" not in headers
        assert headers["cross-origin-resource-policy"] == "same-origin"


# ---------------------------------------------------------------- the product's own page

_IMPORT = re.compile(r"""(?:^|[\n;])\s*(?:import\s*|(?:import|export)\b[^"';]*?\bfrom\s*)["'](\.[^"']+)["']""")
_DYNAMIC_IMPORT = re.compile(r"""\bimport\(\s*["'](\.[^"']+)["']\s*\)""")
# A stylesheet that a script asks for, wherever it stands.
_STYLESHEET = re.compile(r"""["'](?:\./)?([\w/]+\.css)["']""")
# An address below the page's folder that a script asks for.
_ADDRESS = re.compile(r"""["']\./((?:offline/\w+|service_worker|favicon)\.(?:html|css|js|svg))["']""")
_LINK = re.compile(r"""\b(?:href|src)="(\./[^"?#]+)""")
_CSS_FILE = re.compile(r"""(?:@import\s+(?:url\()?|url\()\s*["']?([^"')]+)""")


def without_comments(script: str) -> str:
    # JSDoc types are written as imports too; nothing is fetched for them.
    return re.sub(r"/\*.*?\*/|^\s*//.*?$", "", script, flags=re.DOTALL | re.MULTILINE)


def imports(path: str, *, dynamic: bool = False) -> set[str]:
    """What a module of the page imports, as paths below the page's folder."""
    script = without_comments(text(path))
    names = _IMPORT.findall(script) + (_DYNAMIC_IMPORT.findall(script) if dynamic else [])
    return {normal(PurePosixPath(path).parent / name) for name in names}


def normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def modules(entry: str, *, dynamic: bool = False) -> set[str]:
    """Every module that comes with one, itself included."""
    found: set[str] = set()
    left = {entry}
    while left:
        module = left.pop()
        found.add(module)
        left |= imports(module, dynamic=dynamic) - found
    return found


def everything() -> set[str]:
    """Every file that a browser may come to load for the page, in either of its views."""
    found = {"index.html"} | {normal(PurePosixPath(path)) for path in _LINK.findall(text("index.html"))}
    for path in sorted(found):
        if path.endswith(".js"):
            found |= modules(path, dynamic=True)
    for path in ("page/meeting/offline_shell.js", "service_worker.js"):
        found |= set(_ADDRESS.findall(without_comments(text(path))))
    for path in sorted(found):
        if path.endswith(".webmanifest"):
            found |= {icon["src"] for icon in json.loads(text(path))["icons"]}
    for path in sorted(found):
        if path.endswith(".js"):
            names = _STYLESHEET.findall(without_comments(text(path)))
            found |= {normal(PurePosixPath(path).parent / name) for name in names}
        elif path.endswith(".css"):
            found |= {normal(PurePosixPath(path).parent / name) for name in _CSS_FILE.findall(text(path))}
    return found


def for_the_checker(scripts: set[str]) -> set[str]:
    """What scripts refer to in comments alone: types. No browser loads it."""
    found: set[str] = set()
    left = scripts
    while left:
        found |= left
        named = {(script, name) for script in left for name in _DYNAMIC_IMPORT.findall(text(script))}
        left = {normal(PurePosixPath(script).parent / name) for script, name in named} - found
    return found - scripts


def text(path: str) -> str:
    """Nothing for a file that is missing: one of the tests says so."""
    file = PAGE / path
    return file.read_text() if file.exists() else ""


def test_everything_the_page_refers_to_is_served() -> None:
    client = client_of(None)
    own = assets(client)
    paths = everything()
    assert "client/connection.js" in paths
    for path in paths - {"index.html"}:
        assert client.get(f"/{own}{path}").status_code == 200, path
    assert not re.search(r"""(?:href|src)="(?!\./(?:assets/|\?)|#|https://)""", client.get("/").text)


def test_every_file_of_the_page_is_used_by_it() -> None:
    there = {file.relative_to(PAGE).as_posix() for file in PAGE.rglob("*") if file.is_file()}
    there = {path for path in there if not path.startswith("built/")}
    used = everything()
    types = for_the_checker({path for path in used if path.endswith(".js")})
    assert there - used == types | FOR_OTHERS
    assert used <= there


@pytest.mark.parametrize("at", ["/", "/admin/"])
def test_faces_are_served_for_good_and_allowed(at: str) -> None:
    client = TestClient(Starlette(routes=[*admin_routes(), *usual(page_routes)]))
    page = client.get(at)
    assert "font-src 'self'" in page.headers["content-security-policy"]
    # In the built document, or in a style sheet.
    sheets = re.findall(r'href="\./([^"]+tokens\.css)"', page.text)
    address, styles = at, page.text
    if sheets:
        address = at + sheets[0]
        styles = client.get(address).text
    faces = re.findall(r"""url\("?(\./[^")]+\.woff2)"?\)""", styles)
    assert len(faces) == 3
    for face in faces:
        answer = client.get(urljoin(address, face))
        assert (answer.status_code, answer.headers["content-type"]) == (200, "font/woff2")
        assert answer.content.startswith(b"wOF2")
        assert "immutable" in answer.headers["cache-control"]


def test_the_manifest_leads_to_the_page_below_any_prefix() -> None:
    prefix = "/gateways/one"
    client = TestClient(Starlette(routes=[Mount(prefix, routes=usual(page_routes))]))
    found = re.search(r'rel="manifest" href="\./([^"]+)"', client.get(f"{prefix}/").text)
    assert found is not None
    address = f"http://testserver{prefix}/{found[1]}"
    answer = client.get(address)
    assert answer.headers["content-type"] == "application/manifest+json"
    manifest = answer.json()
    assert {urljoin(address, manifest[key]) for key in ("start_url", "scope")} == {f"http://testserver{prefix}/"}
    icons = {(icon["sizes"], icon.get("purpose", "any")) for icon in manifest["icons"]}
    assert icons >= {("192x192", "any"), ("512x512", "any"), ("512x512", "maskable")}
    for icon in manifest["icons"]:
        served = client.get(urljoin(address, icon["src"]))
        assert (served.status_code, served.headers["content-type"]) == (200, icon["type"])
        if icon["sizes"] != "any":
            width, height = struct.unpack(">II", served.content[16:24])  # of a PNG's header
            assert f"{width}x{height}" == icon["sizes"]


def test_other_pages_get_only_the_client() -> None:
    client = client_of(None)
    assert 'export { GatewayClient } from "./client/gateway_client.js";\n' in text(PUBLIC_CLIENT)
    loaded = modules(PUBLIC_CLIENT)
    assert all(path.startswith("client/") for path in loaded - {PUBLIC_CLIENT})
    for path in loaded:
        answer = client.get(f"/{path}", headers={"Origin": "https://meet.example.com"})
        assert answer.status_code == 200, path
        assert answer.headers["access-control-allow-origin"] == "*"


def test_first_view_keeps_its_budget() -> None:
    """The document, what it names, two questions to the gateway, and the words of a language besides English."""
    page = TestClient(Starlette(routes=usual(page_routes)), headers={"Accept-Encoding": "gzip"})
    text = page.get("/").text
    assert "/built/app.js" in text, "Run `make page`."
    # Only installing the page takes the other links.
    named = {
        path for path in re.findall(r'(?:href|src)="\./([^"]+)"', text) if not re.search("apple|manifest", path)
    }
    # The face of Latin letters; those of other letters come where there are such.
    faces = re.findall(r"url\(\./([^)]+)\)", text)
    named.add(faces[0])
    assert faces[0].endswith("latin.woff2")
    words = max((PAGE / "built/words").iterdir(), key=lambda file: file.stat().st_size)
    paths = {"", *named, f"{assets(page)}built/words/{words.name}"}
    assert len(paths) + len(("readyz", "v1/languages")) <= MOST_REQUESTS
    weight = 0
    for path in paths:
        with page.stream("GET", f"/{path}") as answer:
            assert answer.status_code == 200
            weight += sum(map(len, answer.iter_raw()))
            weight += sum(len(name) + len(value) + 4 for name, value in answer.headers.raw)
    assert weight < MOST_BYTES, f"{weight:,} bytes"


@pytest.mark.parametrize(("offered", "content"), [(True, "on"), (False, "off")])
def test_document_tells_whether_demo_controls_are_offered(offered: bool, content: str) -> None:
    page = TestClient(Starlette(routes=usual(page_routes, demo_controls=offered)))
    assert re.findall(r'<meta name="demo-controls" content="(\w+)">', page.get("/").text) == [content]


def test_the_page_asks_nobody_else() -> None:
    for path in everything():
        if path.endswith((".html", ".css", ".js")):
            asks = re.search(r"""(?:src=|from\s*|import\(|url\(|fetch\()["']?\s*(?:https?:)?//""", text(path))
            assert asks is None, f"{path}: {asks}"
