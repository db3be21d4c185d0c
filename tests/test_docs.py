"""The documentation says what the code does: settings, metrics, links, files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest
from prometheus_client import REGISTRY

from gateway import config, metrics
from gateway.cli.flags.parser import parser
from gateway.config import AuthSettings, EngineSettings, EventLogSettings, LaneSettings, Settings, StoreSettings
from gateway.config.validation import range_of
from gateway.domain.errors import error_classes
from gateway.domain.webhooks import Webhook
from gateway.engines.simulated import Script
from gateway.protocol.limits import Limits

ROOT = Path(__file__).parent.parent
FOLDERS = ("docs", "demo_model", "examples", "gateway/client", "web_demo/client")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


def table(page: str, heading: str) -> dict[str, list[str]]:
    """Rows of the first table under a heading, by their first cell."""
    section = (ROOT / "docs" / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]
    return {row[0]: row[1:] for row in cells}


def shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, str) and value == config.BUNDLED:
        return "the bundled model"
    return str(value).lower() if isinstance(value, bool) else str(value)


def defaults(kind: type[msgspec.Struct], leave_out: set[str]) -> dict[str, str]:
    instance = kind()
    return {name: shown(getattr(instance, name)) for name in kind.__struct_fields__ if name not in leave_out}


@pytest.mark.parametrize(
    ("heading", "kind", "others"),
    [
        (
            "Gateway",
            Settings,
            dict.fromkeys(("auth", "engine", "engines", "event_log", "limits", "store", "webhooks")),
        ),
        ("Engine", EngineSettings, {"extra": "empty", "script": None}),
        ("Event log", EventLogSettings, {}),
        ("Store", StoreSettings, {}),
        ("Who is let in", AuthSettings, {}),
        (
            "Simulated engine",
            Script,
            {"languages": "the six of the bundled model", "options": "empty", "rules": "empty"},
        ),
    ],
)
def test_every_setting_is_documented_with_its_default(
    heading: str, kind: type[msgspec.Struct], others: dict[str, str | None]
) -> None:
    """others: what is shown of settings that are not values; None: they are in sections of their own."""
    documented = {name: row[0] for name, row in table("configuration.md", heading).items()}
    assert documented == defaults(kind, set(others)) | {name: said for name, said in others.items() if said}


def test_every_setting_of_a_list_is_documented() -> None:
    lane = {name: row[0] for name, row in table("configuration.md", "Several engines").items()}
    assert lane == {"name": "", "pairs": "*"}
    assert lane.keys() == set(LaneSettings.__struct_fields__) - set(EngineSettings.__struct_fields__)
    webhook = {name: row[0] for name, row in table("configuration.md", "Webhooks").items()}
    own = {"events": "all", "tenants": "empty", "allow_http": "false"}
    assert webhook == {"name": "", "url": "", "secret_file": "", **own}
    assert webhook.keys() == set(Webhook.__struct_fields__)


def ranges(kind: type[msgspec.Struct]) -> dict[str, str]:
    found = {}
    for field in msgspec.structs.fields(kind):
        allowed = range_of(msgspec.inspect.type_info(field.type))
        if allowed is not None:
            found[field.name] = f"at least {allowed.ge}" if allowed.le is None else f"{allowed.ge} to {allowed.le}"
    return found


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("Gateway", Settings),
        ("Engine", EngineSettings),
        ("Event log", EventLogSettings),
        ("Simulated engine", Script),
    ],
)
def test_every_range_of_a_setting_is_documented(heading: str, kind: type[msgspec.Struct]) -> None:
    documented = {name: row[1] for name, row in table("configuration.md", heading).items() if row[1]}
    assert documented == ranges(kind) != {}


def test_the_least_limits_are_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert "`message_bytes` is at least 1024, the others at least 1, and none is above 1073741824." in page
    others = dict.fromkeys(Limits.__struct_fields__, f"1 to {2**30}")
    assert ranges(Limits) == others | {"message_bytes": f"1024 to {2**30}"}


def test_every_metric_is_documented() -> None:
    ours = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in REGISTRY.collect()
        if metric.name.startswith("gateway_")
    }
    assert metrics.exposition()
    assert set(table("operations.md", "Metrics")) == ours


def named(pattern: str, pages: Iterable[Path]) -> list[tuple[Path, str]]:
    """(page, what the pattern finds in it)"""
    return [(page, found) for page in pages for found in re.findall(pattern, page.read_text())]


def test_links_lead_somewhere() -> None:
    links = named(r"\]\((?!https?://|#)([^)#\s]+)", PAGES)
    assert [(str(page), target) for page, target in links if not (page.parent / target).exists()] == []


def test_tests_that_are_named_exist() -> None:
    # The changelog tells of what there was.
    tests = named(r"`(tests/[\w/.]+)`", [page for page in PAGES if page.name != "CHANGELOG.md"])
    assert [(str(page), test) for page, test in tests if not (ROOT / test).exists()] == []


def commands(page: Path) -> list[list[str]]:
    """The arguments of each `gateway` in the page's code, up to a pipe or the next command."""
    code = "\n".join(re.findall(r"^ *```[a-z]*\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL))
    lines = re.findall(r"^ *(?:\$ )?(?:\S*/)?gateway ((?:.*\\\n)*.*)$", code, re.MULTILINE)
    return [
        list(takewhile(lambda word: word not in ("|", "<", ">", "&&"), shlex.split(line, comments=True)))
        for line in lines
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_the_gateways_commands_take_what_they_are_given(page: Path) -> None:
    for arguments in commands(page):
        parser().parse_args(arguments)


def test_what_the_runbook_names_exists() -> None:
    """Commands, settings, metrics and codes of errors; an operator has no time to find out that they do not."""
    spans = re.findall(r"`([^`\n]+)`", (ROOT / "docs/runbook.md").read_text())
    for command in (span for span in spans if span.startswith("gateway ")):
        parser().parse_args(shlex.split(command)[1:])
    known = {cls.code for cls in error_classes()} | {metric.name for metric in REGISTRY.collect()}
    for name in Settings.__struct_fields__:
        section = getattr(Settings(), name)
        fields = section.__struct_fields__ if isinstance(section, msgspec.Struct) else ()
        known |= {name, *(f"{name}.{field}" for field in fields)}
    ours = [span.partition(" = ")[0] for span in spans if re.fullmatch(r"[a-z]+[_.][a-z_.]+( = .*)?", span)]
    assert set(ours) - known == {"aof_last_write_status"}  # Redis' own
    assert len(ours) > 15


def test_the_readme_leads_to_every_page() -> None:
    chapters = (ROOT / "README.md").read_text().partition("\n## Read on\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| \[[^\]]+\]\((docs/[^/)]+)\)", chapters, re.MULTILINE)
    assert sorted(listed) == sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        # In code only: prose may say `make sure`.
        code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", page.read_text(), re.DOTALL))
        assert set(re.findall(r"\bmake ([a-z-]+)", code)) <= targets, page.name


def test_every_finding_can_be_run() -> None:
    assert [each.name for each in (ROOT / "findings").glob("*.sh") if not os.access(each, os.X_OK)] == []


def test_every_parameter_of_the_captions_view_is_documented() -> None:
    script = (ROOT / "web_demo" / "page" / "captions" / "caption_options.js").read_text()
    entries = re.findall(r'^  (\w+): \["([^"]*)", /', script, re.MULTILINE)
    documented = table("page.md", "Captions for overlays and wall screens")
    assert len(entries) > 5
    assert {name: row[0] for name, row in documented.items()} == dict(entries)
