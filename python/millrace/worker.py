# SPDX-License-Identifier: Apache-2.0
"""A worker: takes the batches of a pipeline and gives them back done."""

import json
import logging
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

from millrace import _core
from millrace.batch import Batch
from millrace.errors import Refused, ServiceGone, WorkerError
from millrace.request import text, whole

_log = logging.getLogger("millrace")

_PAUSES = (0.1, 5.0)  # seconds before attaching again: the first, and the longest
_PATIENCE = 0.1  # seconds until a pause sees that it is interrupted
_ATTEMPT = 1.0  # seconds that an attempt to attach has at least, whatever is left to next()
_QUIET = 1.0  # seconds from one logged traceback to the next
_PASSING = ("timeout", "no_room", "stopping", "internal")  # what a new attachment may mend
_DTYPES = {"s16": "int16", "f16": "float16", "f32": "float32"}


class _Outage:
    """The time without a service: when to attach again, and until when to try."""

    def __init__(self, patience: float) -> None:
        self.give_up = time.monotonic() + patience
        self._pause = _PAUSES[0]
        self.postpone()

    def postpone(self) -> None:
        """Pauses are longer each time, and never the same for all workers of a service."""
        self.retry_at = time.monotonic() + random.uniform(self._pause / 2, self._pause)
        self._pause = min(2 * self._pause, _PAUSES[1])


def _message_of(error: Exception) -> str:
    """What it says of itself; nothing where that raises an exception, too."""
    try:
        return f": {error}"
    except Exception:
        return ""


class _Failures:
    """Logs what a function raises: at most one traceback a second, and the number of others."""

    def __init__(self) -> None:
        self._next = -math.inf
        self._others = 0

    def log(self, error: Exception) -> None:
        now = time.monotonic()
        if now < self._next:
            self._others += 1
            return
        others = f"; {self._others} more failed since the last report" if self._others else ""
        _log.error("a batch failed: %s%s%s", type(error).__name__, _message_of(error), others, exc_info=error)
        self._next, self._others = now + _QUIET, 0


