"""Data-parallel training on one machine: a process for each GPU, in step with the others.

The ranks agree on the host before each step, and add up their gradients after it in one collective: for a model
this small that takes less than a millisecond, so there is nothing to gain from overlapping it with the backward
pass. The gradients are sums, not means, because batches have different numbers of target tokens.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, distributed
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

# Ranks wait for the first one while it scores. That one has failed is not told by time: its process ends.
_TIMEOUT = timedelta(days=7)


@dataclass(frozen=True)
class Ranks:
    """One of `count` processes that train together; without arguments, the only one."""

    rank: int = 0
    count: int = 1
    ended: Barrier | None = None

    @property
    def first(self) -> bool:
        return self.rank == 0

    def agree(self, progress: float, *amounts: int) -> tuple[float, ...]:
        """The progress of the first rank, and the sum over the ranks of each amount.

        Waits for all ranks, but for no GPU. Raises RuntimeError if another rank has ended.
        """
        if self.count == 1:
            return (progress, *amounts)
        told = torch.tensor([progress if self.first else 0.0, *amounts], dtype=torch.float64)
        distributed.all_reduce(told)
        return tuple(told.tolist())

    def add(self, tensors: list[Tensor]) -> None:
        """Gives each tensor the sum of its values in all ranks."""
        if self.count > 1:
            flat = parameters_to_vector(tensors)
            distributed.all_reduce(flat)
            vector_to_parameters(flat, tensors)

    def leave(self) -> None:
        """The end of what is done together. Waits for all: who closes its connections early may break others'."""
        if self.ended is not None:
            self.ended.wait()
            distributed.destroy_process_group()


def on_ranks(work: Callable[..., Any], count: int, device: str, *arguments: Any) -> None:
    """Runs `work(ranks, *arguments)` in a process for each of `count` ranks, on GPUs if `device` is "cuda".

    The first error ends all of them. Raises RuntimeError with its traceback, or what torch.multiprocessing.spawn
    raises if a process ended without one.
    """
    context = multiprocessing.get_context("spawn")
    errors: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        each = (work, count, device, store, context.Barrier(count), errors, arguments)
        try:
            spawn(_rank, each, count)
        except (ProcessRaisedException, ProcessExitedException) as error:
            # When one fails, others lose their connection to it, and may be the first to have ended.
            if errors.empty():
                raise
            raise RuntimeError(errors.get()) from error


def _rank(
    rank: int,
    work: Callable[..., Any],
    count: int,
    device: str,
    store: Path,
    ended: Barrier,
    errors: multiprocessing.SimpleQueue[str],
    arguments: tuple[Any, ...],
) -> None:
    try:
        backend = "gloo"
        if device == "cuda":
            backend = "cpu:gloo,cuda:nccl"
            torch.cuda.set_device(rank)
        else:
            torch.set_num_threads(max(1, torch.get_num_threads() // count))
        if sys.platform == "linux":
            # All are on this machine, whose name may lead to an address that it cannot reach.
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        distributed.init_process_group(
            backend, init_method=f"file://{store}", rank=rank, world_size=count, timeout=_TIMEOUT
        )
        work(Ranks(rank, count, ended), *arguments)
    except Exception:
        errors.put(f"rank {rank} of {count} has failed:\n{traceback.format_exc()}")
        raise
