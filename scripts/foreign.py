"""Runs the suites and tools of others, as they are, against gateways with a simulated engine: `make foreign`.

    python -m scripts.foreign [SUITE …]

Each says one line, and its whole output is in artifacts/foreign. The tools come from PyPI and npm into
.venv/foreign; a second run installs nothing. DeepL's own tests are in no package: name copies of its
repositories in $DEEPL_PYTHON (with a .venv) and $DEEPL_NODE (with node_modules). Ends with 1 if a suite does
not pass.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "artifacts" / "foreign"
FOLDER = ROOT / ".venv" / "foreign"
PYTHON = FOLDER / "env" / "bin" / "python"
OURS = ROOT / "tests" / "foreign"
GATEWAY = Path(sys.executable).parent / "gateway"
# It is this checkout's.
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

LIBRETRANSLATE = "libretranslate==1.9.6"
PACKAGES = (
    *("schemathesis==4.32.5", "pytest==9.2.0", "openapi-generator-cli==7.26.0"),
    *("websockets==17.4", "aiohttp==3.14.5", "httpx-ws==0.9.0", "websocket-client==1.9.2", "picows==2.3.1"),
    *("simple-websocket==1.1.0", "tornado==6.6.1", "curl-cffi==0.17.0", "trio-websocket==0.12.2"),
    "autobahn==26.10.2",
)
NPM = (
    *("@asyncapi/parser@3.6.3", "@asyncapi/modelina@5.10.1", "lighthouse@13.5.0", "chrome-launcher@1.2.1"),
    "puppeteer-core@25.16.0",
    *("kotlin-compiler@2.4.20", "quicktype@26.0.0"),
    *("ws@8.23.0", "undici@7.30.2", "websocket@1.0.35", "faye-websocket@0.11.4"),
)
# Program → the package of Debian that has it.
BROWSERS = {"firefox-esr": "firefox-esr", "WebKitWebDriver": "webkit2gtk-driver", "Xvfb": "xvfb"}
GENERATORS = ("python", "typescript-fetch", "java", "go", "csharp", "kotlin", "rust", "php")

# What the gateway with keys claims to do, so that DeepL's tests find their languages.
CLAIMS = """
[engine]
kind = "simulated"
script.options = ["glossary", "context", "formality"]
script.languages = [
  "ar", "bg", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "hu", "id", "it", "ja", "ko", "lt", "lv",
  "no", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sv", "tr", "uk", "zh", "zh-Hant",
]
"""

# It gets the gateway without keys, the one with keys, an API key of it, and the log for its output.
Suite = Callable[[str, str, str, Path], bool | None]


def install() -> None:
    """Raises `CalledProcessError`."""
    if (done := FOLDER / "done").exists() and done.read_text() == repr((PACKAGES, NPM, LIBRETRANSLATE)):
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    _run(sys.executable, "-m", "venv", FOLDER / "env")
    _run(PYTHON, "-m", "pip", "install", "--quiet", *PACKAGES)
    # Its source alone has its tests; it is not installed.
    source = ("--no-deps", "--no-binary", "libretranslate", "--dest", FOLDER, LIBRETRANSLATE)
    _run(PYTHON, "-m", "pip", "download", "--quiet", *source)
    with tarfile.open(next(FOLDER.glob("libretranslate-*.tar.gz"))) as archive:
        archive.extractall(FOLDER, filter="data")
    _run("npm", "install", "--silent", "--ignore-scripts", "--prefix", FOLDER, *NPM)
    done.write_text(repr((PACKAGES, NPM, LIBRETRANSLATE)))


@contextmanager
def gateway(*options: str | Path) -> Iterator[str]:
    """The address of one that runs. Raises `RuntimeError` if it ends instead of starting."""
    command: list[str | Path] = [GATEWAY, "serve", "--host", "127.0.0.1", "--port", "0"]
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- it is closed with the process
    command += ["--log-format", "text", *options]
    process = subprocess.Popen(command, env=_ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None  # noqa: S101
        for line in process.stderr:
            if found := re.search(r"Ready: (http://\S+)", line):
                break
        else:
            raise RuntimeError("The gateway ended instead of starting.")
        # It must not wait for somebody who reads its log.
        reader = subprocess.Popen(["cat"], stdin=process.stderr, stdout=log)
        try:
            yield found[1]
        finally:
            process.terminate()
            process.wait()
            reader.wait()
    finally:
        process.kill()
        log.close()


# -- Suites ---------------------------------------------------------------------------------------------------


def libretranslate(open_: str, _keyed: str, _key: str, log: Path) -> bool:
    """The tests of its API. Those of its own start need its models."""
    with tempfile.TemporaryDirectory() as name:
        (tests,) = FOLDER.glob("libretranslate-*/libretranslate/tests/test_api")
        shutil.copytree(tests, Path(name) / "test_api")
        command = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider", name)
        return _logged(log, *command, GATEWAY=open_, PYTHONPATH=str(OURS))


def schemathesis(open_: str, keyed: str, key: str, log: Path) -> bool:
    common = ("--config-file", OURS / "schemathesis.toml", "run", "--checks", "all", "--seed", "1", "--no-color")
    st = (PYTHON.parent / "st", *common, "--request-timeout", "60")
    # It keeps what it has found in the folder where it runs.
    without = _logged(log, *st, f"{open_}/openapi.json", folder=OUT)
    header = ("-H", f"Authorization: Bearer {key}")
    return _logged(log, *st, *header, f"{keyed}/openapi.json", folder=OUT) and without


def openapi_generator(open_: str, _keyed: str, _key: str, log: Path) -> bool:
    with tempfile.TemporaryDirectory() as name:
        generate = (PYTHON.parent / "openapi-generator-cli", "generate", "-i", f"{open_}/openapi.json")
        made = [_logged(log, *generate, "-g", each, "-o", f"{name}/{each}") for each in GENERATORS]
        return all(made)


def asyncapi(open_: str, _keyed: str, _key: str, log: Path) -> bool:
    return _script("asyncapi.mjs", open_, log)


def lighthouse(open_: str, _keyed: str, _key: str, log: Path) -> bool:
    """Its figure for speed means something on a machine that does nothing else."""
    return _script("lighthouse.mjs", open_, log)


def browsers(open_: str, _keyed: str, _key: str, log: Path) -> bool | None:
    """The page in Firefox and in WebKit. Its pictures are for people."""
    if not all(map(shutil.which, BROWSERS)):
        log.write_text(
            f"$PATH has not all of {', '.join(BROWSERS)}: apt-get install {' '.join(BROWSERS.values())}\n"
        )
        return None
    return _script("browsers.mjs", open_, log, str(OUT / "browsers"))


def _script(name: str, address: str, log: Path, *arguments: str) -> bool:
    # Imports are looked for beside the file.
    return _logged(log, "node", shutil.copy(OURS / name, FOLDER), address, *arguments)


def websocket_libraries(open_: str, _keyed: str, _key: str, log: Path) -> bool:
    python = _logged(log, PYTHON, OURS / "websocket_libraries.py", open_)
    return _script("websocket_libraries.mjs", open_, log) and python


def kotlin(open_: str, _keyed: str, _key: str, log: Path) -> bool | None:
    """Types made from /asyncapi.json, and a client with them in the conformance kit."""
    if shutil.which("java") is None:
        log.write_text("$PATH names no folder with java\n")
        return None
    modules = FOLDER / "node_modules"
    (jackson,) = FOLDER.glob("env/lib/python3*/site-packages/openapi_generator_cli/openapi-generator.jar")
    path = f"{jackson}:{modules}/kotlin-compiler/lib/kotlin-stdlib.jar"
    with tempfile.TemporaryDirectory() as name, urllib.request.urlopen(f"{open_}/asyncapi.json") as answer:  # noqa: S310
        schemas = json.dumps(json.load(answer)["components"]["schemas"])
        definitions = schemas.replace("#/components/schemas/", "#/definitions/")
        Path(name, "messages.json").write_text(f'{{"definitions": {definitions}}}')
        types = Path(name, "Messages.kt")
        schema = ("--src-lang", "schema", f"{name}/messages.json#/definitions/")
        quicktype = ("node", modules / "quicktype/dist/index.js", *schema, "--lang", "kotlin", "--out", types)
        if not _logged(log, *quicktype):
            return False
        # Jackson 2.20 and newer do not know its default by this name.
        types.write_text(
            types.read_text().replace("propertyNamingStrategy = PropertyNamingStrategy.LOWER_CAMEL_CASE", "")
        )
        compiler = (
            "java",
            "-jar",
            modules / "kotlin-compiler/lib/kotlin-compiler.jar",
            "-no-stdlib",
            "-no-reflect",
        )
        made = ("-java-parameters", "-jvm-target", "17", "-classpath", path, "-d", f"{name}/made")
        if not _logged(log, *compiler, *made, types, *(OURS / "kotlin").glob("*.kt")):
            return False
        driver = ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{name}/made:{path}", "ClientKt")
        return _logged(log, GATEWAY, "conformance", "--", *driver)


def deepl_python(_open: str, keyed: str, key: str, log: Path) -> bool | None:
    return _deepl("DEEPL_PYTHON", (".venv/bin/python", "-m", "pytest", "tests"), keyed, key, log)


def deepl_node(_open: str, keyed: str, key: str, log: Path) -> bool | None:
    # What one file's tests do to the network stays for the next one in its process.
    command = ("npx", "jest", "--maxWorkers=2", "--workerIdleMemoryLimit=1")
    return _deepl("DEEPL_NODE", command, keyed, key, log)


def _deepl(variable: str, command: tuple[str, ...], address: str, key: str, log: Path) -> bool | None:
    folder = os.environ.get(variable)
    if folder is None:
        log.write_text(f"${variable} names no folder\n")
        return None
    # They pretend to be servers at this name only.
    address = address.replace("127.0.0.1", "localhost")
    if _logged(log, *command, folder=Path(folder), DEEPL_AUTH_KEY=key, DEEPL_SERVER_URL=address):
        return True
    return _left(set(_FAILED.findall(log.read_text())), log)


def _left(failed: set[str], log: Path) -> bool:
    """Whether docs/http.md tells of all that failed, by the reasons in tests/foreign/deepl.toml."""
    reasons: dict[str, list[str]] = tomllib.loads((OURS / "deepl.toml").read_text())
    told = {name: why for why, parts in reasons.items() for name in failed if any(part in name for part in parts)}
    with log.open("a") as out:
        for why, count in Counter(told.values()).most_common():
            print(f"{count} failed: {why}", file=out)
        for name in sorted(failed - told.keys()):
            print(f"1 failed: {name}", file=out)
    return bool(failed) and failed == told.keys()


def autobahn(_open: str, _keyed: str, _key: str, log: Path) -> bool:
    """Its cases are a test of ours; it needs Python 2.7."""
    return _pytest(log, "tests/abuse/test_autobahn.py")


def subtitles(_open: str, _keyed: str, _key: str, log: Path) -> bool:
    """The programs that read transcripts are tests of ours."""
    return _pytest(log, "tests/meeting/test_subtitle_readers_e2e.py")


def deepl_packages(_open: str, _keyed: str, _key: str, log: Path) -> bool:
    """DeepL's packages, by tests of ours."""
    return _pytest(log, "tests/server/compat")


