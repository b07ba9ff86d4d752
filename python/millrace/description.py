# SPDX-License-Identifier: Apache-2.0
"""The properties of a pipeline, before and after a worker attaches to it; and the warm-up of a model."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from millrace import _core
from millrace.batch import Batch
from millrace.elements import DTYPES
from millrace.request import seconds_of, text

_log = logging.getLogger("millrace")

# slots, rows, width, values, features, dtype, rate, chunk, width_buckets, row_buckets
Welcome: TypeAlias = tuple[int, int, int, int, bool, str, float, str, list[int], list[int]]


class PipelineProperties:
    """The properties of a pipeline, from its service."""

    _welcome: Welcome

    @property
    def slots(self) -> int:
        """Number of slots for the state of streams. Padding rows have this number as slot: allocate one more."""
        return self._welcome[0]

    @property
    def rows(self) -> int:
        """Largest number of rows of a batch."""
        return self._welcome[1]

    @property
    def row_buckets(self) -> tuple[int, ...]:
        """The numbers of rows that batches may have, ascending. The last is ``rows``. Empty: any number from 1 on."""
        return tuple(self._welcome[9])

    @property
    def width(self) -> int:
        """Largest number of columns of a batch."""
        return self._welcome[2]

    @property
    def width_buckets(self) -> tuple[int, ...]:
        """The numbers of columns that batches may have, ascending. The last is ``width``."""
        return tuple(self._welcome[8])

    @property
    def values(self) -> int:
        """Length of the last axis of ``batch.data``: channels of audio, or dim of features."""
        return self._welcome[3]

    @property
    def channels(self) -> int | None:
        """Channels of an audio frame, or None if the pipeline takes features."""
        return None if self._welcome[4] else self.values

    @property
    def dim(self) -> int | None:
        """Values of a feature vector, or None if the pipeline takes audio."""
        return self.values if self._welcome[4] else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of ``batch.data``: int16, float16 or float32."""
        return np.dtype(DTYPES[self._welcome[5]])

    @property
    def rate(self) -> float:
        """Frames per second."""
        return self._welcome[6]

    @property
    def chunk(self) -> dict[str, Any]:
        """The pipeline's chunk rule, as a ``spec`` for ``millrace.chunks``."""
        rule: dict[str, Any] = json.loads(self._welcome[7])
        return rule


class Description(PipelineProperties):
    """A pipeline, as ``describe`` returns it."""

    def __init__(self, core: _core.Description) -> None:
        self._core = core
        self._welcome = core.welcome

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the batches of a warm-up, the largest first: each of ``row_buckets`` with each of
        ``width_buckets``. Without ``row_buckets``, one row and the most rows."""
        return tuple(self._core.sizes)

    def warm_up(self, function: Callable[[Batch], Any], device: str = "host") -> None:
        """Calls ``function`` with a batch of zeros of each of ``sizes``. Its result is not used.

        Each row is the only one of its own stream, in the slot with its number: its flags are those of a first and of a
        last row. So the model's states are void afterwards.
        """
        begun = time.monotonic()
        source = _core.WarmUp(self._core, device)
        while (core := source.next(None)) is not None:
            batch = Batch(core)
            function(batch)
            if not batch.given_back:
                batch.done()
        _log.info("warmed up with %d shapes in %.1f s", len(self.sizes), time.monotonic() - begun)

    def __repr__(self) -> str:
        kind = f"channels={self.channels}" if self.dim is None else f"dim={self.dim}"
        return (
            f"<millrace.Description: slots={self.slots} rows={self.rows} row_buckets={self.row_buckets}"
            f" width_buckets={self.width_buckets} {kind} dtype={self.dtype} rate={self.rate:g} chunk={self.chunk}>"
        )


def describe(url: str | None = None, pipeline: str = "default", *, wait: float = 30) -> Description:
    """Asks a service for the properties of a pipeline. No worker attaches, and no slot is taken.

    The arguments are those of ``Worker``, and so are the errors. Refused has the code ``version`` if the service is too
    old for this question.
    """
    return description_of(text("url", url or ""), text("pipeline", pipeline), own_name(), seconds_of("wait", wait))


def description_of(url: str, pipeline: str, name: str, wait: float) -> Description:
    """As ``describe``, with the name of the worker that asks."""
    return Description(_core.Description(url, pipeline, name, wait, log_wait(wait), lambda: None))


def own_name() -> str:
    """The name of this process for logs of the service."""
    return f"{os.path.basename(sys.argv[0]) or 'python'} {os.getpid()}"


def log_wait(wait: float) -> Callable[[str], None]:
    """Returns a function that logs why the wait for a service begins."""
    return lambda why: _log.warning("%s; waiting for up to %g s", why, wait)
