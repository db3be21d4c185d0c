"""The result as tables for people, a plot, and JSON; written to a folder.

Knows: how a result looks. Must not know: how it was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from loadtest.json_lines import as_json
from loadtest.page.result import Opening, PageResult, Phase, Times, Visit
from loadtest.page.speech import CAPTIONS_PER_UTTERANCE
from loadtest.report_folder import write_report

__all__ = ["as_json", "plot", "table", "write"]

# Told apart in grey too.
_SCRIPT, _LAYOUT, _OTHER = "#1f5fa8", "#9aa5b1", "#dfe3e8"
_DEVICES = ("#1f5fa8", "#c05621")


def write(result: PageResult, folder: Path) -> None:
    """`result.json`, `table.md` and `plot.png` in `folder`, which is made when it is missing."""
    write_report(folder, result=as_json(result), table=table(result), plot=partial(plot, result))


def table(result: PageResult) -> str:
    """Markdown: weight, opening, captions a second, and what it was measured on."""
    return "\n\n".join(_parts(result)) + "\n"


# ---------------------------------------------------------------- the tables


def _parts(result: PageResult) -> Iterator[str]:
    for failure in result.failures():
        yield f"**Failed:** {failure}"
    yield "## Weight"
    head: Sequence[str] = (
        "visit",
        "files of the page",
        "from the cache",
        "bytes on the wire",
        "bytes uncompressed",
        "API calls",
    )
    yield _table(head, [_visit(visit) for visit in result.visits])
    yield "## Opening"
    head = ("device", "first paint", "first contentful paint", "in the meeting", "visits")
    yield _table(head, [_opening(opening) for opening in result.openings])
    yield "Milliseconds from when the address was asked for, the cache empty: median / 90th percentile / worst."
    yield "## Captions"
    head = (
        "device",
        "captions/s",
        "arrived: finals, unfinished, all /s",
        "rows",
        "tasks > 50 ms",
        "longest, ms",
        "blocked, ms",
        "frames/s",
        "longest gap, ms",
        "script",
        "layout",
        "other",
        "heap before → after, MiB",
    )
    yield _table(head, [_phase(phase) for phase in result.phases])
    yield from _notes(result)


def _visit(visit: Visit) -> list[str]:
    files = visit.files
    return [
        visit.name,
        str(len(files)),
        str(sum(each.cached for each in files)),
        f"{sum(each.wire for each in files):,}",
        f"{sum(each.decoded for each in files):,}",
        str(len(visit.api)),
    ]


def _opening(opening: Opening) -> list[str]:
    return [
        opening.device,
        _times(opening.first_paint),
        _times(opening.first_contentful_paint),
        _times(opening.ready),
        str(opening.visits),
    ]


def _phase(phase: Phase) -> list[str]:
    a_second = [count / phase.seconds for count in (phase.captions, phase.deltas, phase.messages)]
    return [
        phase.device,
        str(phase.captions_per_s),
        ", ".join(f"{each:.1f}" for each in a_second),
        str(phase.shown) if phase.shown == phase.said else f"{phase.shown} of {phase.said}",
        str(phase.tasks.count),
        f"{phase.tasks.longest_ms:.0f}" if phase.tasks.count else "–",
        f"{phase.tasks.blocking_ms:.0f}" if phase.tasks.count else "–",
        f"{phase.frames_per_s:.0f}",
        f"{phase.longest_gap_ms:.0f}",
        *(f"{share:.1%}" for share in (phase.script, phase.layout, phase.other)),
        f"{phase.heap_before:.1f} → {phase.heap_after:.1f}",
    ]


def _notes(result: PageResult) -> Iterator[str]:
    machine, plan = result.machine, result.plan
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    yield (
        "A caption is a final text that the page is sent: one for each utterance as it was said, and one for each "
        f"of its translations. A speaker in each of {CAPTIONS_PER_UTTERANCE} languages takes turns, and the page "
        f"reads them all along with what was said, so {CAPTIONS_PER_UTTERANCE} captions a second are one "
        f"utterance a second. Utterances are one to four sentences of the corpus (seed {plan.seed}), revised "
        "every 300 ms while they are said; unfinished: captions and pieces of translations before their finals. "
        f"The engine is simulated, a token each {plan.token_s * 1000:g} ms. Each line is {plan.seconds:g} s, "
        "after everybody had said something; rows are of the whole meeting."
    )
    yield (
        "Script, layout (with styles) and other are shares of the page's main thread. Heap is of JavaScript, "
        "collected before it is read; rows stay on the page, so it grows with what was said. Blocked: what tasks "
        "above 50 ms took beyond it, together. Counting the frames makes the page draw every one of them."
    )
    devices = "; ".join(
        f"{each.name}: {each.width} × {each.height}, "
        + (
            "this machine's CPU as it is"
            if each.throttle == 1
            else f"CPU throttled to 1/{each.throttle} by Chromium"
        )
        for each in plan.devices
    )
    yield f"{devices}. Imitated on this machine, over the loopback interface: no real phone, no real network."
    yield f"`{result.command}`, {result.began}, revision {machine.revision or 'unknown'}."
    yield (
        f"On {machine.cpu}, {machine.cores} cores, {machine.memory_gib:g} GiB, no GPU used; {machine.system}, "
        f"{result.browser} headless, Python {machine.python}; {versions}. Browser, gateway and speakers share "
        "these cores."
    )
    others = max((phase.other_cores for phase in result.phases), default=0.0)
    late = max((phase.late_ms for phase in result.phases), default=0.0)
    yield (
        f"Load average before: {' '.join(f'{load:g}' for load in machine.load_average)}; other processes used at "
        f"most {others:.2f} of a core on average over a phase, and a speaker was behind its schedule by at most "
        f"{late:.0f} ms."
    )


def _times(times: Times) -> str:
    return f"{times.median:,.0f} / {times.p90:,.0f} / {times.worst:,.0f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


# ---------------------------------------------------------------- the plot


def plot(result: PageResult, file: Path) -> None:
    """The main thread's time, the longest task and the frames, by captions a second and device."""
    # Imported here: a second that a wrong option need not wait.
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    devices = list(dict.fromkeys(phase.device for phase in result.phases))
    figure, axes = pyplot.subplots(
        1, len(devices) + 2, figsize=(4.2 * (len(devices) + 2), 4.2), layout="constrained"
    )
    phases = {device: [each for each in result.phases if each.device == device] for device in devices}
    highest = max((each.script + each.layout + each.other for each in result.phases), default=0.0)
    for place, device in zip(axes, devices, strict=False):
        _shares(place, device, phases[device], highest)
    _lines(axes[-2], phases, [each.tasks.longest_ms for each in result.phases], "Longest task", "ms")
    _lines(axes[-1], phases, [each.frames_per_s for each in result.phases], "Frames", "frames/s")
    for place in axes:
        place.set_xlabel("captions a second")
        place.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"The page in {result.browser} on {result.machine.cpu}, {result.machine.cores} cores", fontsize=12
    )
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def _shares(axes: Any, device: str, phases: Sequence[Phase], highest: float) -> None:
    bottom = [0.0] * len(phases)
    for label, colour, values in (
        ("script", _SCRIPT, [each.script for each in phases]),
        ("layout and styles", _LAYOUT, [each.layout for each in phases]),
        ("other", _OTHER, [each.other for each in phases]),
    ):
        heights = [value * 100 for value in values]
        axes.bar(range(len(phases)), heights, 0.6, bottom=bottom, color=colour, label=label)
        bottom = [below + height for below, height in zip(bottom, heights, strict=True)]
    for place, top in enumerate(bottom):
        axes.annotate(f"{top:.0f} %", (place, top), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    axes.set_xticks(range(len(phases)), [str(each.captions_per_s) for each in phases])
    axes.set(title=f"Main thread, {device}", ylabel="% of the time")
    axes.set_ylim(0, max(highest * 118, 1))
    axes.legend(loc="upper left", frameon=False, fontsize=9)


def _lines(axes: Any, phases: dict[str, list[Phase]], values: list[float], title: str, unit: str) -> None:
    left = iter(values)
    for colour, (device, own) in zip(_DEVICES * len(phases), phases.items(), strict=False):
        heights = [next(left) for _ in own]
        axes.plot([each.captions_per_s for each in own], heights, marker="o", color=colour, label=device)
    axes.set(title=title, ylabel=unit)
    axes.set_ylim(bottom=0, top=max(max(values, default=0) * 1.15, 1))
    axes.legend(loc="best", frameon=False, fontsize=9)
