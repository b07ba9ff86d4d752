# SPDX-License-Identifier: Apache-2.0
"""Batches of a Dataset for RETURNN. In a configuration for its engine for PyTorch:

    import millrace.returnn

    train = {"class": millrace.returnn.Dataset, "streams": "speech", "chunk": {"size": "100ms"}, "dtype": "f32", "slots": 32}
    torch_batching = millrace.returnn.torch_batching
    torch_dataloader_opts = {"num_workers": 0}      # the threads of the Dataset fill batches
    extern_data = {
        "data": {"dim": 1},
        "slot": {"dtype": "int32", "shape": ()},
        "reset": {"dtype": "bool", "shape": ()},
    }

A sequence of RETURNN is then a row, and a batch of RETURNN is a batch of the plan. The model keeps a state for each
slot, and one more for padding rows:

    def train_step(*, model, extern_data, **_):
        slot, reset = extern_data["slot"].raw_tensor.long(), extern_data["reset"].raw_tensor
        state = model.state[slot].masked_fill(reset[:, None], 0)

RETURNN's engine for TensorFlow forms the batches itself, so the plan needs slots: with max_seqs = slots, and a batch_size that
is no limit, its batches are those of the plan. ``torch_batching`` is not used then.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from returnn.datasets.basic import DatasetSeq
from returnn.datasets.cached2 import CachedDataset2

import millrace.dataset
from millrace.batch import Batch
from millrace.rows import Flag

__all__ = ["Dataset", "torch_batching"]

_TRUE, _FALSE = np.array(True), np.array(False)

# RETURNN's own options of a dataset. The others are those of millrace.Dataset.
_OWN = ("name", "estimated_num_seqs", "random_seed_offset", "_num_shards", "_shard_index")
# RETURNN's options that the plan replaces, and the values that leave everything as it is.
_REPLACED: dict[str, tuple[tuple[Any, ...], str]] = {
    "chunking": ((None, 0, "0"), "chunk"),
    "chunking_variance": ((0,), "chunk"),
    "min_chunk_size": ((0,), "chunk with min"),
    "shuffle_frames_of_nseqs": ((0,), "shuffle"),
    "partition_epoch": ((None, 1), "streams with a frequency below 1"),
    "repeat_epoch": ((None, 1), "streams with a frequency above 1"),
    "window": ((1,), "chunk with left and right"),
    "context_window": ((None,), "chunk with left and right"),
    "fixed_random_seed": ((None,), "seed"),
    "seq_list_filter_file": ((None,), "a manifest of the streams"),
    "seq_order_seq_lens_file": ((None,), "order"),
    "unique_seq_tags": ((False,), "streams, whose names are unique"),
}


def _order(options: dict[str, Any]) -> None:
    """Replaces RETURNN's ``seq_ordering`` by the options with the same meaning."""
    ordering = options.pop("seq_ordering", None)
    if ordering is None:
        return
    chosen = options.get("order") is not None or "shuffle" in options
    if ordering == "sorted":
        # RETURNN gives it to each dataset of an evaluation, also where there is no such order.
        mode = options.get("mode") or "stateful"
        whole = mode.startswith("returnn-") or mode == "stateless" and options.get("chunk") is None
        if whole and not chosen and options.get("buckets") is None:
            options["order"] = "sorted"
    elif chosen:
        raise ValueError(f"seq_ordering: {ordering!r} cannot be set beside order and shuffle")
    elif ordering in ("default", "random"):
        options["shuffle"] = ordering == "random"
    elif isinstance(ordering, str) and (ordering == "sorted_reverse" or ordering.partition(":")[0] == "laplace"):
        options["order"] = ordering
    else:
        raise ValueError(f"seq_ordering: {ordering!r} must be default, random, sorted, sorted_reverse or laplace")


