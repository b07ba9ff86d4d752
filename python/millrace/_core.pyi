# SPDX-License-Identifier: Apache-2.0
# The types of the extension: millrace::Worker, millrace::Client and the chunker, wrapped by the Python files here.
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace.description import Welcome

version: str
row_fields: dict[str, Any]
reasons: list[str]
client_settings: tuple[int, int, float, float, float, float, bool, float]

def chunks(
    spec: dict[str, int | str], events: Iterable[Sequence[str | int]], rate: float | None
) -> list[list[int]]: ...
def values(
    spec: dict[str, int | str], events: Iterable[Sequence[str | int]], rate: float | None
) -> list[list[int] | None]: ...
def plain_values(array: Any) -> Any: ...

class Stream:
    over: bool
    number: int
    def send(self, frames: bytes | bytearray | memoryview | NDArray[Any], seconds: float | None) -> bool: ...
    def flush(self, mark: int | None, seconds: float | None) -> bool: ...
    def reset(self, seconds: float | None) -> bool: ...
    def gap(self, frames: int, seconds: float | None) -> bool: ...
    def message(self, data: str, seconds: float | None) -> bool: ...
    def set(self, options: str, seconds: float | None) -> bool: ...
    def end(self, seconds: float | None) -> bool: ...
    def next(self, seconds: float | None) -> tuple[Any, ...] | None: ...
    def close(self) -> None: ...

class Client:
    def __init__(
        self,
        url: str,
        token: str,
        headers: list[tuple[str, str]],
        ca: str,
        certificate: str,
        key: str,
        unsent: int,
        untaken: int,
        taking: float,
        connect: float,
        keepalive: float,
        silence: float,
        resume: bool,
        resume_window: float,
    ) -> None: ...
    def close(self) -> None: ...
    def start(
        self,
        pipeline: str,
        id: str,
        format: str | None,
        rate: float | None,
        channels: int | None,
        dim: int | None,
        channel: str | None,
        chunk: str | None,
        options: str,
        record: bool,
        explain: bool,
    ) -> Stream: ...
    def descriptor(self) -> int: ...
    def changed(self) -> list[int]: ...

class Pending: ...

pending: Pending

class Attachment:
    ended: bool
    company: int
    streams: tuple[int, int]
    device: str
    welcome: Welcome
    def __init__(
        self,
        url: str,
        pipeline: str,
        name: str,
        credits: int,
        device: str,
        wait: float,
        on_wait: Callable[[str], object],
        meanwhile: Callable[[], object],
    ) -> None: ...
    def next(self, seconds: float | None) -> Batch | None: ...
    def answer(self, stream: int, seq: int, data: Any, endpoint: bool, encode: Callable[[Any], str]) -> None: ...
    def send(self, stream: int, data: Any, seconds: float | None, encode: Callable[[Any], str]) -> bool: ...
    def bye(self) -> None: ...
    def close(self) -> None: ...
    def interrupt(self) -> None: ...

class Description:
    welcome: Welcome
    sizes: list[tuple[int, int]]
    def __init__(
        self,
        url: str,
        pipeline: str,
        name: str,
        wait: float,
        on_wait: Callable[[str], object],
        meanwhile: Callable[[], object],
    ) -> None: ...

class WarmUp:
    def __init__(self, description: Description, device: str) -> None: ...
    def next(self, seconds: float | None) -> Batch | None: ...

class Batch:
    open: bool
    id: int
    trigger: str
    closed: int
    taken: int
    rows: int
    width: int
    data: NDArray[Any] | DeviceMemory
    slot: NDArray[np.int32] | DeviceMemory
    left: NDArray[np.int32] | DeviceMemory
    size: NDArray[np.int32] | DeviceMemory
    right: NDArray[np.int32] | DeviceMemory
    flags: NDArray[np.uint8] | DeviceMemory
    reset: NDArray[np.bool_] | DeviceMemory
    framed: bytes
    marks: bytes
    opened: list[tuple[int, int, str, str]]
    messages: list[tuple[int, int, int, str, bool]]
    failed: str
    def use_on(self, stream: int) -> None: ...
    def fail(self, error: BaseException) -> None: ...
    def done(
        self,
        answers: Iterable[Any] | None,
        marks: Iterable[Any] | None,
        endpoint: Iterable[Any] | None,
        encode: Callable[[Any], str],
    ) -> list[str]: ...
    epoch: int
    step: int
    steps: int
    companions: dict[str, NDArray[Any] | DeviceMemory]

class DeviceMemory:
    ordinal: int
    address: int
    shape: tuple[int, ...]
    dtype: str
    def use_on(self, stream: int) -> None: ...
    def capsule(self) -> object: ...

