"""Serves the page: the files of `web_demo`, read once, with headers for security and caching.

Knows: where the files are in a checkout and in an installed package, and how they are served over HTTP.
Must not know: what the page does.

Browsers revalidate the document at `/` on each visit. It refers to its files under `assets/<hash of all files>/`.
Files under such an address never change, so browsers may cache them for ever, and never mix two releases. The
plain addresses are for other pages, which import `client.js`.

`built/` has the page bundled into few files (scripts/page.py). Its document is served if it names the hash of the
sources as they are; otherwise the sources themselves are the page, so that it is never older than they are.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from gateway.domain.errors import StartupError
from gateway.server.http import bodies

_PACKAGE = Path(__file__).parents[1]

_INDEX = "index.html"
_BUILT = "built/"
_DEMO_CONTROLS_ON = b'<meta name="demo-controls" content="on">'
_DEMO_CONTROLS_OFF = _DEMO_CONTROLS_ON.replace(b'on">', b'off">')
_HASH_CHARS = 16

# Files of a page by suffix. Other files in the folder, such as an editor's backup, are not served.
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
_COMPRESSED_ALREADY = {".png", ".woff2"}
_PARTS = {".css", ".js"}

# Headers of documents. On scripts and style sheets they have no effect, and are as large as some of the files.
_POLICY = (
    "default-src 'none'; script-src 'self'{script}; style-src 'self'{style}; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types service-worker"
)
_DOCUMENT = {
    "Content-Security-Policy": _POLICY.format(script="", style=""),
    "Permissions-Policy": "microphone=(self), camera=(), display-capture=(), geolocation=(), midi=(), payment=(), "
    "usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_ALL = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
# The scripts contain no secrets, and pages of other origins may import them.
_SHARED = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
_OWN = {"Cross-Origin-Resource-Policy": "same-origin"}

# Revalidate each time; an unchanged file costs one 304.
_ASK_AGAIN = "no-cache"
_FOR_GOOD = "public, max-age=31536000, immutable"


def routes(folder: Path | None = None, *, demo_controls: bool) -> list[BaseRoute]:
    """The page at `/` and its files. They are read now; later changes in the folder are not seen.

    folder: of another page than the product's. Raises `StartupError` if there is no page in it.
    demo_controls: whether the document tells the page to offer them.
    """
    files = _with_built(_read(folder or _folder()))
    if not demo_controls:
        files[_INDEX] = files[_INDEX].replace(_DEMO_CONTROLS_ON, _DEMO_CONTROLS_OFF)
    return [Route("/{path:path}", _Page(files))]


def admin_routes() -> list[BaseRoute]:
    """The page of the administration at `/admin/`, which looks like the product's. Raises `StartupError`."""
    product = _read(_folder())
    looks = [path for path in product if re.fullmatch(r"page/(?:(?:style|tokens)\.css|fonts/.+)", path)]
    shared = {path.removeprefix("page/"): product[path] for path in looks}
    own = _read(_PACKAGE / "server" / "administration" / "page")
    files = {**own, **shared, "favicon.svg": product["favicon.svg"]}
    return [Route("/admin/{path:path}", _Page(dict(sorted(files.items())), at="/admin/"))]


def hash_of_sources(folder: Path) -> str:
    """What `built/index.html` has to name. Raises `StartupError` if there is no page in the folder."""
    return _hash(_sources(_read(folder)))


def _folder() -> Path:
    checkout, installed = _PACKAGE.parent / "web_demo", _PACKAGE / "_web_demo"
    return checkout if checkout.is_dir() else installed


def _read(folder: Path) -> dict[str, bytes]:
    """Path below the folder → content, in the order of the paths."""
    try:
        files = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in folder.rglob("*")
            if file.suffix in _MEDIA_TYPES and not file.name.startswith(".") and file.is_file()
        }
    except OSError as error:
        raise StartupError(f"The page in {folder} cannot be read: {error.strerror or error}.") from None
    if _INDEX not in files:
        raise StartupError(f"There is no page in {folder}: {_INDEX} is missing.")
    return dict(sorted(files.items()))


def _sources(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in files.items() if not path.startswith(_BUILT)}


