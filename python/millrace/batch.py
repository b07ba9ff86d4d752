# SPDX-License-Identifier: Apache-2.0
"""A batch: rows of many streams that the model processes in one step."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace import _core
from millrace.device_array import DeviceArray
from millrace.rows import Opened, Rows


class Batch:
    """A batch that the worker has taken and not yet given back.

    ``data`` and the arrays beside it are views of memory that is shared with the service, and nothing
    is copied: ``numpy.asarray``, ``torch.from_dlpack`` and ``jax.dlpack.from_dlpack`` take them as they
    are. They are valid until ``done()``: afterwards that memory holds other batches, and everything
    here raises RuntimeError. Copy what is to be kept.

    Those of a worker on a device are DeviceArrays: they lie there, and the same functions take them.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.Batch) -> None:
        self._core = core

    @property
    def id(self) -> int:
        return self._core.id

    @property
    def trigger(self) -> str:
        """Why it closed: full, complete, deadline or drain."""
        return self._core.trigger

    @property
    def closed(self) -> int:
        """When it closed: on the service's machine comparable with time.monotonic_ns()."""
        return self._core.closed

    @property
    def taken(self) -> int:
        """When this worker took it, as time.monotonic_ns()."""
        return self._core.taken

    @property
    def rows(self) -> int:
        """Rows of ``data``, padding rows included. 0: there are marker rows alone, for no model."""
        return self._core.rows

    @property
    def width(self) -> int:
        """Columns of ``data``."""
        return self._core.width

    @property
    def data(self) -> NDArray[Any] | Any:
        """The tensor [rows, width, channels or dim], contiguous, its base aligned to 256 bytes. The
        model may work in place."""
        return _seen(self._core.data)

    @property
    def slot(self) -> NDArray[np.int32] | Any:
        """[rows] Where the state of the row's stream is; of a padding row Worker.slots."""
        return _seen(self._core.slot)

    @property
    def flags(self) -> NDArray[np.uint8] | Any:
        """[rows] Bits of Flag."""
        return _seen(self._core.flags)

    @property
    def reset(self) -> NDArray[np.bool_] | Any:
        """[rows] Whether the state must be fresh before the row."""
        return _seen(self._core.reset)

    @property
    def left(self) -> NDArray[np.int32] | Any:
        """[rows] Real frames before the body."""
        return _seen(self._core.left)

    @property
    def size(self) -> NDArray[np.int32] | Any:
        """[rows] Frames of the body; of a padding row 0."""
        return _seen(self._core.size)

    @property
    def right(self) -> NDArray[np.int32] | Any:
        """[rows] Real frames behind the body."""
        return _seen(self._core.right)

    @property
    def framed(self) -> Rows:
        """What is known of each row of ``data``, without padding rows."""
        return Rows(self._core.framed)

    @property
    def marks(self) -> Rows:
        """Rows that only carry markers. They have no place in ``data``."""
        return Rows(self._core.marks)

    @property
    def opened(self) -> list[Opened]:
        """The streams of which this worker gets its first row here."""
        return [
            Opened(stream, slot, name, json.loads(options) if options else {})
            for stream, slot, name, options in self._core.opened
        ]

    def use_on(self, stream: int) -> None:
        """What is put on that stream of the device from here on finds the batch, and its memory is written
        again only when the stream is through with what it was given before ``done()``. For streams of
        which DLPack does not tell. ``stream`` is a cudaStream_t as a number. Nothing on the host.

        Raises WorkerError where the device has failed.
        """
        self._core.use_on(stream)

    def done(self, answers: Iterable[Any] | None = None, marks: Iterable[Any] | None = None) -> None:
        """Gives the batch back, with an answer for each row of ``data`` (padding rows may be left out)
        or none at all, and the same for each of ``marks``. Batches are given back in their order.

        ``answers`` is a sequence, or an array whose first axis are the rows. An answer is anything that
        JSON can say, NumPy's scalars and arrays among it; str; bytes, which the client gets as they are;
        None, of which the client hears nothing; or an exception (``Failure``), which is an error of that
        row alone. What is not finite, or no Unicode, is an error of its row too.

        Raises TypeError for an answer that JSON cannot say, ValueError for a wrong number of answers; the
        batch is as it was. Nothing is raised here when the service is gone: ``Worker.next`` deals with it.
        On a device it does not wait for what was put on streams: answers do not depend on that, or the
        model has waited. DeviceError where the device has failed.
        """
        self._core.done(answers, marks, _encode)

    def fail(self, error: BaseException) -> None:
        """Gives back a batch that could not be computed: ``error`` is the answer to each of its rows, marker
        rows included.

        The states of its streams may be half updated. So the next row with frames of each of them has
        RESET in ``flags`` and ``reset``, with the reason worker_lost: from the next batch that is taken
        on, whether the service asked for it or not. Raises as ``done`` does.
        """
        if not isinstance(error, BaseException):
            raise TypeError(f"error must be an exception, not {error!r}")
        self._core.fail(error)

    @property
    def given_back(self) -> bool:
        """Whether ``done`` or ``fail`` gave it back."""
        return not self._core.open

    def __repr__(self) -> str:
        try:
            return f"<millrace.Batch {self.id}: {self.rows} rows, {len(self.marks)} marks>"
        except RuntimeError:
            return "<millrace.Batch, given back>"


def _seen(array: Any) -> Any:
    return DeviceArray(array) if isinstance(array, _core.DeviceMemory) else array


def _plain(value: Any) -> Any:
    """Arrays and scalars of NumPy and its like as Python's own."""
    try:
        return value.tolist()
    except AttributeError:
        raise TypeError(f"{type(value).__name__} is no answer: it has no JSON") from None


_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain).encode