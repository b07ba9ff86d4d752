# SPDX-License-Identifier: Apache-2.0
"""Targets of free length: arrays of a whole stream or segment, such as tokens, which come with the row that ends it."""

import bisect
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from millrace.errors import DataError
from millrace.failed_streams import FailedStreams
from millrace.rows import Flag, Rows

if TYPE_CHECKING:
    from millrace.batch import Batch
    from millrace.plan_feed import Request

_ENDS = {"stream": int(Flag.END | Flag.ABORT), "segment": int(Flag.LAST)}
_TRIED = 16  # streams of which one must have a target
_KEYS = ("per", "source", "path", "field", "encode")
#: Targets of a batch by name: arrays [rows, longest, …], and lengths [rows], -1 in a row that ends nothing.
Found = dict[str, tuple[NDArray[Any], NDArray[np.int32]]]


class Streams(Protocol):
    """The members of a feed that targets use."""

    slots: int
    chunk: dict[str, Any] | None
    streams: int

    @property
    def sources(self) -> int: ...  # streams before a split

    def name(self, i: int) -> str: ...
    def place(self, i: int) -> tuple[int, int]: ...
    def meta(self, i: int) -> str: ...
    def events(self, i: int) -> Iterable[tuple[str, int, int]]: ...


def divided(companions: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """The companions that are cut with their streams, and those that are targets."""
    targets = {name: source for name, source in companions.items() if isinstance(source, Mapping) and "per" in source}
    return {name: source for name, source in companions.items() if name not in targets}, targets


def check_targets(request: "Request") -> None:
    """Raises ValueError if the plan cuts streams otherwise than their targets."""
    for name, source in request.targets.items():
        if request.keys.get("max_stream") is not None:
            raise ValueError(f"companions.{name}: a target belongs to a whole stream or segment: it cannot be set beside max_stream."
                             " Use a manifest whose lines are parts of the files (offset, duration), each with its own target")
        if source["per"] == "segment" and hasattr(request.augment, "frames"):
            raise ValueError(f"companions.{name}: per = 'segment' cannot be set beside an augment that changes lengths: its streams"
                             " have one segment")


class _Misfit(ValueError):
    """A target has another type than those before: which of them is wrong is not known, so none is skipped."""


class Targets:
    """The targets of the batches of a plan."""

    def __init__(self, sources: Mapping[str, Mapping[str, Any]], streams: Streams, failed: FailedStreams | None) -> None:
        """``failed``: notes the streams whose targets cannot be made, and skips these targets. Without it they are a DataError."""
        self._failed = failed
        self._streams = streams
        self._targets = {name: Target(name, source, streams, failed) for name, source in sources.items()}

    def check(self) -> None:
        """Makes the targets of the first stream. Raises ValueError if that fails. A first segment may have none. If failures are
        skipped, one of the first streams must have a target: the same on all ranks."""
        for target in self._targets.values():
            if not target.of_segments:
                target.check(1 if self._failed is None else min(_TRIED, self._streams.streams))

    def of(self, batch: "Batch") -> Found:
        """Raises DataError if a target cannot be made."""
        return {name: target.of(batch) for name, target in self._targets.items()}


class Target:
    """The targets of one name. Raises ValueError for keys and arrays that do not fit."""

    def __init__(self, name: str, source: Mapping[str, Any], streams: Streams, failed: FailedStreams | None) -> None:
        self._failed = failed
        self._key = f"companions.{name}"
        unknown = source.keys() - set(_KEYS)
        if unknown:
            raise ValueError(f"{self._key}: unknown key {', '.join(sorted(map(str, unknown)))}; with per, the keys are {', '.join(_KEYS)}")
        if not callable(source.get("encode", _unchanged)):
            raise TypeError(f"{self._key}.encode must be a function, not {source['encode']!r}")
        if not isinstance(source["per"], str) or source["per"] not in _ENDS:
            raise ValueError(f"{self._key}.per = {source['per']!r} must be stream or segment")
        self._whole = streams.chunk is None
        self.of_segments = self._segments = source["per"] == "segment"
        if streams.slots == 0 and (self._segments or not self._whole):
            raise ValueError(f"{self._key}: per = {source['per']!r} needs the mode stateful"
                             f"{'' if self._segments else ', or whole streams (chunk=None)'}")
        self._flags = _ENDS[source["per"]]
        self._streams = streams
        if self._segments:
            streams.events(0)  # a server has none
        self._encode: Callable[[Any], Any] = source.get("encode", _unchanged)
        self._raw = self._source(source)
        self._dtype: np.dtype[Any] | None = None
        self._shape: tuple[int, ...] = ()  # that of an entry
        self._begins: dict[int, tuple[int, list[int]]] = {}  # by slot: a stream, and where its later segments begin

    def check(self, streams: int) -> None:
        """Raises ValueError if none of these first streams has a target."""
        for stream in range(streams):
            try:
                self.array(stream)
                return
            except ValueError:
                if stream == streams - 1:
                    raise

    def _source(self, source: Mapping[str, Any]) -> Callable[[int], Any]:
        """Gives the target of a stream before it is encoded."""
        given = [key for key in ("source", "path", "field") if key in source]
        if len(given) != 1:
            raise ValueError(f"{self._key} needs one of source, path and field")
        value = source[given[0]]
        if given[0] == "field":
            return lambda i: self._field(i, value)
        if given[0] == "path":
            folder = os.fspath(value)
            return lambda i: np.load(os.path.join(folder, self._streams.name(i) + ".npy"))
        if not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
            raise TypeError(f"{self._key}.source must be a list with a target for each stream, not {value!r}")
        count = self._streams.sources
        if len(value) != count:
            raise ValueError(f"{self._key} has {len(value)} targets for {count} streams")
        return lambda i: value[self._streams.place(i)[0]]

    def _field(self, i: int, field: str) -> Any:
        text = self._streams.meta(i)
        meta = json.loads(text) if text else {}
        if field not in meta:
            raise ValueError(f"its meta has no field {field!r}, but {', '.join(meta) or 'nothing'}")
        return meta[field]

    def of(self, batch: "Batch") -> tuple[NDArray[Any], NDArray[np.int32]]:
        found = {}
        for row, (stream, slot, begin) in self._ended(batch.framed, batch.marks):
            try:
                found[row] = self.array(stream, slot, begin)
            except ValueError as error:
                failure = DataError(str(error), "function", stream, self._streams.name(stream), batch.epoch, batch.step)
                if self._failed is None or isinstance(error.__cause__, _Misfit):
                    raise failure from error
                self._failed.note_target(failure)
        lengths = np.full(batch.rows, -1, np.int32)
        longest = max((len(array) for array in found.values()), default=0)
        arrays = np.zeros((batch.rows, longest, *self._shape), self._dtype or np.int64)
        for row, array in found.items():
            lengths[row] = len(array)
            arrays[row, : len(array)] = array
        return arrays, lengths

    def _ended(self, framed: Rows, marks: Rows) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """The rows that end a stream or a segment: their numbers in the batch, and stream, slot and begin."""
        ends = np.full(len(framed), True) if self._whole else framed["flags"] & self._flags != 0
        if len(marks) and not self._whole:  # a marker row is in the batch of the row with frames before it
            ends |= np.isin(framed["slot"], marks["slot"][marks["flags"] & self._flags != 0])
        places = framed["stream"], framed["slot"], framed["begin"]
        for row in np.flatnonzero(ends).tolist():
            yield row, (int(places[0][row]), int(places[1][row]), int(places[2][row]))

    def array(self, stream: int, slot: int = 0, begin: int = 0) -> NDArray[Any]:
        """The target of a stream, or of the segment whose body begins there. The first one determines the type."""
        try:
            given = self._raw(stream)
            if self._segments:
                number = self._number(stream, slot, begin)
                if number >= len(given):
                    raise ValueError(f"there are {len(given)} targets, and segment {number} has ended")
                given = given[number]
            return self._checked(self._encode(given))
        except Exception as error:
            raise ValueError(f"{self._key}: stream {self._streams.name(stream)!r}: {error}") from error

    def _checked(self, value: Any) -> NDArray[Any]:
        array: NDArray[Any] = np.asarray(value)
        if array.dtype.kind in "biu":  # files may have the smallest type that each of them needs
            array = array.astype(np.int64)
        if not array.ndim or array.dtype.kind not in "iuf":
            raise ValueError(f"{value!r} is no array of numbers; encode makes one of it")
        if self._dtype is None:
            if not len(array):
                return array.astype(np.int64)
            self._dtype, self._shape = (np.dtype(np.float32) if array.dtype == np.float64 else array.dtype), array.shape[1:]
        if array.size and (array.shape[1:] != self._shape or not np.can_cast(array.dtype, self._dtype, "same_kind")):
            raise _Misfit(f"{array.dtype} {list(array.shape)} does not fit to {self._dtype} [n{''.join(f', {n}' for n in self._shape)}]"
                             " of the streams before")
        return array.reshape(len(array), *self._shape)

    def _number(self, stream: int, slot: int, begin: int) -> int:
        """How many segments with frames the stream had before the one of this frame."""
        if self._begins.get(slot, (None,))[0] != stream:
            self._begins[slot] = stream, _begins_of(self._streams.events(stream))
        return bisect.bisect_right(self._begins[slot][1], begin)


def _begins_of(events: Iterable[tuple[str, int, int]]) -> list[int]:
    """The positions at which segments with frames follow others. The frames of events are counted without gaps."""
    begins: dict[int, int] = {}
    skipped = 0  # positions before a frame that are not those of frames
    for kind, count, frame in events:
        if kind == "open":  # the stream was opened anew at this position, which may lie before the frames so far
            skipped = count - frame
            begins = {at: begin for at, begin in begins.items() if begin <= count}
        skipped += count if kind == "gap" else 0
        if kind in ("flush", "reset", "gap") and frame:
            begins[frame] = frame + skipped
    return list(begins.values())


def _unchanged(value: Any) -> Any:
    return value
