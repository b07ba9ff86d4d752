# SPDX-License-Identifier: Apache-2.0
"""A batch whose slots are filled by several servers."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace import _core
from millrace.errors import ServiceGone
from millrace.rows import ROW

_ALIGNMENT = 256  # bytes, of each array
_COLUMNS = ("data", "slot", "flags", "reset", "left", "size", "right")


class JoinedBatch:
    """The batch of a rank, from those of the ranks that share its slots: the slots of part i come after those of part i - 1. It
    has the properties of ``_core.Batch`` on the host. The rows are copied, so that the parts can be given back at once."""

    trigger = "full"
    open = True
    messages: list[Any] = []
    data: NDArray[Any]
    slot: NDArray[np.int32]
    flags: NDArray[np.uint8]
    reset: NDArray[np.bool_]
    left: NDArray[np.int32]
    size: NDArray[np.int32]
    right: NDArray[np.int32]

    def __init__(self, number: int, parts: Sequence[_core.Batch], slots: int) -> None:
        """``slots``: those of a part."""
        places = {(part.epoch, part.step, part.width) for part in parts}
        if len(places) > 1:
            raise ServiceGone(f"the servers send parts of different batches: epoch, step and width are {sorted(places)}")
        self.id = number
        ((self.epoch, self.step, self.width),) = places
        self.closed, self.taken = max(part.closed for part in parts), max(part.taken for part in parts)
        self.rows = sum(part.rows for part in parts)
        firsts = range(0, slots * len(parts), slots)
        framed = [_moved(part.framed, first) for part, first in zip(parts, firsts)]
        self.framed = b"".join(framed)
        self.marks = b"".join(_moved(part.marks, first) for part, first in zip(parts, firsts))
        self.opened = [(stream, slot + first, name, meta)
                       for part, first in zip(parts, firsts) for stream, slot, name, meta in part.opened]
        failed = [entry for part in parts if part.failed for entry in json.loads(part.failed)]
        self.failed = json.dumps(failed) if failed else ""
        counts = [len(rows) // ROW.itemsize for rows in framed]
        names = list(parts[0].companions)
        arrays = [[getattr(part, name) for name in _COLUMNS] + [part.companions[name] for name in names] for part in parts]
        self.memory, joined = _joined(list(zip(*arrays)), counts)  # alive as long as one of the arrays is
        self.companions = dict(zip(names, joined[len(_COLUMNS) :]))
        for name, array in zip(_COLUMNS, joined):
            setattr(self, name, array)
        begin = 0
        for count, first in zip(counts, firsts):
            self.slot[begin : begin + count] += first
            begin += count
        self.slot[begin:] = slots * len(parts)  # the padding rows

    def use_on(self, stream: int) -> None:
        pass

    def done(self, answers: Iterable[Any] | None, marks: Iterable[Any] | None, endpoint: Iterable[Any] | None,
             encode: Any) -> list[str]:
        return []

    def fail(self, error: BaseException) -> None:
        pass


#: The batches of a Dataset, which ``millrace.Batch`` shows.
Taken = _core.Batch | JoinedBatch


def _moved(rows: bytes, first: int) -> bytes:
    """Rows with other slots: slot 0 is ``first``."""
    if not first or not rows:
        return rows
    moved = np.frombuffer(rows, ROW).copy()
    moved["slot"] += first
    return moved.tobytes()


def _joined(columns: Sequence[Sequence[NDArray[Any]]], counts: Sequence[int]) -> tuple[NDArray[np.uint8], list[NDArray[Any]]]:
    """Each column of all parts as one array: first the rows with frames, whose numbers are ``counts``, then the padding rows. Also
    returns the memory of the arrays."""
    shapes = [(sum(map(len, arrays)), *arrays[0].shape[1:]) for arrays in columns]
    sizes = [math.prod(shape) * arrays[0].itemsize for shape, arrays in zip(shapes, columns)]
    memory = np.empty(sum(size + -size % _ALIGNMENT for size in sizes) + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    has_padding = any(count < len(part) for part, count in zip(columns[0], counts))
    joined = []
    for arrays, shape, size in zip(columns, shapes, sizes):
        array: NDArray[Any] = np.ndarray(shape, arrays[0].dtype, memory, begin)
        if has_padding:
            arrays = [part[:count] for part, count in zip(arrays, counts)] + [part[count:] for part, count in zip(arrays, counts)]
        np.concatenate(arrays, out=array)
        joined.append(array)
        begin += size + -size % _ALIGNMENT
    return memory, joined
