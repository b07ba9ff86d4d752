# SPDX-License-Identifier: Apache-2.0
"""Recorded streams: what ``millrace serve`` wrote to the directory of ``[recording]``.

    import millrace

    recordings = millrace.recordings.open("/var/lib/millrace")
    for stream in recordings:
        print(stream.number, stream.name, stream.length / stream.rate, "seconds")
        samples = stream.frames()         # an array [frames, values]
        for event in stream.events():
            print(event.kind, event.position)

The directory may be written meanwhile: ``recordings.refresh()`` shows what came since.
"""

import dataclasses
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace import _core
from millrace.elements import DTYPES
from millrace.json_text import value_of

__all__ = ["Answer", "Event", "Message", "Missing", "Part", "Recordings", "Stream", "open"]


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream, as its chunker received it.

    An event with the cause "recorder" replaces a part that is missing (``Stream.missing``).
    """

    kind: str  #: open frames size flush reset gap end abort message set
    cause: str  #: client endpoint load drawn rejected connection drain recorder
    count: int  #: frames: of a ``gap`` lost, of a ``size`` of a body, of an ``open`` its position; of ``data`` the bytes
    mark: int | None  #: number that the client gave to a ``flush``
    at: float  #: when the service read the event: seconds since the stream was opened
    position: int  #: frames of the stream before the event, with those that gaps skipped
    frame: int  #: frames of the stream before the event, without gaps: an index into ``Stream.frames()``
    data: Any = None  #: a client's ``message`` to the worker: a JSON value; of a ``set`` the options that it changed


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """A worker's answer to a row. Answers are recorded if the pipeline has ``record = { answers = true }``."""

    seq: int  #: number of rows of the stream before the row
    batch: int  #: number of the batch in which the service handed the row over
    kind: str  #: json text bytes error
    data: Any  #: a JSON value, str or bytes; for an error its text


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """A message of a worker to the client, which does not answer a row. Recorded as answers are."""

    seq: int  #: number of the newest row that the worker had
    number: int  #: number of messages of the stream before it
    kind: str  #: json text bytes
    data: Any  #: a JSON value, str or bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Missing:
    """A part of a stream that was not recorded, or cannot be read."""

    begin: int  #: position before the part
    end: int  #: position after it
    events: int  #: number of events in it; 0 if that is not known
    why: str  #: a phrase, such as "not recorded: queue_full", "damaged: file 3" or "deleted"


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A recording of a stream. A stream that was lost and opened anew has several."""

    number: int  #: number of the recording in its directory
    epoch: int | None  #: number of the connection that opened it; None if the stream ends with its connection
    begin: int  #: position at which it begins: it replaces the frames of the parts before it from there on
    rows: int  #: number of rows of the stream before it: it replaces the later rows of the parts before it
    frames: int  #: recorded frames, also those that the next part has again


def _value_of(kind: str, data: str | bytes) -> Any:
    return value_of(data) if kind == "json" else data


class Stream:
    """A recorded stream. A stream that is being recorded grows with ``Recordings.refresh()``.

    A stream that was lost and opened anew is one stream, of several ``parts``. Its events and frames come once. An event
    ``open`` between them begins a part, at the position ``count``: the model of this part had a fresh state.

    A stream keeps the files that it has read: it stays readable if they are deleted. Threads may share it.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.RecordedStream) -> None:
        self._core = core

    @property
    def number(self) -> int:
        """Number of the stream, which no other stream of the directory ever has: that of its first part."""
        return self._core.number

    @property
    def name(self) -> str:
        """Name of the stream. Several streams may have had it, one after the other."""
        return self._core.name

    @property
    def meta(self) -> dict[str, Any]:
        """The options that the client sent when it opened the stream; {} by default."""
        return _object(self._core.options)

    @property
    def pipeline(self) -> str:
        """Name of the pipeline."""
        return self._core.pipeline

    @property
    def rule(self) -> dict[str, Any]:
        """The chunk rule, as ``millrace.chunks`` takes it; lengths in frames."""
        return _object(self._core.rule)

    @property
    def client(self) -> dict[str, Any]:
        """The client's own format: format, rate, channels or dim."""
        return _object(self._core.client)

    @property
    def opened(self) -> float:
        """When the stream was opened, as in ``time.time()``."""
        return self._core.opened

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values: int16, float16 or float32."""
        return np.dtype(DTYPES[self._core.element])

    @property
    def values(self) -> int:
        """Values of a frame: channels of audio, or the length of a feature vector."""
        return self._core.values

    @property
    def rate(self) -> float:
        """Frames per second."""
        return self._core.rate

    @property
    def features(self) -> bool:
        """True if a frame is a feature vector, False if it is an audio sample."""
        return self._core.features

    @property
    def key(self) -> str | None:
        """32 digits that name the stream, also if it is opened anew; None if the stream ends with its connection."""
        return self._core.key

    @property
    def parts(self) -> list[Part]:
        """The recordings of the stream, in order."""
        return [Part(*part) for part in self._core.parts]

    @property
    def length(self) -> int:
        """Number of recorded frames. If a file is damaged, ``frames()`` has fewer. If the stream has several parts, the
        stream is read to count them."""
        return self._core.length

    @property
    def open(self) -> bool:
        """True while a service is recording the stream."""
        return self._core.open

    @property
    def whole(self) -> bool:
        """True if all events from ``open`` to the end were recorded.

        If a file is damaged or deleted, that shows when the stream is read: then it is False after ``frames()`` or
        ``events()``.
        """
        return self._core.whole

    def events(self) -> list[Event]:
        """Returns all events in order. ``frames`` events that follow each other are one."""
        return [Event(*event[:-1], value_of(event[-1]) if event[-1] else None) for event in self._core.events()]

    def frames(self, begin: int = 0, end: int | None = None) -> NDArray[Any]:
        """Returns the frames from ``begin`` to before ``end`` (default: all) as an array ``[frames, values]``.

        Frames are counted without gaps. The array cannot be written. If the frames lie in one MCAP chunk, the array
        is the file's memory, otherwise a copy.

        Raises ValueError unless 0 <= begin <= end <= the number of frames.
        """
        if begin < 0 or (end is not None and end < 0):
            raise ValueError(f"frames({begin}, {end}): must be at least 0")
        return self._core.frames(begin, end)

    def answers(self) -> list[Answer]:
        """Returns the recorded answers in order."""
        return [Answer(seq, batch, kind, _value_of(kind, data)) for seq, batch, kind, data in self._core.answers()]

    def messages(self) -> list[Message]:
        """Returns the recorded messages of workers in order."""
        return [Message(seq, number, kind, _value_of(kind, data)) for seq, number, kind, data in self._core.messages()]

    def missing(self) -> list[Missing]:
        """Returns the parts that were not recorded, or cannot be read, in order. Empty if all is there."""
        return [Missing(*part) for part in self._core.missing()]

    def __repr__(self) -> str:
        return f"<millrace.recordings.Stream {self.number} {self.name!r}: {self.length} frames>"


class Recordings:
    """The recorded streams of a directory, by number. ``open`` makes it.

    ``len(recordings)`` is the number of streams, ``recordings[17]`` is the stream with number 17 (KeyError if there
    is no such stream), also by the number of a later part of it, and an iteration gives all of them. Threads may share it.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._core = _core.Recordings(os.fspath(directory))

    def __len__(self) -> int:
        return self._core.count()

    def __iter__(self) -> Iterator[Stream]:
        return map(Stream, self._core.streams())

    def __getitem__(self, number: int) -> Stream:
        found = self._core.find(number) if number >= 0 else None
        if found is None:
            raise KeyError(number)
        return Stream(found)

    def named(self, name: str) -> list[Stream]:
        """Returns the streams with this name, by number."""
        return [Stream(stream) for stream in self._core.named(name)]

    @property
    def problems(self) -> list[str]:
        """Files that cannot be read at all, each as a line that names it. They are left out."""
        return self._core.problems()

    def refresh(self) -> bool:
        """Reads what was written, sealed or deleted since. Returns True if anything changed."""
        return self._core.refresh()


def open(directory: str | os.PathLike[str]) -> Recordings:
    """Opens a directory of recordings. Raises OSError with a line that names it if it cannot be read.

    Raises the soft limit on file descriptors (RLIMIT_NOFILE) of the process to the hard limit. All functions raise
    OSError if a file cannot be opened or read; a file that was deleted is a missing part instead.

    Reads the summaries of all files; the list of streams stays in memory (about 1 kB per stream).
    """
    return Recordings(directory)


def _object(text: str) -> dict[str, Any]:
    """Returns a JSON object; {} if the text is empty."""
    found: dict[str, Any] = json.loads(text) if text else {}
    return found
