# SPDX-License-Identifier: Apache-2.0
"""The position of a Dataset, and the loops over its batches."""

import abc
import logging
import os
from collections.abc import Generator, Mapping
from typing import Any

from millrace.at_exit import close_at_exit
from millrace.batch import Batch
from millrace.dataset_feed import Feed, Loader
from millrace.dataset_properties import DatasetProperties
from millrace.dataset_stats import Counts, LoopTime, Stats, added, stats_of
from millrace.failed_streams import FailedStreams
from millrace.joined_batch import Taken
from millrace.plan_feed import LocalFeed, Request
from millrace.plan_origin import compare_ranks
from millrace.request import whole
from millrace.targets import Targets, check_targets

_log = logging.getLogger("millrace")


class DatasetLoop(DatasetProperties):
    """Gives the batches of a Dataset, from its position on."""

    _position: tuple[int, int]  # where the next batch is, while there is no loader
    _stride: int
    _first_step: int
    _rank: int
    _world: int
    _feed: Feed | None
    _request: Request

    def _reset(self) -> None:
        """Forgets all that belongs to this process."""
        self._feed: Feed | None = None
        self._loader: Loader | None = None
        self._closed = False
        self._process = 0
        self._compared = False
        self._time = LoopTime()
        self._of_epoch: tuple[int, Counts] | None = None  # the epoch of the last batch, and the counts before it
        self._former: Mapping[str, Any] = {}  # the counts of loaders of this process that were left behind
        self._failed = FailedStreams()
        self._targets: Targets | None = None

    def _opened_loader(self) -> Loader:
        """The loader of this process, at the position of this data set."""
        if self._loader is None or self._process != os.getpid() or self._loader.left_behind:
            position = self._position if self._loader is None else self._loader.position
            loader = self._open().loader()
            loader.seek(*position, self._resets)
            if self._loader is not None and self._process == os.getpid():
                self._former = added(self._former, self._loader.stats)
            elif self._loader is not None:  # a forked process counts anew
                self._former, self._of_epoch = {}, None
            self._loader, self._process = loader, os.getpid()
            close_at_exit(self)
        elif self._closed and isinstance(self._feed, LocalFeed):
            self._feed.start_processes()
        self._closed = False
        return self._loader

    def _opened_targets(self) -> Targets | None:
        if self._targets is None and self._request.targets:
            check_targets(self._request)
            self._targets = Targets(self._request.targets, self._open(),
                                    self._failed if self._request.keys.get("on_error") == "skip" else None)
            if isinstance(self._open(), LocalFeed):  # a server sends meta with the first row of a stream
                self._targets.check()
        return self._targets

    def __len__(self) -> int:
        """Number of steps of this rank, with its stride, in the epoch of the next iteration, from its beginning."""
        return len(range(self._first_step, self._next_iteration()[2], self._stride))

    def _next_iteration(self) -> tuple[int, int, int]:
        """The epoch and the step with which the next iteration begins, and the steps of the epoch."""
        loader = self._opened_loader()
        epoch, step = loader.position
        steps = loader.steps(epoch)
        if step < steps or step <= self._first_step:
            return epoch, step, steps
        return epoch + 1, self._first_step, loader.steps(epoch + 1)

    def _steps_of(self, epoch: int) -> int:
        return self._opened_loader().steps(epoch)

    @property
    def epoch(self) -> int:
        """Number of the epoch of the next batch."""
        return self._at()[0]

    @property
    def step(self) -> int:
        """Number of the step of the next batch in its epoch."""
        return self._at()[1]

    def _at(self) -> tuple[int, int]:
        return self._position if self._loader is None else self._loader.position

    def seek(self, epoch: int, step: int = 0) -> None:
        """Continues there. Nothing of the steps before is read. The number of steps of an epoch is the place after its last
        one. Raises ValueError if there is no such step; the next batch does it if a server has the plan.

        In the middle of an epoch, the model has no states of the streams at another place. So the first row of each slot
        has RESET there, with the reason worker_lost. ``load_state_dict`` sets none: the states come with the model.
        """
        position = (whole("epoch", epoch, 0), whole("step", step, 0))
        resets = self._resets if position == self._at() else position[1] > 0 and self._stride == 1
        self._move(*position, resets=resets)

    def _move(self, epoch: int, step: int, *, resets: bool = False) -> None:
        """Continues there. ``resets``: the first row of each slot has RESET."""
        if self._loader is None and not step:
            self._position = (epoch, step)
        else:
            self._stop()
            self._opened_loader().seek(epoch, step, resets)
        self._resets = resets

    def _known_steps(self) -> int | None:
        """The steps of the current epoch, if they are known."""
        loader = self._loader
        if loader is None or self._process != os.getpid() or loader.left_behind or loader.position[1] <= self._first_step:
            return None
        return loader.steps(loader.position[0])  # as the position is in the epoch, it was distributed before

    @property
    def stats(self) -> Stats:
        """Counts since the first batch in this process; ``stats.epoch`` has those of the epoch of the last batch."""
        counts = self._counts()
        begun = self._of_epoch if counts.loader else None  # the loader may be that of another process
        epoch = None if begun is None else stats_of(counts.since(begun[1]), self.rate)
        return stats_of(counts, self.rate if counts.loader else 1, epoch)

    def _counts(self) -> Counts:
        counted = {} if self._loader is None or self._process != os.getpid() else added(self._former, self._loader.stats)
        return Counts(counted, self._time.seconds, self._failed.count)

    def _note_epoch(self, core: Taken, before: Counts) -> None:
        """This batch may be the first one of its epoch. ``before``: the counts before it."""
        if self._of_epoch is None or self._of_epoch[0] != core.epoch or core.step == self._first_step:
            self._of_epoch = core.epoch, before

    @property
    def at_end(self) -> bool:
        """Whether the last call of ``next`` returned None because the epoch has ended."""
        return self._loader is not None and self._process == os.getpid() and self._loader.at_end

    def next(self, timeout: float | None = None) -> Batch | None:
        """Waits for the next batch, and returns it. None at the end of the epoch (``at_end``), or after ``timeout`` seconds.

        Raises DataError if a stream cannot be delivered; the next call raises it again. Raises RuntimeError if all
        buffers are kept, and DeviceError if the device fails.
        """
        loader = self._opened_loader()
        if not self._compared:
            self.compare_ranks()
        self._time.note_call()
        epoch, step = loader.position
        begins = self._of_epoch is None or self._of_epoch[0] != epoch or step == self._first_step
        before = self._counts() if begins else None
        core = loader.next(timeout)
        if core is None:
            return None
        if before is not None:
            self._note_epoch(core, before)
        self._taken(core)
        return Batch(core, self._opened_targets())

    def __iter__(self) -> Generator[Batch, None, None]:
        """Yields the batches up to the end of the epoch; if the last step was already taken, those of the next epoch.
        Raises the errors of ``next``. If the loop is left early, the threads end."""
        loader = self._opened_loader()
        if not self._compared:
            self.compare_ranks()
        self._time.begin()
        take, taken, targets = loader.next, self._taken, self._opened_targets()
        ended = False
        try:
            step = loader.position[1]
            before = self._counts()
            core = take(None)
            if core is None and step > self._first_step:  # the iteration before took the last step, and did not ask for the end
                core = take(None)
            if core is not None:
                self._note_epoch(core, before)
            while core is not None:
                taken(core)
                yield Batch(core, targets)
                if loader.left_behind:
                    loader = self._opened_loader()
                    take = loader.next
                core = take(None)
            ended = True
        finally:
            self._time.end()
            if not ended:
                self._stop()

    def close(self) -> None:
        """Ends the threads and processes. The next batch starts them again. Kept batches stay valid. Does not wait for a
        call of ``augment`` or of a reader that takes longer than 0.1 s: the thread ends after it."""
        self._stop()
        self._end_processes()

    def _stop(self) -> None:
        """Ends the threads."""
        if self._loader is None:
            return
        self._loader.stop()
        if self._loader.left_behind:  # the thread may wait for a process
            self._end_processes()

    def _end_processes(self) -> None:
        if isinstance(self._feed, LocalFeed):
            self._feed.end_processes()
            self._closed = True

    def compare_ranks(self) -> None:
        """Compares the plans of all ranks by ``torch.distributed``, if it is initialized for this world.

        The first batch calls it. Raises PlanDiffers on all ranks if one has another plan.
        """
        warning = self._open().padding_warning() if self.slots else None
        if warning is not None:
            _log.warning(warning)
        compare_ranks(self._rank, self._world, self._open().origin)
        self._compared = True
