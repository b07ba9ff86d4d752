# SPDX-License-Identifier: Apache-2.0
"""What a service tells a client of its stream, in the order of the stream."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from millrace.errors import ConnectionLost
from millrace.rows import Flag


@dataclasses.dataclass(frozen=True)
class Result:
    """A worker's answer to a row."""

    seq: int
    #: Where the row's body lies, in frames of the pipeline, and in seconds.
    begin: int
    end: int
    begin_s: float
    end_s: float
    flags: Flag
    #: The worker's JSON, text (str) or bytes; None where there is an error.
    data: Any
    #: "worker_failed" where it failed, "too_long" where its answer was longer than a message may be.
    error: str | None = None
    #: Where the time of the row went, if the stream was opened with ``explain=True``. Results in bytes have none.
    explain: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Flushed:
    """The last row of the segment that the flush with this mark ended is done."""

    mark: int


@dataclasses.dataclass(frozen=True)
class Rejected:
    """Something that was sent was refused; its frames, of the pipeline, count as a gap."""

    code: str
    message: str
    frames: int


@dataclasses.dataclass(frozen=True)
class Warned:
    """The stream goes on, but its values are probably wrong. Only over WebSocket."""

    code: str
    message: str


@dataclasses.dataclass(frozen=True)
class Goaway:
    """The service will end the stream soon; come again after so many seconds."""

    retry_after: float


@dataclasses.dataclass(frozen=True)
class Closed:
    """The last event: how many frames and rows with frames the stream had."""

    frames: int
    chunks: int


@dataclasses.dataclass(frozen=True)
class Ready:
    """The first event, which `open` takes."""

    stream: str
    pipeline: str
    frames: int


Event: TypeAlias = Result | Flushed | Rejected | Warned | Goaway | Closed

_JSON, _ERROR = 1, 4  # kinds of answers


def _result(*fields: Any) -> Result:
    *place, flags, kind, answer, explain = fields
    data = json.loads(answer) if kind == _JSON else None if kind == _ERROR else answer
    error = answer if kind == _ERROR else None
    seq, begin, end, begin_s, end_s = place
    explained = json.loads(explain) if explain else None
    return Result(seq, begin, end, begin_s, end_s, Flag(flags), data, error, explained)


_KINDS: dict[str, Callable[..., Event | Ready]] = {
    "opened": Ready,
    "result": _result,
    "flushed": Flushed,
    "rejected": Rejected,
    "warned": Warned,
    "goaway": Goaway,
    "closed": Closed,
}


def event_of(fields: tuple[Any, ...]) -> Event | Ready:
    """An event as the extension gives it."""
    return _KINDS[fields[0]](*fields[1:])


def ready_of(fields: tuple[Any, ...] | None) -> Ready:
    """The first event of a stream."""
    ready = event_of(fields) if fields else None
    if not isinstance(ready, Ready):
        raise ConnectionLost("the service ended the stream before it was open")
    return ready
