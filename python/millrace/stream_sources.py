# SPDX-License-Identifier: Apache-2.0
"""Streams of Python objects, as the extension reads them."""

import copy
import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from millrace.elements import DTYPES

if TYPE_CHECKING:
    from millrace import _core
    from millrace.processes import Processes

#: Events as for ``millrace.chunks``.
Events: TypeAlias = Iterable[tuple[str, int]]
#: An array in memory, or the file, offset and type of an array that is there as it is in memory.
Place: TypeAlias = NDArray[Any] | tuple[str, int, np.dtype[Any]] | None

#: Values of an item, their type, and frames per second if the source knows them.
Form: TypeAlias = tuple[int, np.dtype[Any], float | None]

_ELEMENTS = {**{dtype: element for element, dtype in DTYPES.items()}, "float64": "f32"}


@runtime_checkable
class Streams(Protocol):
    """Streams that a Dataset trains on. A stream has a number, 0 or more.

    An object may also have these:

    - ``meta(i)``: a dict of JSON values that belongs to the stream
    - ``events(i)``: all events of the stream, as for ``millrace.chunks``; None if there are only frames
    - ``companions``: a dict of names and sources, as the argument of Dataset
    - ``rate``: frames per second
    - ``unit(i)``: a text; a split keeps streams with the same text together. Default: the name
    """

    def __len__(self) -> int:
        """Number of streams."""
        ...

    def frames(self, i: int) -> int:
        """Length of the stream in frames."""
        ...

    def name(self, i: int) -> str:
        """Name of the stream."""
        ...

    def read(self, i: int, begin: int, n: int) -> Any:
        """The frames [begin, begin + n) as an array [n] or [n, values]."""
        ...


class ReadsInProcesses:
    """A source whose ``read`` may be called by the processes of a pool. Can be pickled for them if the object can."""

    pool: "_core.ProcessPool | None" = None  # they read for the extension; None: this process does
    source: int = 0  #: number of the source in the pool

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        raise NotImplementedError

    def read_in(self, processes: "Processes | None", name: str) -> None:
        """From now on the processes read."""
        if processes is not None:
            self.source = processes.add(name, copy.copy(self))
            self.pool = processes.pool

    def serve(self, request: dict[str, Any], given: list[NDArray[np.uint8]]) -> list[NDArray[Any]]:
        """The call of another process."""
        return [self.read(request["stream"], request["begin"], request["count"])]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("place", "_place", "_form")}


