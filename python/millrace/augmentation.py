# SPDX-License-Identifier: Apache-2.0
"""The function that changes streams before they are cut."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from millrace.elements import COMPANION_DTYPES, DTYPES
from millrace.stream_sources import checked, converted


@dataclasses.dataclass(slots=True)
class WholeStream:
    """A whole stream, as ``augment`` gets and returns it. The arrays may be changed in place, or replaced."""

    frames: NDArray[Any]  #: [frames, channels or dim] in the catalog's type
    companions: dict[str, NDArray[Any]]  #: [entries, values] by name
    meta: dict[str, Any]  #: the meta of the stream; changes have no effect
    name: str  #: name of the stream
    stream: int  #: number of the stream in the catalog
    epoch: int  #: number of the epoch
    rate: float  #: frames per second
    copy: int = 0  #: number of this copy, if the epoch repeats the stream


Augment = Callable[[WholeStream, np.random.Generator], WholeStream]


class Formats(Protocol):
    """The types of the frames and of the companions of a catalog."""

    @property
    def frame_type(self) -> tuple[str, int, float, bool]: ...

    @property
    def companions(self) -> list[tuple[str, str, int, int, int]]: ...


class SourceOfChanges:
    """Calls ``augment`` for the extension, in this process or in others. Can be pickled if ``augment`` can."""

    def __init__(self, augment: Augment, seed: int, catalog: "Formats") -> None:
        self._augment = augment
        self._lengths = getattr(augment, "frames", None)
        self._seed = seed
        element, self._values, self._rate, _ = catalog.frame_type
        self._dtype = np.dtype(DTYPES[element])
        self._companions = catalog.companions

    @property
    def changes_lengths(self) -> bool:
        return self._lengths is not None

    def frames(self, epoch: int, copy: int, name: str, frames: int) -> int:
        """The number of frames of the stream in this epoch."""
        if self._lengths is None:
            return frames
        changed = int(self._lengths(frames, self._generator(epoch, name, copy)))
        if changed < 0:
            raise ValueError(f"augment.frames() returned {changed} for stream {name!r}")
        return changed

    def change(self, epoch: int, stream: int, copy: int, name: str, meta: str, frames: NDArray[Any],
               companions: list[NDArray[Any]]) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """The frames and companions that ``augment`` returns, contiguous, and in their types."""
        wanted = self.frames(epoch, copy, name, len(frames))
        given = WholeStream(frames, {entry[0]: array for entry, array in zip(self._companions, companions)},
                            json.loads(meta) if meta else {}, name, stream, epoch, self._rate, copy)
        changed = self._augment(given, self._generator(epoch, name, copy))
        if not isinstance(changed, WholeStream):
            raise TypeError(f"augment must return the stream, not {changed!r}")
        if len(changed.frames) != wanted:
            reason = "" if self._lengths is not None else "; augment.frames(n, generator) may give another number"
            raise ValueError(f"augment returned {len(changed.frames)} frames instead of {wanted}{reason}")
        arrays = []
        for entry, before in zip(self._companions, companions):
            if entry[0] not in changed.companions:
                raise ValueError(f"augment returned no companion {entry[0]!r}")
            what = f"augment: companion {entry[0]!r}"
            n = -(-wanted // entry[3]) * entry[4]
            arrays.append(converted(checked(changed.companions[entry[0]], what, n, entry[2]), before.dtype, what))
        array = checked(changed.frames, "augment: frames", wanted, frames.shape[1])
        return converted(array, frames.dtype, "augment: frames"), arrays

    def serve(self, request: dict[str, Any], given: list[NDArray[np.uint8]]) -> list[NDArray[Any]]:
        """The call of another process. A server also asks for lengths."""
        if "changes_lengths" in request:
            return [np.array([self.changes_lengths], np.uint64)]
        if "frames" in request:
            return [np.array([self.frames(request["epoch"], request["copy"], request["name"], request["frames"])], np.uint64)]
        frames = given[0].view(self._dtype).reshape(-1, self._values)
        companions = [array.view(COMPANION_DTYPES[entry[1]]).reshape(-1, entry[2])
                      for entry, array in zip(self._companions, given[1:])]
        changed, arrays = self.change(request["epoch"], request["stream"], request["copy"], request["name"],
                                      request["meta"], frames, companions)
        return [changed, *arrays]

    def _generator(self, epoch: int, name: str, copy: int) -> np.random.Generator:
        hashed = hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=8).digest()
        copies = [copy] if copy else []  # a stream that is not repeated has the draws of one that is
        return np.random.default_rng([self._seed, epoch, int.from_bytes(hashed, "little"), *copies])
