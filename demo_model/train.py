"""Trains the bundled model on the GPUs of one machine, scores it and saves it.

    python -m demo_model.train FOLDER --minutes 6            # one GPU
    python -m demo_model.train FOLDER --minutes 6 --gpus 4   # four, each with its own batch of a step
    python -m demo_model.train FOLDER --tiny --steps 60      # a CPU, to check that everything works
    python -m demo_model.train FOLDER --tiny --pair en-de --steps 400    # 40 sentences of one pair, by heart

Writes the weights (bfloat16, in shards), config.json, tokenizer.json, tokenizer_config.json and training.json
(settings, curve, scores). `--init FOLDER` continues from earlier weights and their tokenizer.

Off unless asked for: `--dropout` (Srivastava et al., 2014), `--bpe-dropout` of the sources (Provilkov et al.,
2020), `--average` of the last weights (Izmailov et al., 2018), and `--teacher FOLDER`: a larger model whose
tokenizer is used, and whose distribution over the next token counts as much as the corpus does (Kim and Rush,
2016). The loss in the curve is then that of both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from demo_model import DIRECTIONS
from demo_model.batches import BatchPool, Phrases, Recipe
from demo_model.evaluate import Item, chrf, score, sentence_items, summary, table, translate
from demo_model.model import TINY, Shape, TranslationModel, load, save
from demo_model.patterns import held_out_patterns, in_part, load_patterns, pattern_files
from demo_model.ranks import Ranks, on_ranks
from demo_model.tokenizer import load_tokenizer, save_tokenizer, train_tokenizer

_WARM_UP_STEPS = 300
_FLOOR = 0.01


def learning_rate(step: int, progress: float, peak: float, warm_up: int = _WARM_UP_STEPS) -> float:
    """Linear warm-up by steps, then a cosine over `progress` (0 to 1) down to 1 % of the peak."""
    cosine = _FLOOR + (1 - _FLOOR) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return peak * cosine * min(1.0, (step + 1) / warm_up)


def sizes_for(hidden: int, layers: int) -> dict[str, int]:
    """The sizes of the model: heads of 64, and a feed-forward layer of about 8/3 of the width."""
    return {
        "hidden": hidden,
        "layers": layers,
        "heads": hidden // 64,
        "feed_forward": hidden * 8 // 3 // 128 * 128,
    }


def optimizer_for(model: TranslationModel, peak: float, fused: bool) -> torch.optim.AdamW:
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    scales = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": scales, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.98), eps=1e-9, fused=fused)


def sample_chrf(
    model: TranslationModel, tokenizer: Any, items: Sequence[Item], device: torch.device
) -> dict[str, float]:
    """chrF over all directions together; a quick check, not the evaluation."""
    model.eval()
    with torch.autocast(device.type, torch.bfloat16, enabled=False):
        answers = translate(model, tokenizer, items, device)
    model.train()
    return {
        "chrf": round(chrf([answer or "" for answer in answers], [item.target for item in items]), 2),
        "ended": round(sum(answer is not None for answer in answers) / len(items), 4),
    }


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the report, as in training.json. Raises RuntimeError if a worker or a rank has failed."""
    started = time.monotonic()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if options.init or options.teacher:
        tokenizer = load_tokenizer(options.init or options.teacher)
    elif options.tiny:
        tokenizer = train_tokenizer(options.seed, sets=300, vocabulary=3000, composed=options.recipe.composed)
    else:
        tokenizer = train_tokenizer(options.seed, composed=options.recipe.composed)
    save_tokenizer(tokenizer, folder)
    print(f"tokenizer: {tokenizer.get_vocab_size()} tokens, {time.monotonic() - started:.0f} s", flush=True)

    if options.gpus == 1:
        run(Ranks(), options, started)
    else:
        on_ranks(run, options.gpus, torch.device(options.device).type, options, started)
    report: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return report


