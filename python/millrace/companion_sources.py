# SPDX-License-Identifier: Apache-2.0
"""Companions whose entries are arrays of Python."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace import _core
from millrace.elements import COMPANION_DTYPES
from millrace.processes import Processes
from millrace.request import whole
from millrace.stream_sources import Form, Place, ReadsInProcesses, checked, converted, form_of, in_place

_ELEMENTS = {**{dtype: element for element, dtype in COMPANION_DTYPES.items()}, "float64": "f32", "bool": "u8"}
_SAMPLED = 1000  # streams whose lengths determine the ratio of a companion

#: A companion for the extension: name, element, values, frames_per_entry, entries_per_frame and source.
Entry = tuple[str, str, int, int, int, "SourceOfEntries"]


class SourceOfEntries(ReadsInProcesses):
    """The entries of one companion, for the extension."""

    def __init__(self, name: str, read: Callable[[int, int, int], Any], place: Callable[[int], Place] | None,
                 sample: NDArray[Any], form: Callable[[int], Form | None] | None = None, is_in_memory: bool = False) -> None:
        if sample.ndim not in (1, 2):
            raise ValueError(f"companion {name!r} must have arrays [entries] or [entries, values], not {sample.shape}")
        if sample.dtype.name not in _ELEMENTS:
            raise ValueError(f"companion {name!r} must have {', '.join(_ELEMENTS)}, not {sample.dtype}")
        self.element = _ELEMENTS[sample.dtype.name]
        self.values = 1 if sample.ndim == 1 else sample.shape[1]
        self.is_in_memory = is_in_memory
        self._dtype = np.dtype(COMPANION_DTYPES[self.element])
        self._read = read
        self._place = place
        self._name = name
        self._form = form
        if place is not None:
            self.place = self._find

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        """The entries [begin, begin + n), contiguous, and in the type of the companion."""
        what = f"companion {self._name!r}: read({i}, {begin}, {n})"
        array = checked(self._read(i, begin, n), what, n, self.values)
        self._check(i, self.values, array.dtype)
        return converted(array.view("u1") if array.dtype == bool else array, self._dtype, what)

    def _find(self, i: int) -> NDArray[Any] | tuple[str, int] | None:
        assert self._place is not None
        form = self._form(i) if self._form is not None else None
        if form is not None:
            self._check(i, form[0], form[1])
        return in_place(self._place(i), self._dtype)

    def _check(self, i: int, values: int, dtype: np.dtype[Any]) -> None:
        if values != self.values or (dtype.kind == "f") != (self._dtype.kind == "f"):
            raise ValueError(f"companion {self._name!r}: stream {i} has entries of {values} values ({dtype.name}); those"
                             f" before have {self.values} ({self._dtype.name})")


def is_file(source: Any) -> bool:
    """Whether the extension reads the companion itself: from a folder, or from a field of a manifest."""
    if isinstance(source, Mapping):
        return "source" not in source
    return isinstance(source, str) or hasattr(source, "__fspath__")


def entries_of(companions: Mapping[str, Any], catalog: _core.Catalog, processes: Processes | None) -> list[Entry]:
    """The companions of these sources for the streams of a catalog. Raises ValueError if their lengths do not fit."""
    entries = [_entry(name, source, catalog) for name, source in companions.items()]
    for entry in entries:
        if not entry[-1].is_in_memory:
            entry[-1].read_in(processes, f"companion {entry[0]!r}")
    return entries


def _entry(name: str, source: Any, catalog: _core.Catalog) -> Entry:
    ratio: dict[str, int] = {}
    if isinstance(source, Mapping):
        unknown = source.keys() - {"source", "frames_per_entry", "entries_per_frame"}
        if unknown:
            raise ValueError(f"companions.{name}: unknown key {', '.join(sorted(map(str, unknown)))}")
        ratio = {key: whole(f"companions.{name}.{key}", value, 1, (1 << 32) - 1) for key, value in source.items() if key != "source"}
        source = source["source"]
    for key in "frames_per_entry", "entries_per_frame":
        if hasattr(source, key):
            ratio.setdefault(key, int(getattr(source, key)))
    if hasattr(source, "read"):
        return _of_object(name, source, ratio, catalog)
    if isinstance(source, Sequence) or isinstance(source, np.ndarray):
        return _of_arrays(name, source, ratio, catalog)
    raise TypeError(f"companions.{name} must be a path, a list of arrays, or an object with read(), not {source!r}")


def _of_arrays(name: str, arrays: Sequence[Any] | NDArray[Any], ratio: Mapping[str, int],
               catalog: _core.Catalog) -> Entry:
    if len(arrays) != catalog.size:
        raise ValueError(f"companion {name!r} has {len(arrays)} arrays for {catalog.size} streams")
    kept = [np.asarray(array) for array in arrays]
    for i, array in enumerate(kept):
        if not array.ndim:
            raise ValueError(f"companion {name!r}: stream {i} has {arrays[i]!r} instead of an array of entries")
    frames_per_entry, entries_per_frame = ratio_of(name, ratio, lambda i: len(kept[i]), catalog)
    sample = next((array for array in kept if len(array)), np.zeros(0, np.float32))
    source = SourceOfEntries(name, lambda i, begin, n: kept[i][begin : begin + n], lambda i: kept[i], sample,
                             lambda i: form_of(kept[i]), is_in_memory=True)
    return name, source.element, source.values, frames_per_entry, entries_per_frame, source


def _of_object(name: str, streams: Any, ratio: Mapping[str, int], catalog: _core.Catalog) -> Entry:
    lengths = getattr(streams, "entries", None)
    if lengths is not None:
        frames_per_entry, entries_per_frame = ratio_of(name, ratio, lengths, catalog)
    else:
        frames_per_entry, entries_per_frame = _given(name, ratio)
    with_frames = next((i for i in range(catalog.size) if catalog.frames(i)), None)
    sample = np.zeros(0, np.float32) if with_frames is None else np.asarray(streams.read(with_frames, 0, 1))
    source = SourceOfEntries(name, streams.read, getattr(streams, "_place", None), sample,
                             getattr(streams, "_form", None))
    return name, source.element, source.values, frames_per_entry, entries_per_frame, source


def _given(name: str, ratio: Mapping[str, int]) -> tuple[int, int]:
    frames_per_entry, entries_per_frame = ratio.get("frames_per_entry", 1), ratio.get("entries_per_frame", 1)
    if min(frames_per_entry, entries_per_frame) != 1 or max(frames_per_entry, entries_per_frame) >= 1 << 32:
        raise ValueError(f"companions.{name}: frames_per_entry and entries_per_frame must be 1 or more, one of them 1")
    return frames_per_entry, entries_per_frame


def ratio_of(name: str, ratio: Mapping[str, int], entries: Callable[[int], int],
             catalog: _core.Catalog) -> tuple[int, int]:
    """frames_per_entry and entries_per_frame: those given, or the only ones that fit the lengths of the streams."""
    found = _given(name, ratio) if ratio else _inferred(name, entries, catalog)
    for i in range(catalog.size):
        if entries(i) != _entries(catalog.frames(i), *found):
            origin = "which was given" if ratio else "from the lengths of the first streams"
            raise ValueError(f"companion {name!r}: {_lengths(i, entries, catalog)} instead of"
                             f" {_entries(catalog.frames(i), *found)} with frames_per_entry={found[0]} and"
                             f" entries_per_frame={found[1]}, {origin}")
    return found


def _inferred(name: str, entries: Callable[[int], int], catalog: _core.Catalog) -> tuple[int, int]:
    """The ratio that the lengths show, if they do not fit it by coincidence (training/catalogs/companion_ratio.h)."""
    ratio = _core.CompanionRatio()
    sampled = range(min(catalog.size, _SAMPLED))
    for i in sampled:
        if not ratio.add(catalog.frames(i), entries(i)):
            raise ValueError(f"companion {name!r}: {_lengths(i, entries, catalog)}, and no whole ratio fits all"
                             " streams")
    found = ratio.values()
    if found is None and any(catalog.frames(i) for i in sampled):
        raise ValueError(f"companion {name!r}: the lengths fit {ratio.text()}: give it, as in"
                         ' {"source": …, "frames_per_entry": …}')
    return found or (1, 1)


def _lengths(i: int, entries: Callable[[int], int], catalog: _core.Catalog) -> str:
    return f"stream {catalog.name(i)!r} has {catalog.frames(i)} frames and {entries(i)} entries"


def _entries(frames: int, frames_per_entry: int, entries_per_frame: int) -> int:
    return -(-frames // frames_per_entry) * entries_per_frame