class Dataset(CachedDataset2):
    """A dataset of RETURNN whose sequences are the rows of a plan, batch after batch.

    Options are those of ``millrace.Dataset``, and RETURNN's ``name``. The data keys of a row are:

    - data: [frames, values], the columns of the row up to the last real frame
    - slot: index of the row's state; in a padding row the number of slots
    - reset: true if the state must be fresh before the row
    - size: real frames of the body; 0 in a padding row
    - each companion: [entries, values], the entries of the row's body; with ``per``: what ends in the row
    - batch_ends: true in the last row of a batch, for ``torch_batching``

    RETURNN's ``seq_ordering`` may be "default", "random", "sorted", "sorted_reverse", or "laplace" with a number of bins as
    "laplace:8", or of sequences in each as "laplace:.1000". The random numbers are those of the plan.

    The tag of a row is the name of its stream. Epoch 1 of RETURNN is epoch 0 of the plan. With ``torch_distributed``,
    rank and world are RETURNN's.
    """

    expected_load_seq_start: int  # set by CachedDataset2

    def __init__(self, *, _opened: tuple[millrace.dataset.Dataset, int] | None = None, **options: Any) -> None:
        for name, (neutral, instead) in _REPLACED.items():
            value = options.pop(name, neutral[0])
            if value not in neutral:
                raise ValueError(f"{name}: {value!r} has no effect here: use {instead}")
        _order(options)
        own = {name: options.pop(name) for name in _OWN if name in options}
        super().__init__(**own)
        options.setdefault("rank", self._shard_index)
        options.setdefault("world", self._num_shards)
        self._arguments = {**own, **options}
        self._data = millrace.dataset.Dataset(**options) if _opened is None else _opened[0]
        self._shared = 0, 1  # number of this process, and of how many
        self._rows: Iterator[DatasetSeq] = iter(())
        self.num_inputs = self._data.values if _opened is None else _opened[1]
        self.num_outputs = {"data": (self.num_inputs, 2), "slot": (1, 0), "reset": (1, 0), "size": (1, 0), "batch_ends": (1, 0)}

    def __reduce__(self) -> Any:
        return _made, (type(self), self._arguments, self.epoch, (self._data, self.num_inputs))

    def get_data_dim(self, key: str) -> int:
        return int(self.num_outputs[key][0])  # RETURNN's own asks for two axes

    def supports_sharding(self) -> bool:
        return True

    def set_sharding(self, *, num_shards: int, shard_index: int) -> None:
        """RETURNN calls this in the processes of a DataLoader, which share the steps instead (``_every``)."""

    def init_seq_order(self, epoch: int | None = None, seq_list: Any = None, seq_order: Any = None) -> bool:
        if seq_list is not None or seq_order is not None:
            raise ValueError("the order of the sequences is that of the plan")
        super().init_seq_order(epoch=epoch)
        self._rows = iter(()) if epoch is None else self._rows_of(epoch - 1)
        return True

    def finish_epoch(self, *, free_resources: bool = False) -> None:
        super().finish_epoch(free_resources=free_resources)
        self._rows = iter(())

    def _load_seqs(self, start: int, end: int) -> None:
        # RETURNN's own also adds up the lengths of all keys, which takes longer than all else of a step.
        if start > self.expected_load_seq_start:
            self._cleanup_old_seqs(start)
            self.expected_load_seq_start = start
        loaded = self.added_data[-1].seq_idx + 1 if self.added_data else start
        for number in range(max(start, loaded), end):
            row = self._collect_single_seq(number)
            if row is None:
                break
            self.added_data.append(row)

    def _collect_single_seq(self, seq_idx: int) -> DatasetSeq | None:
        row = next(self._rows, None)
        if row is None:
            return None
        features, tag, fraction = row
        return DatasetSeq(seq_idx, features, seq_tag=tag, complete_frac=fraction)

    def _rows_of(self, epoch: int) -> Iterator[tuple[dict[str, NDArray[Any]], str, float]]:
        """Gives the rows of an epoch; in a process of a DataLoader, those of its steps."""
        torch = sys.modules.get("torch")
        worker = torch.utils.data.get_worker_info() if torch else None
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        # A process attaches to a server only for its own steps.
        if count > 1 and self._shared != (number, count):
            self._shared, self._data = (number, count), self._data.copy(stride=count, first_step=number)
        data = self._data
        data._move(epoch, number)
        steps = len(data)
        for batch in data:
            yield from self._rows_in(batch, (batch.step // count + 1) / steps)
            del batch

    def _rows_in(self, batch: Batch, fraction: float) -> Iterator[tuple[dict[str, NDArray[Any]], str, float]]:
        """Gives the rows of a batch, padding rows included."""
        data, slot, size = batch.data, batch.slot, batch.size
        reset = (batch.flags & int(Flag.RESET)) != 0
        ends = (self._before_body(batch.left) + size + batch.right) * (size > 0)
        framed = batch.framed
        tags = [self._data.name(int(stream)) for stream in framed["stream"]]
        tags += ["padding"] * (batch.rows - len(tags))
        formats, lengths = self._data.companions, batch.lengths
        entries = {
            name: (array, lengths[name].clip(0) if name in lengths
                   else formats[name].entries_in(framed["begin"], framed["size"])[1])
            for name, array in batch.companions.items()
        }
        last = batch.rows - 1
        for row, tag in enumerate(tags):
            features = {
                "data": data[row, : ends[row]],
                "slot": slot[row, ...],
                "reset": reset[row, ...],
                "size": size[row, ...],
                "batch_ends": _TRUE if row == last else _FALSE,
            }
            for name, (array, counts) in entries.items():
                features[name] = array[row, : counts[row] if row < len(counts) else 0]
            yield features, tag, fraction

    def _before_body(self, left: NDArray[np.int32]) -> NDArray[np.int32] | int:
        """Columns before the body."""
        rule = self._data.chunk
        if rule is None or rule.get("align", "body") != "body":
            return left
        return int(rule.get("left", 0))


def torch_batching(dataset: Any, **_: Any) -> Any:
    """RETURNN's ``torch_batching``: one batch of RETURNN is one batch of the plan."""
    from millrace.returnn_torch import Batches  # the engine for TensorFlow needs no PyTorch

    return Batches(dataset)


def _made(cls: type[Dataset], arguments: dict[str, Any], epoch: int | None, opened: Any) -> Dataset:
    made = cls(**arguments, _opened=opened)
    made.initialize()
    made.epoch = epoch
    return made