SUITES: dict[str, Suite] = {
    "libretranslate": libretranslate,
    "schemathesis": schemathesis,
    "openapi-generator": openapi_generator,
    "asyncapi": asyncapi,
    "lighthouse": lighthouse,
    "browsers": browsers,
    "websocket-libraries": websocket_libraries,
    "kotlin": kotlin,
    "deepl-python": deepl_python,
    "deepl-node": deepl_node,
    "deepl-packages": deepl_packages,
    "autobahn": autobahn,
    "subtitles": subtitles,
}

# A failed test of pytest, or of jest.
_FAILED = re.compile(r"^(?:FAILED (?=\S+::)| +● (?=.+ › ))(.+?)(?: - .*)?$", re.MULTILINE)
# The line of an output that says what came of it.
_SUMMARY = re.compile(
    r"\d+ (passed|failed|generated|messages)|\d+ of \d+ transcripts"
    r"|(phone|laptop|firefox|webkit): |\$\w+ (names no folder|has not)"
)


# -- Running --------------------------------------------------------------------------------------------------


def _pytest(log: Path, path: str) -> bool:
    return _logged(log, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "", path)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


def _logged(log: Path, *command: str | Path, folder: Path = ROOT, **environment: str) -> bool:
    """Whether a command ended with 0; its output is added to the log."""
    with log.open("a") as out:
        print("$", *command, file=out, flush=True)
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
        print("ended with", done.returncode, file=out)
    return done.returncode == 0


