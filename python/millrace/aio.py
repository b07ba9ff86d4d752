# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio. Its calls wait in the event loop; client.py has the blocking client."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Mapping
from typing import Any, TypeVar

from millrace import _core
from millrace.access import TlsFiles, core_client
from millrace.client import log_event
from millrace.errors import ClientError
from millrace.events import Closed, Event, Message, Ready, Result, event_of, ready_of
from millrace.packets import each
from millrace.request import Frames, Request, json_of, mark_of, options_of, whole
from millrace.settings import ClientSettings

_T = TypeVar("_T")


class _Changes:
    """Wakes the tasks that wait for a stream, by the client's one descriptor. The event loop watches the
    descriptor only while a task waits, so that no reader is left in a loop."""

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
        """Wakes all waiting tasks. Must be called before the descriptor is closed."""
        self._unwatch()
        for stream in self._waiting:
            self._notify(stream)

    def _unwatch(self) -> None:
        if self._watching is not None:
            self._watching.remove_reader(self._descriptor)
            self._watching = None

    def _wake(self) -> None:
        for stream in self._client.changed():
            self._notify(stream)

    def _notify(self, stream: int) -> None:
        for future in self._waiting.get(stream, ()):
            if not future.done():
                future.set_result(None)

    def _forget(self, stream: int, future: asyncio.Future[None]) -> None:
        waiting = self._waiting[stream]
        waiting.remove(future)
        if not waiting:
            del self._waiting[stream]


