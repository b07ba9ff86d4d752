# SPDX-License-Identifier: Apache-2.0
"""Processes that call the Python functions of a data set."""

import multiprocessing
import multiprocessing.context
import os
import pickle
import signal
import socket
import threading
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
        self._end = weakref.finalize(self, _end, self.pool, self._starter)

    def add(self, name: str, function: Served) -> int:
        """The number of the function in the processes. ``name`` is for errors. The function must not refer to this object."""
        self._starter.functions.append((name, function))
        return len(self._starter.functions) - 1

    def start(self) -> None:
        """Starts the processes that do not run. Raises TypeError for a function that cannot be pickled."""
        if os.getpid() != self._starter.owner:  # a forked process calls the functions itself
            return
        try:
            self.pool.start()
        except RuntimeError as error:
            raise (self._starter.error or error) from None

    def stop(self) -> None:
        """Ends the processes, also in a call."""
        _end(self.pool, self._starter)


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
        self.error: Exception | None = None  # raised by the last start
        self._method = method
        self._context: multiprocessing.context.BaseContext = multiprocessing.get_context(method)
        self._signals = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # those blocked here; a thread that fills blocks all

    def __call__(self, number: int) -> tuple[int, int]:
        """Starts process ``number``. Returns descriptors of the process and of a socket."""
        self.error = None
        try:
            with _starts:
                return self._start(number)
        except Exception as error:
            self.error = self._named(error)
            raise self.error from None

    def _start(self, number: int) -> tuple[int, int]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            _ours[ours.fileno()] = os.fstat(ours.fileno()).st_ino
            inherited = tuple(_ours.items()) if self._method == "fork" else ()
            process = self._context.Process(  # type: ignore[attr-defined]
                target=serve, name=f"millrace-{number}", daemon=True,
                args=(theirs, [function for _, function in self.functions], self.owner, self._signals, inherited))
            process.start()
            self.running[number] = process
            try:
                return os.pidfd_open(process.pid), ours.detach()
            except OSError:
                process.kill()
                raise

    def _named(self, error: Exception) -> Exception:
        """The error with the name of the function that cannot be pickled, if this is the reason."""
        if self._method != "fork":
            for name, function in self.functions:
                try:
                    ForkingPickler.dumps(function)
                except (pickle.PicklingError, TypeError, AttributeError, ValueError) as reason:
                    return TypeError(f"{name} cannot be pickled, which start_method={self._method!r} needs ({reason}): define it"
                                     " in a module, without open files and lambdas, or use start_method=\"fork\"")
                except RuntimeError:  # a lock or a value of multiprocessing can only be pickled for a new process
                    pass
        return error


_starts = threading.Lock()  # between the making of a socket and the fork: no other process must get it
_ours: dict[int, int] = {}  # descriptors of this process's ends of all sockets, and their inodes


def _end(pool: _core.ProcessPool, starter: _Starter) -> None:
    if os.getpid() != starter.owner:
        return
    pool.stop()
    for process in list(starter.running.values()):
        process.join(1)
    starter.running.clear()
