"""Run what deploy/compose.yaml runs, as processes of this machine, on loopback: `make stack`.

For operators who want to see two gateways with TLS, a store and alerts before they have containers, and to try
the runbook. It reads the files of deploy/ themselves, and changes in them only what differs without containers:
addresses, paths, passwords. It must not say otherwise what a service is told.

What it makes (certificate, keys, data, logs) is in artifacts/stack, and is used again by the next start.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from scripts import dashboards

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
GATEWAY = str(Path(sys.executable).parent / "gateway")
TOOLS = ROOT / ".venv" / "tools" / "usr"

GATEWAYS = ("gateway-1", "gateway-2")
MEETING = "standup"
# What docs/deployment.md lets a person type.
CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost "
    "-addext subjectAltName=DNS:localhost,IP:127.0.0.1"
)
READY_LIMIT_S = 600.0
RESTART_PAUSE_S = 3.0


class StackError(Exception):
    """It cannot run. The text says what happened and what to do about it."""


# -- The files of deploy/, for this machine ----------------------------------------------------------------------


def changed(file: Path, changes: Mapping[str, str]) -> str:
    """A file's text with every one of these changes; each must find something to change."""
    text = file.read_text()
    for theirs, ours in changes.items():
        if theirs not in text:
            raise StackError(f"{file} has no {theirs!r} any more, which scripts/stack.py changes.")
        text = text.replace(theirs, ours)
    return text


def services(password: str) -> dict[str, dict[str, Any]]:
    """What deploy/compose.yaml runs. password: of the store."""
    known = {"REDIS_PASSWORD": password}
    variable = re.compile(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}")
    text = variable.sub(lambda found: known.get(found[1], found[2] or ""), (DEPLOY / "compose.yaml").read_text())
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return found


def proxy_settings(
    folder: Path, gateways: Mapping[str, str], port: int, plain_port: int, certificate: Path, key: Path
) -> str:
    """deploy/nginx/nginx.conf. folder: for its temporary files. gateways: address in the file → address here."""
    return changed(
        DEPLOY / "nginx" / "nginx.conf",
        {
            " /tmp/": f" {folder}/",
            # Names are looked up by Docker's resolver, and only newer ones of nginx can do it again and again.
            **{f"{theirs} resolve": here for theirs, here in gateways.items()},
            "listen 80;": f"listen 127.0.0.1:{plain_port};",
            # The form of nginx before 1.25.1, which newer ones accept, too.
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl http2;",
            "http2 on;": "",
            "https://$host$request_uri": f"https://$host:{port}$request_uri",
            "/etc/nginx/tls/fullchain.pem": str(certificate),
            "/etc/nginx/tls/privkey.pem": str(key),
            # An unprivileged user may open fewer files.
            "worker_processes auto;": "worker_processes 1;",
            "worker_rlimit_nofile 65536;": "daemon off;",
            "worker_connections 32768;": "worker_connections 500;",
        },
    )


def prometheus_settings(gateways: Mapping[str, str]) -> str:
    """deploy/prometheus/prometheus.yml. gateways: name in the file, which they keep, → address here."""
    file = DEPLOY / "prometheus" / "prometheus.yml"
    settings = yaml.safe_load(changed(file, {"alerts.yml": str(file.with_name("alerts.yml"))}))
    [job] = settings["scrape_configs"]
    [named] = job["static_configs"]
    job["static_configs"] = [
        {"targets": [gateways[name]], "labels": {"instance": name}} for name in named["targets"]
    ]
    return str(yaml.safe_dump(settings))


# -- Processes ---------------------------------------------------------------------------------------------------


def program(name: str) -> str:
    """The path of a program: on the PATH, or where scripts/deployment_tools.sh unpacks it."""
    path = os.pathsep.join((os.environ["PATH"], str(TOOLS / "bin"), str(TOOLS / "sbin"), "/usr/sbin"))
    if (found := shutil.which(name, path=path)) is None:
        raise StackError(f"There is no {name}; `make stack` fetches what it needs.")
    return found


