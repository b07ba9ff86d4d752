# SPDX-License-Identifier: Apache-2.0
"""The rows of a batch: a column at a time as arrays, or one by one as objects."""

import enum
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from millrace import _core

_DTYPE: np.dtype[np.void] = np.dtype(_core.row_fields)  # type: ignore[call-overload]
_REASONS: tuple[str | None, ...] = (None, *_core.reasons)


class Flag(enum.IntFlag):
    """Markers of a row: the bits of ``flags``."""

    START = 1  #: first row of its stream
    RESET = 2  #: the state must be fresh before this row
    SEGMENT = 4  #: first row of a segment
    GAP = 8  #: frames were lost right before it
    LAST = 16  #: last row of its segment
    END = 32  #: last row of its stream; what its slot holds is void afterwards
    ABORT = 64  #: the stream died without an end


class Row(NamedTuple):
    """One row: where its body lies in its stream, and its markers. Lengths are frames."""

    stream: int  #: id of the stream, never used twice by one service
    seq: int  #: rows of the stream before it
    begin: int  #: position of the body's first frame
    gap: int  #: frames lost right before it
    mark: int | None  #: the client's number of the flush that ended its segment
    slot: int  #: place of the stream's state
    left: int  #: real frames before the body
    size: int  #: frames of the body; 0: it only carries markers
    right: int  #: real frames behind it
    flags: int  #: bits of Flag
    reason: str | None  #: why RESET: start client endpoint gap overflow worker_lost failover


class Rows(Sequence[Row]):
    """Rows of a batch: ``rows[0]`` is a Row, ``rows["seq"]`` an array of that column of all of them,
    in which mark is -1 for None, and reason an index into ("none", "start", …). Unlike the batch's
    arrays they stay valid. No object is made for a row that nobody asks for."""

    __slots__ = ("_table",)

    def __init__(self, memory: bytes) -> None:
        self._table = np.frombuffer(memory, _DTYPE)

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    @overload
    def __getitem__(self, index: str) -> NDArray[Any]: ...
    def __getitem__(self, index: int | slice | str) -> Row | list[Row] | NDArray[Any]:
        if isinstance(index, str):
            return self._table[index]
        if isinstance(index, slice):
            return [_row(*entry) for entry in self._table[index].tolist()]
        return _row(*self._table[index].item())

    def __iter__(self) -> Iterator[Row]:
        return (_row(*entry) for entry in self._table.tolist())

    def __repr__(self) -> str:
        return f"Rows({list(self)!r})"


def _row(*entry: int) -> Row:
    stream, seq, begin, gap, mark, slot, left, size, right, flags, reason = entry
    said = None if mark == -1 else mark
    return Row(stream, seq, begin, gap, said, slot, left, size, right, flags, _REASONS[reason])


class Opened(NamedTuple):
    """A stream of which this worker gets its first row."""

    stream: int
    slot: int
    name: str
    options: dict[str, Any]  #: what the client said when it opened the stream