def run(ranks: Ranks, options: argparse.Namespace, started: float) -> None:
    """Trains with the tokenizer in the folder; the first rank scores and saves. started: of time.monotonic()."""
    folder: Path = options.folder
    tokenizer = load_tokenizer(folder)
    device = torch.device(options.device)
    if ranks.count > 1 and device.type == "cuda":
        device = torch.device("cuda", ranks.rank)
    cuda = device.type == "cuda"
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    # Sentences of its own for each rank.
    seed = f"{options.seed}" if ranks.first else f"{options.seed}/rank {ranks.rank}"
    pool = BatchPool(seed, folder, options.batch_tokens, options.workers, options.recipe)
    try:
        if options.init:
            model = load(options.init, device)
        else:
            sizes = TINY if options.tiny else sizes_for(options.hidden, options.layers)
            model = TranslationModel(Shape(vocabulary=tokenizer.get_vocab_size(), **sizes)).to(device)
        model.drop(options.dropout)
        model.train()
        if ranks.first:
            print(f"model: {model.parameters_count / 1e6:.2f} M parameters", flush=True)
        else:
            # The weights are the same in all ranks; what is dropped is not.
            torch.manual_seed(options.seed + ranks.rank)
        curve = _steps(model, tokenizer, pool, device, options, ranks)
        ranks.leave()
    finally:
        pool.close()
    if not ranks.first:
        return

    model.eval()
    if cuda:
        model = model.to(torch.bfloat16)  # score the same weights that are saved
    names = save(model, folder, int(options.shard_mb * 1e6) if options.shard_mb else None)
    report: dict[str, Any] = {
        "settings": {
            "command": " ".join(["python -m demo_model.train", *map(_without_parents, options.arguments)]),
            "device": torch.cuda.get_device_name(device) if cuda else "CPU",
            "gpus": ranks.count,
            "torch": torch.__version__,
            "shape": asdict(model.shape),
            "parameters": model.parameters_count,
            "patterns": sum(in_part(options.recipe.part, "pattern", each.id) for each in load_patterns()),
            "pattern_files": pattern_files(),
            "held_out_patterns": len(held_out_patterns()),
            "seed": options.seed,
            "batch_tokens": options.batch_tokens,
            "peak_learning_rate": options.learning_rate,
            "continued": bool(options.init),
        },
        "curve": curve,
    }
    _write(folder, report)
    if options.sets:
        report["scores"] = score(model, tokenizer, device, options.sets)
        print(table(report["scores"]))
        print(summary(report["scores"]), flush=True)
    report["settings"]["total_seconds"] = round(time.monotonic() - started, 1)
    _write(folder, report)
    print(f"saved {', '.join(names)} in {folder} after {time.monotonic() - started:.0f} s", flush=True)


def _without_parents(argument: str) -> str:
    """The last part of a path, without the parent folders of the training machine."""
    return argument.rstrip("/").rsplit("/", 1)[-1]


def _write(folder: Path, report: dict[str, Any]) -> None:
    text = json.dumps(report, ensure_ascii=False, indent=1)
    (folder / "training.json").write_text(text + "\n", encoding="utf-8")


def _steps(
    model: TranslationModel,
    tokenizer: Any,
    pool: BatchPool,
    device: torch.device,
    options: argparse.Namespace,
    ranks: Ranks,
) -> list[dict[str, float]]:
    """Trains the model; returns the curve, whose loss and tokens are of all ranks."""
    cuda = device.type == "cuda"
    optimizer = optimizer_for(model, options.learning_rate, fused=cuda)
    loss_of = torch.compile(model.loss, dynamic=True) if options.compile else model.loss
    teacher = load(options.teacher, device).eval() if options.teacher else None
    parameters = list(model.parameters())
    # Not torch's AveragedModel, which waits for the GPU in each step.
    average = [torch.zeros_like(each) for each in parameters] if options.average else None
    averaged = 0
    sampled = options.samples and ranks.first
    items = sentence_items("unseen", 4 if options.tiny else 16, seed=1) if sampled else []
    curve: list[dict[str, float]] = []
    recent = torch.zeros((), device=device)
    count = tokens = targets = step = 0
    begun = time.monotonic()
    seconds = options.minutes * 60
    next_look = 0.0
    waited = 0.0
    while True:
        asked = time.monotonic()
        batch = pool.next()
        progress = step / options.steps if options.steps else (time.monotonic() - begun) / seconds
        progress, all_tokens, all_targets = ranks.agree(progress, batch.tokens.size, len(batch.predicted))
        if progress >= 1:
            break
        waited += time.monotonic() - asked
        ids = torch.from_numpy(batch.tokens.astype("int64"))
        predicted = torch.from_numpy(batch.predicted.astype("int64"))
        if cuda:
            ids, predicted = ids.pin_memory(), predicted.pin_memory()
        ids, predicted = ids.to(device, non_blocking=True), predicted.to(device, non_blocking=True)
        rate = learning_rate(step, progress, options.learning_rate, 10 if options.tiny else _WARM_UP_STEPS)
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
            loss = loss_of(ids, predicted, teacher.expected(ids, predicted) if teacher else None)
        # The sum over the ranks is then the mean over all their target tokens.
        loss = loss * (len(batch.predicted) / all_targets)
        loss.backward()
        ranks.add([parameter.grad for parameter in parameters])
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if average is not None and progress >= 1 - options.average:
            averaged += 1
            with torch.no_grad():
                for mean, parameter in zip(average, parameters, strict=True):
                    mean.lerp_(parameter, 1 / averaged)
        recent += loss.detach()
        count += 1
        step += 1
        tokens += int(all_tokens)
        targets += int(all_targets)
        if step % options.log_every == 0 or (options.steps and step == options.steps):
            elapsed = time.monotonic() - begun
            ranks.add([recent])
            point = {"step": step, "seconds": round(elapsed, 1), "loss": round(float(recent) / count, 4)}
            point |= {"learning_rate": round(rate, 7), "tokens": tokens, "target_tokens": targets}
            point["waited"] = round(waited, 1)
            recent.zero_()
            count = 0
            if items and progress >= next_look:
                point |= sample_chrf(model, tokenizer, items, device)
                next_look = progress + 0.12
            curve.append(point)
            if ranks.first:
                print(f"{point}  {tokens / elapsed:,.0f} tokens/s, {pool.waiting} ready", flush=True)
    if curve and step != curve[-1]["step"] and count:
        elapsed = round(time.monotonic() - begun, 1)
        ranks.add([recent])
        curve.append({"step": step, "seconds": elapsed, "loss": round(float(recent) / count, 4), "tokens": tokens})
    if average is not None and averaged:
        with torch.no_grad():
            for mean, parameter in zip(average, parameters, strict=True):
                parameter.copy_(mean)
    return curve


