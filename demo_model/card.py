"""Writes the numbers of a training run into the model card, with a heat map and the curve.

    python -m demo_model.card demo_model/small_model/training.json

Everything between `<!-- numbers -->` and `<!-- /numbers -->` in README.md is replaced.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from demo_model import LANGUAGES
from demo_model.evaluate import own_table, table
from demo_model.own import KINDS, own_sentences

CARD = Path(__file__).parent / "README.md"
_BLOCK = re.compile(r"(<!-- numbers -->\n).*?(<!-- /numbers -->)", re.DOTALL)
_SUITES = {
    "unseen": "unseen slot combinations",
    "composed": "composed, unseen",
    "held_out": "patterns held out whole",
    "recognised": "unseen, as a recogniser writes",
    "prefixes": "unseen, cut short",
}


def numbers(report: dict[str, Any]) -> str:
    """The card's block of numbers, as Markdown."""
    settings, scores, curve = report["settings"], report["scores"], report["curve"]
    shape, last = settings["shape"], curve[-1]
    gpus = settings.get("gpus", 1)
    lines = [
        f"Trained with `{settings['command']}` on {'one' if gpus == 1 else gpus} {settings['device']} "
        f"(torch {settings['torch']}): "
        f"{settings['parameters'] / 1e6:.1f} M parameters ({shape['layers']} layers of width {shape['hidden']}, "
        f"{shape['vocabulary']:,} tokens), {last['step']:,} steps, {last['tokens'] / 1e6:,.0f} M tokens in "
        f"{last['seconds'] / 60:.1f} minutes; {settings['patterns']:,} patterns, "
        f"{settings['held_out_patterns']} of them held out.",
        "",
        "| suite | sentences | chrF into and out of English: mean (lowest) | other directions: mean (lowest) "
        "| exactly the reference | names and numbers copied | ended |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, suite in scores["suites"].items():
        copied = (
            f"{suite['precise_copied']:.2%} of {suite['precise_values']:,}"
            if suite["precise_values"]
            else "not judged"
        )
        lines.append(
            f"| {_SUITES[key]} | {suite['items']:,} | {suite['chrf_mean_english']:.1f} "
            f"({suite['chrf_min_english']:.1f}) | "
            f"{suite['chrf_mean_others']:.1f} ({suite['chrf_min_others']:.1f}) | "
            f"{suite['exact']:.1%} | {copied} | {suite['ended']:.2%} |"
        )
    noise = scores["noise"]
    lines += [
        "",
        f"Noise, near-empty and foreign inputs: {noise['ended']:.1%} of {noise['items']} ended by themselves, "
        f"{noise['echoed']:.1%} came back unchanged.",
        "",
    ]
    of_each = ", ".join(f"{sum(own.kind == kind for own in own_sentences('test'))} {kind}" for kind in KINDS)
    lines += [
        f"chrF, [sentences of a test set](own_sentences/test.toml) that belong to no pattern ({of_each}):",
        "",
        own_table(scores["own"]["test"]),
        "",
    ]
    for key in ("unseen", "held_out"):
        lines += [f"chrF, {_SUITES[key]}:", "", table(scores, key), ""]
    lines += ["![chrF in 30 directions](heatmap.png)", "", "![loss and chrF](curve.png)", ""]
    return "\n".join(lines)


def write_card(report: dict[str, Any], card: Path = CARD) -> None:
    block = numbers(report)
    text = card.read_text(encoding="utf-8")
    card.write_text(_BLOCK.sub(lambda match: match.group(1) + block + match.group(2), text), encoding="utf-8")


def draw(report: dict[str, Any], folder: Path) -> None:
    """Draw heatmap.png and curve.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    for axis, key in zip(axes, ("unseen", "held_out"), strict=True):
        scores = report["scores"]["suites"][key]["chrf"]
        grid = [[scores.get(f"{source}-{target}", float("nan")) for target in LANGUAGES] for source in LANGUAGES]
        image = axis.imshow(grid, vmin=0, vmax=100, cmap="viridis")
        axis.set_xticks(range(len(LANGUAGES)), LANGUAGES)
        axis.set_yticks(range(len(LANGUAGES)), LANGUAGES)
        axis.set(title=f"chrF: {_SUITES[key]}", xlabel="into", ylabel="from")
        for row, values in enumerate(grid):
            for column, value in enumerate(values):
                if row != column:
                    colour = "black" if value > 60 else "white"
                    axis.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
    figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(folder / "heatmap.png", dpi=110)
    plt.close(figure)

    curve = report["curve"]
    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    millions = [point["tokens"] / 1e6 for point in curve]
    axis.semilogy(millions, [point["loss"] for point in curve], label="loss (training)")
    axis.set(xlabel="million tokens", ylabel="loss")
    looks = [(point["tokens"] / 1e6, point["chrf"]) for point in curve if "chrf" in point]
    if looks:
        right = axis.twinx()
        right.plot(*zip(*looks, strict=True), "o-", color="tab:orange", label="chrF (unseen)")
        right.set(ylabel="chrF", ylim=(0, 100))
    figure.legend(loc="outside upper center", ncols=2)
    figure.savefig(folder / "curve.png", dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="demo_model.card", description="Write a run's numbers into the model card."
    )
    parser.add_argument("training", type=Path, help="training.json of the run")
    options = parser.parse_args()
    report = json.loads(options.training.read_text(encoding="utf-8"))
    write_card(report)
    draw(report, CARD.parent)


if __name__ == "__main__":
    main()
