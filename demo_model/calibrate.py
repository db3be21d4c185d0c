"""Calibrates the confidence of a trained model, and says how well it tells wrong translations from right ones.

    python -m demo_model.calibrate demo_model/small_model

Writes `confidence.json` into the model's folder, with which the gateway tells a confidence with each translation.
Run it again whenever a model was trained: its log-probabilities are worth something else.

A translation is wrong if a reader would call it wrong. Sentences of five kinds are translated:

- `corpus`: trained patterns with slot values that training never drew, as written and as recognised. Right:
  exactly the reference.
- `composed`: sentences of the clause grammar that training never draws.
- `held_out`: patterns that training left out. Only answers that were read: many a right one is in other words.
- `paraphrase`: what is said in meetings, in other words (`paraphrases.toml`).
- `development`: the development set of sentences that people wrote (`demo_model.own`).

For the last three, `readings.tsv` says which answers a reader called right or wrong (`--answers FILE` writes what
there is to read). Any other answer of these and of `composed` is right from a chrF of 80 against the reference on;
how often that agrees with the readings is part of the report. The model is calibrated on one half of the sentences
and reported on the other; a sentence is in the same half in all its directions.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_model.evaluate import Item, own_items, sentence_items
from demo_model.layout import END, IDS, PAD, answer_limit, prompt_ids
from demo_model.patterns import bundled_patterns, files_of_model, stable_hash
from gateway.engines.prompting.confidence import CALIBRATION_FILE, Calibration, log_surprise

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

    from demo_model.model import TranslationModel

READINGS = Path(__file__).parent / "readings.tsv"
PARAPHRASES = Path(__file__).parent / "paraphrases.toml"
# chrF from which an answer that nobody has read counts as right.
_RIGHT_CHRF = 80.0
# Sentences of the corpus, of each of the two suites.
_CORPUS_SENTENCES = 20
# The mark is where so large a share of what is shown as sure should be wrong, among sentences unlike the corpus.
_WRONG_AT_MARK = 0.05
_ROWS = 32


@dataclass(frozen=True)
class Answer:
    """One translation by the model, and whether it is right."""

    item: Item
    text: str
    right: bool
    # Of each token, the one that ends the text included, in nats.
    logprobs: tuple[float, ...]
    # Of the text before it was translated.
    source_tokens: int

    @property
    def is_new(self) -> bool:
        """Whether the sentence is unlike those that the model was trained on."""
        return self.item.suite not in ("corpus", "composed")

    @property
    def half(self) -> int:
        """0: to calibrate on, 1: to report on."""
        english = self.item.source if self.item.source_language == "en" else self.item.target
        return stable_hash("confidence", english) % 2


# The higher, the more likely right.
MEASURES: dict[str, Callable[[Answer], float]] = {
    "mean log-probability": lambda answer: sum(answer.logprobs) / len(answer.logprobs),
    "lowest log-probability": lambda answer: min(answer.logprobs),
    "log-probability of the whole": lambda answer: sum(answer.logprobs),
    "length ratio": lambda answer: -abs(math.log(len(answer.logprobs) / (answer.source_tokens + 1))),
    "known source words": lambda answer: _known_share(answer.item),
}


def items(model: Path, sentences: int = _CORPUS_SENTENCES) -> list[Item]:
    """The sentences of all kinds into and out of English, those of the corpus from what a model was trained with.

    The suite of an item is its kind.
    """
    found: list[Item] = []
    files = files_of_model(model)
    for kind, suite, sets in (
        ("corpus", "unseen", sentences),
        ("corpus", "recognised", sentences),
        ("composed", "composed", sentences),
        ("held_out", "held_out", 46),
    ):
        found += [_of_kind(kind, item) for item in sentence_items(suite, sets, files=files)]
    found += [_of_kind("development", item) for item in own_items("development")]
    for texts in tomllib.loads(PARAPHRASES.read_text(encoding="utf-8"))["sentence"]:
        for other in [language for language in texts if language != "en"]:
            for source, target in (("en", other), (other, "en")):
                found.append(Item("paraphrase", source, target, True, texts[source], texts[target]))
    return [item for item in found if "en" in (item.source_language, item.target_language) and item.target]


def _direction(item: Item) -> str:
    return f"{item.source_language}-{item.target_language}"


def _of_kind(kind: str, item: Item) -> Item:
    return Item(kind, item.source_language, item.target_language, True, item.source, item.target)


def answers(
    model: TranslationModel, tokenizer: Tokenizer, asked: Sequence[Item], device: torch.device
) -> list[Answer]:
    """The model's answers, with the log-probability of each token; those that did not end are left out."""
    import torch

    from demo_model.model import answer

    readings = read_readings()
    encoded = [
        each.ids for each in tokenizer.encode_batch([item.source for item in asked], add_special_tokens=False)
    ]
    order = sorted(range(len(asked)), key=lambda index: len(encoded[index]))
    found: list[Answer] = []
    for begin in range(0, len(order), _ROWS):
        chosen = order[begin : begin + _ROWS]
        prompts = [
            prompt_ids(asked[i].source_language, asked[i].target_language, True, encoded[i]) for i in chosen
        ]
        limits = [answer_limit(len(encoded[i])) for i in chosen]
        ended = [
            (i, prompt, ids)
            for i, prompt, ids in zip(chosen, prompts, answer(model, prompts, limits, device), strict=True)
            if ids is not None
        ]
        # What stands behind a text changes nothing about it, so shorter ones are filled up.
        width = max(len(prompt) + len(ids) for _, prompt, ids in ended)
        rows = [[*prompt, *ids] + [IDS[PAD]] * (width - len(prompt) - len(ids)) for _, prompt, ids in ended]
        with torch.no_grad():
            hidden = model(torch.tensor(rows, device=device))
            for row, (i, prompt, ids) in zip(hidden, ended, strict=True):
                begin_at, end_at = len(prompt) - 1, len(prompt) + len(ids)
                likely = model.logits(row[begin_at:end_at]).float().log_softmax(-1)
                said = torch.tensor([*ids, IDS[END]], device=device)
                logprobs = likely.gather(1, said[:, None])[:, 0].tolist()
                text = tokenizer.decode(ids, skip_special_tokens=True)
                right = is_right(asked[i], text, readings)
                found.append(Answer(asked[i], text, right, tuple(logprobs), len(encoded[i])))
    return found


