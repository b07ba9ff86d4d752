# SPDX-License-Identifier: Apache-2.0
"""The batches of a plan, made in this process."""

import dataclasses
import json
import logging
import multiprocessing
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from millrace import _core
from millrace.augmentation import Augment, SourceOfChanges
from millrace.catalogs.arrays import Arrays
from millrace.catalogs.lhotse import LhotseCuts, is_cut_set
from millrace.companion_sources import entries_of, is_file
from millrace.dataset_keys import plain
from millrace.processes import Processes, processes_of
from millrace.stream_sources import SourceOfStreams

Progress = Callable[[int, int], object]
#: A companion in files: name, folder or field, frames_per_entry and entries_per_frame (if they are given), element.
File = tuple[str, str, int | None, int | None, str | None]

_log = logging.getLogger("millrace")
_RATES = (16000.0, 100.0)  # default rates of audio and of features, as in a pipeline


@dataclasses.dataclass(frozen=True)
class Opened:
    """The streams of a LocalFeed."""

    catalog: _core.Catalog
    extents: list[str]  #: by catalog, which of its streams it has, if streams are added to it (recordings); empty for others
    processes: Processes | None  #: they call the functions of Python


@dataclasses.dataclass(frozen=True)
class Part:
    """A catalog of a data set: a path, or an object with streams, and how often its streams come per epoch."""

    source: Any
    frequency: float = 1

    @property
    def path(self) -> str:
        """Empty if the source is an object, or several files."""
        return self.source if isinstance(self.source, str) else ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Empty if the source is an object."""
        if isinstance(self.source, str):
            return (self.source,)
        return self.source if isinstance(self.source, tuple) else ()


def parts_of(streams: Any) -> list[Part]:
    """The catalogs that the argument ``streams`` of Dataset names. Raises TypeError if it has another type."""
    if _is_array(streams):
        raise TypeError("streams must be a list of arrays, one for each stream, not an array")
    if isinstance(streams, (list, tuple)):
        if not streams:
            raise ValueError("streams: there are no streams")
        if all(_is_array(entry) for entry in streams):
            return [Part(Arrays(streams))]
        if len(streams) > 1 and all(_is_audio_file(entry) for entry in streams):
            return [Part(tuple(map(os.fspath, streams)))]
        return [_part(entry) for entry in streams]
    return [_part(streams)]


def _part(entry: Any) -> Part:
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], numbers.Real):
            raise TypeError(f"streams: must be pairs of a source and its frequency, not {entry!r}")
        return Part(_part(entry[0]).source, plain(entry[1]))
    if isinstance(entry, (str, os.PathLike)):
        path = os.fspath(entry)
        if not path:
            raise ValueError("streams: a path is empty")
        return Part(LhotseCuts(path) if path.endswith(".jsonl.gz") else path)
    if is_cut_set(entry):
        return Part(LhotseCuts(entry))
    if isinstance(entry, list) and entry and all(_is_array(array) for array in entry):
        return Part(Arrays(entry))
    if all(hasattr(entry, function) for function in ("__len__", "frames", "name", "read")):
        return Part(entry)
    raise TypeError(f"streams must be paths, lists of arrays, or objects with len, frames, name and read, not {entry!r}")


def _is_audio_file(given: Any) -> bool:
    return isinstance(given, (str, os.PathLike)) and _core.is_file_of_audio(os.fspath(given))


def _is_array(given: Any) -> bool:
    return isinstance(given, np.ndarray) or (hasattr(given, "__array__") and hasattr(given, "shape"))


@dataclasses.dataclass(frozen=True)
class Request:
    """The arguments of a Dataset, checked as far as that needs no file. Can be pickled."""

    keys: Mapping[str, Any]  # with the names and types of a pipeline's configuration
    parts: Sequence[Part]
    companions: Mapping[str, Any]  # those that are cut with their streams
    targets: Mapping[str, Mapping[str, Any]]  # the others
    augment: Augment | None
    pipeline: str
    stride: int
    first_step: int
    progress: bool  # show a bar while the index is made
    processes: int = 0
    start_method: str = "fork"
    longest_call: float = 300.0  # seconds
    extents: Sequence[str] = ()  # by catalog; none: all streams


class LocalFeed:
    """A plan of a catalog, filled by threads of this process. RemoteFeed, the plan of servers, has the same properties
    and functions."""

    def __init__(self, request: Request, keys: _core.DatasetKeys, opened: Opened) -> None:
        self._request = request
        self._keys = keys
        self.opened = opened
        self.catalog, self.extents, self._processes = opened.catalog, opened.extents, opened.processes
        function, number = None, 0
        if request.augment is not None:
            function = SourceOfChanges(request.augment, request.keys.get("seed") or 0, self.catalog)
            if self._processes is not None:
                number = self._processes.add("augment", function)
        changes_lengths = function is not None and function.changes_lengths
        pool = None if self._processes is None else self._processes.pool
        self._plan = _core.Plan(keys, self.catalog, function, changes_lengths, pool, number)
        self._loader: _core.Loader | None = None
        self._process = 0
        self.slots = self._plan.slots
        self.rows = self._plan.rows
        self.width = self._plan.width
        self.chunk: dict[str, Any] | None = None if self._plan.chunk is None else json.loads(self._plan.chunk)
        element, values, rate, features = self.catalog.frame_type
        #: The element is that of the tensor.
        self.frame_type = (self._plan.element, values, rate, features)
        self.device: str = request.keys.get("device") or "host"
        self.streams = self.catalog.size
        self.companions = self.catalog.companions

    @property
    def origin(self) -> dict[str, Any]:
        """The inputs of the plan: equal origins, equal batches."""
        origin: dict[str, Any] = json.loads(self._plan.origin)
        return origin

    def loader(self) -> _core.Loader:
        """Gives the batches; belongs to this process."""
        process = os.getpid()
        if self._loader is None or self._process != process or self._loader.left_behind:
            self.start_processes()
            self._loader = _core.Loader(self._plan, self._request.stride, self._request.first_step, self._loader)
            self._process = process
        return self._loader

    def start_processes(self) -> None:
        """Starts the processes that do not run."""
        if self._processes is not None:
            self._processes.start()

    def end_processes(self) -> None:
        """Ends the processes, also in a call. The next loop starts them again."""
        if self._processes is not None:
            self._processes.stop()

    def within(self, extents: Sequence[str]) -> "LocalFeed":
        """The same with the streams of former extents. Raises ValueError if a catalog has none of them."""
        request = dataclasses.replace(self._request, extents=extents)
        return LocalFeed(request, self._keys, opened_catalog(request, self._keys, lambda done, all: None))

    def name(self, i: int) -> str:
        return self.catalog.name(i)

    @property
    def sources(self) -> int:
        """Number of streams before a split."""
        return self.catalog.sources

    def place(self, i: int) -> tuple[int, int]:
        """The stream of the sources, and the frame of it, where a stream begins."""
        return self.catalog.place(i)

    def meta(self, i: int) -> str:
        return self.catalog.meta(i)

    def events(self, i: int) -> list[tuple[str, int, int]]:
        """Kind, count, and the frames before it without gaps."""
        return self.catalog.events(i)

    def padding_warning(self) -> str | None:
        """A warning if the first epoch has much padding. Distributes its streams."""
        return self._plan.padding_warning(*self.loader().totals())


def opened_catalog(request: Request, keys: _core.DatasetKeys, progress: Progress) -> Opened:
    """Opens the streams, with their companions. Logs what they have that the program may not expect."""
    files = [entry for entry in keys.companions if is_file(request.companions[entry[0]])]
    extents = request.extents or [""] * len(request.parts)
    processes = processes_of(request.processes, request.start_method, request.longest_call)
    frames = None if request.keys.get("frames") == "auto" else request.keys.get("frames")
    catalogs = [_open_part(part, request, frames, files, progress, extent, processes)
                for part, extent in zip(request.parts, extents, strict=True)]
    # All have one type of frames: if those of one are not s16, the others are opened again.
    deep = next((catalog.frame_type[0] for catalog in catalogs if catalog.frame_type[0] != "s16"), None)
    if frames is None and deep is not None:
        catalogs = [catalog if catalog.frame_type[0] != "s16" else
                    _open_part(part, request, deep, files, progress, extent, processes)
                    for catalog, part, extent in zip(catalogs, request.parts, extents, strict=True)]
    extents = [catalog.extent for catalog in catalogs]
    catalog = catalogs[0] if len(catalogs) == 1 else _core.join(catalogs)
    objects = {name: source for name, source in request.companions.items() if not is_file(source)}
    if objects:
        catalog = catalog.with_objects(entries_of(objects, catalog, processes))
    catalog = catalog.selected(keys)
    if _is_first():
        _report(catalog, request.companions)
    return Opened(catalog, extents, processes)


def _is_first() -> bool:
    """Whether the streams were not opened before by the process that has started this one, as that of a DataLoader."""
    return multiprocessing.parent_process() is None


def _warn(sentence: str) -> None:
    if _is_first():
        _log.warning(sentence)


def _report(catalog: _core.Catalog, companions: Mapping[str, Any]) -> None:
    empty = catalog.empty_streams
    if empty is not None:
        _log.warning(empty)
    for name, _, _, *ratio in catalog.companions:
        if not _has_ratio(companions.get(name)):
            _log.info("companion %r: frames_per_entry=%d, entries_per_frame=%d, from the lengths of the streams", name, *ratio)


def _has_ratio(source: Any) -> bool:
    given = source if isinstance(source, Mapping) else dir(source)
    return "frames_per_entry" in given or "entries_per_frame" in given


def _cuts_events(keys: Mapping[str, Any]) -> bool:
    """False for whole streams and the chunks of RETURNN."""
    return keys.get("chunk") is not None and not str(keys.get("mode")).startswith("returnn")


def _open_part(part: Part, request: Request, element: str | None, files: list[File], progress: Progress, extent: str,
               processes: Processes | None) -> _core.Catalog:
    keys = request.keys
    if part.paths:
        return _core.open_files(part.paths, element, keys.get("dtype") or "f32", keys.get("rate"),
                                keys.get("dim") or keys.get("channels"), keys.get("convert", False), keys.get("mapped", False),
                                request.pipeline, files, progress, _warn, extent, _cuts_events(keys))
    streams = SourceOfStreams(part.source, element)
    if not isinstance(part.source, Arrays):  # threads read them in place
        streams.read_in(processes, type(part.source).__name__)
    dim, channels = keys.get("dim"), keys.get("channels")
    features = dim is not None or (channels is None and streams.values > 1)
    for key, given in ("dim", dim), ("channels", channels):
        if given not in (None, streams.values):
            raise ValueError(f"{key}={given}: the streams have {streams.values} values per frame")
    rate = keys.get("rate")
    own = getattr(part.source, "rate", None)
    if None not in (rate, own) and float(rate) != float(own):  # type: ignore[arg-type]
        raise ValueError(f"rate={rate}: the streams have a rate of {own}")
    default = _RATES[features]
    catalog = _core.of_object(streams, len(part.source), streams.element, streams.values, float(rate or own or default),
                              features, keys.get("mapped", False), progress)
    own_companions = getattr(part.source, "companions", None) or {}
    objects = {name: source for name, source in own_companions.items() if not is_file(source)}
    files = [*files, *((name, os.fspath(source), None, None, None) for name, source in own_companions.items() if is_file(source))]
    if files:
        catalog = catalog.with_files(files)
    return catalog.with_objects(entries_of(objects, catalog, processes)) if objects else catalog
