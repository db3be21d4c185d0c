"""Scores the bundled model as the gateway runs it: with vLLM, greedily, on this machine.

    python -m demo_model.evaluate FOLDER --suite test --out scores.json

FOLDER: the assembled model (`python -m gateway.bundled` prints its place). Suites: `test` and `development`,
sentences that no corpus has; `written`, sets of the corpus that training left out; `unseen`, slots combined as
training never saw them; each out of English and into it. Prints a table of chrF (sacrebleu's, with its defaults).
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from demo_model import LANGUAGES
from demo_model.corpus.sets import held_out_sets, unseen_sets
from demo_model.layout import answer_limit, prompt_ids
from demo_model.own import SETS, Item, own_items

SUITES = (*SETS, "written", "unseen")


@dataclass(frozen=True)
class Answer:
    """One translation by the model."""

    item: Item
    text: str
    # Of each token, the one that ends the text included, in nats.
    logprobs: tuple[float, ...]
    # Whether it ended by itself within `answer_limit`.
    ended: bool


def suite_items(suite: str, most: int = 0) -> list[Item]:
    """The sentences of a suite out of English and into it. most: of its sets; 0: all."""
    if suite in SETS:
        return own_items(suite)[: 2 * (len(LANGUAGES) - 1) * most or None]
    sets = held_out_sets() if suite == "written" else unseen_sets()
    return [
        Item(suite, source, target, each.written[source].text, each.written[target].text)
        for each in sets[: most or None]
        for other in LANGUAGES[1:]
        for source, target in (("en", other), (other, "en"))
    ]


def translate(folder: Path, items: Sequence[Item], final: bool = True) -> list[Answer]:
    """The model's answers, in the order of the items; takes about a second for twenty of them on two cores."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    from tokenizers import Tokenizer
    from vllm import LLM, SamplingParams

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    model = LLM(
        str(folder),
        dtype="bfloat16",
        max_model_len=1024,
        max_num_seqs=64,
        enforce_eager=True,
        gpu_memory_utilization=0.3,
        block_size=32,
    )
    sources = [tokenizer.encode(item.source, add_special_tokens=False).ids for item in items]
    made = model.generate(
        [
            {"prompt_token_ids": prompt_ids(item.source_language, item.target_language, final, source)}
            for item, source in zip(items, sources, strict=True)
        ],
        [SamplingParams(temperature=0, max_tokens=answer_limit(len(source)), logprobs=0) for source in sources],
        use_tqdm=False,
    )
    answers = []
    for item, output in zip(items, made, strict=True):
        said = output.outputs[0]
        logprobs = tuple(next(iter(each.values())).logprob for each in said.logprobs or ())
        answers.append(Answer(item, said.text, logprobs, said.finish_reason == "stop"))
    return answers


def chrf(answers: Sequence[Answer]) -> dict[str, float]:
    """chrF by suite and direction: `meeting en-de`."""
    from sacrebleu.metrics import CHRF

    groups: defaultdict[str, list[Answer]] = defaultdict(list)
    for each in answers:
        item = each.item
        groups[f"{item.suite} {item.source_language}-{item.target_language}"].append(each)
    return {
        name: round(CHRF().corpus_score([a.text for a in group], [[a.item.target for a in group]]).score, 1)
        for name, group in groups.items()
    }


def table(scores: dict[str, float]) -> str:
    """Scores by suite as Markdown: a row out of English, a row into it."""
    others = LANGUAGES[1:]
    lines = ["| | " + " | ".join(others) + " | mean |", "|---|" + "---|" * (len(others) + 1)]
    for suite in dict.fromkeys(name.rsplit(" ", 1)[0] for name in scores):
        for title, names in (
            ("out of English", [f"{suite} en-{other}" for other in others]),
            ("into English", [f"{suite} {other}-en" for other in others]),
        ):
            found = [scores[name] for name in names if name in scores]
            cells = [f"{scores[name]:.1f}" if name in scores else "" for name in names]
            if found:
                lines.append(f"| {suite}, {title} | " + " | ".join(cells) + f" | {sum(found) / len(found):.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo_model.evaluate", description="Score the bundled model.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite", nargs="*", choices=SUITES, default=["development"])
    parser.add_argument("--most", type=int, default=0, help="sentences of each suite; 0: all")
    parser.add_argument("--out", type=Path, help="write answers and scores there (JSON)")
    options = parser.parse_args()
    answers = translate(
        options.folder, [item for suite in options.suite for item in suite_items(suite, options.most)]
    )
    scores = chrf(answers)
    ended = sum(each.ended for each in answers) / len(answers)
    broken = sum("\ufffd" in each.text for each in answers)
    print(f"{table(scores)}\n\n{len(answers)} answers, {ended:.2%} ended by themselves, {broken} with U+FFFD")
    if options.out:
        report = {"scores": scores, "answers": [asdict(each) for each in answers]}
        options.out.write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
