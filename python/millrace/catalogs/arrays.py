# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory, and in ``.npy`` files."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from millrace.stream_sources import Events, Form, Place, form_of

_Head: TypeAlias = tuple[tuple[int, ...], bool, np.dtype[Any], int]


class Arrays:
    """A list of arrays, each a stream: [frames] or [frames, values]. ``Dataset`` makes it of a list of arrays.

    Contiguous arrays are read in place: do not change them while a Dataset reads them.
    """

    def __init__(
        self,
        arrays: Sequence[Any],
        *,
        names: Sequence[str] | None = None,
        meta: Sequence[Mapping[str, Any] | None] | None = None,
        events: Sequence[Events | None] | None = None,
        companions: Mapping[str, Any] | None = None,
        rate: float | None = None,
    ) -> None:
        """``names``, ``meta`` and ``events`` have an entry for each array. The default names are the numbers.

        ``companions``: sources of companions, as for Dataset. ``rate``: frames per second.
        """
        self._arrays = [np.asarray(array) for array in arrays]
        for argument, given in ("names", names), ("meta", meta), ("events", events):
            if given is not None and len(given) != len(self._arrays):
                raise ValueError(f"{argument}: {len(given)} entries for {len(self._arrays)} arrays")
        self._names = names
        self._meta = meta
        self._events = events
        self.companions: Mapping[str, Any] = companions or {}
        self.rate = rate

    def __len__(self) -> int:
        return len(self._arrays)

    def frames(self, i: int) -> int:
        return len(self._arrays[i])

    #: Entries of a companion, if the arrays are one.
    entries = frames

    def name(self, i: int) -> str:
        return str(i) if self._names is None else self._names[i]

    def meta(self, i: int) -> Mapping[str, Any] | None:
        return None if self._meta is None else self._meta[i]

    def events(self, i: int) -> Events | None:
        return None if self._events is None else self._events[i]

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        return self._arrays[i][begin : begin + n]

    def _place(self, i: int) -> Place:
        return self._arrays[i]

    def _form(self, i: int) -> Form | None:
        return form_of(self._arrays[i])


class NpyFiles:
    """``.npy`` files, each a stream: an array [frames] or [frames, values]. The threads of a Dataset read them.

    The name of a stream is the path of its file in the folder, without the extension.
    """

    def __init__(
        self,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        companions: Mapping[str, Any] | None = None,
        rate: float | None = None,
    ) -> None:
        """``files``: a folder, whose files are sorted by path, or a list of paths.

        ``companions``: sources of companions, as for Dataset. ``rate``: frames per second.

        Raises FileNotFoundError if there are no files, and ValueError if a file has no array of this kind.
        """
        if isinstance(files, (str, os.PathLike)):
            folder = Path(files)
            self._paths = sorted(path for path in folder.rglob("*.npy") if path.is_file())
            if not self._paths:
                raise FileNotFoundError(f"{folder} has no .npy files")
            self._names = [path.relative_to(folder).with_suffix("").as_posix() for path in self._paths]
        else:
            self._paths = [Path(path) for path in files]
            self._names = [path.with_suffix("").as_posix() for path in self._paths]
        self._last: tuple[int, _Head] | None = None
        self.companions: Mapping[str, Any] = companions or {}
        self.rate = rate

    def __len__(self) -> int:
        return len(self._paths)

    def frames(self, i: int) -> int:
        return self._head(i)[0][0]

    #: Entries of a companion, if the files are one.
    entries = frames

    def name(self, i: int) -> str:
        return self._names[i]

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        shape, fortran, dtype, offset = self._head(i)
        path, values = self._paths[i], math.prod(shape[1:])
        if not fortran:
            return _items(path, dtype, offset, begin * values, n * values).reshape(n, *shape[1:])
        return np.stack([_items(path, dtype, offset, value * shape[0] + begin, n) for value in range(values)], axis=1)

    def _head(self, i: int) -> _Head:
        """Shape, whether it is in Fortran's order, type, and offset of the array."""
        if self._last is not None and self._last[0] == i:
            return self._last[1]
        path = self._paths[i]
        with open(path, "rb") as file:
            try:
                form: Any = np.lib.format
                is_first = form.read_magic(file)[0] == 1
                shape, fortran, dtype = (form.read_array_header_1_0 if is_first else form.read_array_header_2_0)(file)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
            if len(shape) not in (1, 2):
                raise ValueError(f"{path}: must have an array [frames] or [frames, values], not {list(shape)}")
            head = shape, fortran and len(shape) == 2, dtype, file.tell()
        self._last = i, head
        return head

    def _place(self, i: int) -> Place:
        _, fortran, dtype, offset = self._head(i)
        return None if fortran else (str(self._paths[i]), offset, dtype)

    def _form(self, i: int) -> Form | None:
        shape, _, dtype, _ = self._head(i)
        return (shape[1] if len(shape) == 2 else 1, dtype, None) if shape[0] else None


def _items(path: Path, dtype: np.dtype[Any], offset: int, begin: int, count: int) -> NDArray[Any]:
    """Items of the array that begins at ``offset``. They are read: if a mapped file is cut, the program ends."""
    items: NDArray[Any] = np.fromfile(path, dtype, count, offset=offset + begin * dtype.itemsize)
    if len(items) < count:
        raise EOFError(f"{path} was cut")
    return items
