# SPDX-License-Identifier: Apache-2.0
"""Stops one thread of another process while its other threads run, as if the thread hung. Uses ptrace(2)."""
import contextlib
import ctypes
import os

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000  # makes waitpid wait for threads too

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def threads(process, name):
    """The ids of the threads of a process that have this name."""
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/comm") as file:
            if file.read().strip() == name:
                yield int(thread)


@contextlib.contextmanager
def paused(process, name):
    """Stops the only thread of this name during the block."""
    (thread,) = threads(process, name)
    ptrace(PTRACE_SEIZE, thread)
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH, thread)
