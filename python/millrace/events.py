# SPDX-License-Identifier: Apache-2.0
"""The events that a client receives about its stream, in the order of the stream."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from millrace.errors import ConnectionLost
from millrace.json_text import value_of
from millrace.rows import Flag


@dataclasses.dataclass(frozen=True)
class Result:
    """A worker's answer to a row."""

    #: Number of rows of the stream before this one.
    seq: int
    #: Begin and end of the row's body, as positions in frames of the pipeline, and in seconds.
    begin: int
    end: int
    begin_s: float
    end_s: float
    #: Markers of the row: ``Flag.LAST in flags`` for the final result of a segment.
    flags: Flag
    #: The worker's answer: a JSON value, str or bytes; None if there is an error.
    data: Any
    #: None, "worker_failed" if the worker failed, or "too_long" if its answer is longer than a message may be.
    error: str | None = None
    #: Time of the row in each stage, if the stream was opened with ``explain=True``; None in results in bytes.
    explain: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Message:
    """A message of the worker, which does not answer a row: a token, a better text, audio of a synthesiser."""

    #: Number of messages of the stream before this one.
    number: int
    #: Number of the newest row that the worker had.
    seq: int
    #: A JSON value, str or bytes.
    data: Any


@dataclasses.dataclass(frozen=True)
class Flushed:
    """The last row of a flushed segment is done; ``mark`` is the number given to ``flush``."""

    mark: int


@dataclasses.dataclass(frozen=True)
class Rejected:
    """The service rejected a message. Its ``frames``, counted in frames of the pipeline, become a gap."""

    code: str
    message: str
    frames: int


@dataclasses.dataclass(frozen=True)
class Warned:
    """The stream continues, but its values are probably wrong. Only over WebSocket."""

    code: str
    message: str


@dataclasses.dataclass(frozen=True)
class Goaway:
    """The service will end the stream soon. Open it again after ``retry_after`` seconds."""

    retry_after: float


@dataclasses.dataclass(frozen=True)
class Resumed:
    """The connection was lost, and the stream continues over another one, without a loss. If ``kept`` is False, the
    service no longer had the stream: the model has lost its state."""

    kept: bool


@dataclasses.dataclass(frozen=True)
class Closed:
    """The last event: the number of frames, without gaps, and of rows with frames (``chunks``)."""

    frames: int
    chunks: int


@dataclasses.dataclass(frozen=True)
class Ready:
    """The first event: the stream is open. ``open`` receives it."""

    stream: str
    pipeline: str
    frames: int


Event: TypeAlias = Result | Message | Flushed | Rejected | Warned | Goaway | Resumed | Closed

_JSON, _ERROR = 1, 4  # kinds of answers


def _result(*fields: Any) -> Result:
    *position, flags, kind, answer, explain = fields
    data = value_of(answer) if kind == _JSON else None if kind == _ERROR else answer
    error = answer if kind == _ERROR else None
    seq, begin, end, begin_s, end_s = position
    explained = json.loads(explain) if explain else None
    return Result(seq, begin, end, begin_s, end_s, Flag(flags), data, error, explained)


def _message(number: int, seq: int, kind: int, data: Any) -> Message:
    return Message(number, seq, value_of(data) if kind == _JSON else data)


_KINDS: dict[str, Callable[..., Event | Ready]] = {
    "opened": Ready,
    "result": _result,
    "message": _message,
    "flushed": Flushed,
    "rejected": Rejected,
    "warned": Warned,
    "goaway": Goaway,
    "resumed": Resumed,
    "closed": Closed,
}


def event_of(fields: tuple[Any, ...]) -> Event | Ready:
    """Returns the event for a tuple of the extension."""
    return _KINDS[fields[0]](*fields[1:])


def ready_of(fields: tuple[Any, ...] | None) -> Ready:
    """Returns the first event of a stream. Raises ConnectionLost if the stream ended before it."""
    ready = event_of(fields) if fields else None
    if not isinstance(ready, Ready):
        raise ConnectionLost("the service ended the stream before it was open")
    return ready
