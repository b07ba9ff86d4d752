# SPDX-License-Identifier: Apache-2.0
"""A client that waits: streams in, and takes results. For asyncio: aio.py."""

import dataclasses
import logging
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from millrace import _core
from millrace.events import Closed, Event, Goaway, Ready, Rejected, Result, Warned, event_of, ready_of
from millrace.request import Frames, Request, mark_of, whole
from millrace.settings import ClientSettings

_log = logging.getLogger("millrace")


def log_event(name: str, event: Event) -> None:
    """Logs the events that an iteration over results passes over."""
    if isinstance(event, Rejected | Warned):
        _log.warning("stream %s: %s: %s", name, event.code, event.message)
    if isinstance(event, Goaway):
        _log.warning("stream %s: the service will end it; come again after %g s", name, event.retry_after)


class Stream:
    """One stream of a Client: what a microphone gives goes in, results come out.

        with client.open(rate=16000) as stream:
            stream.send(frames)
            stream.end()
            for result in stream:
                print(result.data)

    One thread may send while another takes results. Sending waits while the service has no room; a
    TimeoutError says that it did not within ``timeout`` seconds, and nothing was sent. Results have to
    be taken meanwhile: the service ends streams whose results nobody takes.

    A stream that failed says so in every call: StreamFailed or ConnectionLost. Leaving the ``with``
    closes it.
    """

    def __init__(self, core: _core.Stream, request: Request) -> None:
        self._stream, self._request = core, request
        ready = ready_of(core.next(None))
        #: The name that it has.
        self.name = ready.stream
        self.pipeline = ready.pipeline
        #: How many frames and chunks there were, when it is over.
        self.totals: Closed | None = None

    def send(self, frames: Frames, timeout: float | None = None) -> None:
        """Any number of bytes in the stream's format, or an array of whole frames, (n, dim) or
        (n, channels)."""
        self._timely(self._stream.send(self._request.frames(frames), timeout))

    def flush(self, mark: int | None = None, timeout: float | None = None) -> None:
        """The segment ends here; its final result is due. With a mark, Flushed follows it."""
        self._timely(self._stream.flush(mark_of(mark), timeout))

    def reset(self, timeout: float | None = None) -> None:
        """The model starts afresh."""
        self._timely(self._stream.reset(timeout))

    def gap(self, frames: int, timeout: float | None = None) -> None:
        """So many frames were lost here."""
        self._timely(self._stream.gap(whole("frames", frames, 1), timeout))

    def end(self, timeout: float | None = None) -> None:
        """Nothing follows: RuntimeError where it is tried. Results come until the stream is over. A second
        end does nothing."""
        self._timely(self._stream.end(timeout))

    def next(self, timeout: float | None = None) -> Event | None:
        """What comes next. None: the stream is over, or nothing came within ``timeout`` seconds."""
        fields = self._stream.next(timeout)
        if fields is None:
            return None
        event = event_of(fields)
        assert not isinstance(event, Ready)
        if isinstance(event, Closed):
            self.totals = event
        return event

    def __iter__(self) -> Iterator[Result]:
        """The results, until the stream is over. Other events are passed over: next() gives all."""
        while event := self.next():
            log_event(self.name, event)
            if isinstance(event, Result):
                yield event

    @staticmethod
    def _timely(sent: bool) -> None:
        if not sent:
            raise TimeoutError("the service had no room in time")

    def close(self) -> None:
        """Ends it where it has not ended, and drops what is still to come; from any thread. Every call
        that is running or comes raises StreamFailed, ``closed``."""
        self._stream.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class Client:
    """A process's way to a service.

    Over ``ws://HOST:PORT`` each stream is a connection; over ``tcp://HOST:PORT`` (ZeroMQ) all share one. A
    thread of the library's own has the connections. Thread-safe. Leaving a ``with`` of it closes it.
    """

    def __init__(self, url: str, settings: ClientSettings = ClientSettings()) -> None:
        """Connects to nobody yet. Raises ValueError for a wrong url."""
        self._core = _core.Client(url, *dataclasses.astuple(settings))

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
    ) -> Stream:
        """Opens a stream. Raises StreamRefused or ConnectionLost.

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
        return Stream(request.start(self._core), request)

    def close(self) -> None:
        """Ends its connections: what is open is lost, and calls that are running say so."""
        self._core.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
