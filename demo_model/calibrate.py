"""Calibrates the confidence of the bundled model, and says how well it tells wrong translations from right ones.

    python -m demo_model.calibrate FOLDER --answers answers.tsv      # what there is to read and judge
    python -m demo_model.calibrate FOLDER                            # confidence.json, and the table of the card

Run it again whenever a model was trained: its log-probabilities are worth something else.

A translation is wrong if a reader would call it wrong. Translated are the development set and `strangers.tsv`:
what people typed who tried a translator, knowing neither corpus nor model. `readings.tsv` says which answers a
reader called right or wrong; what nobody has read is left out. A chrF of 80 against the reference is what
`--answers` begins with, and how often that agrees with the readings is part of the report. The model is calibrated
on one half of the sentences and reported on the other; a sentence is in the same half in all its directions.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from demo_model.evaluate import Answer, suite_items, translate
from demo_model.own import Item
from gateway.engines.prompting.model_config import CALIBRATION_FILE, Calibration, log_surprise

READINGS = Path(__file__).parent / "readings.tsv"
STRANGERS = Path(__file__).parent / "strangers.tsv"
# chrF from which an answer that nobody has read counts as right.
_RIGHT_CHRF = 80.0
# The mark is where so large a share of all answers should be wrong and not marked.
_WRONG_AND_SURE = 0.05


@dataclass(frozen=True)
class Judged:
    """One translation by the model, and whether it is right."""

    answer: Answer
    right: bool

    @property
    def half(self) -> int:
        """0: to calibrate on, 1: to report on."""
        item = self.answer.item
        english = item.target if item.target_language == "en" else item.source
        return zlib.crc32((english or item.source).encode()) % 2

    @property
    def measures(self) -> tuple[float, int]:
        """The log-probability of the answer, and the number of its tokens: what a confidence is made of."""
        return sum(self.answer.logprobs), len(self.answer.logprobs)

    def confidence(self, calibration: Calibration) -> float:
        return calibration.confidence(*self.measures).value


def items() -> list[Item]:
    """The development set, into and out of English, and what strangers typed, which has no reference."""
    rows = [line.split("\t") for line in STRANGERS.read_text(encoding="utf-8").splitlines()]
    typed = [Item("strangers", source, target, text, "") for source, target, text in rows]
    return suite_items("development") + typed


def judged(answers: Sequence[Answer]) -> list[Judged]:
    """Those that ended; what did not is no translation."""
    readings = read_readings()
    return [Judged(each, is_right(each.item, each.text, readings)) for each in answers if each.ended]


def _direction(item: Item) -> str:
    return f"{item.source_language}-{item.target_language}"


Readings = dict[tuple[str, str, str], bool]


@cache
def read_readings() -> Readings:
    """(direction, source, answer) → whether a reader called the answer right."""
    with READINGS.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(direction, source, answer): verdict == "right" for verdict, direction, source, answer in rows}


def is_read(each: Judged) -> bool:
    """Whether a reader has judged this answer."""
    item = each.answer.item
    return (_direction(item), item.source, each.answer.text) in read_readings()


def is_right(item: Item, text: str, readings: Readings) -> bool:
    """Whether a reader would call it right, as far as that is known."""
    read = readings.get((_direction(item), item.source, text))
    return _by_chrf(text, item.target) if read is None else read


def _by_chrf(text: str, reference: str) -> bool:
    import sacrebleu

    return float(sacrebleu.sentence_chrf(text, [reference]).score) >= _RIGHT_CHRF


def area_under_curve(right: Sequence[float], wrong: Sequence[float]) -> float:
    """The probability that one that is right measures higher than one that is wrong; equal ones count half."""
    ranked = sorted([(value, True) for value in right] + [(value, False) for value in wrong])
    ranks, begin = 0.0, 0
    while begin < len(ranked):
        end = begin
        while end < len(ranked) and ranked[end][0] == ranked[begin][0]:
            end += 1
        ranks += sum(is_right for _, is_right in ranked[begin:end]) * (begin + end + 1) / 2
        begin = end
    return (ranks - len(right) * (len(right) + 1) / 2) / (len(right) * len(wrong))


def fit(chosen: Sequence[Judged]) -> Calibration:
    """Logistic regression by Newton's method; the mark is where few are wrong and sure."""
    x = np.array([(1.0, log_surprise(*each.measures), math.log(each.measures[1])) for each in chosen])
    y = np.array([each.right for each in chosen], float)
    weights = np.zeros(3)
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        # A little of 0.001 keeps it finite where right and wrong do not overlap.
        hessian = (x * (p * (1 - p))[:, None]).T @ x + 0.001 * np.eye(3)
        weights = weights + np.linalg.solve(hessian, x.T @ (y - p) - 0.001 * weights)
    bias, slope, length_slope = (round(float(weight), 4) for weight in weights)
    unmarked = Calibration(bias, slope, 0.0, length_slope)
    return replace(unmarked, unsure_below=_mark(unmarked, chosen))