class RecordedStream:
    number: int
    name: str
    pipeline: str
    rule: str
    options: str
    client: str
    opened: float
    element: str
    values: int
    rate: float
    features: bool
    key: str | None
    parts: list[tuple[int, int | None, int, int, int]]
    length: int
    open: bool
    whole: bool
    def events(self) -> list[tuple[str, str, int, int | None, float, int, int, str]]: ...
    def missing(self) -> list[tuple[int, int, int, str]]: ...
    def answers(self) -> list[tuple[int, int, str, str | bytes]]: ...
    def messages(self) -> list[tuple[int, int, str, str | bytes]]: ...
    def frames(self, begin: int, end: int | None) -> NDArray[Any]: ...

class Recordings:
    def __init__(self, path: str) -> None: ...
    def refresh(self) -> bool: ...
    def problems(self) -> list[str]: ...
    def find(self, number: int) -> RecordedStream | None: ...
    def named(self, name: str) -> list[RecordedStream]: ...
    def count(self) -> int: ...
    def streams(self) -> list[RecordedStream]: ...

class Catalog:
    size: int
    all_frames: int  # the frames of all streams together
    extent: str
    frame_type: tuple[str, int, float, bool]
    companions: list[tuple[str, str, int, int, int]]
    empty_streams: str | None
    def name(self, stream: int) -> str: ...
    def meta(self, stream: int) -> str: ...
    def frames(self, stream: int) -> int: ...
    sources: int
    def place(self, stream: int) -> tuple[int, int]: ...
    def selected(self, keys: DatasetKeys) -> Catalog: ...
    def events(self, stream: int) -> list[tuple[str, int, int]]: ...
    def with_files(self, sources: Iterable[tuple[str, str, int | None, int | None, str | None]]) -> Catalog: ...
    def with_objects(self, entries: Iterable[tuple[str, str, int, int, int, object]]) -> Catalog: ...

def is_file_of_audio(path: str) -> bool: ...
def open_files(
    paths: Iterable[str],
    element: str | None,
    deep: str,
    rate: float | None,
    channels: int | None,
    convert: bool,
    mapped: bool,
    pipeline: str,
    companions: Iterable[tuple[str, str, int | None, int | None, str | None]],
    progress: Callable[[int, int], object],
    warn: Callable[[str], object],
    extent: str,
    cuts_events: bool,
) -> Catalog: ...
def of_object(
    source: object,
    streams: int,
    element: str,
    values: int,
    rate: float,
    features: bool,
    mapped: bool,
    progress: Callable[[int, int], object],
) -> Catalog: ...
def join(catalogs: list[Catalog]) -> Catalog: ...

class CompanionRatio:
    def add(self, frames: int, entries: int) -> bool: ...
    def text(self) -> str: ...
    def values(self) -> tuple[int, int] | None: ...

class DatasetKeys:
    companions: list[tuple[str, str, int | None, int | None, str | None]]
    def __init__(self, given: dict[str, Any]) -> None: ...

class ProcessPool:
    def __init__(self, processes: int, seconds: float, start: Callable[[int], tuple[int, int]]) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...

class Plan:
    slots: int
    rows: int
    width: int
    element: str
    chunk: str | None
    origin: str
    def __init__(
        self, keys: DatasetKeys, catalog: Catalog, function: object | None, changes_lengths: bool,
        pool: ProcessPool | None, source: int,
    ) -> None: ...
    def padding_warning(self, rows: int, padding_rows: int, frames: int) -> str | None: ...

def difference_of(expected: str, other: str) -> str: ...

class Loader:
    at_end: bool
    left_behind: bool
    position: tuple[int, int]
    stats: dict[str, Any]
    def __init__(self, plan: Plan, stride: int, first_step: int, former: Loader | None) -> None: ...
    def next(self, seconds: float | None) -> Batch | None: ...
    def seek(self, epoch: int, step: int, resets: bool) -> None: ...
    def stop(self) -> None: ...
    def steps(self, epoch: int) -> int: ...
    def totals(self) -> tuple[int, int, int]: ...

class Trainer:
    ended: bool
    device: str
    welcome: Welcome
    plan: str
    counts: tuple[int, int, int, int]
    kept: int
    def __init__(
        self,
        url: str,
        name: str,
        credits: int,
        device: str,
        position: tuple[int, int, int, int, int, bool, bool],
        wait: float,
        on_wait: Callable[[str], object],
        meanwhile: Callable[[], object],
    ) -> None: ...
    def next(self, seconds: float | None) -> Batch | None: ...
    def leave(self) -> None: ...
