# SPDX-License-Identifier: Apache-2.0
"""A log of an error that may come with every batch."""

import logging
import math
import time

_log = logging.getLogger("millrace")

_QUIET = 1.0  # seconds from one logged error to the next


class QuietLog:
    """Logs at most one error per second, and the number of the others."""

    def __init__(self) -> None:
        self._next = -math.inf
        self._others = 0

    def error(self, message: str, cause: BaseException | None = None) -> None:
        """Logs the message, with the traceback of ``cause``."""
        now = time.monotonic()
        if now < self._next:
            self._others += 1
            return
        others = f"; {self._others} more failed since the last report" if self._others else ""
        _log.error("%s%s", message, others, exc_info=cause)
        self._next, self._others = now + _QUIET, 0