class SourceOfStreams(ReadsInProcesses):
    """The frames, names, meta and events of an object, for the extension. Its values have the type ``element``."""

    def __init__(self, streams: Any, element: str | None) -> None:
        sample = _sample(streams)
        known = _ELEMENTS.get(sample.dtype.name)
        if known is None:
            raise ValueError(f"frames must be int16, float16 or float32, not {sample.dtype}: convert them in read()")
        self.element = element or known
        if self.element == "s16" and known != "s16":
            raise ValueError(f'frames="s16" needs int16, and the streams have {sample.dtype}: use frames="f32"')
        #: Values of a frame.
        self.values = 1 if sample.ndim == 1 else sample.shape[1]
        self._dtype = np.dtype(DTYPES[self.element])
        self._scale = np.float32(1 / 32768) if known == "s16" and self.element != "s16" else None
        self._integers = known == "s16"
        self._read = streams.read
        self._form: Callable[[int], Form | None] | None = getattr(streams, "_form", None)
        self._first: tuple[int, Form] | None = None
        self._meta = getattr(streams, "meta", None)
        self._frames: Callable[[int], int] = streams.frames
        #: The functions of the object, as they are.
        self.name: Callable[[int], str] = streams.name
        self.unit: Callable[[int], str] | None = getattr(streams, "unit", None)
        self.events: Callable[[int], Events | None] = getattr(streams, "events", None) or _no_events
        place: Callable[[int], Place] | None = getattr(streams, "_place", None)
        if place is not None:
            self.place = lambda i: in_place(place(i), self._dtype)

    def frames(self, i: int) -> int:
        """The length of the stream. Raises ValueError if its frames are not those of the streams before."""
        n = operator.index(self._frames(i))
        if n < 0:
            raise ValueError(f"stream {self.name(i)!r}: frames({i}) is {n}; it must be 0 or more")
        form = self._form(i) if n and self._form is not None else None
        if form is not None:
            self._first = self._first or (i, form)
            differs = form[0] != self.values or (form[1].kind == "i") != self._integers
            if differs or form[2] != self._first[1][2]:
                first, other = self._first
                raise ValueError(f"stream {self.name(i)!r} has {_form_text(form)}; stream {self.name(first)!r} has"
                                 f" {_form_text(other)}")
        return n

    def meta(self, i: int) -> str:
        """A JSON object, or an empty text."""
        meta = self._meta(i) if self._meta is not None else None
        if not meta:
            return ""
        if not isinstance(meta, Mapping):
            raise TypeError(f"meta({i}) must be a dict, not {meta!r}")
        return json.dumps(meta, ensure_ascii=False, separators=(",", ":"))

    def read(self, i: int, begin: int, n: int) -> NDArray[Any]:
        """The frames, contiguous, and in the type of the catalog."""
        what = f"stream {self.name(i)!r}: read({i}, {begin}, {n})"
        array = checked(self._read(i, begin, n), what, n, self.values)
        if (array.dtype.kind == "i") != self._integers:
            raise ValueError(f"{what} returned {array.dtype}; the streams before have"
                             f" {'integers' if self._integers else 'floats'}")
        if self._scale is not None:
            array = np.multiply(array, self._scale)
        return converted(array, self._dtype, what)


def _sample(streams: Any) -> NDArray[Any]:
    """A few frames of the first stream that has frames."""
    for i in range(len(streams)):
        n = operator.index(streams.frames(i))
        if n:
            sample = np.asarray(streams.read(i, 0, 1))
            if sample.ndim not in (1, 2) or len(sample) != 1:
                raise ValueError(f"read({i}, 0, 1) must return an array [1] or [1, values], not {sample.shape}")
            return sample
    return np.zeros(1, np.int16)


def form_of(array: NDArray[Any]) -> Form | None:
    """The form of an array [items] or [items, values]; None if it is empty, which has every form."""
    if not len(array):
        return None
    return math.prod(array.shape[1:]), array.dtype, None


def _form_text(form: Form) -> str:
    values, dtype, rate = form
    return f"frames of {values} value{'s' * (values != 1)} ({dtype.name})" + (f" at {rate:g} Hz" if rate else "")


def _no_events(i: int) -> None:
    return None


def in_place(place: Place, dtype: np.dtype[Any]) -> NDArray[Any] | tuple[str, int] | None:
    """The place of an array for the extension, or None if its bytes are not those of a contiguous array of this type."""
    if isinstance(place, tuple):
        path, offset, found = place
        return (path, offset) if found == dtype else None
    if place is None or place.dtype != dtype or not place.flags.c_contiguous:
        return None
    return place


def checked(array: Any, name: str, n: int, values: int) -> NDArray[Any]:
    """The array. Raises ValueError if its shape is not [n] or [n, values]."""
    found: NDArray[Any] = np.asarray(array)
    if found.shape != (n, values) and (found.shape != (n,) or values != 1):
        raise ValueError(f"{name} returned an array of the shape {list(found.shape)} instead of {[n, values]}")
    return found


def converted(array: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """The array, contiguous and of this type. Raises ValueError if values would be lost."""
    if array.dtype != dtype and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ValueError(f"{name} returned {array.dtype} instead of {dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        contiguous: NDArray[Any] = np.ascontiguousarray(array, dtype)
    if not np.can_cast(array.dtype, dtype):
        lost = np.isfinite(array) & ~np.isfinite(contiguous) if dtype.kind == "f" else array != contiguous
        if lost.any():
            raise ValueError(f"{name} returned {array[lost].flat[0]}, which {dtype} cannot hold")
    return contiguous
