# SPDX-License-Identifier: Apache-2.0
"""How ``Worker.run`` leaves at a signal."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_log = logging.getLogger("millrace")

# The signals, and their effect in a program that has not changed it.
_DEFAULTS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


class Leaving:
    """While it is entered, the first SIGTERM or SIGINT calls ``leave``. From then on the signals have their former effect:
    a second SIGTERM ends the process, a second SIGINT raises KeyboardInterrupt.

    It does nothing in another thread than the main one, and leaves a signal alone that the program ignores or handles.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._former: dict[int, Any] = {}
        self._streams = (0, 0)
        #: Name of the signal that was received; None before.
        self.at: str | None = None

    def __enter__(self) -> "Leaving":
        if threading.current_thread() is threading.main_thread():
            for number, default in _DEFAULTS.items():
                if signal.getsignal(number) == default:
                    self._former[number] = default  # first: the signal may come at once
                    signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        if self.at and not error:
            _log.warning("left at %s", self.at)

    def report(self, moved: int, waiting: int, others: int) -> None:
        """Logs how many streams have moved and how many wait, if that has changed."""
        if (moved, waiting) == self._streams:
            return
        self._streams = moved, waiting
        why = "" if others or not waiting else "; there is no other worker: they stay until they end"
        _log.warning("leaving at %s: streams moved: %d, waiting: %d%s", self.at, moved, waiting, why)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        if os.getpid() == 1 and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self._former[signal.SIGTERM] = signal.SIG_DFL  # the kernel ignores it for the first process of a container
            signal.signal(signal.SIGTERM, self._end)
        self.at = signal.Signals(number).name
        self._leave()

    def _end(self, number: int, frame: FrameType | None) -> None:
        os._exit(128 + number)

    def _restore(self) -> None:
        while self._former:
            number, former = self._former.popitem()
            if signal.getsignal(number) in (self._receive, self._end):  # the program may have set its own since
                signal.signal(number, former)
