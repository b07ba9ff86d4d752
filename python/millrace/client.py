# SPDX-License-Identifier: Apache-2.0
"""The blocking client: sends frames and receives results. aio.py has the client for asyncio."""

import logging
import os
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

from millrace import _core
from millrace.access import TlsFiles, core_client
from millrace.errors import ClientError
from millrace.events import Closed, Event, Goaway, Message, Ready, Rejected, Result, Resumed, Warned, event_of, ready_of
from millrace.request import Frames, Request, json_of, mark_of, options_of, whole
from millrace.settings import ClientSettings

_log = logging.getLogger("millrace")


def log_event(name: str, event: Event) -> None:
    """Logs an event that an iteration over results skips."""
    if isinstance(event, Rejected | Warned):
        _log.warning("stream %s: %s: %s", name, event.code, event.message)
    if isinstance(event, Goaway):
        _log.warning("stream %s: the service will end it soon; open it again after %g s", name, event.retry_after)
    if isinstance(event, Resumed):
        state = "it continues" if event.kept else "it was opened anew: the model has lost its state"
        _log.info("stream %s: the connection was lost; %s", name, state)


class Stream:
    """One stream of a Client: frames go in, results come out.

        with client.open(rate=16000) as stream:
            for result in stream.run(packets):
                print(result.data)

    ``run`` sends in a thread of its own. A program that also flushes or resets calls ``send``, ``flush``, ``end`` …
    itself: one thread may send while another receives results. ``close`` may be called from any thread.

    Sending waits while the service accepts no more frames. After ``timeout`` seconds it raises TimeoutError, and
    nothing was sent. Receive results while you send: a stream whose results wait too long fails
    (ClientSettings.taking).

    After a stream has failed, each call raises StreamFailed or ConnectionLost. Leaving the ``with`` closes the stream.
    """

    def __init__(self, core: _core.Stream, request: Request) -> None:
        self._stream, self._request = core, request
        ready = ready_of(core.next(None))
        #: Name of the stream, and of its pipeline.
        self.name = ready.stream
        self.pipeline = ready.pipeline
        #: Number of frames and chunks of the stream, set when it is over.
        self.totals: Closed | None = None

    def send(self, frames: Frames, timeout: float | None = None) -> None:
        """Sends frames: bytes in the stream's format, of any number, or an array of whole frames with the
        shape (n, dim) or (n, channels). With the format opus: one packet, as bytes. Waits while the service accepts
        no more frames, for up to ``timeout`` seconds if it is given.

        Raises TimeoutError, TypeError if the array's dtype is not that of the format, ValueError for a wrong
        shape, RuntimeError after ``end``, StreamFailed and ConnectionLost.
        """
        self._timely(self._stream.send(self._request.frames(frames), timeout))

    def flush(self, mark: int | None = None, timeout: float | None = None) -> None:
        """Ends the segment here: its final result is due. With a mark, ``Flushed(mark)`` follows this result."""
        self._timely(self._stream.flush(mark_of(mark), timeout))

    def reset(self, timeout: float | None = None) -> None:
        """Resets the model's state here."""
        self._timely(self._stream.reset(timeout))

    def gap(self, frames: int, timeout: float | None = None) -> None:
        """Reports that ``frames`` frames, 1 or more, were lost here."""
        self._timely(self._stream.gap(whole("frames", frames, 1), timeout))

    def message(self, data: Any, timeout: float | None = None) -> None:
        """Sends ``data``, any JSON value, to the model, which receives it with the stream's next row. ``flush`` after
        it causes a row at once. A message that the service rejects is a ``Rejected`` event."""
        self._timely(self._stream.message(json_of("data", data), timeout))

    def set(self, options: dict[str, Any], timeout: float | None = None) -> None:
        """Changes options of the stream. The model receives those that change with the stream's next row, and a model
        that takes the stream over receives all."""
        self._timely(self._stream.set(options_of(options), timeout))

    def end(self, timeout: float | None = None) -> None:
        """Ends the stream's input. Results come until the stream is over. Sending afterwards raises
        RuntimeError; a second ``end`` does nothing."""
        self._timely(self._stream.end(timeout))

    def next(self, timeout: float | None = None) -> Event | None:
        """Waits for the next event, and returns it. Returns None after the last event, ``Closed``, and also if no
        event came within ``timeout`` seconds; ``totals`` is set only if the stream is over."""
        fields = self._stream.next(timeout)
        if fields is None:
            return None
        event = event_of(fields)
        assert not isinstance(event, Ready)
        if isinstance(event, Closed):
            self.totals = event
        return event

    def __iter__(self) -> Iterator[Result | Message]:
        """The results and the messages of workers, until the stream is over. Rejected, Warned, Goaway and Resumed are logged;
        ``next`` gives all events."""
        while event := self.next():
            log_event(self.name, event)
            if isinstance(event, (Result, Message)):
                yield event

    def run(self, packets: Iterable[Frames]) -> Iterator[Result | Message]:
        """Sends the packets, each as ``send`` takes it, then ends the stream. Gives the results and the messages of
        workers as they come.

        The packets are iterated over in a thread, so they may come as slowly as a microphone gives them. An exception
        that they raise, or that ``send`` raises, closes the stream and is raised here. If the service ends the stream
        before all packets are sent, StreamFailed is raised after the results.

        Leaving the loop early closes the stream. The thread then ends, and closes ``packets`` if it is a generator; if
        it waits for a packet, it ends with that packet, or with the program.
        """
        failures: list[BaseException] = []

        def send() -> None:
            try:
                for packet in packets:
                    self.send(packet)
                self.end()
            except BaseException as failure:
                failures.append(failure)
                self.close()
            finally:
                if isinstance(packets, Generator):
                    packets.close()

        threading.Thread(target=send, name="millrace-run", daemon=True).start()
        try:
            yield from self
            self.end()  # raises if the stream is over and not all packets were sent
        except ClientError:
            if not failures:
                raise
        finally:
            self.close()
        if failures:
            raise failures[0]

    @staticmethod
    def _timely(sent: bool) -> None:
        if not sent:
            raise TimeoutError("nothing was sent: the service accepted no more frames within the timeout")

    def close(self) -> None:
        """Ends the stream if it has not ended, and drops its remaining results. May be called from any thread.
        Running and later calls raise StreamFailed with the code ``closed``."""
        self._stream.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """A client of one service, for any number of streams.

    Over ``ws://HOST:PORT`` and ``wss://HOST:PORT`` (TLS) each stream has its own connection. Over ``tcp://HOST:PORT``
    (ZeroMQ) all share one. The connections are in a thread of the library. Leaving the ``with`` closes the client.
    Thread-safe.
    """

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
        """Does not connect yet.

        ``token``: sent with each stream, as ``Authorization: Bearer`` or in ``Open``. ``headers``: further HTTP fields.
        ``ca``: a file with the certificates of the authorities (PEM) that ``wss://`` trusts instead of the system's.
        ``certificate`` and ``key``: files with the client's own certificate and its key (PEM), for a service that asks
        for one. Only the owner may read the key's file. Over ``tcp://`` only ``token`` can be used.

        Raises ValueError for a wrong url, a setting that is not positive, and a token, header or file that cannot be
        used; TypeError for a wrong type.
        """
        self._core = core_client(url, settings, token, headers, TlsFiles(ca, certificate, key))

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
    ) -> Stream:
        """Opens a stream, and waits until it is open.

        The pipeline decides each argument that is left out, except ``format``.

        ``id``: name of the stream. ``format``: s16le, s24le, f32le, mulaw, alaw or opus for audio, f32le or f16le for
        features; the default is f32le with ``dim``, and s16le without, whatever the pipeline has. So give ``dim`` for
        features. ``rate``: frames per second of the client, 8000 to 192000 for audio; the service converts it.
        ``channels``: values of an audio frame. ``dim``: values of a feature vector. ``channel``: a number or "mean",
        which makes one channel of several. ``chunk``: one of the pipeline's sizes, a time such as "160ms" or a number
        of frames. ``options``: a dict for the worker. ``record=False``: the service must not record the stream.
        ``explain``: each result shows its time in each stage; only over WebSocket.

        With the format opus, each ``send`` is one packet, and ``gap`` counts packets.

        Raises StreamRefused, ConnectionLost, RuntimeError after ``close``, and TypeError or ValueError for a wrong
        argument.
        """
        request = Request(**{name: given for name, given in locals().items() if name != "self"})
        return Stream(request.start(self._core), request)

    def close(self) -> None:
        """Closes the connections. Open streams are lost: running calls raise ConnectionLost."""
        self._core.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