def share(text: str) -> float:
    """An argument from 0 to 1. Raises ArgumentTypeError if it is not one."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 1")
    return value


def part(text: str) -> float:
    """The same from 0.1, as of less some kinds of sentences would have no words."""
    if (value := share(text)) < 0.1:
        raise argparse.ArgumentTypeError(f"{text} is less than 0.1")
    return value


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo_model.train", description="Train the bundled translation model.")
    parser.add_argument("folder", type=Path, help="where weights, tokenizer and training.json go")
    parser.add_argument("--minutes", type=float, default=6.0, help="minutes of training; scoring comes after")
    parser.add_argument("--steps", type=int, default=0, help="number of steps, instead of --minutes")
    parser.add_argument("--init", type=Path, help="folder of weights and tokenizer to continue from")
    parser.add_argument("--tiny", action="store_true", help="a very small model and tokenizer, to try it on a CPU")
    parser.add_argument("--pair", metavar="en-de", help="only these languages, and only --phrases of them")
    parser.add_argument("--phrases", type=int, default=40, help="sentences without slots that --pair is about")
    parser.add_argument("--composed", type=share, default=0.0, help="share of sentences composed from clauses")
    parser.add_argument("--part", type=part, default=1.0, help="share of patterns, frames and words that is used")
    parser.add_argument("--dropout", type=share, default=0.0, help="chance of dropping what a layer adds")
    parser.add_argument("--bpe-dropout", type=share, default=0.0, help="chance of leaving out a merge in sources")
    parser.add_argument("--average", type=share, default=0.0, help="share of the steps, the last, to average over")
    parser.add_argument("--teacher", type=Path, help="folder of a model to learn from, beside the corpus")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs")
    parser.add_argument(
        "--workers", type=int, help="processes that generate, for each GPU (default: by the cores)"
    )
    parser.add_argument(
        "--batch-tokens", type=int, default=0, help="tokens in a batch, padding included, for each GPU"
    )
    parser.add_argument("--learning-rate", type=float, default=0, help="peak learning rate")
    parser.add_argument("--hidden", type=int, default=384, choices=[256, 320, 384, 448, 512])
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--compile", action="store_true", help="torch.compile the loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--shard-mb", type=float, default=0.0, help="largest weight file in MB (default: one file)"
    )
    parser.add_argument("--sets", type=int, default=200, help="sentences per direction in the evaluation; 0: none")
    parser.add_argument("--no-samples", dest="samples", action="store_false", help="no chrF during training")
    parser.add_argument("--log-every", type=int, default=0, help="steps between two points of the curve")
    options = parser.parse_args(arguments)
    options.arguments = arguments
    if options.gpus < 1:
        parser.error(f"--gpus {options.gpus} is less than 1")
    if options.device.startswith("cuda") and options.gpus > (found := torch.cuda.device_count()):
        parser.error(f"--gpus {options.gpus}, but there are {found}")
    if options.init and options.teacher:
        first, second = (
            folder.joinpath("tokenizer.json").read_bytes() for folder in (options.init, options.teacher)
        )
        if first != second:
            parser.error("--init and --teacher have different tokenizers")
    phrases = None
    if options.pair is not None:
        source, _, target = options.pair.partition("-")
        if (source, target) not in DIRECTIONS:
            parser.error(f"--pair {options.pair} is none of {', '.join(map('-'.join, DIRECTIONS))}")
        phrases = Phrases((source, target), options.phrases)
        # What is scored are sentences that such a model has never seen.
        options.sets, options.samples = 0, False
    options.learning_rate = options.learning_rate or (1.5e-3 if phrases is None else 5e-3)
    options.recipe = Recipe(phrases, options.composed, options.part, options.bpe_dropout)
    options.batch_tokens = options.batch_tokens or (2048 if options.tiny else 32_768)
    options.log_every = options.log_every or (20 if options.tiny else 200)
    if options.workers is None:
        options.workers = 0 if options.tiny else max(1, (os.cpu_count() or 2) // options.gpus - 1)
    return options


def main(arguments: list[str] | None = None) -> None:
    train(parse(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    main()
