# SPDX-License-Identifier: Apache-2.0
"""A worker: receives the batches of a pipeline and gives them back with answers."""

import gc
import logging
import math
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, SupportsIndex

from millrace import _core
from millrace.batch import Batch, encode_json
from millrace.description import PipelineProperties, description_of, log_wait, own_name
from millrace.errors import Refused, ServiceGone, WorkerError
from millrace.leaving import Leaving
from millrace.outage import Outage
from millrace.quiet_log import QuietLog
from millrace.request import seconds_of, text, whole
from millrace.rows import Row

_log = logging.getLogger("millrace")

_POLL_PERIOD = 0.1  # seconds: how often a pause checks whether it is interrupted, and run() whether a signal came
_ROW_BUCKETS = 9  # their place in Welcome, the last
_REPORT_PERIOD = 1.0  # seconds: how often a worker that leaves at a signal looks for news about its streams
_ATTEMPT = 1.0  # the least time of an attempt to attach in seconds, even if less is left of the timeout of next()
PASSING = ("timeout", "no_room", "stopping", "internal")  # codes after which a new attachment may succeed


def _message_of(error: Exception) -> str:
    """Returns the text of an exception; empty if making the text raises an exception."""
    try:
        return f": {error}"
    except Exception:
        return ""


class Worker(PipelineProperties):
    """Attaches to a pipeline and receives its batches, the oldest first.

        with millrace.Worker(pipeline="vad") as worker:
            worker.run(model)  # calls model(batch) for each batch; it returns the answers

    ``for batch in worker: batch.done(model(batch))`` does the same, except that an exception in the model ends
    the worker.

    The state of a stream belongs to its slot, and must be fresh in the rows where ``batch.reset`` is true. Give each
    batch back with ``batch.done``, in the order in which they were taken, within the pipeline's ``answer_wait``
    (10 s; the first within 120 s). A
    thread of the library sends heartbeats while the model computes.

    If the service is lost or stops, the worker attaches again, with growing pauses. It has no streams then, so the
    first row of every stream has RESET. ``attachments`` counts the attachments. If the pipeline's batches have another
    shape now, Refused is raised, because the model's arrays would not fit.

    One thread takes batches and gives them back. Any thread may call ``send``, ``answer``, ``bye``, ``interrupt`` and ``close``,
    and signal handlers the last three.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        pipeline: str = "default",
        name: str | None = None,
        credits: int = 2,
        device: str = "host",
        reattach: bool | float = True,
        wait: float = 30,
        warm_up: Callable[[Batch], Any] | None = None,
    ) -> None:
        """Attaches to the service, and waits until it is attached.

        ``url``: unix:PATH or tcp://HOST:PORT. The default is $MILLRACE_WORKERS, else the default socket of a service
        on this machine.
        ``pipeline``: name of the pipeline.
        ``name``: name for logs. The default is the program's name and process id.
        ``credits``: number of batches that the worker may hold at once, 1 to 1024. With 2, the service builds the
        next batch while this one is computed.
        ``device``: where batches are: host, cuda (the first device) or cuda:N, as this process counts devices.
        ``reattach``: how long to try to attach again, in seconds. True: without a limit. False: a lost service raises
        ServiceGone at once, and a service that stops ends the batches.
        ``wait``: how long to wait for a service that does not listen yet, in seconds. The logger ``millrace`` logs
        the wait.
        ``warm_up``: called before the worker attaches, with a batch of each shape that can come
        (``Description.warm_up``), on ``device``. It may take any time. An exception of it ends the call of Worker, and
        no worker attaches.

        Raises ServiceGone if no service answers, Refused if the service refuses the worker, DeviceError if the device
        does not exist or fails, and ValueError or TypeError for a wrong argument.
        """
        for argument, given in ("url", url or ""), ("pipeline", pipeline), ("name", name or ""), ("device", device):
            text(argument, given)
        wait, longest_outage = seconds_of("wait", wait), seconds_of("reattach", reattach)
        if warm_up is not None and not callable(warm_up):
            raise TypeError(f"warm_up must be a function, not {warm_up!r}")
        self._settings = (url or "", pipeline, name or own_name(), whole("credits", credits, 1, 1024), device)
        self._reattach = math.inf if reattach is True else longest_outage
        self._leaving = self._closed = self._interrupted = False
        self._warmed_up = warm_up is not None
        self._woken = False  # the last None of _next() came from interrupt()
        self._outage: Outage | None = None
        described = None
        if warm_up is not None:
            described = description_of(*self._settings[:3], wait)
            described.warm_up(warm_up, device)
        self._core = _core.Attachment(*self._settings, wait, log_wait(wait), lambda: None)
        self._welcome = described._welcome if described else self._core.welcome
        self._check_shape(self._core)
        #: Number of attachments so far, including the first.
        self.attachments = 1

    @property
    def device(self) -> str:
        """Where batches are: host, or cuda:N."""
        return self._core.device

    @property
    def company(self) -> int:
        """Number of other workers that take batches of this pipeline, as last reported by the service."""
        return self._core.company

    def next(self, timeout: float | None = None) -> Batch | None:
        """Waits for the next batch, and returns it.

        Returns None if no batch came within ``timeout`` seconds, if the worker has left, or after ``interrupt``. An
        attempt to attach again may take 1 s, even if less of the timeout is left.

        Raises WorkerError if the worker cannot continue, for example DeviceError. Raises RuntimeError if the program
        holds ``credits`` batches already.
        """
        return self._next(math.inf if timeout is None else time.monotonic() + timeout)

    def _next(self, deadline: float, longest: float = math.inf) -> Batch | None:
        """As ``next``. ``longest``: limit of the wait for a batch while the worker is attached, in seconds."""
        while not self._closed:
            left = min(max(deadline - time.monotonic(), 0), longest)
            try:
                batch = self._core.next(None if left == math.inf else left)
            except WorkerError as error:
                if not self._may_return(error):
                    raise
                self._lose(str(error))
            else:
                if batch is not None:
                    return Batch(batch)
                if not self._core.ended or self._leaving or not self._reattach:
                    self._woken, self._interrupted = self._interrupted, False
                    return None
                self._lose("the service stops")
            if not self._attach_again(deadline):
                return None
        return None

    def __iter__(self) -> Iterator[Batch]:
        """Yields batches until ``next`` returns None."""
        while (batch := self.next()) is not None:
            yield batch

    def run(self, function: Callable[[Batch], Any]) -> None:
        """Calls ``function`` with each batch until there are no more batches.

        ``function`` returns the answers to the rows, as ``Batch.done`` takes them, or calls ``done`` itself as its last
        step. If it raises an exception, the traceback is logged (at most one per second), and ``Batch.fail`` gives the
        batch back: each of its rows gets the exception as its error, and the next row of each of their streams has
        RESET.

        In the main thread, the first SIGTERM or SIGINT calls ``bye``: ``run`` returns when no stream is left, and logs how
        many have moved and how many wait. A second signal has its usual effect: the process ends, or KeyboardInterrupt is
        raised. A signal that the program handles or ignores itself is not touched, and the handlers are the former ones
        when ``run`` returns.

        From here on, the garbage collector leaves out the objects that exist now, such as the model (``gc.freeze``).
        Looking through them would pause the worker.

        Raises the errors of ``next``, and DeviceError if the device fails.
        """
        failures = QuietLog()
        with Leaving(self.bye) as leaving:  # not interrupt: a send() would return too early
            gc.collect()
            gc.freeze()
            for batch in self._until_left(leaving):
                try:
                    answers = function(batch)
                    if not batch.given_back:
                        batch.done(answers)
                except Exception as error:
                    failures.error(f"a batch failed: {type(error).__name__}{_message_of(error)}", error)
                    if not batch.given_back:
                        batch.fail(error)

    def _until_left(self, leaving: Leaving) -> Iterator[Batch]:
        """Yields batches as ``__iter__`` does. At a signal they end when the worker has left."""
        while True:
            batch = self._next(math.inf, _REPORT_PERIOD if leaving.at else _POLL_PERIOD)
            if leaving.at:
                leaving.report(*self._core.streams, self.company)
            if batch is not None:
                yield batch
            elif self._outage or self._core.ended or self._closed or self._woken:
                return

    def send(self, stream: SupportsIndex, data: Any, *, wait: float | None = 0) -> bool:
        """Sends a message to the client of a stream that has a slot of this worker. Any thread may call it at any time,
        also while the batch of the stream computes.

        ``stream`` is the number of the stream, as in ``batch.framed.stream``. ``data`` is a JSON value, also of NumPy,
        a str or bytes, of at most 49 088 bytes. The client receives it after the results and messages that were sent before.

        At most 64 KiB of messages may be on the way to a client. Without room, waits for ``wait`` seconds (None:
        without a limit), and returns False if it still does not fit, or after ``interrupt`` if no thread waits in ``next``: the model decides whether to
        drop the message or to try again. True: the message was sent.

        Raises StreamGone if the stream has no slot of this worker, ValueError if ``data`` is too long, None, an
        exception or has no JSON text, and TypeError if it has another type.
        """
        return self._core.send(whole("stream", stream, 0, 2**64 - 1), data, wait, encode_json)

    def answer(self, row: Row, data: Any, *, endpoint: bool = False) -> None:
        """Gives the answer to a row to which ``batch.done`` gave ``millrace.pending``. Any thread may call it, after
        ``done``, at most the pipeline's ``answer_wait`` (10 s) later. Results of later rows of the stream wait for it.

        ``row`` is the row, as in ``batch.framed`` or ``batch.marks``. ``data`` is an answer as in ``Batch.done``. After
        the time limit, the row has failed with ``worker_failed``, and the answer is ignored.

        Raises ValueError if the row is not pending, or for an answer that cannot be sent, TypeError for an answer of
        another type, and StreamGone if the stream has ended or the service is lost.
        """
        if not isinstance(row, Row):
            raise TypeError(f"row must be a Row of a batch, not {row!r}")
        self._core.answer(row.stream, row.seq, data, bool(endpoint), encode_json)

    def bye(self) -> None:
        """Leaves without losing results: the worker gets no new streams, and the service moves its streams to other
        workers, if there are any. Batches come until the last stream has left; then they end."""
        self._leaving = True
        self._core.bye()

    def interrupt(self) -> None:
        """Makes a waiting ``next`` return None, or else the next call of it."""
        self._interrupted = True
        self._core.interrupt()

    def close(self) -> None:
        """Ends the connection now. Unless the worker left with ``bye``, the service gives its unfinished rows to other
        workers, and the next row of each of its streams has RESET."""
        self._closed = True
        self._core.close()
        self._core.interrupt()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not self._closed:  # the service does not learn the reason
            _log.error("the worker closes: %s%s", type(error).__name__, _message_of(error))
        self.close()

    def _may_return(self, error: WorkerError) -> bool:
        passing = not isinstance(error, Refused) or error.code in PASSING
        return passing and bool(self._reattach) and not self._leaving

    def _lose(self, why: str) -> None:
        if self._outage is None:
            _log.warning("attaching again: %s", why)
            self._outage = Outage(self._reattach)

    def _attach_again(self, deadline: float) -> bool:
        """Returns false if it was interrupted, or after the deadline."""
        outage = self._outage
        assert outage is not None
        while self._rest(min(outage.retry_at, deadline)):
            if time.monotonic() < outage.retry_at:
                return False
            try:
                self._attach(max(min(deadline, outage.give_up), time.monotonic() + _ATTEMPT))
                return True
            except WorkerError as error:
                over = not self._may_return(error) or time.monotonic() >= outage.give_up
                if over and not self._should_stop():
                    raise
                outage.postpone()
        return False

    def _attach(self, until: float) -> None:
        def meanwhile() -> None:
            if self._should_stop() or time.monotonic() >= until:
                raise ServiceGone("the service did not answer")

        attached = _core.Attachment(*self._settings, 0, lambda _: None, meanwhile)
        self._check_shape(attached)
        self._core, self._outage = attached, None
        self.attachments += 1
        _log.warning("attached again")
        # Another thread may have made these calls on the old attachment meanwhile.
        if self._leaving:
            attached.bye()
        if self._closed:
            attached.close()
        if self._interrupted:
            attached.interrupt()

    def _check_shape(self, attached: _core.Attachment) -> None:
        # row_buckets say which shapes were warmed up. A model that takes any number of rows needs no more than the most.
        same = len(self._welcome) if self._warmed_up else _ROW_BUCKETS
        if attached.welcome[:same] != self._welcome[:same]:
            attached.close()
            raise Refused("the batches of the pipeline have another shape now: start the worker again", "pipeline")

    def _rest(self, until: float) -> bool:
        """Waits until then. Returns false if it was interrupted. No lock, because a signal handler may interrupt."""
        while not self._should_stop():
            left = until - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, _POLL_PERIOD))
        self._interrupted = False
        return False

    def _should_stop(self) -> bool:
        return self._interrupted or self._closed or self._leaving
