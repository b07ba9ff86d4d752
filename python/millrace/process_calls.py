# SPDX-License-Identifier: Apache-2.0
"""The loop of a process that calls functions of a data set. It has the other side of
training/processes/process_pool.h."""

import contextlib
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_HEAD = struct.Struct("=II")  # bytes of the request, and 1 if the descriptor of new shared memory comes with it
_ANSWER_HEAD = struct.Struct("=I")


class Served(Protocol):
    """A function that is called by its number."""

    def serve(self, request: dict[str, Any], given: list[NDArray[np.uint8]]) -> list[NDArray[Any]]:
        """``given``: the bytes of the arguments, in memory of their own. Returns contiguous arrays."""
        ...


def serve(connection: socket.socket, functions: Sequence[Served], owner: int, blocked: Iterable[int] = (),
          inherited: Sequence[tuple[int, int]] = ()) -> None:
    """Answers the requests of a connection up to its end, or up to that of the process ``owner``.

    ``blocked``: the signals that are blocked here. ``inherited``: sockets that a fork has copied, with their inodes. They are
    closed here, so that the other processes see the end of their connections."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes, and the one that trains ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for descriptor, inode in inherited:
        with contextlib.suppress(OSError):  # it was closed before the fork
            if os.fstat(descriptor).st_ino == inode:
                os.close(descriptor)
    if "torch" in sys.modules:  # its threads do not exist after a fork
        sys.modules["torch"].set_num_threads(1)
    threading.Thread(target=_end_with, args=(owner,), daemon=True).start()
    own = os.getpid()
    connection.sendall(_ANSWER_HEAD.pack(0))  # it is ready
    memory: mmap.mmap | None = None
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, _HEAD.size, 1)
        if not head:
            return
        size, _ = _HEAD.unpack(head + _received(connection, _HEAD.size - len(head)))
        if descriptors:
            memory = mmap.mmap(descriptors[0], 0)
            os.close(descriptors[0])
        request = json.loads(_received(connection, size))
        assert memory is not None
        answer = json.dumps(_answer(functions[request["source"]], request, memory, own)).encode()
        connection.sendall(_ANSWER_HEAD.pack(len(answer)) + answer)


def _end_with(owner: int) -> None:
    """Ends this process with its owner, also while a function runs."""
    try:
        ends = select.poll()
        ends.register(os.pidfd_open(owner), select.POLLIN)
        ends.poll()
    except ProcessLookupError:
        pass
    os._exit(0)


def _received(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _answer(function: Served, request: dict[str, Any], memory: mmap.mmap, own: int) -> dict[str, Any]:
    try:
        at, given = 0, []
        for size in request["given"]:
            given.append(np.frombuffer(memory, np.uint8, size, at).copy())  # the function may keep it
            at += _aligned(size)
        end, returned = at + request["room"], []
        arrays = function.serve(request, given)
        if os.getpid() != own:
            os._exit(0)  # the function has forked, and this is the new process
        for array in arrays:
            if at + array.nbytes > end:
                raise ValueError(f"{array.nbytes} bytes were returned; there is room for {end - at}")
            np.frombuffer(memory, np.uint8, array.nbytes, at)[:] = array.reshape(-1).view(np.uint8)
            returned.append(array.nbytes)
            at += _aligned(array.nbytes)
        return {"returned": returned}
    except BaseException as error:
        summary = traceback.format_exception_only(error)
        lines = traceback.format_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
        if os.getpid() != own:
            os._exit(0)
        return {"error": "".join([*summary, *lines]).rstrip("\n")}
    finally:
        for stream in sys.stdout, sys.stderr:  # the process is ended without a chance to do it
            if stream is not None:
                stream.flush()


def _aligned(size: int) -> int:
    return -(-size // 64) * 64