def _summary(log: Path) -> str:
    lines = log.read_text().splitlines()
    said = [line for line in (line.strip(" =") for line in lines) if _SUMMARY.match(line)]
    ended = [line for line in lines if line.startswith("ended with ")]
    return "; ".join(said)[:150] or f"{ended.count('ended with 0')} of {len(ended)}"


def main() -> int:
    names = sys.argv[1:] or list(SUITES)
    if unknown := set(names) - set(SUITES):
        print(f"foreign: no suite {', '.join(unknown)}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    install()
    OUT.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys.json"
        command: list[str | Path] = [GATEWAY, "key", "--keys", keys, "api"]
        made = subprocess.run(command, env=_ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True)
        key = made.stdout.split()[-1]
        claims = Path(folder) / "claims.toml"
        claims.write_text(CLAIMS)
        with (
            gateway("--engine", "simulated") as open_,
            gateway("--config", claims, "--keys", keys) as keyed,
        ):
            # The detector of languages is loaded at its first use, which takes seconds.
            for address in (open_, keyed):
                _ask_detector(address, key)
            for name in names:
                log = OUT / f"{name}.log"
                log.unlink(missing_ok=True)
                passed = SUITES[name](open_, keyed, key, log)
                failed |= passed is False
                said = {True: "passed", False: "FAILED", None: "not run"}[passed]
                print(f"{name:20} {said:8} {_summary(log)}", flush=True)
    return int(failed)


def _ask_detector(address: str, key: str) -> None:
    request = urllib.request.Request(  # noqa: S310 -- a gateway of ours
        f"{address}/v1/translate",
        data=b'{"text": "Guten Morgen.", "target_lang": "en"}',
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    while True:
        try:
            urllib.request.urlopen(request).close()  # noqa: S310
        except urllib.error.HTTPError as error:
            # Where others take the processor, the gateway may have no time for it yet.
            if error.code != 503:
                raise
            time.sleep(1)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
