"""The containers of deploy/compose.yaml, as far as can be told without starting them."""

from __future__ import annotations

import re
from typing import Any

import yaml

from gateway.cli.flags.parser import parser
from gateway.config.loading import load
from tests.cli.commands import ROOT
from tests.deploy.programs import DEPLOY
from tests.redis_server import SAFE

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]

# What its user makes first: docs/deployment.md.
MADE = {"./keys.json"}


def test_every_file_that_is_mounted_is_there() -> None:
    mounted = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    for path in {path for path in mounted if path.startswith("./")} - MADE:
        assert (DEPLOY / path).exists(), path


def test_the_store_is_set_as_the_gateway_asks() -> None:
    command = SERVICES["redis"]["command"]
    given = {name.removeprefix("--"): value for name, value in zip(command[1::2], command[2::2], strict=True)}
    assert SAFE.items() <= given.items()


def test_the_gateways_take_their_settings() -> None:
    settings = load(DEPLOY / "gateway.toml", {"GATEWAY__STORE__URL": "redis://:x@redis:6379"})
    for name in ("gateway-1", "gateway-2"):
        service = SERVICES[name]
        assert parser().parse_args(["serve", *service["command"]]).workers == 2
        assert int(service["stop_grace_period"].removesuffix("s")) >= settings.drain_s + 20


def test_the_gateways_trust_the_proxy_and_it_knows_them() -> None:
    networks = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["networks"]
    settings = load(DEPLOY / "gateway.toml", {})
    assert settings.trusted_proxies == (networks["inside"]["ipam"]["config"][0]["subnet"],)
    upstreams = re.findall(r"server (gateway-\d):(\d+) ", (DEPLOY / "nginx/nginx.conf").read_text())
    assert upstreams == [(name, str(settings.port)) for name in SERVICES if name.startswith("gateway")]


def test_the_image_has_the_targets_that_are_named() -> None:
    stages = re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {"cpu", "cuda"} <= set(stages)
