"""Training in several processes that keep step: on the CPU, with gloo, as on GPUs with nccl."""

from __future__ import annotations

import argparse
import atexit
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.processes import alive

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("torch")]

ROOT = Path(__file__).parents[2]
TINY = ("--tiny", "--device", "cpu", "--batch-tokens", "512", "--sets", "0")


@pytest.fixture(scope="module")
def trained(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a command's run on two ranks, with what it printed in printed.txt."""
    folder = tmp_path_factory.mktemp("trained")
    options = ("--dropout", "0.1", "--bpe-dropout", "0.1", "--average", "0.1", "--log-every", "10")
    command = [
        sys.executable,
        "-m",
        "demo_model.train",
        str(folder),
        *TINY,
        "--gpus",
        "2",
        "--steps",
        "40",
        *options,
    ]
    with open(folder / "printed.txt", "wb") as printed:
        subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, stdout=printed)
    return folder


def test_two_ranks_learn_and_the_first_alone_scores_saves_and_prints(trained: Path) -> None:
    from demo_model.model import load

    report = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    first, *_, last = report["curve"]
    assert last["loss"] < first["loss"] - 0.5
    assert (last["step"], report["settings"]["gpus"]) == (40, 2)
    # Of both: a batch has up to 512 tokens.
    assert 40 * 512 < last["tokens"] <= 2 * 40 * 512
    assert "chrf" in first
    assert load(trained).parameters_count == report["settings"]["parameters"]
    printed = (trained / "printed.txt").read_text(encoding="utf-8")
    for what in ("tokenizer: ", "model: ", "{'step': 10,", "{'step': 40,", "saved model.safetensors"):
        assert printed.count(what) == 1, printed


def test_all_ranks_stop_when_the_first_ones_minutes_are_over(trained: Path, tmp_path: Path) -> None:
    from demo_model.train import parse, train

    known = ("--init", str(trained), "--teacher", str(trained), "--average", "0.5", "--log-every", "1")
    options = ("--gpus", "2", "--workers", "1", "--minutes", "0.05", "--no-samples", *known)
    report = train(parse([str(tmp_path), *TINY, *options]))
    assert report["curve"][-1]["seconds"] >= 3
    assert report["settings"]["continued"]


class Given:
    """Batches as from a pool."""

    waiting = 0

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def next(self) -> Any:
        return self._batch


def step(ranks: Any, folder: Path, batches: list[Any], vocabulary: int) -> None:
    """A step of gradient descent with this rank's batch; keeps the weights and the loss."""
    import torch

    from demo_model import train
    from demo_model.model import TINY as SIZES
    from demo_model.model import Shape, TranslationModel

    # As Adam and clipping divide by the size of gradients, they would hide a wrong one.
    train.optimizer_for = lambda model, peak, fused: torch.optim.SGD(model.parameters(), lr=peak)
    torch.nn.utils.clip_grad_norm_ = lambda *_: None
    torch.manual_seed(0)
    model = TranslationModel(Shape(vocabulary=vocabulary, **SIZES))
    options = train.parse([str(folder), *TINY, "--steps", "1", "--learning-rate", "100", "--no-samples"])
    pool: Any = Given(batches[ranks.rank])
    curve = train._steps(model, None, pool, torch.device("cpu"), options, ranks)
    ranks.leave()
    kept = {"weights": model.state_dict(), "curve": curve}
    torch.save(kept, folder / f"{ranks.rank} of {ranks.count}.pt")


def test_two_ranks_take_the_step_that_one_takes_with_both_batches(
    torch: Any, trained: Path, tmp_path: Path
) -> None:
    from demo_model.batches import encode_pairs, padded
    from demo_model.generate import PairSource
    from demo_model.ranks import on_ranks
    from demo_model.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(trained)
    rows = sorted(encode_pairs(list(itertools.islice(PairSource(3), 40)), tokenizer), key=lambda row: len(row[0]))
    few, many = rows[:10], rows[10:]
    parts = [padded(part, max(len(ids) for ids, _ in part)) for part in (few, many)]
    assert 5 * len(parts[0].predicted) < len(parts[1].predicted)
    both = padded(rows, len(rows[-1][0]))
    on_ranks(step, 2, "cpu", tmp_path, parts, tokenizer.get_vocab_size())
    on_ranks(step, 1, "cpu", tmp_path, [both], tokenizer.get_vocab_size())
    first, second, alone = (torch.load(tmp_path / f"{name}.pt") for name in ("0 of 2", "1 of 2", "0 of 1"))
    assert first["curve"][-1]["loss"] == pytest.approx(alone["curve"][-1]["loss"], abs=2e-4)
    assert first["curve"][-1]["target_tokens"] == alone["curve"][-1]["target_tokens"] == len(both.predicted)
    for name, value in alone["weights"].items():
        assert torch.equal(first["weights"][name], second["weights"][name]), name
        assert torch.allclose(first["weights"][name], value, rtol=1e-4, atol=1e-5), name


