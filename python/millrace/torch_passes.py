# SPDX-License-Identifier: Apache-2.0
"""The epochs of the passes of a DataLoader with processes."""

import logging
import os
from collections.abc import Callable
from typing import Any

import torch

_log = logging.getLogger("millrace")
_MOST_WORKERS = 1024
_EPOCHS = 2**32


class Passes:
    """Counts the passes of a DataLoader over one data set: each pass is the next epoch. All processes of a pass get the same
    epoch, also if one of them was ended in the pass before, or is the first to begin.

    The numbers are in shared memory, because a DataLoader makes new processes from the data set for each pass. The
    processes of a pass recognize each other by the seed that the DataLoader draws for the pass. Each of them writes only
    its own numbers, of 64 bits, and so needs no lock.
    """

    def __init__(self, epoch: int, step: int) -> None:
        self._start = torch.empty(2, dtype=torch.int64).share_memory_()  # epoch and step of the first pass
        # By process: key of its newest pass x 2^32 + number of the epoch after it. 0: no pass since begin_at().
        self._begun = torch.zeros(_MOST_WORKERS, dtype=torch.int64).share_memory_()
        # By process: its number x 2^32 + number of the epoch after its pass, and the steps of the epoch of its pass; -1:
        # they are not known yet; 0: it has no further step in its pass.
        self._running = torch.zeros(_MOST_WORKERS, 2, dtype=torch.int64).share_memory_()
        self._warned = torch.zeros(1, dtype=torch.bool).share_memory_()
        self._own = 0  # number of passes that this process has begun
        self.begin_at(epoch, step)

    def begin_at(self, epoch: int, step: int) -> None:
        """The next pass begins here."""
        self._begun.zero_()
        self._running.zero_()
        self._start[0], self._start[1] = epoch, step

    @property
    def next(self) -> int | None:
        """The epoch of the next pass, as soon as a process has begun one; None if there was no pass since begin_at()."""
        return int((self._begun % _EPOCHS).max()) or None

    @property
    def running(self) -> tuple[int, int] | None:
        """The epoch of the newest pass, and its steps (-1: not known), if a process has further steps in it."""
        epoch = (self.next or 0) - 1
        for entry, (process, steps) in zip(self._begun.tolist(), self._running.tolist()):
            if entry and entry % _EPOCHS == process % _EPOCHS == epoch + 1 and steps and _is_alive(process // _EPOCHS):
                return epoch, steps
        return None

    def begin(self, worker: Any, steps_of: Callable[[int], int]) -> tuple[int, int]:
        """Begins a pass in a process. Returns the epoch and the step with which the pass begins. ``steps_of`` gives the
        number of steps of an epoch."""
        self._own += 1
        key = _key(worker, self._own)
        begun = self._begun.tolist()  # once: another process may begin now
        same = max((entry for entry in begun if entry // _EPOCHS == key), default=0)
        first, step = self._start.tolist()
        if same > 0 and same != begun[worker.id]:  # if it is this process's own, the seed is that of its pass before
            epoch = same % _EPOCHS - 1
        elif any(begun):
            epoch = max(entry % _EPOCHS for entry in begun)
        else:
            epoch = first + 1 if step and step >= steps_of(first) else first
        if self._running[worker.id, 1] and worker.id == 0 and not self._warned[0]:
            self._warned[0] = True
            _log.warning("the pass of epoch %d was left early: its further steps are left out, and epoch %d begins",
                         epoch - 1, epoch)
        self._set(worker.id, key, epoch)
        return epoch, step if epoch == first else 0

    def resume(self, worker: Any, epoch: int) -> None:
        """Begins a pass in a process at the epoch of its checkpoint."""
        self._own += 1
        self._set(worker.id, _key(worker, self._own), epoch)

    def runs(self, worker: Any, steps: int) -> None:
        """The process has further steps in its pass over an epoch with ``steps`` steps; 0: it has none."""
        self._running[worker.id, 1] = steps

    def _set(self, number: int, key: int, epoch: int) -> None:
        # As long as this is another epoch than that of `_begun`, the process runs no pass: then the next one is of this epoch.
        self._running[number, 0] = os.getpid() * _EPOCHS + epoch + 1
        self._running[number, 1] = -1
        self._begun[number] = key * _EPOCHS + epoch + 1


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _key(worker: Any, passes: int) -> int:
    """The same for all processes of a pass, from 1 to 2^31 - 1."""
    return hash((worker.seed - worker.id, passes)) % (2**31 - 1) + 1
