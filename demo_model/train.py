"""Trains the adapter of the bundled model on one GPU, scores it on the development set and saves it.

    python -m demo_model.train OUT --base FOLDER
    python -m demo_model.train OUT --base FOLDER --tokens 0.0003 --runs 2 --rows 1 --device cpu --no-compile

--base: the folder that `python -m demo_model.base` makes of the package: Gemma's weights, the vocabulary cut.
Writes `adapter.safetensors` (4-bit) and training.json. It trains `--runs` times, each time with other pairs, and
takes the mean of the differences: what the runs agree in stays, their mistakes do not. `--start` trains an adapter
further in the same way.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from demo_model import DIRECTIONS
from demo_model.adapter import save_adapter
from demo_model.base import VOCABULARY_FILE
from demo_model.batches import Batch, BatchPool, encode_pairs, pack
from demo_model.corpus.pairs import Kind, Pair
from demo_model.corpus.sets import held_out_sets
from demo_model.evaluate import Answer, chrf
from demo_model.gemma import TranslationModel
from demo_model.layout import answer_limit, prompt_ids
from demo_model.own import Item, own_items
from gateway.bundled.adapter import FIRST_SPECIAL, Adapter, read_adapter
from gateway.bundled.tokenizer import END, IDS, PAD, PROMPT_TOKENS

_WARM_UP_STEPS = 100
# Words of the base whose rows the trained tokens begin with, in the order of `PROMPT_TOKENS`.
_FIRST_VALUES = (
    " English",
    " Japanese",
    " Spanish",
    " German",
    " French",
    " Chinese",
    " final",
    " partial",
    " to",
)


def learning_rate(step: int, progress: float, peak: float) -> float:
    """Linear warm-up by steps, then a cosine over `progress` (0 to 1) down to nothing."""
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))) * min(1.0, (step + 1) / _WARM_UP_STEPS)


def on(device: torch.device, batch: Batch) -> tuple[Tensor, ...]:
    arrays = (batch.tokens, batch.places, batch.pairs, batch.predicted, batch.expected)
    tensors = [torch.from_numpy(array.astype("int64")) for array in arrays]
    if device.type == "cuda":
        tensors = [tensor.pin_memory() for tensor in tensors]
    return tuple(tensor.to(device, non_blocking=True) for tensor in tensors)


def held_out_batches(tokenizer: Tokenizer, rows: int, most: int = 4) -> list[Batch]:
    """Batches of the sentences that are never trained with, in all directions."""
    pairs = [
        Pair(source, target, True, each.written[source].text, each.written[target].text, Kind.FULL)
        for each in held_out_sets()
        for source, target in DIRECTIONS
    ]
    pairs += [
        Pair(i.source_language, i.target_language, True, i.source, i.target, Kind.FULL)
        for i in own_items("development")
    ]
    waiting = sorted(encode_pairs(pairs, tokenizer), key=lambda row: hash(tuple(row[0])))
    made: list[Batch] = []
    while waiting and len(made) < most:
        made.append(pack(waiting, rows))
    return made


class Trainer:
    """The model, its optimiser and what is measured on the way."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = torch.device(options.device)
        self.tokenizer = Tokenizer.from_file(str(options.base / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        weights = load_file(options.base / "model.safetensors")
        self.weights = {name: weight.to(self.device) for name, weight in weights.items()}
        if self.device.type == "cpu":
            self.weights = {name: weight.float() for name, weight in self.weights.items()}
        embedding = self.weights["model.embed_tokens.weight"]
        first = [self.tokenizer.encode(word, add_special_tokens=False).ids[0] for word in _FIRST_VALUES]
        self.first = embedding[first]
        # What training begins with; `weights` are the base's.
        self.begun_with = self.weights
        if (start := options.start) is not None:
            self.begun_with = merged(self.weights, start)
            self.first = torch.from_numpy(start.special).to(self.first)
        self.curve: list[dict[str, Any]] = []
        self.held_out = [on(self.device, batch) for batch in held_out_batches(self.tokenizer, options.rows)]

    def begin(self, seed: int) -> None:
        """Takes a model that has learned nothing but what `--start` has."""
        options = self.options
        torch.manual_seed(seed)
        self.model = TranslationModel(self.begun_with, options.rank, self.first)
        self.step = self.tokens = self.targets = 0
        self.begun = time.monotonic()
        if options.compile:
            self.model.compile_parts()

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """The mean loss of a token of held-out sentences."""
        total = count = 0.0
        for batch in self.held_out:
            total += float(self.model.loss(*batch))
            count += int((batch[-1] >= 0).sum())
        return total / max(1.0, count)

    def run(self, pool: BatchPool) -> None:
        """Trains until so many tokens were seen, from the first rate to none."""
        options, cuda = self.options, self.device.type == "cuda"
        parameters = list(self.model.parameters())
        optimizer = torch.optim.AdamW(
            parameters, lr=options.learning_rate, betas=(0.9, 0.98), weight_decay=0.01, fused=cuda
        )
        recent, waited = torch.zeros((), device=self.device), 0.0
        while (progress := self.tokens / 1e6 / options.tokens) < 1:
            asked = time.monotonic()
            batch = pool.next()
            waited += time.monotonic() - asked
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(self.step, progress, options.learning_rate)
            loss = self.model.loss(*on(self.device, batch)) / batch.targets
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            recent += loss.detach()
            self.step += 1
            self.tokens += batch.filled
            self.targets += batch.targets
            if self.step % options.log_every == 0:
                self._look({"loss": round(float(recent) / options.log_every, 4), "waited": round(waited, 1)})
                recent.zero_()
        self._look({})

    def _look(self, point: dict[str, Any]) -> None:
        """Adds a point to the curve."""
        seconds = time.monotonic() - self.begun
        point |= {"step": self.step, "seconds": round(seconds, 1), "tokens": self.tokens, "targets": self.targets}
        point["held_out_loss"] = round(self.held_out_loss(), 4)
        self.curve.append(point)
        print(f"{point}  {self.tokens / seconds:,.0f} tokens/s", flush=True)

    def adapter(self) -> dict[str, Any]:
        """What `save_adapter` takes, but for the vocabulary."""
        low_rank = {}
        for number, layer in enumerate(self.model.layers):
            for name, module in layer.linear.items():
                part = name.replace("self_attn_", "self_attn.").replace("mlp_", "mlp.")
                low_rank[f"model.layers.{number}.{part}"] = (_array(module.A), _array(module.B))
        return {"special": _array(self.model.trained), "low_rank": low_rank}


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy()


def mean_adapter(adapters: Sequence[dict[str, Any]], rank: int, start: Adapter | None = None) -> dict[str, Any]:
    """The adapter whose differences are nearest to the mean of those of `adapters`, added to those of `start`.

    start: what all of them were trained from, besides the base.
    """
    share = 1 / len(adapters)
    low_rank = {}
    for part in adapters[0]["low_rank"]:
        pairs = [(a, b * share) for a, b in (each["low_rank"][part] for each in adapters)]
        if start is not None:
            pairs.append(start.low_rank[part])
        # The sum of products is the product of what is put side by side; QR keeps the decomposition small.
        beside = np.concatenate([b for _, b in pairs], axis=1), np.concatenate([a for a, _ in pairs]).T
        left, small_left, right, small_right = [
            factor for each in beside for factor in torch.linalg.qr(torch.from_numpy(each))
        ]
        u, sizes, v = torch.linalg.svd(small_left @ small_right.T, full_matrices=False)
        roots = sizes[:rank].sqrt()
        low_rank[part] = (_array((v[:rank] * roots[:, None]) @ right.T), _array(left @ (u[:, :rank] * roots)))
    special = sum(each["special"] for each in adapters) * share
    return {"special": special, "low_rank": low_rank}


def merged(weights: dict[str, Tensor], adapter: Adapter) -> dict[str, Tensor]:
    """The weights of the ordinary model that base and adapter make."""
    whole: dict[str, Tensor] = {}
    for name, weight in weights.items():
        applied = adapter.applied(name.removesuffix(".weight"), weight.float().cpu().numpy())
        whole[name] = torch.from_numpy(applied).to(weight)
    whole["model.embed_tokens.weight"][FIRST_SPECIAL : FIRST_SPECIAL + len(PROMPT_TOKENS)] = torch.from_numpy(
        adapter.special
    ).to(whole["model.norm.weight"])
    return whole


def answers(base: Path, adapter: Adapter, trainer: Trainer, items: Sequence[Item]) -> list[Answer]:
    """Greedy translations by transformers' model; an answer without an end is what there is of it."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    model = Gemma3ForCausalLM(Gemma3TextConfig.from_pretrained(base)).to(trainer.device, torch.bfloat16)
    model.load_state_dict(merged(trainer.weights, adapter), strict=False)
    model.tie_weights()
    model.eval()
    tokenizer = trainer.tokenizer
    prompts = [
        prompt_ids(
            item.source_language,
            item.target_language,
            True,
            tokenizer.encode(item.source, add_special_tokens=False).ids,
        )
        for item in items
    ]
    order = sorted(range(len(items)), key=lambda index: len(prompts[index]))
    found: list[Answer | None] = [None] * len(items)
    for at in range(0, len(order), 256):
        part = order[at : at + 256]
        longest = max(len(prompts[index]) for index in part)
        ids = torch.tensor(
            [[IDS[PAD]] * (longest - len(prompts[i])) + prompts[i] for i in part], device=trainer.device
        )
        made = model.generate(
            input_ids=ids,
            attention_mask=(ids != IDS[PAD]).long(),
            max_new_tokens=min(160, answer_limit(longest)),
            do_sample=False,
        )
        for index, row in zip(part, made[:, longest:].tolist(), strict=True):
            ended = IDS[END] in row
            text = tokenizer.decode(row[: row.index(IDS[END])] if ended else row, skip_special_tokens=True)
            found[index] = Answer(items[index], text, (), ended)
    return [each for each in found if each is not None]


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the report, as in training.json."""
    started = time.monotonic()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    pool = BatchPool(options.seed, options.base / "tokenizer.json", options.rows, options.workers)
    try:
        trainer = Trainer(options)
        adapters: list[dict[str, Any]] = []
        for number in range(options.runs):
            trainer.begin(options.seed + number)
            trainer.run(pool)
            adapters.append(trainer.adapter())
    finally:
        pool.close()
    path = options.folder / "adapter.safetensors"
    vocabulary = json.loads((options.base / VOCABULARY_FILE).read_text(encoding="utf-8"))
    mean = mean_adapter(adapters, options.mean_rank, options.start)
    save_adapter(path, vocabulary=vocabulary, bits=4, **mean)
    adapter = read_adapter(path)
    cuda = trainer.device.type == "cuda"
    report: dict[str, Any] = {
        "settings": {
            "command": " ".join(["python -m demo_model.train", *options.arguments]),
            "device": torch.cuda.get_device_name() if cuda else "CPU",
            "torch": torch.__version__,
            "shape": asdict(trainer.model.shape),
            "trained_parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        },
        "curve": trainer.curve,
    }
    for name in options.score:
        begun = time.monotonic()
        items = own_items(name)[: options.items or None]
        found = answers(options.base, adapter, trainer, items)
        report[name] = chrf(found)
        print(name, report[name], f"{time.monotonic() - begun:.0f} s", flush=True)
        (options.folder / f"answers-{name}.json").write_text(
            json.dumps([each.text for each in found], ensure_ascii=False), encoding="utf-8"
        )
    report["settings"]["seconds"] = round(time.monotonic() - started)
    (options.folder / "training.json").write_text(
        json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8"
    )
    return report


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo_model.train", description="Train the bundled model's adapter.")
    parser.add_argument("folder", type=Path, help="where the adapter and training.json go")
    parser.add_argument("--base", type=Path, required=True, help="folder of the base with the cut vocabulary")
    parser.add_argument(
        "--start",
        type=lambda path: read_adapter(Path(path)),
        metavar="FILE",
        help="an adapter to be trained further",
    )
    parser.add_argument("--tokens", type=float, default=20.0, help="millions of tokens of each run")
    parser.add_argument("--runs", type=int, default=6, help="runs of which the mean is taken")
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument(
        "--mean-rank", type=int, default=256, help="rank of their mean, at most that of all together"
    )
    parser.add_argument("--rows", type=int, default=128, help="rows of 256 tokens in a batch")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=200)
    parser.add_argument("--score", nargs="*", default=["development"], choices=["development", "test"])
    parser.add_argument("--items", type=int, default=0, help="score only so many sentences; 0: all")
    options = parser.parse_args(arguments)
    options.arguments = arguments
    return options


def main(arguments: list[str] | None = None) -> None:
    train(parse(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    main()
