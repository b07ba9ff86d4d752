# SPDX-License-Identifier: Apache-2.0
"""HDF5 files in RETURNN's layout."""

import importlib
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.stream_sources import Place


class Hdf5:
    """An HDF5 file of RETURNN, as its ``HDFDataset`` reads it: ``inputs``, ``seqLengths``, ``seqTags`` and ``targets``.

    A sequence is a stream, and its tag is the name. The targets are companions. Needs h5py.

    Data sets that are neither compressed nor chunked are read without h5py, by the threads of a Dataset.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        companions: Iterable[str] | None = None,
        rate: float | None = None,
    ) -> None:
        """``companions``: the names of the targets that batches have. The default is those with numbers for each frame,
        for each k frames, or k numbers for each frame.

        ``rate``: frames per second.
        """
        self._path = os.fspath(path)
        self._file: Any = None
        self._process = 0
        lengths = np.asarray(self._open()["seqLengths"])
        lengths = lengths[:, None] if lengths.ndim == 1 else lengths
        targets = self._targets()
        if 1 < lengths.shape[1] < 1 + len(targets):
            raise ValueError(f"{self._path}: seqLengths has {lengths.shape[1]} columns for {len(targets)} targets")
        self._tags = list(self._open()["seqTags"])
        self._check(lengths)
        self._starts = np.zeros((len(lengths) + 1, lengths.shape[1]), np.int64)
        np.cumsum(lengths, axis=0, out=self._starts[1:])
        self._check_rows("inputs", 0)
        self.rate = rate
        columns = {name: self._column(name, targets, lengths) for name in targets}
        wanted = [name for name in targets if self._is_companion(name, lengths[:, 0], lengths[:, columns[name]])]
        if companions is not None:
            wanted = list(companions)
        for name in wanted:
            if name not in targets:
                raise ValueError(f"{self._path}: no target {name!r}; targets: {', '.join(targets) or 'none'}")
            self._check_rows(f"targets/data/{name}", columns[name])
        #: The targets, by their names.
        self.companions = {name: _Targets(self, name, columns[name]) for name in wanted}

    def __len__(self) -> int:
        return len(self._tags)

    def frames(self, i: int) -> int:
        return self._length(i, 0)

    def name(self, i: int) -> str:
        tag = self._tags[i]
        return tag.decode(errors="surrogateescape") if isinstance(tag, bytes) else str(tag)

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        return self._read("inputs", 0, i, begin, n)

    def _place(self, i: int) -> Place:
        return self._place_of("inputs", 0, i)

    def _check(self, lengths: NDArray[Any]) -> None:
        """Raises ValueError if the lengths are not those of the tags."""
        if len(self._tags) != len(lengths):
            raise ValueError(f"{self._path}: seqTags has {len(self._tags)} entries, and seqLengths {len(lengths)}")
        negative = np.flatnonzero((lengths < 0).any(axis=1))
        if len(negative):
            raise ValueError(f"{self._path}: sequence {self.name(int(negative[0]))!r} has a negative length")

    def _check_rows(self, data: str, column: int) -> None:
        """Raises ValueError if the data have more or fewer rows than their lengths add up to."""
        rows, total = len(self._open()[data]), int(self._starts[-1, column])
        if rows != total:
            raise ValueError(f"{self._path}: {data} has {rows} rows, and its lengths add up to {total}")

    @staticmethod
    def _column(name: str, targets: Sequence[str], lengths: NDArray[Any]) -> int:
        """The column of seqLengths with the lengths of a target."""
        return min(1 + targets.index(name), lengths.shape[1] - 1)

    def _targets(self) -> Sequence[str]:
        """The names of the targets in the order of the columns of seqLengths."""
        file = self._open()
        if "targets/data" not in file:
            return []
        sizes = file["targets/size"].attrs if "targets/size" in file else ()
        return sorted({str(name) for name in itertools.chain(file["targets/data"], sizes)})

    def _is_companion(self, name: str, frames: NDArray[Any], entries: NDArray[Any]) -> bool:
        data = self._open()[f"targets/data/{name}"]
        if data.dtype.kind not in "iuf" or data.ndim > 2 or not entries.any():
            return False
        ratio = frames.sum() / entries.sum()
        per_entry, per_frame = max(1, round(ratio)), max(1, round(1 / ratio))
        return any(np.array_equal(-(-frames // k) * per_frame, entries) for k in (per_entry, per_entry + 1))

    def _open(self) -> Any:
        """The file, opened by this process: a forked one must not share it."""
        if self._file is None or self._process != os.getpid():
            try:
                h5py: Any = importlib.import_module("h5py")
            except ImportError:
                raise ImportError("HDF5 files need h5py: pip install h5py") from None
            self._file, self._process = h5py.File(self._path, "r"), os.getpid()
        return self._file

    def _length(self, i: int, column: int) -> int:
        return int(self._starts[i + 1, column] - self._starts[i, column])

    def _read(self, data: str, column: int, i: int, begin: int, n: int) -> NDArray[Any]:
        first = int(self._starts[i, column]) + begin
        array: NDArray[Any] = self._open()[data][first : first + n]
        return array

    def _place_of(self, data: str, column: int, i: int) -> Place:
        found = self._open()[data]
        offset = found.id.get_offset()  # None if it is chunked or compressed
        if offset is None or found.ndim > 2:
            return None
        item = found.dtype.itemsize * (found.shape[1] if found.ndim == 2 else 1)
        return self._path, offset + int(self._starts[i, column]) * item, found.dtype

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None}


class _Targets:
    """A target of the file."""

    def __init__(self, file: Hdf5, name: str, column: int) -> None:
        self._file = file
        self._data = f"targets/data/{name}"
        self._column = column

    def entries(self, i: int) -> int:
        return self._file._length(i, self._column)

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        return self._file._read(self._data, self._column, i, begin, n)

    def _place(self, i: int) -> Place:
        return self._file._place_of(self._data, self._column, i)
