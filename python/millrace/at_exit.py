# SPDX-License-Identifier: Apache-2.0
"""Ends threads before the interpreter ends."""

import atexit
import multiprocessing.util  # noqa: F401  # first: its own function at the exit must run after the one here
import weakref
from typing import Any

_open: "weakref.WeakSet[Any]" = weakref.WeakSet()


def close_at_exit(data: Any) -> None:
    """Calls ``close()`` before the interpreter ends, if the object still exists: its threads may call Python."""
    _open.add(data)


def _close_all() -> None:
    for data in list(_open):
        data.close()


atexit.register(_close_all)