@dataclass
class Service:
    """One process of the stack. Its log and its process id are in the folder."""

    name: str
    command: list[str]
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    settings: str = ""  # on its standard input, where no other user can read them
    again_at: float | None = None  # when it is to be started again
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def start(self) -> None:
        self.again_at = None
        with self.log.open("ab") as log, tempfile.TemporaryFile() as settings:
            settings.write(self.settings.encode())
            settings.seek(0)
            self._process = subprocess.Popen(
                # It ends with this script, however that ends; Ctrl-C on the terminal is for the script alone.
                [program("setpriv"), "--pdeathsig", "TERM", *self.command],
                stdin=settings,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.env},
                start_new_session=True,
            )
        self.pid_file.write_text(f"{self._process.pid}\n")

    def status(self) -> int | None:
        """Its exit status; None unless it has been started and has ended."""
        return None if self._process is None else self._process.poll()

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # nothing is sent to what has ended

    def wait(self) -> None:
        if self._process is not None:
            self._process.wait()

    def last_lines(self) -> str:
        return "\n".join(f"    {line}" for line in self.log.read_text(errors="replace").splitlines()[-5:])


class Stack:
    """All of it. port: of the proxy, with TLS."""

    def __init__(self, folder: Path, port: int, plain_port: int, prometheus_port: int) -> None:
        self.folder = folder
        self.page = f"https://localhost:{port}"
        self.prometheus = f"http://127.0.0.1:{prometheus_port}"
        for taken in filter(is_taken, (port, plain_port, prometheus_port)):
            raise StackError(
                f"Port {taken} of 127.0.0.1 is taken: stop what runs there, or choose another (--help)."
            )
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._make_certificate()
        self._make_keys()

        password = secrets.token_hex(24)
        told = services(password)
        inner = {each: f"127.0.0.1:{free_port()}" for each in ("redis:6379", *gateway_addresses())}
        # For `redis-cli -u`, which takes no empty name, and for `curl`.
        private(
            folder / "addresses",
            f"STORE=redis://default:{password}@{inner['redis:6379']}\n"
            + "".join(f"ADMIN_{name[-1]}=http://{inner[f'{name}:9100']}\n" for name in GATEWAYS),
        )
        self._admin = {name: inner[f"{name}:9100"] for name in GATEWAYS}
        self.services = [
            self._redis(told["redis"]["command"], inner["redis:6379"]),
            *(self._gateway(name, told[name], inner) for name in GATEWAYS),
            self._proxy(inner, port, plain_port),
            self._prometheus(told["prometheus"]["command"], inner),
        ]

    def _make_certificate(self) -> None:
        tls = self.folder / "tls"
        tls.mkdir(exist_ok=True)
        self.certificate = tls / "fullchain.pem", tls / "privkey.pem"
        certificate, key = map(str, self.certificate)
        day = ["openssl", "x509", "-checkend", "86400", "-noout", "-in", certificate]
        if subprocess.run(day, capture_output=True, check=False).returncode != 0:
            make = [*CERTIFICATE.split(), "-keyout", key, "-out", certificate]
            subprocess.run(make, capture_output=True, check=True)

    def _make_keys(self) -> None:
        self.keys, self.api_key = self.folder / "keys.json", self.folder / "api-key"
        if not self.api_key.exists():
            self.keys.unlink(missing_ok=True)
            self._gateway_command("key", "new")
            private(self.api_key, self._gateway_command("key", "api"))

    def _gateway_command(self, *arguments: str) -> str:
        """What a command of the gateway that needs the keys prints."""
        command = [GATEWAY, *arguments, "--keys", str(self.keys)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _redis(self, command: list[str], address: str) -> Service:
        data = self.folder / "redis"
        data.mkdir(exist_ok=True)
        # The words after the program's name are options and their values in turn.
        options = dict(zip(command[1::2], command[2::2], strict=True))
        options |= {"--bind": "127.0.0.1", "--port": port_of(address), "--dir": f'"{data}"'}
        lines = [f"{name.removeprefix('--')} {value}\n" for name, value in options.items()]
        return Service("redis", [program("redis-server"), "-"], self.folder, settings="".join(lines))

    def _gateway(self, name: str, told: Mapping[str, Any], inner: Mapping[str, str]) -> Service:
        file = self.folder / f"{name}.toml"
        networks = '"172.30.0.0/24"'
        file.write_text(
            f"# Written by every start of `make stack`, from {DEPLOY / 'gateway.toml'}: what is changed here\n"
            "# holds until the next one. The environment sets the addresses and ports.\n"
            + changed(DEPLOY / "gateway.toml", {"/etc/gateway/keys.json": str(self.keys), networks: '"127.0.0.1"'})
        )
        state = self.folder / name
        state.mkdir(exist_ok=True)
        words = [word.replace("/etc/gateway/gateway.toml", str(file)) for word in told["command"]]
        # What is set to nothing in the environment has no value.
        env = {key: replaced(value or "", inner) for key, value in told["environment"].items()}
        env |= {
            "GATEWAY__HOST": "127.0.0.1",
            "GATEWAY__PORT": port_of(inner[f"{name}:8000"]),
            "GATEWAY__ADMIN_HOST": "127.0.0.1",
            "GATEWAY__ADMIN_PORT": port_of(inner[f"{name}:9100"]),
        }
        return Service(name, [GATEWAY, "serve", *words, "--state-dir", str(state)], self.folder, env)

    def _proxy(self, inner: Mapping[str, str], port: int, plain_port: int) -> Service:
        file = self.folder / "nginx.conf"
        gateways = {name: here for name, here in inner.items() if name.endswith(":8000")}
        file.write_text(proxy_settings(self.folder, gateways, port, plain_port, *self.certificate))
        command = [program("nginx"), "-c", str(file), "-p", str(self.folder), "-e", "stderr"]
        if os.geteuid() == 0:  # its processes are nobody's otherwise, who may not write in our folder
            command += ["-g", "user root;"]
        return Service("proxy", command, self.folder)

    def _prometheus(self, words: list[str], inner: Mapping[str, str]) -> Service:
        file = self.folder / "prometheus.yml"
        file.write_text(prometheus_settings(inner))
        words = [word.replace("/etc/prometheus/prometheus.yml", str(file)) for word in words]
        address = self.prometheus.removeprefix("http://")
        data = f"--storage.tsdb.path={self.folder / 'prometheus'}"
        command = [program("prometheus"), *words, data, f"--web.listen-address={address}"]
        return Service("prometheus", command, self.folder)

    # -- Running -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Start it, say where everything is, and watch it until Ctrl-C or SIGTERM."""
        try:
            for service in self.services:
                service.start()
            self._wait_until_ready()
            self._say_where()
            self._watch()
        finally:
            self._end()

    def _wait_until_ready(self) -> None:
        began, waiting = time.monotonic(), set(GATEWAYS)
        say(f"Starting in {self.folder}; two engines load, which takes a minute or two …")
        while waiting:
            for service in self.services:
                if service.status() is not None:
                    raise StackError(
                        f"{service.name} has ended; its log, {service.log}, says:\n{service.last_lines()}"
                    )
            for name in sorted(waiting):
                if answers(f"http://{self._admin[name]}/readyz"):
                    waiting.remove(name)
                    say(f"{time.monotonic() - began:6.0f} s  {name} is ready")
            if time.monotonic() - began > READY_LIMIT_S:
                raise StackError(f"Not ready after {READY_LIMIT_S:.0f} s: {', '.join(sorted(waiting))}.")
            time.sleep(0.5)

    def _say_where(self) -> None:
        invite = self._gateway_command("token", "--meeting", MEETING, "--invite", "--url", self.page).strip()
        if (pages := self._pages()) is None:
            watched = (
                f"{self.prometheus} (Debian's has no pages until the package is installed: only its API answers)\n"
                f"    {sys.executable} -m scripts.dashboards {self.prometheus}    # what the dashboards would show"
            )
        else:
            watched = f"{pages}alerts; with the queries of Grafana's dashboards: {self._dashboards(pages)}"
        say(f"""
The page, behind the proxy. A browser warns of the certificate, as nobody has signed it:
    {invite}
From a shell:
    export SSL_CERT_FILE={self.certificate[0]}
    {GATEWAY} translate "Can you hear me?" --from en --to ja,de --url {self.page} --token-file {self.api_key}
Prometheus and its alerts, which are shown here, too, when they begin and end:
    {watched}
Grafana is not here, as Debian has none: deploy/compose.yaml runs it.
Logs, process ids, and addresses for redis-cli and curl: {self.folder}/*.log, *.pid, addresses
Ctrl-C ends everything.
""")

    def _pages(self) -> str | None:
        """Where the pages of Prometheus are: /classic/ in Debian's. None if it has none."""
        try:
            with urllib.request.urlopen(self.prometheus, timeout=5) as answer:  # noqa: S310 -- our own address
                first: str = answer.url
        except OSError:
            return None
        return first[: first.rindex("/") + 1]

    def _dashboards(self, pages: str) -> Path:
        """A page with links to Prometheus' own graphs of each dashboard's queries."""
        links = []
        for name, panels in dashboards.DASHBOARDS.items():
            queries = [query for panel in panels for query in panel.queries.values()]
            for first in range(0, len(queries), 10):  # of more, the page of Prometheus confuses their order
                asked = {}
                for n, query in enumerate(queries[first : first + 10]):
                    asked[f"g{n}.expr"] = query.replace("$instance", ".*").replace("$__rate_interval", "1m")
                    asked |= {f"g{n}.tab": "0", f"g{n}.range_input": "15m"}
                url = f"{pages}graph?{urllib.parse.urlencode(asked)}"
                links.append(f'<li><a href="{html.escape(url)}">{name}, from {first + 1}</a>\n')
        page = self.folder / "dashboards.html"
        page.write_text(f"<!doctype html><title>Dashboards</title><ul>\n{''.join(links)}</ul>\n")
        return page

    def _watch(self) -> None:
        """What ends is started again, as Docker does it; what Prometheus thinks of it is said."""
        known: dict[tuple[str, str], str] = {}
        while True:
            time.sleep(1)
            now = time.monotonic()
            for service in self.services:
                if service.again_at is not None and now >= service.again_at:
                    service.start()
                elif service.again_at is None and (status := service.status()) is not None:
                    say(f"{clock()} {service.name} has ended (status {status}); it is started again.")
                    service.again_at = now + RESTART_PAUSE_S
            alerts = self._alerts(known)
            for what, those in (
                ("resolved", known.keys() - alerts.keys()),
                ("firing", alerts.keys() - known.keys()),
            ):
                for key in sorted(those):
                    say(f"{clock()} {what:8}  {key[0]}: {(alerts | known)[key]}")
            known = alerts

    def _alerts(self, known: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
        """Alert and labels → a text, of those that fire; as far as `known`, while Prometheus does not answer."""
        try:
            with urllib.request.urlopen(f"{self.prometheus}/api/v1/alerts", timeout=5) as answer:  # noqa: S310 -- our own address
                found = json.load(answer)["data"]["alerts"]
        except OSError:
            return known
        return {
            (each["labels"]["alertname"], json.dumps(each["labels"])): (
                f"{each['annotations']['summary']} ({each['annotations']['runbook']})"
            )
            for each in found
            if each["state"] == "firing"
        }

    def _end(self) -> None:
        """Gateways finish what they accepted while their store is there. A second Ctrl-C waits for nothing."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that is closed sends it twice
        with contextlib.suppress(OSError):  # there may be no terminal any more
            say("\nEnding …")
        try:
            for names in (GATEWAYS, ("proxy", "prometheus"), ("redis",)):
                ending = [each for each in self.services if each.name in names]
                for each in ending:
                    each.send(signal.SIGTERM)
                for each in ending:
                    each.wait()
        finally:
            for each in self.services:
                each.send(signal.SIGKILL)
                each.pid_file.unlink(missing_ok=True)


def gateway_addresses() -> Iterator[str]:
    for name in GATEWAYS:
        yield from (f"{name}:8000", f"{name}:9100")


def replaced(text: str, changes: Mapping[str, str]) -> str:
    for theirs, ours in changes.items():
        text = text.replace(theirs, ours)
    return text


def private(file: Path, text: str) -> None:
    """Write a file that nobody else may read."""
    file.touch(0o600)
    file.write_text(text)


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def is_taken(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 -- our own address
            return bool(answer.status == 200)
    except OSError:
        return False


def clock() -> str:
    return time.strftime("%H:%M:%S")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make stack",
        description="Runs two gateways, a store, a proxy with TLS, and Prometheus here, by the files of deploy/.",
    )
    parser.add_argument("--port", type=int, default=8443, help="of the page, with TLS (default: %(default)s)")
    parser.add_argument("--plain-port", type=int, default=8080, help="leads to the former (default: %(default)s)")
    parser.add_argument("--prometheus-port", type=int, default=9090, help="(default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=ROOT / "artifacts" / "stack", help="(default: %(default)s)")
    arguments = parser.parse_args()
    # SIGINT, too: it is ignored in what a script starts in the background. What nohup starts goes on.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        Stack(arguments.folder.resolve(), arguments.port, arguments.plain_port, arguments.prometheus_port).run()
    except StackError as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