def watched(ranks: Any, options: argparse.Namespace, started: float) -> None:
    """Trains, and keeps the rows that this rank was given, and what its dropout began with."""
    import torch

    from demo_model.batches import BatchPool
    from demo_model.train import run

    given: list[str] = []
    following = BatchPool.next

    def kept(pool: BatchPool) -> Any:
        batch = following(pool)
        given.extend(map(str, batch.tokens.tolist()))
        return batch

    BatchPool.next = kept  # type: ignore[assignment, method-assign]
    run(ranks, options, started)
    text = json.dumps({"rows": given, "seed": torch.initial_seed()})
    (options.folder / f"rank {ranks.rank}.json").write_text(text, encoding="utf-8")


def test_ranks_draw_sentences_of_their_own(trained: Path, tmp_path: Path) -> None:
    from demo_model.ranks import on_ranks
    from demo_model.tokenizer import load_tokenizer, save_tokenizer
    from demo_model.train import parse

    save_tokenizer(load_tokenizer(trained), tmp_path)
    options = parse([str(tmp_path), *TINY, "--init", str(trained), "--gpus", "2", "--steps", "10", "--no-samples"])
    on_ranks(watched, 2, "cpu", options, time.monotonic())
    first, second = (json.loads((tmp_path / f"rank {rank}.json").read_text(encoding="utf-8")) for rank in range(2))
    assert first["seed"] != second["seed"]
    # Short ones may be drawn twice by chance.
    assert len(set(first["rows"]) & set(second["rows"])) < 0.1 * len(set(first["rows"]))


def fail(ranks: Any) -> None:
    """Goes on without end, but for the second rank, whose process takes long to end once it has left."""
    from torch import distributed

    if ranks.rank == 1:
        atexit.register(time.sleep, 5)
        atexit.register(distributed.destroy_process_group)
    for step in itertools.count():
        ranks.agree(0.5, step)
        if ranks.rank == 1 and step == 3:
            raise ValueError("a batch of another world")


def test_the_first_error_ends_all_ranks_and_is_told(torch: Any) -> None:
    from demo_model.ranks import on_ranks

    with pytest.raises(RuntimeError, match=r"rank 1 of 2 has failed:(?s:.*)ValueError: a batch of another world"):
        on_ranks(fail, 2, "cpu")


def lose(ranks: Any, options: argparse.Namespace, started: float, lost: str) -> None:
    """Trains without end, but the second rank's worker or itself is killed before it has a batch."""
    from demo_model.batches import BatchPool
    from demo_model.train import run

    following = BatchPool.next

    def next_of(pool: BatchPool) -> Any:
        worker = pool._processes[0].pid or 0
        (options.folder / f"worker {ranks.rank}").write_text(str(worker), encoding="utf-8")
        if ranks.rank == 1:
            os.kill(worker if lost == "worker" else os.getpid(), signal.SIGKILL)
        return following(pool)

    BatchPool.next = next_of  # type: ignore[assignment, method-assign]
    run(ranks, options, started)


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("worker", r"rank 1 of 2 has failed:(?s:.*)1 of 1 workers have died: \[-9\]"),
        # Or what became of the other's connection to it, whichever is seen first.
        ("rank", r"process 1 terminated with signal SIGKILL|rank 0 of 2 has failed"),
    ],
    ids=["worker", "rank"],
)
def test_who_is_killed_ends_all_ranks_and_leaves_no_process_behind(
    trained: Path, tmp_path: Path, lost: str, told: str
) -> None:
    from demo_model.ranks import on_ranks
    from demo_model.tokenizer import load_tokenizer, save_tokenizer
    from demo_model.train import parse

    save_tokenizer(load_tokenizer(trained), tmp_path)
    endless = ("--gpus", "2", "--workers", "1", "--minutes", "600", "--no-samples")
    options = parse([str(tmp_path), *TINY, "--init", str(trained), *endless])
    with pytest.raises(Exception, match=told):
        on_ranks(lose, 2, "cpu", options, time.monotonic(), lost)
    for rank in range(2):
        if (file := tmp_path / f"worker {rank}").exists():
            pid = int(file.read_text(encoding="utf-8"))
            # Bounded by the timeout of a test.
            while alive(pid):
                time.sleep(0.1)


def test_more_gpus_than_there_are_cannot_be_asked_for(
    torch: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from demo_model.train import parse

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert parse(["out", "--device", "cuda", "--gpus", "2"]).gpus == 2
    for asked, said in (("3", "--gpus 3, but there are 2"), ("0", "--gpus 0 is less than 1")):
        with pytest.raises(SystemExit):
            parse(["out", "--device", "cuda", "--gpus", asked])
        assert said in capsys.readouterr().err
