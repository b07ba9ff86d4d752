# SPDX-License-Identifier: Apache-2.0
"""Counts of a Dataset."""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a Dataset since its first batch in this process."""

    batches: int  #: batches that were taken
    hours: float  #: hours of the streams in them
    hours_per_second: float  #: hours per second of the loops, the time of the model included
    waited: float  #: fraction of the time of the loops that was spent waiting for batches, after the first one
    padding: float  #: fraction of the tensors' columns that are padding
    first: float | None  #: seconds to the first batch
    kept: int  #: batches that are kept: a batch, an array or a tensor refers to their memory
    failed: int = 0  #: streams that were skipped because they cannot be delivered, once per epoch
    epoch: "Stats | None" = dataclasses.field(default=None, repr=False)  #: the counts in the epoch of the last batch; None before the first batch


_SUMS = "batches", "frames", "padding", "bodies", "waited"


def added(former: Mapping[str, Any], counts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The counts of a loader and of those before it."""
    if not former:
        return counts
    sums = {name: former[name] + counts[name] for name in _SUMS}
    return {**sums, "first": counts["first"] if former["first"] is None else former["first"], "kept": counts["kept"]}


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """The counts at a moment."""

    loader: Mapping[str, Any]  # the loader's own; empty before there is one
    looped: float  # seconds in loops
    failed: int

    def since(self, before: "Counts") -> "Counts":
        """The counts after those."""
        first, former = self.loader["first"], before.loader
        counted = {name: self.loader[name] - former.get(name, 0) for name in _SUMS}
        counted.update(first=first if former.get("first") is None else None, kept=self.loader["kept"])
        return Counts(counted, self.looped - before.looped, self.failed - before.failed)


def stats_of(all_counts: Counts, rate: float, epoch: Stats | None = None) -> Stats:
    counts, looped = all_counts.loader, all_counts.looped
    if not counts:
        return Stats(0, 0.0, 0.0, 0.0, 0.0, None, 0, all_counts.failed)
    first = counts["first"]
    waited, after_first = counts["waited"] - (first or 0.0), looped - (first or 0.0)
    hours = counts["bodies"] / rate / 3600
    return Stats(
        batches=counts["batches"],
        hours=hours,
        hours_per_second=hours / looped if looped > 0 else 0.0,
        waited=min(max(waited / after_first, 0.0), 1.0) if after_first > 0 else 0.0,
        padding=counts["padding"] / counts["frames"] if counts["frames"] else 0.0,
        first=first,
        kept=counts["kept"],
        failed=all_counts.failed,
        epoch=epoch,
    )


class LoopTime:
    """The time in loops. Without a loop, the time since the first single call."""

    def __init__(self) -> None:
        self._looped = 0.0  # seconds
        self._began: float | None = None
        self._called: float | None = None

    def begin(self) -> None:
        self._began = time.monotonic()

    def end(self) -> None:
        if self._began is not None:
            self._looped += time.monotonic() - self._began
            self._began = None

    def note_call(self) -> None:
        if self._called is None:
            self._called = time.monotonic()

    @property
    def seconds(self) -> float:
        began = self._called if not self._looped and self._began is None else self._began
        return self._looped + (0.0 if began is None else time.monotonic() - began)