class Worker:
    """Attaches to a pipeline and gives its batches, oldest first.

        with millrace.Worker(pipeline="vad") as worker:
            worker.run(model)  # calls model(batch) for each batch; it returns the answers

    ``for batch in worker: batch.done(model(batch))`` is the same without protection: there an exception
    of the model ends the worker.

    A stream's state belongs to its slot, and must be fresh where ``batch.reset`` says so. Each batch
    has to be given back with ``batch.done``, in their order, within 10 s (the first within 120 s).
    Heartbeats come from a thread of the library's own, so the model may compute meanwhile.

    When the service is lost, or stops, the worker attaches again, with growing pauses, and goes on: it
    has no streams then, so every row that comes begins a state with RESET; ``attachments`` counts. A
    service that comes back with another shape of batches is Refused: what the model has made for the
    old one would not fit.

    One thread takes batches and gives them back; ``bye``, ``interrupt`` and ``close`` are for any
    thread, and for signal handlers.
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
    ) -> None:
        """Attaches. Raises ServiceGone, Refused, DeviceError if there is no such device, and ValueError or
        TypeError for an argument that cannot be.

        ``url``: unix:PATH or tcp://HOST:PORT; None: $MILLRACE_WORKERS, or where a service on this
        machine listens unless told otherwise. ``name``: for logs; the program's name and process id.
        ``credits``: batches that it takes before the first is done; with 2 the service builds the next
        while this one computes. ``device``: where batches are to lie: host, cuda (the first) or cuda:N, as
        this process counts them. ``reattach``: for how many seconds to try
        to attach again; True: for ever; False: a lost service is a ServiceGone at once, and one that
        stops the end of the batches. ``wait``: for how many seconds to wait here for a service that does not
        listen yet; the logger ``millrace`` says so.
        """
        for argument, given in ("url", url or ""), ("pipeline", pipeline), ("name", name or ""), ("device", device):
            text(argument, given)
        for argument, seconds in ("wait", wait), ("reattach", reattach):
            if not isinstance(seconds, (int, float)):
                raise TypeError(f"{argument} must be seconds, not {seconds!r}")
            if not seconds >= 0:
                raise ValueError(f"{argument} must be seconds, 0 or more, not {seconds!r}")
        program = os.path.basename(sys.argv[0]) or "python"
        own_name = f"{program} {os.getpid()}"
        self._settings = (url or "", pipeline, name or own_name, whole("credits", credits, 1, 1024), device)
        self._reattach = math.inf if reattach is True else float(reattach)
        self._leaving = self._closed = self._interrupted = False
        self._outage: _Outage | None = None
        self._core = _core.Attachment(
            *self._settings,
            wait,
            lambda why: _log.warning("%s; waiting for it for up to %g s", why, wait),
            lambda: None,
        )
        self._welcome = self._core.welcome
        #: How often it has attached, the first time included.
        self.attachments = 1

    @property
    def slots(self) -> int:
        """Places for a stream's state. Padding rows have slot = slots: have one more."""
        return self._welcome[0]

    @property
    def rows(self) -> int:
        """Rows of a batch at most."""
        return self._welcome[1]

    @property
    def width(self) -> int:
        """Columns of a batch at most."""
        return self._welcome[2]

    @property
    def values(self) -> int:
        """The last axis of a batch: channels, or dim of features."""
        return self._welcome[3]

    @property
    def channels(self) -> int | None:
        """Of audio; None: the pipeline takes features."""
        return None if self._welcome[4] else self.values

    @property
    def dim(self) -> int | None:
        """Of features; None: the pipeline takes audio."""
        return self.values if self._welcome[4] else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of ``batch.data``: int16, float16 or float32."""
        return np.dtype(_DTYPES[self._welcome[5]])

    @property
    def device(self) -> str:
        """Where batches lie: host, or cuda:N."""
        return self._core.device

    @property
    def rate(self) -> float:
        """Frames per second."""
        return self._welcome[6]

    @property
    def chunk(self) -> dict[str, Any]:
        """The pipeline's chunk rule, as ``millrace.chunks`` takes it."""
        rule: dict[str, Any] = json.loads(self._welcome[7])
        return rule

    @property
    def company(self) -> int:
        """Other workers that take batches of this pipeline, by what the service said last."""
        return self._core.company

    def next(self, timeout: float | None = None) -> Batch | None:
        """The next batch. None: none came within ``timeout`` seconds, the worker has left, or
        ``interrupt`` was called. An attempt to attach again has a second, even where less is left.

        Raises WorkerError where it cannot go on, as for DeviceError, and RuntimeError where all ``credits`` batches are
        taken and none was given back.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while not self._closed:
            left = None if timeout is None else max(deadline - time.monotonic(), 0)
            try:
                batch = self._core.next(left)
            except WorkerError as error:
                if not self._may_return(error):
                    raise
                self._lose(str(error))
            else:
                if batch is not None:
                    return Batch(batch)
                if not self._core.ended or self._leaving or not self._reattach:
                    self._interrupted = False
                    return None
                self._lose("the service stops")
            if not self._attach_again(deadline):
                return None
        return None

    def __iter__(self) -> Iterator[Batch]:
        """Batches until ``next`` gives none."""
        while (batch := self.next()) is not None:
            yield batch

    def run(self, function: Callable[[Batch], Any]) -> None:
        """Calls ``function`` with each batch until there are no more, whatever it raises.

        ``function`` returns the answers to the rows, as ``Batch.done`` takes them, or calls ``done`` itself,
        last. If it raises an exception, the traceback is logged (at most one a second), and
        ``Batch.fail`` gives the batch back: each of its rows gets the exception as its error, and the
        next row of each of their streams carries RESET.

        Raises what ``next`` raises, and DeviceError if the device has failed.
        """
        failures = _Failures()
        for batch in self:
            try:
                answers = function(batch)
                if not batch.given_back:
                    batch.done(answers)
            except Exception as error:
                failures.log(error)
                if not batch.given_back:
                    batch.fail(error)

    def bye(self) -> None:
        """No new streams: the service moves those that are here to other workers, where there are any.
        Batches come until none is left; then they end."""
        self._leaving = True
        self._core.bye()

    def interrupt(self) -> None:
        """Makes ``next`` return None; the next call of it if none waits."""
        self._interrupted = True
        self._core.interrupt()

    def close(self) -> None:
        """Ends the connection now. Unless it left with ``bye``, the service gives the rows that were not
        done to other workers, and their streams a RESET."""
        self._closed = True
        self._core.close()
        self._core.interrupt()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not self._closed:  # the service sees the connection end, and no reason
            _log.error("the worker closes: %s%s", type(error).__name__, _message_of(error))
        self.close()

    def _may_return(self, error: WorkerError) -> bool:
        passing = not isinstance(error, Refused) or error.code in _PASSING
        return passing and bool(self._reattach) and not self._leaving

    def _lose(self, why: str) -> None:
        if self._outage is None:
            _log.warning("attaching again: %s", why)
            self._outage = _Outage(self._reattach)

    def _attach_again(self, deadline: float) -> bool:
        """False: interrupted, or it is past the deadline."""
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
                if over and not self._is_called_away():
                    raise
                outage.postpone()
        return False

    def _attach(self, until: float) -> None:
        def meanwhile() -> None:
            if self._is_called_away() or time.monotonic() >= until:
                raise ServiceGone("the service did not answer")

        attached = _core.Attachment(*self._settings, 0, lambda _: None, meanwhile)
        if attached.welcome != self._welcome:
            attached.close()
            raise Refused("the service came back with another shape of batches", "pipeline")
        self._core, self._outage = attached, None
        self.attachments += 1
        _log.warning("attached again")
        # What another thread asked for meanwhile, the one before was told.
        if self._leaving:
            attached.bye()
        if self._closed:
            attached.close()
        if self._interrupted:
            attached.interrupt()

    def _rest(self, until: float) -> bool:
        """False: interrupted. No lock: a signal handler may interrupt."""
        while not self._is_called_away():
            left = until - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, _PATIENCE))
        self._interrupted = False
        return False

    def _is_called_away(self) -> bool:
        return self._interrupted or self._closed or self._leaving
