"""The manifests of deploy/kubernetes: valid by Kubernetes' own schemas, and fitting together."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
import yaml

from gateway.cli.flags.parser import parser
from gateway.config.loading import load
from tests.deploy.programs import DEPLOY
from tests.redis_server import SAFE

pytestmark = pytest.mark.slow

FOLDER = DEPLOY / "kubernetes"

VERSION = "1.30"

KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())

OBJECTS: dict[tuple[str, str], dict[str, Any]] = {
    (each["kind"], each["metadata"]["name"]): each
    for file in KUSTOMIZATION["resources"]
    for each in yaml.safe_load_all((FOLDER / file).read_text())
}

PODS = {
    name: each["spec"]["template"]
    for (kind, name), each in OBJECTS.items()
    if kind in ("Deployment", "StatefulSet")
}

# What their user makes first: docs/deployment.md.
SECRETS = {"gateway": {"keys.json", "redis-password", "engine-api-key"}, "gateway-tls": {"tls.crt", "tls.key"}}
CLAIMS = {"models"}


def container(name: str) -> dict[str, Any]:
    [only] = PODS[name]["spec"]["containers"]
    return dict(only)


def values(node: Any, key: str) -> list[Any]:
    """Of this key, wherever it is."""
    if isinstance(node, list):
        return [found for each in node for found in values(each, key)]
    if not isinstance(node, dict):
        return []
    return [
        *([node[key]] if key in node else []),
        *(found for each in node.values() for found in values(each, key)),
    ]


@pytest.mark.parametrize("which", OBJECTS, ids="/".join)
def test_the_schemas_of_kubernetes_accept_it(which: tuple[str, str]) -> None:
    kubernetes_validate.validate(OBJECTS[which], VERSION, strict=True)


def test_every_file_is_named() -> None:
    files = {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml"}
    generated = {file for each in KUSTOMIZATION["configMapGenerator"] for file in each["files"]}
    assert files == {*KUSTOMIZATION["resources"], *generated}


def test_selected_and_named_objects_exist() -> None:
    """Whatever a manifest names or selects by a label is there."""
    labels = [pod["metadata"]["labels"] for pod in PODS.values()]
    for selector in [*values([*OBJECTS.values()], "matchLabels"), *values([*OBJECTS.values()], "selector")]:
        if not {"matchLabels", "matchExpressions"} & selector.keys():
            assert selector in labels
    for reference in values([*OBJECTS.values()], "secretKeyRef"):
        assert reference["key"] in SECRETS[reference["name"]]
    assert set(values([*OBJECTS.values()], "secretName")) <= SECRETS.keys()
    assert set(values([*OBJECTS.values()], "claimName")) <= CLAIMS
    assert {each["name"] for each in values([*OBJECTS.values()], "configMap")} == {"gateway-settings"}
    target = OBJECTS["HorizontalPodAutoscaler", "gateway"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) in OBJECTS


@pytest.mark.parametrize("name", ["gateway", "engine", "redis"])
def test_service_leads_to_a_port_of_its_pods(name: str) -> None:
    ports = {each["name"] for each in container(name)["ports"]}
    assert {each["targetPort"] for each in OBJECTS["Service", name]["spec"]["ports"]} <= ports


def test_gateways_reach_their_settings_store_and_engine() -> None:
    env = {each["name"]: each.get("value", "x") for each in container("gateway")["env"]}
    settings = load(FOLDER / "gateway.toml", env)
    parser().parse_args(["serve", *container("gateway")["args"]])
    ports = {each["name"]: each["containerPort"] for each in container("gateway")["ports"]}
    assert ports == {"http": settings.port, "metrics": settings.admin_port}
    [port] = OBJECTS["Service", "engine"]["spec"]["ports"]
    assert settings.engine.url == f"http://engine:{port['port']}"
    assert settings.store.urls[0].endswith(f"@redis:{OBJECTS['Service', 'redis']['spec']['ports'][0]['port']}")
    [host] = {rule["host"] for rule in OBJECTS["Ingress", "gateway"]["spec"]["rules"]}
    assert settings.allowed_hosts == (host,)
    [keys] = [each for each in PODS["gateway"]["spec"]["volumes"] if each["name"] == "secrets"]
    [mounted] = [each for each in container("gateway")["volumeMounts"] if each["name"] == "secrets"]
    assert settings.auth.keys_file == f"{mounted['mountPath']}/{keys['secret']['items'][0]['path']}"


def test_the_engine_serves_what_the_gateways_ask_for() -> None:
    settings = load(FOLDER / "gateway.toml", {})
    args = container("engine")["args"]
    assert f"--model={settings.engine.model}" in args
    assert f"--max-num-seqs={settings.engine.max_num_seqs}" in args
    assert {"--scheduling-policy=priority", "--enable-scale-out", "--enable-prompt-tokens-details"} <= set(args)


def test_accepted_work_is_finished_before_a_pod_is_killed() -> None:
    drain_s = load(FOLDER / "gateway.toml", {}).drain_s
    waits_s = int(container("gateway")["lifecycle"]["preStop"]["exec"]["command"][1])
    assert PODS["gateway"]["spec"]["terminationGracePeriodSeconds"] >= waits_s + drain_s + 20


def test_the_store_is_set_as_the_gateway_asks() -> None:
    args = container("redis")["args"]
    given = {name.removeprefix("--"): value for name, value in zip(args[::2], args[1::2], strict=True)}
    assert SAFE.items() <= given.items()


def test_whatever_is_mounted_is_a_volume() -> None:
    for name, pod in PODS.items():
        mounted = {each["name"] for each in container(name)["volumeMounts"]}
        claims = OBJECTS.get(("StatefulSet", name), {}).get("spec", {}).get("volumeClaimTemplates", ())
        volumes = {each["name"] for each in pod["spec"].get("volumes", ())}
        assert mounted == volumes | {each["metadata"]["name"] for each in claims}
