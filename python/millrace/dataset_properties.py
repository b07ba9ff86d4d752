# SPDX-License-Identifier: Apache-2.0
"""The properties of a Dataset that its plan determines."""

import abc
import dataclasses
import json
from typing import Any

import numpy as np

from millrace import _core
from millrace.dataset_feed import Feed
from millrace.elements import COMPANION_DTYPES, DTYPES
from millrace.failed_streams import FailedStream, FailedStreams
from millrace.joined_batch import Taken


@dataclasses.dataclass(frozen=True, slots=True)
class Companion:
    """The form of a companion's arrays. One of the two ratios is 1."""

    name: str
    dtype: np.dtype[Any]
    values: int  #: values of an entry
    frames_per_entry: int
    entries_per_frame: int

    def entries_in(self, begin: Any, size: Any) -> tuple[Any, Any]:
        """The first entry of a body, and the number of its entries. The arguments may be arrays, such as
        ``batch.framed["begin"]`` and ``batch.framed["size"]``; ``begin`` counts frames without gaps."""
        begin, size = np.asarray(begin, np.int64), np.asarray(size, np.int64)  # those of `framed` are unsigned
        first = -(-begin // self.frames_per_entry) * self.entries_per_frame
        return first, -(-(begin + size) // self.frames_per_entry) * self.entries_per_frame - first


class DatasetProperties(abc.ABC):
    """Properties of the batches and streams of a Dataset."""

    _failed: FailedStreams
    _resets: bool  # the next batch begins with fresh states

    @abc.abstractmethod
    def _open(self) -> Feed: ...

    def _taken(self, core: Taken) -> None:
        """A batch was taken."""
        self._resets = False
        if core.failed:
            self._failed.note(core.failed)

    @property
    def failed(self) -> list[FailedStream]:
        """The streams that this process has skipped (``on_error="skip"``), each once per epoch; the last 10,000."""
        return self._failed.last

    @property
    def slots(self) -> int:
        """Number of states that the model of this rank keeps. Padding rows have this number as slot: allocate one more.
        0: the rows are stateless."""
        return self._open().slots

    @property
    def rows(self) -> int:
        """Largest number of rows of a batch."""
        return self._open().rows

    @property
    def width(self) -> int:
        """Largest number of columns of a batch."""
        return self._open().width

    @property
    def values(self) -> int:
        """Length of the last axis of ``batch.data``: channels of audio, or dim of features."""
        return self._open().frame_type[1]

    @property
    def channels(self) -> int | None:
        """Channels of an audio frame, or None if the streams have features."""
        return None if self._open().frame_type[3] else self.values

    @property
    def dim(self) -> int | None:
        """Values of a feature vector, or None if the streams have audio."""
        return self.values if self._open().frame_type[3] else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of ``batch.data``: int16, float16 or float32."""
        return np.dtype(DTYPES[self._open().frame_type[0]])

    @property
    def device(self) -> str:
        """Where batches are: host, or cuda:N."""
        return self._open().device

    @property
    def rate(self) -> float:
        """Frames per second."""
        return self._open().frame_type[2]

    @property
    def chunk(self) -> dict[str, Any] | None:
        """The chunk rule, as a ``spec`` for ``millrace.chunks``; lengths in frames. None if rows are whole streams."""
        return self._open().chunk

    @property
    def companions(self) -> dict[str, Companion]:
        """The companions of the batches, by name."""
        return {name: Companion(name, np.dtype(COMPANION_DTYPES[element]), *shape)
                for name, element, *shape in self._open().companions}

    @property
    def streams(self) -> int:
        """Number of streams."""
        return self._open().streams

    def name(self, stream: int) -> str:
        """The name of a stream. Streams are numbered from 0, through all sources. Data of a server have the names of the
        streams in the batches so far, and raise LookupError for others."""
        return self._open().name(stream)

    def meta(self, stream: int) -> dict[str, Any]:
        """The fields of a stream in its manifest, or the ``meta`` of its object; {} by default. Data of a server: as
        ``name``."""
        meta = self._open().meta(stream)
        return json.loads(meta) if meta else {}
