"""Who used the CPU while the page was measured. Must not know what was measured."""

from __future__ import annotations

import os
import time

from msgspec import Struct

from loadtest.systems import processes

__all__ = ["CpuTimes", "read_cpu"]


class CpuTimes(Struct, frozen=True):
    """Seconds of CPU since the machine or the process began: readings to subtract from each other.

    serving: this process. below: its descendants that live. everything: the machine.
    """

    serving_s: float
    below_s: float
    everything_s: float

    def since(self, earlier: CpuTimes) -> CpuTimes:
        """What was used between two readings."""
        return CpuTimes(
            self.serving_s - earlier.serving_s,
            self.below_s - earlier.below_s,
            self.everything_s - earlier.everything_s,
        )


def read_cpu() -> CpuTimes:
    """Take a reading; costs about a millisecond."""
    below_s = sum(processes.cpu_s(pid) or 0.0 for pid in processes.below(os.getpid()))
    return CpuTimes(time.process_time(), below_s, processes.everything_cpu_s())
