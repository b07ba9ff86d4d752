# SPDX-License-Identifier: Apache-2.0
"""The streams of a Dataset that cannot be delivered and are skipped, with ``on_error="skip"``."""

import json
import logging
from typing import NamedTuple

from millrace.errors import DataError

_log = logging.getLogger("millrace")
_MOST = 10_000  # streams in the list: the last ones


class _Failed(NamedTuple):
    epoch: int
    step: int
    stream: int
    reason: str


class FailedStream(_Failed):
    """A stream whose rows are padding rows from this step on, up to its end in the epoch, or one without its target.
    ``reason`` is as in DataError.
    A tuple (epoch, step, stream, reason); ``name`` and ``message`` are the name of the stream, and a text with the file
    or the traceback."""

    name: str
    message: str


class FailedStreams:
    """The streams that were skipped, each once per epoch, in the order of the batches. Logs each stream once."""

    def __init__(self) -> None:
        self.count = 0
        self._last: dict[tuple[int, int], FailedStream] = {}  # by epoch and stream
        self._logged: set[int] = set()

    def note(self, text: str) -> None:
        """Adds the streams that a batch lists (``_core.Batch.failed``)."""
        for entry in json.loads(text):
            failed = FailedStream(entry["epoch"], entry["step"], entry["stream"], entry["fault"])
            failed.name, failed.message = entry["name"], entry["message"]
            self._add(failed, "stream %d (%s) is skipped from epoch %d, step %d on: %s")

    def note_target(self, error: DataError) -> None:
        """Adds a stream with a target that cannot be made, and so is left out."""
        failed = FailedStream(error.epoch, error.step, error.stream, error.reason)
        failed.name, failed.message = error.name, str(error)
        self._add(failed, "stream %d (%s) has no target in epoch %d, step %d: %s")

    def _add(self, failed: FailedStream, sentence: str) -> None:
        if (failed.epoch, failed.stream) in self._last:  # a part of the epoch is read again, or the stream is repeated
            return
        self.count += 1
        self._last[failed.epoch, failed.stream] = failed
        if len(self._last) > _MOST:
            del self._last[next(iter(self._last))]
        if failed.stream not in self._logged:
            self._logged.add(failed.stream)
            # A log is a file of UTF-8, and a name may have other bytes.
            name, message = (text.encode(errors="backslashreplace").decode() for text in (failed.name, failed.message))
            _log.warning(sentence, failed.stream, name, failed.epoch, failed.step, message)

    @property
    def last(self) -> list[FailedStream]:
        return list(self._last.values())