Readings = dict[tuple[str, str, str], bool]


@cache
def read_readings() -> Readings:
    """(direction, source, answer) → whether a reader called the answer right."""
    with READINGS.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(direction, source, answer): verdict == "right" for verdict, direction, source, answer in rows}


def is_read(answer: Answer) -> bool:
    """Whether a reader has judged this answer."""
    return (_direction(answer.item), answer.item.source, answer.text) in read_readings()


def is_right(item: Item, text: str, readings: Readings) -> bool:
    """Whether a reader would call it right, as far as that is known."""
    if item.suite == "corpus":
        return text == item.target
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


def fit(chosen: Sequence[Answer]) -> Calibration:
    """Logistic regression on the mean surprise, by Newton's method; the mark is where few sure ones are wrong."""
    points = [(log_surprise(sum(each.logprobs), len(each.logprobs)), float(each.right)) for each in chosen]
    bias = slope = 0.0
    for _ in range(25):
        # A little of 0.001 keeps it finite where right and wrong do not overlap.
        g0, g1, h00, h01, h11 = -0.001 * bias, -0.001 * slope, 0.001, 0.0, 0.001
        for x, y in points:
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, bias + slope * x))))
            weight = p * (1 - p)
            g0, g1 = g0 + y - p, g1 + (y - p) * x
            h00, h01, h11 = h00 + weight, h01 + weight * x, h11 + weight * x * x
        determinant = h00 * h11 - h01 * h01
        bias += (h11 * g0 - h01 * g1) / determinant
        slope += (h00 * g1 - h01 * g0) / determinant
    unmarked = Calibration(round(bias, 4), round(slope, 4), 0.0)
    return Calibration(unmarked.bias, unmarked.slope, _mark(unmarked, [each for each in chosen if each.is_new]))


def _mark(calibration: Calibration, chosen: Sequence[Answer]) -> float:
    """The lowest confidence from which on at most `_WRONG_AT_MARK` should be wrong; 1 if there is none.

    By the confidences, not by a count of those that were wrong: so few are sure that a single one would decide.
    """
    mark, wrong = 1.0, 0.0
    for number, value in enumerate(sorted((_confidence(calibration, each) for each in chosen), reverse=True), 1):
        wrong += 1 - value
        if wrong <= _WRONG_AT_MARK * number:
            mark = value
    return mark


def _confidence(calibration: Calibration, answer: Answer) -> float:
    return calibration.confidence(sum(answer.logprobs), len(answer.logprobs)).value


def report(calibration: Calibration, found: Sequence[Answer]) -> dict[str, Any]:
    """What the confidence is worth on these answers, by kind: all of them, those unlike the corpus, each kind."""
    groups = {"all": list(found), "unlike the corpus": [each for each in found if each.is_new]}
    for kind in ("corpus", "composed", "held_out", "paraphrase", "development"):
        groups[kind] = [each for each in found if each.item.suite == kind]
    lines: dict[str, Any] = {}
    for name, group in groups.items():
        right = [each for each in group if each.right]
        wrong = [each for each in group if not each.right]
        sure = [each for each in group if _confidence(calibration, each) >= calibration.unsure_below]
        lines[name] = {
            "sentences": len(group),
            "right": len(right),
            "auc": {
                measure: round(area_under_curve([*map(value, right)], [*map(value, wrong)]), 3)
                for measure, value in MEASURES.items()
            }
            if right and wrong
            else {},
            "sure": len(sure),
            "sure_and_wrong": sum(not each.right for each in sure),
            "right_but_unsure": len(right) - sum(each.right for each in sure),
        }
    return lines