def _mark(calibration: Calibration, chosen: Sequence[Judged]) -> float:
    """The lowest confidence from which on at most `_WRONG_AND_SURE` of all should be wrong; 1 if there is none.

    By the confidences, not by a count of those that were wrong: so few are sure that a single one would decide.
    """
    mark, wrong = 1.0, 0.0
    for value in sorted((each.confidence(calibration) for each in chosen), reverse=True):
        wrong += 1 - value
        if wrong <= _WRONG_AND_SURE * len(chosen):
            mark = value
    return mark


def report(calibration: Calibration, found: Sequence[Judged]) -> dict[str, Any]:
    """What the confidence is worth on these answers: all of them, each suite."""
    groups = {"all": list(found)}
    for suite in dict.fromkeys(each.answer.item.suite for each in found):
        groups[suite] = [each for each in found if each.answer.item.suite == suite]
    lines: dict[str, Any] = {}
    for name, group in groups.items():
        right, wrong = (
            [e.confidence(calibration) for e in group if e.right is verdict] for verdict in (True, False)
        )
        sure = [each for each in group if each.confidence(calibration) >= calibration.unsure_below]
        lines[name] = {
            "sentences": len(group),
            "right": len(right),
            "auc": round(area_under_curve(right, wrong), 3) if right and wrong else None,
            "sure": len(sure),
            "sure_and_wrong": sum(not each.right for each in sure),
            "right_but_unsure": len(right) - sum(each.right for each in sure),
        }
    return lines


def reading_report(found: Sequence[Judged]) -> dict[str, int]:
    """How many answers there are, how many were read, and of how many of those chrF would have said the same."""
    read = [each for each in found if is_read(each)]
    agree = sum(each.right == _by_chrf(each.answer.text, each.answer.item.target) for each in read)
    return {"answers": len(found), "read": len(read), "chrf_agrees": agree}


def table(lines: dict[str, Any]) -> str:
    """A report as a Markdown table."""
    rows = [
        "| sentences | of them right | AUC | sure | of them wrong | right, yet unsure |",
        "|---|---|---|---|---|---|",
    ]
    for name, line in lines.items():
        wrong = f"{line['sure_and_wrong']} ({line['sure_and_wrong'] / line['sure']:.1%})" if line["sure"] else "0"
        unsure = f"{line['right_but_unsure']} ({line['right_but_unsure'] / max(1, line['right']):.1%})"
        auc = "" if line["auc"] is None else f"{line['auc']:.3f}"
        rows.append(
            f"| {name}: {line['sentences']} | {line['right']} | {auc} | {line['sure']} | {wrong} | {unsure} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo_model.calibrate", description="Calibrate a model's confidence.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--answers", type=Path, help="only write every answer there, to read and judge (TSV)")
    parser.add_argument("--out", type=Path, help="where confidence.json goes (default: the model's folder)")
    options = parser.parse_args()
    found = judged(translate(options.model, items()))
    if options.answers:
        write_answers(options.answers, found)
        return
    read = reading_report(found)
    found = [each for each in found if is_read(each)]
    fitted, held = ([each for each in found if each.half == half] for half in (0, 1))
    calibration = fit(fitted)
    lines = report(calibration, held)
    written = {
        "bias": calibration.bias,
        "slope": calibration.slope,
        "length_slope": calibration.length_slope,
        "unsure_below": calibration.unsure_below,
        "readings": read,
        "report": lines,
    }
    path = options.out or options.model / CALIBRATION_FILE
    path.write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {calibration}; fitted on {len(fitted)} answers, reported on {len(held)} others")
    agrees = f"{read['read']} of {read['answers']} answers were read"
    print(f"{agrees}; chrF agrees on {read['chrf_agrees']}")
    print(table(lines))


def write_answers(path: Path, found: Sequence[Judged]) -> None:
    """Verdict, direction, source and answer, a line each, as in `readings.tsv`; only what nobody has read."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for each in found:
            if not is_read(each):
                verdict = "right" if each.right else "wrong"
                item = each.answer.item
                file.write("\t".join((verdict, _direction(item), item.source, each.answer.text)) + "\n")


if __name__ == "__main__":
    main()
