# SPDX-License-Identifier: Apache-2.0
"""Batches of a Dataset for ``torch.utils.data.DataLoader``.

    import millrace.torch, torch

    batches = millrace.torch.IterableDataset("speech", chunk={"size": "100ms"}, dtype="f32", slots=32)
    for batch in torch.utils.data.DataLoader(batches, batch_size=None, num_workers=2):
        batch["data"], batch["slot"], batch["reset"]      # tensors

``loader(data)`` is such a DataLoader, with a state for checkpoints. The threads of a Dataset fill batches beside the
model, so a DataLoader is not needed for speed. Use it where a framework expects one.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.utils.data

from millrace.batch import Batch
from millrace.dataset import Dataset
from millrace.rows import Flag
from millrace.torch_loader import Loader, Sent, messages_of
from millrace.torch_passes import Passes

__all__ = ["IterableDataset", "loader", "tensors"]

_ARRAYS = ("data", "slot", "flags", "left", "size", "right")


def tensors(batch: Batch) -> dict[str, Any]:
    """Returns the arrays of a batch as tensors in the same memory.

    - data, slot, flags, left, size, right: as in ``Batch``
    - reset: [rows] bool
    - stream: [rows] int64, the number of the stream; -1 in a padding row
    - companions: a dict of tensors; for those with ``per``, lengths is another one
    - epoch, step: numbers
    - opened: the streams that begin in the batch, with their names and ``meta``

    The memory of the batch is written again when its tensors are gone.
    """
    arrays = _arrays(batch)
    if isinstance(batch.data, np.ndarray):
        return {name: _as_tensors(entry) for name, entry in arrays.items()}
    flags = torch.from_dlpack(batch.flags)  # PyTorch before 2.2 has no bools in DLPack
    return {**arrays, **{name: torch.from_dlpack(arrays[name]) for name in _ARRAYS},
            "reset": flags.bitwise_and(int(Flag.RESET)).bool(), "stream": torch.from_numpy(arrays["stream"]),
            "companions": {name: torch.from_dlpack(array) for name, array in arrays["companions"].items()},
            **{"lengths": _as_tensors(lengths) for lengths in [arrays.get("lengths")] if lengths}}


def _arrays(batch: Batch) -> dict[str, Any]:
    """As ``tensors``, with arrays instead of them."""
    stream = np.full(batch.rows, -1, np.int64)
    numbers = batch.framed["stream"]
    stream[: len(numbers)] = numbers
    return {**{name: getattr(batch, name) for name in _ARRAYS}, "reset": batch.reset, "stream": stream,
            "companions": batch.companions, **({"lengths": batch.lengths} if batch.lengths else {}),
            "epoch": batch.epoch, "step": batch.step, "opened": batch.opened}


def _as_tensors(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {name: torch.from_numpy(array) for name, array in entry.items()}
    return torch.from_numpy(entry) if isinstance(entry, np.ndarray) else entry


def loader(data: "Dataset | IterableDataset", num_workers: int = 0, **options: Any) -> Loader:
    """Returns a ``DataLoader`` over the batches of a Dataset, for frameworks that expect one. Each pass is an epoch.

    ``num_workers`` processes share the steps, as those of an ``IterableDataset``; the batches and their order are those of
    0. Give Python work to the processes of the Dataset instead: those of a DataLoader each read every stream.
    ``options`` are those of DataLoader, such as ``pin_memory``.

    ``state_dict()`` is the position after the last batch that the loop has received, as of ``Dataset``, and
    ``load_state_dict`` continues there, with any number of processes. Lightning calls both.
    """
    if not isinstance(data, (Dataset, IterableDataset)):
        raise TypeError(f"data must be a Dataset, not {data!r}")
    if num_workers and isinstance(data, IterableDataset) and type(data).__iter__ is not IterableDataset.__iter__:
        raise TypeError("a subclass with another __iter__ needs num_workers=0, or torch.utils.data.DataLoader")
    return Loader(data if isinstance(data, IterableDataset) else IterableDataset(data), num_workers, **options)


class IterableDataset(torch.utils.data.IterableDataset[dict[str, Any]]):
    """The batches of an epoch, each as a dict of tensors (``tensors``). Use it with ``batch_size=None``.

    The arguments are those of ``Dataset``, or one ``Dataset``. Where ``torch.distributed`` is initialized, rank and
    world are its own by default, and all ranks must make their IterableDataset: it compares their plans.

    With ``num_workers`` = k, process j gives the steps j, j + k, j + 2k, … A DataLoader therefore gives the same
    batches in the same order as with k = 0.

    The first pass is that of the current epoch, each further pass that of the next epoch. If a pass is left early, the
    next one continues there with k = 0. With processes, which are ahead of the loop, it is that of the next epoch.

    ``state_dict`` and ``load_state_dict`` are the protocol of torchdata's ``StatefulDataLoader``. Without it, and with
    k > 0, the position is ``seek(batch["epoch"], batch["step"] + 1)``. After a ``seek``, the process that has the first step
    sets RESET in it.
    """

    def __init__(self, streams: Any, **options: Any) -> None:
        if isinstance(streams, Dataset):
            if options:
                raise TypeError(f"{', '.join(options)}: give them to the Dataset")
            self._data = streams
        else:
            self._data = Dataset(streams, **{**_rank_and_world(), **options})
        self._data.compare_ranks()
        self._passes = Passes(self._data.epoch, self._data.step)
        self._position: tuple[int, int] | None = None  # next epoch and step of this process, if it is one of several
        self._resumes = False  # the next pass of this process begins there
        self._resets = False  # its first batch begins with fresh states
        self.given: tuple[int, int] | None = None  # position after the last batch that a loader() with processes has given
        self.in_messages = False  # this process is of a loader()
        self._share: tuple[int, Dataset] | None = None  # its number of processes, and the steps of this one

    @property
    def data(self) -> Dataset:
        """The Dataset, for ``slots``, ``name``, ``meta`` and ``stats``."""
        return self._data

    def __len__(self) -> int:
        """Number of batches of the epoch of the next pass; of the current pass, while its processes have further steps."""
        epoch, running = self._passes.next, self._passes.running  # in this order: a process may begin the pass between them
        if running is not None:
            return running[1] if running[1] > 0 else self._data._steps_of(running[0])
        return len(self._data) if epoch is None else self._data._steps_of(epoch)

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            return self._loop()
        if self._resumes and self._position is not None:
            self._resumes = False
            self._passes.resume(worker, self._position[0])
        else:
            epoch, step = self._passes.begin(worker, self._data._steps_of)
            self._position = epoch, step + worker.id
            self._resets = step > 0 and worker.id == 0 and self._data._resets  # the process of the step that a seek() went to
        self._share_of(worker.num_workers, self._position[1])  # state_dict() may be called before the first batch
        batches = self._pass(worker, *self._position)
        return messages_of(batches, self._bytes) if self.in_messages else batches

    def seek(self, epoch: int, step: int = 0) -> None:
        """Sets the position of the next pass."""
        self.given = None
        self._data.seek(epoch, step)
        self._passes.begin_at(epoch, step)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch, and the origin of the plan."""
        position, data = (self.given, self._data) if self._share is None else (self._position, self._share[1])
        if position is None:
            return self._data.state_dict()
        state = {**data.state_dict(), "epoch": position[0], "step": position[1]}
        state.pop("resets", None)
        return {**state, "resets": True} if self._resets else state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets the position of the next pass. Raises ValueError if the plan is another one."""
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            self.given = None
            self._data.load_state_dict(state)
            self._passes.begin_at(self._data.epoch, self._data.step)
        else:  # the state of this process, which may be behind the last step
            share = self._share_of(worker.num_workers, state["step"])
            if share.slots == 0 and state["world"] != share.state_dict()["world"]:
                raise ValueError("processes of a DataLoader continue a plan without slots only with the same world")
            share.load_state_dict({**state, "step": 0})
            self._position = state["epoch"], state["step"]
            self._resumes, self._resets = True, state.get("resets", False)

    @property
    def _bytes(self) -> int:
        """Most bytes of a batch, without companions."""
        return self._data.rows * self._data.width * self._data.values * self._data.dtype.itemsize

    def _share_of(self, count: int, step: int) -> Dataset:
        """The data of this process, one of ``count``, which has this step. Only this one attaches to a server: its steps are
        no other process's."""
        if self._share is None or self._share[0] != count:
            self._share = count, self._data.copy(stride=count, first_step=step % count)
        return self._share[1]

    def _loop(self) -> Iterator[dict[str, Any]]:
        """A pass without processes."""
        epoch, self.given = self._passes.next, None
        if epoch is not None:  # there were passes with processes
            self._data._move(epoch, 0)
        try:
            yield from map(tensors, self._data)
        finally:
            self._passes.begin_at(self._data.epoch, self._data.step)

    def _pass(self, worker: Any, epoch: int, step: int) -> Iterator[dict[str, Any]]:
        """Gives every k-th step from ``step`` on, in a process of k."""
        count = worker.num_workers
        data = self._share_of(count, step)
        data._move(epoch, step, resets=self._resets)
        steps = data._steps_of(epoch)
        self._passes.runs(worker, steps if step < steps else 0)
        if step >= steps:
            return
        for batch in data:
            self._position, self._resets = (epoch, batch.step + count), False
            if self._position[1] >= steps:
                self._passes.runs(worker, 0)
            yield Sent(_arrays(batch) if self.in_messages and data.device == "host" else tensors(batch))
            del batch


def _rank_and_world() -> dict[str, int]:
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return {}
    return {"rank": torch.distributed.get_rank(), "world": torch.distributed.get_world_size()}