def _with_built(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The page with the built document, if that is of these sources; otherwise the sources alone."""
    sources = _sources(files)
    index = files.get(_BUILT + _INDEX, b"")
    return {**files, _INDEX: index} if _hash(sources).encode() in index else sources


@dataclass(frozen=True)
class _File:
    plain: bytes
    # None if compression saves nothing.
    gzipped: bytes | None
    media_type: str
    # Headers of every answer, including 304.
    headers: Mapping[str, str]

    @classmethod
    def from_content(cls, path: str, content: bytes, caching: str) -> _File:
        suffix = Path(path).suffix
        gzipped = None if suffix in _COMPRESSED_ALREADY else _gzipped(content)
        return cls(
            plain=content,
            gzipped=gzipped if gzipped is not None and len(gzipped) < len(content) else None,
            media_type=_MEDIA_TYPES[suffix],
            headers={
                **_ALL,
                **({} if suffix in _PARTS else _DOCUMENT),
                **(_inline_policy(content) if suffix == ".html" else {}),
                **(_SHARED if suffix == ".js" else _OWN),
                "Cache-Control": caching,
                # Weak: the same for both encodings.
                "ETag": f'W/"{hashlib.sha256(content).hexdigest()[:_HASH_CHARS]}"',
                "Vary": "Accept-Encoding",
            },
        )

    def answer(self, request: Headers, *, head: bool) -> Response:
        if _matches(request.get("if-none-match", ""), self.headers["ETag"]):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=self.headers)
        headers, body = {**self.headers, "Content-Type": self.media_type}, self.plain
        if self.gzipped is not None and _takes_gzip(request.getlist("accept-encoding")):
            headers["Content-Encoding"], body = "gzip", self.gzipped
        headers["Content-Length"] = str(len(body))
        return Response(b"" if head else body, headers=headers)


class _Page:
    """The application for all addresses without another route. It serves only the files that were read."""

    def __init__(self, files: Mapping[str, bytes], *, at: str = "/") -> None:
        self._at = at
        assets = f"assets/{_hash(files)}/"
        index = _with_assets(files, assets)
        self._files = {
            "": _File.from_content(_INDEX, index, _ASK_AGAIN),
            _INDEX: _File.from_content(_INDEX, index, _ASK_AGAIN),
        }
        for path, content in files.items():
            if path != _INDEX:
                self._files[path] = _File.from_content(path, content, _ASK_AGAIN)
                self._files[assets + path] = _File.from_content(path, content, _FOR_GOOD)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        method: str = scope["method"]
        file = self._files.get(scope["path_params"]["path"])
        if file is None:
            return _problem(HTTPStatus.NOT_FOUND, f"There is nothing at this address; the page is at {self._at}.")
        if method not in ("GET", "HEAD"):
            detail = f"{method} is not allowed here; GET, HEAD is."
            return _problem(HTTPStatus.METHOD_NOT_ALLOWED, detail, Allow="GET, HEAD")
        return file.answer(Headers(scope=scope), head=method == "HEAD")


def _inline_policy(document: bytes) -> dict[str, str]:
    """The policy of a document, which allows the scripts and styles that are written in it, and no others."""

    def hashes(tag: bytes) -> str:
        found = re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), document, re.DOTALL)
        digests = (base64.b64encode(hashlib.sha256(each).digest()).decode() for each in found)
        return "".join(f" 'sha256-{digest}'" for digest in digests)

    return {"Content-Security-Policy": _POLICY.format(script=hashes(b"script"), style=hashes(b"style"))}


@cache
def _gzipped(content: bytes) -> bytes:
    # Cached for all addresses of a file, because compression takes most of the time of reading the page.
    return gzip.compress(content, mtime=0)


def _hash(files: Mapping[str, bytes]) -> str:
    """A hash of the names and contents of all files."""
    digest = hashlib.sha256()
    for path, content in files.items():
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:_HASH_CHARS]


def _with_assets(files: Mapping[str, bytes], assets: str) -> bytes:
    """The document, with its references to files of the page changed to their address under `assets`."""

    def moved(reference: re.Match[bytes]) -> bytes:
        before, path = reference.groups()
        return before + b"./" + assets.encode() + path if path.decode() in files else reference[0]

    # In attributes, and in style sheets that are written into the document.
    return re.sub(rb'((?:href|src)="|url\()\./([^"?#)]+)', moved, files[_INDEX])


def _matches(if_none_match: str, etag: str) -> bool:
    known = [each.strip() for each in if_none_match.split(",")]
    return "*" in known or etag in known or etag.removeprefix("W/") in known


def _takes_gzip(accept_encoding: list[str]) -> bool:
    """Whether the client accepts gzip: by name or by `*`, with a weight above 0 (RFC 9110, 12.5.3)."""
    weights = {}
    for entry in ",".join(accept_encoding).lower().split(","):
        coding, _, parameter = entry.partition(";")
        name, _, weight = parameter.partition("=")
        weights[coding.strip()] = weight.strip() if name.strip() == "q" else "1"
    try:
        return float(weights.get("gzip", weights.get("*", "0"))) > 0
    except ValueError:
        return False


def _problem(status: HTTPStatus, detail: str, **headers: str) -> Response:
    # Not counted in the gateway's error metrics, because scanners on the internet request many unknown addresses.
    return Response(
        msgspec.json.encode(bodies.status_problem(status, detail)),
        status,
        {**_ALL, **_DOCUMENT, **_OWN, "Cache-Control": "no-store", **headers},
        media_type="application/problem+json",
    )