class AsyncStream:
    """One stream of an AsyncClient, for the tasks of one event loop.

        async with millrace.connect(url).open(rate=16000) as stream:
            async for result in stream.run(packets):
                print(result.data)

    ``stream = await client.open()`` opens it too; then call ``close`` yourself.

    Tasks may send and receive results at the same time. Sending waits while the service accepts no more
    frames. To limit a wait, use ``asyncio.wait_for``. After a stream has failed, each call raises StreamFailed or
    ConnectionLost. Leaving the ``async with`` closes the stream.
    """

    def __init__(self, client: _core.Client, changes: _Changes, request: Request) -> None:
        self._client, self._changes, self._request = client, changes, request
        self._stream: _core.Stream | None = None
        #: Name of the stream, and of its pipeline; empty until the stream is open.
        self.name = self.pipeline = ""
        #: Number of frames and chunks of the stream, set when it is over.
        self.totals: Closed | None = None

    @property
    def _live(self) -> _core.Stream:
        if self._stream is None:
            raise RuntimeError("the stream is not open: await it, or use async with")
        return self._stream

    async def _until(self, attempt: Callable[[_core.Stream], _T]) -> _T:
        """Calls `attempt` until its outcome is true or the stream is over, and returns the outcome."""
        while not (outcome := attempt(self._live)) and not self._live.over:
            await self._changes.wait(self._live.number)
        return outcome

    async def send(self, frames: Frames) -> None:
        """Sends frames: bytes in the stream's format, of any number, or an array of whole frames with the
        shape (n, dim) or (n, channels). With the format opus: one packet, as bytes. Waits while the service accepts
        no more frames.

        Raises TypeError if the array's dtype is not that of the format, ValueError for a wrong shape,
        RuntimeError after ``end``, StreamFailed and ConnectionLost.
        """
        given = self._request.frames(frames)
        # Lets other tasks run even if sending never waits. First, so that a cancelled call sends nothing.
        await asyncio.sleep(0)
        await self._until(lambda stream: stream.send(given, 0))

    async def flush(self, mark: int | None = None) -> None:
        """Ends the segment here: its final result is due. With a mark, ``Flushed(mark)`` follows this result."""
        checked_mark = mark_of(mark)
        await self._until(lambda stream: stream.flush(checked_mark, 0))

    async def reset(self) -> None:
        """Resets the model's state here."""
        await self._until(lambda stream: stream.reset(0))

    async def gap(self, frames: int) -> None:
        """Reports that ``frames`` frames, 1 or more, were lost here."""
        lost = whole("frames", frames, 1)
        await self._until(lambda stream: stream.gap(lost, 0))

    async def message(self, data: Any) -> None:
        """Sends ``data``, any JSON value, to the model, which receives it with the stream's next row. ``flush`` after
        it causes a row at once. A message that the service rejects is a ``Rejected`` event."""
        text = json_of("data", data)
        await self._until(lambda stream: stream.message(text, 0))

    async def set(self, options: dict[str, Any]) -> None:
        """Changes options of the stream. The model receives those that change with the stream's next row, and a model
        that takes the stream over receives all."""
        text = options_of(options)
        await self._until(lambda stream: stream.set(text, 0))

    async def end(self) -> None:
        """Ends the stream's input. Results come until the stream is over. Sending afterwards raises
        RuntimeError; a second ``end`` does nothing."""
        await self._until(lambda stream: stream.end(0))

    async def _next(self) -> tuple[Any, ...] | None:
        def attempt(stream: _core.Stream) -> tuple[Any, ...] | None:
            return stream.next(0)

        return await self._until(attempt)

    async def next(self) -> Event | None:
        """Waits for the next event, and returns it. Returns None after the last event, ``Closed``."""
        fields = await self._next()
        if fields is None:
            return None
        event = event_of(fields)
        assert not isinstance(event, Ready)
        if isinstance(event, Closed):
            self.totals = event
        return event

    async def __aiter__(self) -> AsyncIterator[Result | Message]:
        """The results and the messages of workers, until the stream is over. Rejected, Warned, Goaway and Resumed are logged;
        ``next`` gives all events."""
        while event := await self.next():
            log_event(self.name, event)
            if isinstance(event, (Result, Message)):
                yield event

    async def run(self, packets: AsyncIterable[Frames] | Iterable[Frames]) -> AsyncIterator[Result | Message]:
        """Sends the packets, each as ``send`` takes it, then ends the stream. Gives the results and the messages of
        workers as they come.

        An async iterable is iterated over in a task; another one in a thread, so that it may wait, for instance to read
        a file. An exception that it raises, or that ``send`` raises, closes the stream and is raised here. If the
        service ends the stream before all packets are sent, StreamFailed is raised after the results.

        Leaving the loop early closes the stream, cancels the task, and closes a generator. A thread that waits for a
        packet ends with that packet, or with the program.
        """
        failures: list[BaseException] = []

        async def send() -> None:
            try:
                async with contextlib.aclosing(each(packets)) as given:
                    async for packet in given:
                        await self.send(packet)
                await self.end()
            except BaseException as failure:
                failures.append(failure)
                self.close()

        sending = asyncio.create_task(send(), name="millrace-run")
        try:
            async for result in self:
                yield result
            await self.end()  # raises if the stream is over and not all packets were sent
        except ClientError:
            if not failures:
                raise
        finally:
            self.close()
            sending.cancel()
            await asyncio.wait([sending])
        if failures:
            raise failures[0]

    def close(self) -> None:
        """Ends the stream if it has not ended, and drops its remaining results. Calls that wait, and later
        calls, raise StreamFailed with the code ``closed``."""
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

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """A client of one service, for the tasks of one event loop at a time. It takes the same urls as
    Client, and its connections are in a thread of the library. Leaving an ``async with`` closes it."""

    def __init__(
        self,
        url: str,
        settings: ClientSettings = ClientSettings(),
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        ca: str | os.PathLike[str] | None = None,
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> None:
        """Does not connect yet. The arguments, and what is raised, are those of ``Client``."""
        self._core = core_client(url, settings, token, headers, TlsFiles(ca, certificate, key))
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
        channel: int | str | None = None,
        chunk: int | str | None = None,
        options: dict[str, Any] | None = None,
        record: bool = True,
        explain: bool = False,
    ) -> AsyncStream:
        """Returns a stream, which ``async with`` or ``await`` opens. These raise StreamRefused or ConnectionLost.

        The arguments are those of ``Client.open``. Raises TypeError or ValueError for a wrong argument.
        """
        request = Request(**{name: given for name, given in locals().items() if name != "self"})
        return AsyncStream(self._core, self._changes, request)

    def close(self) -> None:
        """Closes the connections. Open streams are lost: calls that wait raise ConnectionLost."""
        self._changes.close()
        self._core.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def connect(
    url: str,
    settings: ClientSettings = ClientSettings(),
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> AsyncClient:
    """Returns the asyncio client of the service at ``ws://HOST:PORT``, ``wss://HOST:PORT`` or ``tcp://HOST:PORT``.

    Does not connect yet. The arguments, and what is raised, are those of ``Client``.
    """
    return AsyncClient(url, settings, token=token, headers=headers, ca=ca, certificate=certificate, key=key)
