# SPDX-License-Identifier: Apache-2.0
"""A time without a service."""

import random
import time

_PAUSES = (0.1, 5.0)  # seconds before attaching again: the first, and the longest


class Outage:
    """A time without a service: when to attach again, and until when to try."""

    def __init__(self, timeout: float) -> None:
        self.give_up = time.monotonic() + timeout
        self._pause = _PAUSES[0]
        self.postpone()

    def postpone(self) -> None:
        """Sets the time of the next attempt. Pauses double, and are random, so that workers do not return together."""
        self.retry_at = time.monotonic() + random.uniform(self._pause / 2, self._pause)
        self._pause = min(2 * self._pause, _PAUSES[1])