def reading_report(found: Sequence[Answer]) -> dict[str, int]:
    """How many of the new sentences' answers were read, and of how many of those chrF would have said the same."""
    read = [each for each in found if is_read(each)]
    agree = sum(each.right == _by_chrf(each.text, each.item.target) for each in read)
    return {"answers": sum(each.is_new for each in found), "read": len(read), "chrf_agrees": agree}


_WORD = re.compile(r"[぀-ヿ㐀-鿿]|[^\W\d_]+")


@cache
def _known_words(language: str) -> frozenset[str]:
    from demo_model.generate import PairSource

    source = PairSource("known words", patterns=bundled_patterns(), composed=0.5)
    words = {
        match.lower() for _ in range(3_000) for pair in _draw(source, language) for match in _WORD.findall(pair)
    }
    for pattern in bundled_patterns():
        for part in pattern.templates[language].parts:
            words |= {match.lower() for match in _WORD.findall(part)} if isinstance(part, str) else set()
    return frozenset(words)


def _draw(source: Any, language: str) -> list[str]:
    return [pair.source for pair in source.draw([(language, "en" if language != "en" else "de")])]


def _known_share(item: Item) -> float:
    words = [word.lower() for word in _WORD.findall(item.source)]
    known = _known_words(item.source_language)
    return sum(word in known for word in words) / len(words) if words else 1.0


def table(lines: dict[str, Any]) -> str:
    """A report as a Markdown table."""
    rows = [
        "| sentences | of them right | "
        + " | ".join(f"AUC, {name}" for name in MEASURES)
        + " | sure | of them wrong "
        "| right, yet unsure |",
        "|---|" + "---|" * (len(MEASURES) + 4),
    ]
    for name, line in lines.items():
        cells = [f"{line['auc'][measure]:.3f}" if line["auc"] else "" for measure in MEASURES]
        wrong = f"{line['sure_and_wrong']} ({line['sure_and_wrong'] / line['sure']:.1%})" if line["sure"] else "0"
        rows.append(
            f"| {name}: {line['sentences']} | {line['right']} | " + " | ".join(cells) + f" | {line['sure']} | "
            f"{wrong} | {line['right_but_unsure']} |"
        )
    return "\n".join(rows)


def main() -> None:
    import torch

    from demo_model.model import load
    from demo_model.tokenizer import load_tokenizer

    parser = argparse.ArgumentParser(prog="demo_model.calibrate", description="Calibrate a model's confidence.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sentences", type=int, default=_CORPUS_SENTENCES, help="of the corpus, of each suite")
    parser.add_argument("--answers", type=Path, help="write every answer there, to read and judge (TSV)")
    options = parser.parse_args()
    device = torch.device(options.device)
    model, tokenizer = load(options.model, device), load_tokenizer(options.model)
    found = answers(model, tokenizer, items(options.model, options.sentences), device)
    if options.answers:
        write_answers(options.answers, found)
    # Most answers to a held-out pattern are in other words than the reference, so chrF cannot judge them.
    found = [each for each in found if each.item.suite != "held_out" or is_read(each)]
    fitted, held = ([each for each in found if each.half == half] for half in (0, 1))
    calibration = fit(fitted)
    lines, read = report(calibration, held), reading_report(found)
    written = {
        "bias": calibration.bias,
        "slope": calibration.slope,
        "unsure_below": calibration.unsure_below,
        "measure": "mean log-probability",
        "readings": read,
        "report": lines,
    }
    path = options.model / CALIBRATION_FILE
    path.write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: confidence = 1 / (1 + exp(-({calibration.bias} + {calibration.slope} × log mean surprise))),")
    print(
        f"unsure below {calibration.unsure_below}; fitted on {len(fitted)} answers, reported on {len(held)} others"
    )
    agrees = f"{read['read']} of {read['answers']} answers unlike the corpus were read"
    print(f"{agrees}; chrF agrees on {read['chrf_agrees']}")
    print(table(lines))


def write_answers(path: Path, found: Sequence[Answer]) -> None:
    """Verdict, direction, source and answer, a line each, as in `readings.tsv`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for each in found:
            if each.is_new:
                verdict = "right" if each.right else "wrong"
                direction = _direction(each.item)
                file.write("\t".join((verdict, direction, each.item.source, each.text)) + "\n")


if __name__ == "__main__":
    main()
