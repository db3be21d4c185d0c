"""`docs/models.md` shows the prompts and the options that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.domain.engine import TranslationRequest
from gateway.engines.prompting.families import FAMILIES
from tests.engines.prompting.prompts import BEFORE, TERMS, asked, request

MODELS_MD = Path(__file__).parents[3] / "docs" / "models.md"


def _documented() -> list[tuple[str, TranslationRequest]]:
    shown = [(name, request()) for name in FAMILIES if name not in {"bundled", "translategemma"}]
    shown += [(name, request("It runs again.", "en-zh")) for name in ("hunyuan-mt", "hy-mt1.5", "hy-mt2")]
    for name in ("hy-mt1.5", "hy-mt2"):
        shown += [(name, request(glossary=TERMS)), (name, request(context=BEFORE))]
    shown += [("hy-mt2", request(formality="formal"))]
    shown += [("hy-mt2", request(glossary=TERMS, context=BEFORE, formality="formal"))]
    shown += [("chat", request("Sie läuft", glossary=TERMS, context=BEFORE, formality="formal", final=False))]
    return shown


@pytest.mark.parametrize(("name", "of"), _documented())
def test_the_documentation_shows_the_exact_prompt(name: str, of: TranslationRequest) -> None:
    section = MODELS_MD.read_text(encoding="utf-8").partition(f"\n### `{name}`")[2].partition("\n### ")[0]
    assert f"```text\n{asked(name, of)}\n```" in section


@pytest.mark.parametrize("name", FAMILIES)
def test_the_documentation_lists_every_family_with_its_options(name: str) -> None:
    row = next(
        line for line in MODELS_MD.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` |")
    )
    options = [option for option in ("glossary", "context", "formality") if option in FAMILIES[name].options]
    assert row.endswith(f"| {', '.join(options) or 'none'} |")
