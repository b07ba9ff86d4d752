# SPDX-License-Identifier: Apache-2.0
"""A client for asyncio: the one of client.py, which waits by the event loop."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Generator
from types import TracebackType
from typing import Any, TypeVar

from millrace import _core
from millrace.client import log_event
from millrace.events import Closed, Event, Ready, Result, event_of, ready_of
from millrace.request import Frames, Request, mark_of, whole
from millrace.settings import ClientSettings

_T = TypeVar("_T")


class _Changes:
    """Wakes the tasks that wait for a stream, by the client's one descriptor. It is watched while
    somebody waits, so that nothing is left behind in a loop."""

    def __init__(self, client: _core.Client) -> None:
        self._client = client
        self._descriptor = client.descriptor()
        self._watching: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}

    async def wait(self, stream: int) -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if self._watching is None:
            loop.add_reader(self._descriptor, self._wake)
            self._watching = loop
        self._waiting.setdefault(stream, []).append(future)
        try:
            await future
        finally:
            self._forget(stream, future)
            if not self._waiting:
                self._unwatch()

    def close(self) -> None:
        """Before the descriptor goes: everybody looks again."""
        self._unwatch()
        for stream in self._waiting:
            self._tell(stream)

    def _unwatch(self) -> None:
        if self._watching is not None:
            self._watching.remove_reader(self._descriptor)
            self._watching = None

    def _wake(self) -> None:
        for stream in self._client.changed():
            self._tell(stream)

    def _tell(self, stream: int) -> None:
        for future in self._waiting.get(stream, ()):
            if not future.done():
                future.set_result(None)

    def _forget(self, stream: int, future: asyncio.Future[None]) -> None:
        waiting = self._waiting[stream]
        waiting.remove(future)
        if not waiting:
            del self._waiting[stream]


class AsyncStream:
    """One stream of an AsyncClient.

        async with millrace.connect(url).open(rate=16000) as stream:
            sending = asyncio.create_task(microphone(stream))  # await stream.send(frames) …
            async for result in stream:
                print(result.data)

    ``stream = await client.open()`` opens it too; then close() is yours.

    Tasks may send and take results at the same time. Sending waits while the service has no room;
    ``asyncio.wait_for`` bounds any wait. A stream that failed says so in every call: StreamFailed or
    ConnectionLost. Leaving the ``async with`` closes it.
    """

    def __init__(self, client: _core.Client, changes: _Changes, request: Request) -> None:
        self._client, self._changes, self._request = client, changes, request
        self._stream: _core.Stream | None = None
        #: The name that it has, and its pipeline.
        self.name = self.pipeline = ""
        #: How many frames and chunks there were, when it is over.
        self.totals: Closed | None = None

    @property
    def _live(self) -> _core.Stream:
        if self._stream is None:
            raise RuntimeError("the stream is not open: await it, or use async with")
        return self._stream

    async def _until(self, attempt: Callable[[_core.Stream], _T]) -> _T:
        """The first outcome that is something; or of a stream that is over."""
        while not (outcome := attempt(self._live)) and not self._live.over:
            await self._changes.wait(self._live.number)
        return outcome

    async def send(self, frames: Frames) -> None:
        """Any number of bytes in the stream's format, or an array of whole frames, (n, dim) or
        (n, channels)."""
        given = self._request.frames(frames)
        # Other tasks have their turn, where there is always room. Before: what is given up is not sent.
        await asyncio.sleep(0)
        await self._until(lambda stream: stream.send(given, 0))

    async def flush(self, mark: int | None = None) -> None:
        """The segment ends here; its final result is due. With a mark, Flushed follows it."""
        said = mark_of(mark)
        await self._until(lambda stream: stream.flush(said, 0))

    async def reset(self) -> None:
        """The model starts afresh."""
        await self._until(lambda stream: stream.reset(0))

    async def gap(self, frames: int) -> None:
        """So many frames were lost here."""
        lost = whole("frames", frames, 1)
        await self._until(lambda stream: stream.gap(lost, 0))

    async def end(self) -> None:
        """Nothing follows: RuntimeError where it is tried. Results come until the stream is over. A second
        end does nothing."""
        await self._until(lambda stream: stream.end(0))

    async def _next(self) -> tuple[Any, ...] | None:
        def attempt(stream: _core.Stream) -> tuple[Any, ...] | None:
            return stream.next(0)

        return await self._until(attempt)

    async def next(self) -> Event | None:
        """What comes next. None: the stream is over."""
        fields = await self._next()
        if fields is None:
            return None
        event = event_of(fields)
        assert not isinstance(event, Ready)
        if isinstance(event, Closed):
            self.totals = event
        return event

    async def __aiter__(self) -> AsyncIterator[Result]:
        """The results, until the stream is over. Other events are passed over: next() gives all."""
        while event := await self.next():
            log_event(self.name, event)
            if isinstance(event, Result):
                yield event

    def close(self) -> None:
        """Ends it where it has not ended, and drops what is still to come. Every call that waits or comes
        raises StreamFailed, ``closed``."""
        if self._stream is not None:
            self._stream.close()

    async def _open(self) -> "AsyncStream":
        if self._stream is not None:
            return self
        self._stream = self._request.start(self._client)
        try:
            ready = ready_of(await self._next())
        except BaseException:
            self.close()
            self._stream = None
            raise
        self.name, self.pipeline = ready.stream, ready.pipeline
        return self

    def __await__(self) -> Generator[Any, None, "AsyncStream"]:
        return self._open().__await__()

    async def __aenter__(self) -> "AsyncStream":
        return await self._open()

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class AsyncClient:
    """A process's way to a service, for the tasks of one event loop at a time. What Client says of
    urls holds. Leaving an ``async with`` of it closes it."""

    def __init__(self, url: str, settings: ClientSettings = ClientSettings()) -> None:
        """Connects to nobody yet. Raises ValueError for a wrong url."""
        self._core = _core.Client(url, *dataclasses.astuple(settings))
        self._changes = _Changes(self._core)

    def open(
        self,
        pipeline: str = "default",
        *,
        id: str | None = None,
        format: str | None = None,
        rate: float | None = None,
        channels: int | None = None,
        dim: int | None = None,
        options: dict[str, Any] | None = None,
        explain: bool = False,
    ) -> AsyncStream:
        """A stream that ``async with`` opens, or ``await``. Raises there StreamRefused or ConnectionLost.

        ``format``: s16le, f32le or f16le; left out it is f32le with ``dim`` and s16le without, whatever the
        pipeline has: so give ``dim`` for features. ``rate``: frames per second. ``options``: for the worker.
        ``explain``: results say where their time went; only over WebSocket. What else is left out, the pipeline
        decides.
        """
        request = Request(
            pipeline=pipeline,
            id=id,
            format=format,
            rate=rate,
            channels=channels,
            dim=dim,
            options=options,
            explain=explain,
        )
        return AsyncStream(self._core, self._changes, request)

    def close(self) -> None:
        """Ends its connections: what is open is lost, and calls that wait say so."""
        self._changes.close()
        self._core.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def connect(url: str, settings: ClientSettings = ClientSettings()) -> AsyncClient:
    """The asyncio client of the service at ``ws://HOST:PORT`` or ``tcp://HOST:PORT``."""
    return AsyncClient(url, settings)
