# SPDX-License-Identifier: Apache-2.0
"""The rows of a batch as records: one by one as objects, or one field of all rows as an array."""

import enum
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from millrace import _core

ROW: np.dtype[np.void] = np.dtype(_core.row_fields)  # type: ignore[call-overload]
_REASONS: tuple[str | None, ...] = (None, *_core.reasons)


class Flag(enum.IntFlag):
    """Markers of a row, the bits of ``flags``."""

    START = 1  #: first row of its stream
    RESET = 2  #: the state must be fresh before this row
    SEGMENT = 4  #: first row of a segment
    GAP = 8  #: frames were lost right before it
    LAST = 16  #: last row of its segment
    END = 32  #: last row of its stream; the state in its slot is void afterwards
    ABORT = 64  #: the stream ended without ``end``; the state in its slot is void afterwards


class Row(NamedTuple):
    """One row: its position in the stream, and its markers. Lengths and positions are in frames."""

    stream: int  #: id of the stream; a service never uses an id twice
    seq: int  #: number of rows of the stream before this one
    begin: int  #: position of the body's first frame
    gap: int  #: frames lost right before the row
    mark: int | None  #: number that the client gave to the flush that ended the row's segment
    slot: int  #: index of the stream's state
    left: int  #: real frames before the body
    size: int  #: real frames of the body; 0 in a marker row
    right: int  #: real frames behind the body
    flags: int  #: bits of Flag
    reason: str | None  #: why the row has RESET: start client endpoint gap overflow worker_lost failover


class Rows(Sequence[Row]):
    """A sequence of the rows of a batch. ``rows[0]`` is a Row, ``rows["seq"]`` is an array of this field of all rows.

    In an array, ``mark`` is -1 instead of None, and ``reason`` is an index into ("none", "start", ...). The rows stay
    valid after ``done``. A Row object is made only when it is accessed.
    """

    __slots__ = ("_table",)

    def __init__(self, memory: bytes) -> None:
        self._table = np.frombuffer(memory, ROW)

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
    mark_or_none = None if mark == -1 else mark
    return Row(stream, seq, begin, gap, mark_or_none, slot, left, size, right, flags, _REASONS[reason])


class ClientMessage(NamedTuple):
    """A message of a client to the model."""

    stream: int  #: id of the stream, as in Row
    seq: int  #: number of the row that it belongs before
    position: int  #: frames of the stream before it, lost ones included
    data: Any  #: the JSON value that the client sent
    set: bool  #: true if ``data`` is a dict of options that have changed


class Opened(NamedTuple):
    """A stream whose first row for this worker is in the batch."""

    stream: int  #: id of the stream, as in Row
    slot: int  #: index of the stream's state
    name: str  #: name of the stream
    options: dict[str, Any]  #: the options of the stream, with the changes that rows before have carried; {} by default

    @property
    def meta(self) -> dict[str, Any]:
        """In a batch of a ``Dataset``: the meta of the stream, which are its ``options``."""
        return self.options
