# SPDX-License-Identifier: Apache-2.0
"""Processes that call the Python functions of a data set."""

import multiprocessing
import multiprocessing.context
import os
import pickle
import socket
import weakref
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler

from millrace import _core
from millrace.process_calls import Served, serve
from millrace.request import whole

START_METHODS = ("fork", "forkserver", "spawn")
_MOST = 1024


class Processes:
    """Processes that call functions of this one. They start with the first loop, and end with this object."""

    def __init__(self, count: int, method: str, seconds: float) -> None:
        self._starter = _Starter(method)
        self.pool = _core.ProcessPool(count, seconds, self._starter)
        self._end = weakref.finalize(self, _end, self.pool, self._starter.running)

    def add(self, name: str, function: Served) -> int:
        """The number of the function in the processes. ``name`` is for errors. The function must not refer to this object."""
        self._starter.functions.append((name, function))
        return len(self._starter.functions) - 1

    def start(self) -> None:
        """Starts the processes that do not run. Raises TypeError for a function that cannot be pickled."""
        if os.getpid() == self._starter.owner:  # a forked process calls the functions itself
            self._starter.check()
            self.pool.start()

    def stop(self) -> None:
        """Ends the processes, also in a call."""
        _end(self.pool, self._starter.running)


def processes_of(count: int, method: str, seconds: float) -> Processes | None:
    """The processes of a data set with these arguments, which are checked; None without processes. The processes of a
    DataLoader may not start others, and so have None."""
    if method not in START_METHODS:
        raise ValueError(f"start_method must be {', '.join(START_METHODS)}, not {method!r}")
    if not 0 < seconds <= 1e9:
        raise ValueError(f"longest_call must be a number of seconds above 0, not {seconds!r}")
    if not whole("processes", count, 0, _MOST) or multiprocessing.current_process().daemon:
        return None
    return Processes(count, method, seconds)


class _Starter:
    """Starts a process for the pool, on any thread."""

    def __init__(self, method: str) -> None:
        self.functions: list[tuple[str, Served]] = []
        self.running: dict[int, BaseProcess] = {}
        self.owner = os.getpid()
        self._method = method
        self._context: multiprocessing.context.BaseContext = multiprocessing.get_context(method)
        self._ours: dict[int, tuple[int, int]] = {}  # descriptors of this process's ends, and their numbers in the system
        self._checked = False

    def check(self) -> None:
        if self._checked or self._method == "fork":
            return
        for name, function in self.functions:
            try:
                ForkingPickler.dumps(function)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                raise TypeError(f"{name} cannot be pickled, which start_method={self._method!r} needs ({error}): define it in"
                                " a module, without open files and lambdas, or use start_method=\"fork\"") from None
        self._checked = True

    def __call__(self, number: int) -> tuple[int, int]:
        """Starts process ``number``. Returns descriptors of a socket and of the process."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            forks = self._method == "fork"
            self._ours[number] = ours.fileno(), os.fstat(ours.fileno()).st_ino
            process = self._context.Process(  # type: ignore[attr-defined]
                target=serve, name=f"millrace-{number}", daemon=True,
                args=(theirs, [function for _, function in self.functions], tuple(self._ours.values()) if forks else ()))
            process.start()
            self.running[number] = process
            return ours.detach(), os.pidfd_open(process.pid)


def _end(pool: _core.ProcessPool, running: dict[int, BaseProcess]) -> None:
    pool.stop()
    for process in running.values():
        if process._parent_pid == os.getpid():  # type: ignore[attr-defined]
            process.join(1)
    running.clear()
