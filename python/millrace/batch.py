# SPDX-License-Identifier: Apache-2.0
"""A batch: rows of different streams that the model processes in one step."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millrace import _core
from millrace.device_array import DeviceArray
from millrace.joined_batch import Taken
from millrace.json_text import value_of
from millrace.quiet_log import QuietLog
from millrace.rows import ClientMessage, Opened, Rows
from millrace.targets import Found, Targets


class Batch:
    """A batch that a worker has taken and not yet given back, or a batch of a Dataset.

    ``data``, ``slot``, ``flags``, ``reset``, ``left``, ``size`` and ``right`` are arrays in memory that is
    shared with the service. Nothing is copied; ``numpy.asarray``, ``torch.from_dlpack`` and
    ``jax.dlpack.from_dlpack`` use the same memory. On a device they are DeviceArrays in its memory, for the
    same functions except NumPy's.

    The arrays of a worker are valid until ``done`` or ``fail``. Afterwards that memory holds other batches, and the
    attributes raise RuntimeError. Copy what you want to keep.

    The arrays of a Dataset belong to the program: their memory is used again when no Batch, array or tensor refers to
    it. ``done`` and ``fail`` are not needed, and do nothing.

    Confined to the thread of the worker or of the Dataset.
    """

    __slots__ = ("_core", "_targets", "_found")

    def __init__(self, core: Taken, targets: Targets | None = None) -> None:
        self._core = core
        self._targets = targets
        self._found: Found | None = None

    @property
    def id(self) -> int:
        """Number of the batch; it increases from batch to batch."""
        return self._core.id

    @property
    def trigger(self) -> str:
        """Why the batch closed: full, complete, deadline or drain; in a Dataset without a meaning."""
        return self._core.trigger

    @property
    def closed(self) -> int:
        """When the batch closed, in nanoseconds. On the service's machine comparable with time.monotonic_ns()."""
        return self._core.closed

    @property
    def taken(self) -> int:
        """When this worker took the batch, in nanoseconds of time.monotonic_ns()."""
        return self._core.taken

    @property
    def rows(self) -> int:
        """Rows of ``data``, including padding rows. 0 if the batch has only marker rows: do not call the model."""
        return self._core.rows

    @property
    def width(self) -> int:
        """Columns of ``data``."""
        return self._core.width

    @property
    def data(self) -> NDArray[Any] | Any:
        """The tensor [rows, width, channels or dim] of ``Worker.dtype``: contiguous, aligned to 256 bytes.
        The model may work in place."""
        return _array_of(self._core.data)

    @property
    def slot(self) -> NDArray[np.int32] | Any:
        """[rows] int32: index of the state of the row's stream; ``Worker.slots`` in a padding row."""
        return _array_of(self._core.slot)

    @property
    def flags(self) -> NDArray[np.uint8] | Any:
        """[rows] uint8: bits of Flag."""
        return _array_of(self._core.flags)

    @property
    def reset(self) -> NDArray[np.bool_] | Any:
        """[rows] bool: true if the state must be fresh before the row."""
        return _array_of(self._core.reset)

    @property
    def left(self) -> NDArray[np.int32] | Any:
        """[rows] int32: real frames before the body."""
        return _array_of(self._core.left)

    @property
    def size(self) -> NDArray[np.int32] | Any:
        """[rows] int32: real frames of the body; 0 in a padding row."""
        return _array_of(self._core.size)

    @property
    def right(self) -> NDArray[np.int32] | Any:
        """[rows] int32: real frames behind the body."""
        return _array_of(self._core.right)

    @property
    def epoch(self) -> int:
        """Number of the epoch in a Dataset; 0 in a worker."""
        return self._core.epoch

    @property
    def step(self) -> int:
        """Number of the batch in its epoch, for the rank of the Dataset; 0 in a worker."""
        return self._core.step

    @property
    def companions(self) -> dict[str, NDArray[Any] | Any]:
        """The companions of a Dataset by name: arrays [rows, entries, values]. ``entries`` is the most that a body can
        have. A row has the entries whose first frame is in its body, in order; unused entries are 0.

        Those with ``per`` are NumPy arrays [rows, longest] or [rows, longest, values] (see ``lengths``)."""
        found = {name: _array_of(array) for name, array in self._core.companions.items()}
        return {**found, **{name: array for name, (array, _) in self._of_targets().items()}}

    @property
    def lengths(self) -> dict[str, NDArray[np.int32]]:
        """[rows] int32 for each companion with ``per``: the length of the target of the stream or segment that ends in
        the row, and -1 if none ends."""
        return {name: lengths for name, (_, lengths) in self._of_targets().items()}

    def _of_targets(self) -> Found:
        if self._targets is None:
            return {}
        if self._found is None:
            self._found = self._targets.of(self)
        return self._found

    @property
    def framed(self) -> Rows:
        """The rows of ``data`` without padding rows, one record each. A copy: it stays valid."""
        return Rows(self._core.framed)

    @property
    def marks(self) -> Rows:
        """The marker rows, one record each. They have no frames and no row in ``data``. A copy: it stays valid."""
        return Rows(self._core.marks)

    @property
    def opened(self) -> list[Opened]:
        """The streams whose first row for this worker or Dataset is in this batch. In a Dataset, ``options`` is the
        stream's ``meta``."""
        return [
            Opened(stream, slot, name, json.loads(options) if options else {})
            for stream, slot, name, options in self._core.opened
        ]

    @property
    def messages(self) -> list[ClientMessage]:
        """The messages that clients sent to the model since the row before, of the streams in this batch. Those of a
        stream are in the order in which they were sent, and belong before its row. Empty in a Dataset."""
        return [
            ClientMessage(stream, seq, position, value_of(data), changes)
            for stream, seq, position, data, changes in self._core.messages
        ]

    def use_on(self, stream: int) -> None:
        """Names a CUDA stream that reads the batch, for streams that are not named by DLPack.

        Work that is put on the stream from now on finds the complete batch. The service writes the batch's memory
        again only when the stream has finished the work that it was given before ``done``. ``stream`` is a
        cudaStream_t as a number. The call does not wait, and on the host it does nothing.

        Raises WorkerError if the device fails or the service is lost.
        """
        self._core.use_on(stream)

    def done(
        self,
        answers: Iterable[Any] | None = None,
        marks: Iterable[Any] | None = None,
        *,
        endpoint: Iterable[Any] | None = None,
    ) -> None:
        """Gives the batch back with its answers, in the order in which batches were taken.

        ``answers`` has one answer per row of ``data`` (those of padding rows may be left out), ``marks`` one per
        marker row; each a sequence, or an array whose first axis is the rows. None or an empty one: no answers.

        An answer is one of these:

        - a JSON value, also a NumPy scalar or array, or a str: the client receives it as ``data``
        - bytes: the client receives them as they are
        - None: the client receives no message
        - ``millrace.pending``: the answer follows with ``Worker.answer``, so the batch is given back without it
        - an exception, such as ``Failure``: an error of this row only
        - NaN, infinity, or a str with half a surrogate pair: also an error of its row, which is logged (at most one
          per second)

        ``endpoint`` has one bool per row of ``data``, as a sequence or an array: true ends the segment of the row, in a
        pipeline with ``endpoint = { by = "worker" }``. A row without an answer may end its segment too. Without a mask
        no row does. The service may have cut further rows of the segment meanwhile; these come before its end. If the
        segment has ended meanwhile, the endpoint has no effect.

        Raises TypeError for an answer or an endpoint of another type, and ValueError for a wrong number of them or for
        answers of more than 64 MiB. The batch can still be given back then. RuntimeError if the order is wrong.
        DeviceError if the device fails. A lost service raises nothing here; ``Worker.next`` handles it.

        On a device, ``done`` does not wait for the CUDA streams that read the batch. If the answers depend on their
        results, wait for these before the call.
        """
        number = self.id
        for unfit in self._core.done(answers, marks, endpoint, encode_json):
            _unfit.error(f"batch {number}: {unfit}; the client receives worker_failed")

    def fail(self, error: BaseException) -> None:
        """Gives back a batch that could not be computed: ``error`` is the answer to each of its rows, including
        marker rows.

        The states of its streams may be half updated. So in the batches that are taken from now on, the next row
        with frames of each of these streams has RESET in ``flags`` and ``reset``, with the reason worker_lost.

        Raises TypeError if ``error`` is not an exception, and RuntimeError and DeviceError like ``done``.
        """
        if not isinstance(error, BaseException):
            raise TypeError(f"error must be an exception, not {error!r}")
        self._core.fail(error)

    @property
    def given_back(self) -> bool:
        """Whether ``done`` or ``fail`` has given the batch back."""
        return not self._core.open

    def __repr__(self) -> str:
        try:
            data, padding = self.data, self.rows - len(self.framed)
            return f"<millrace.Batch {self.id}: {data.shape} {data.dtype}, {padding} padding rows, {len(self.marks)} marks>"
        except RuntimeError:
            return "<millrace.Batch, given back>"


def _array_of(array: Any) -> Any:
    return DeviceArray(array) if isinstance(array, _core.DeviceMemory) else array


def _plain(value: Any) -> Any:
    """NumPy's and similar arrays and scalars as lists and numbers of Python, floats with as few digits as possible."""
    try:
        return _core.plain_values(value)
    except AttributeError:
        raise TypeError(
            f"{type(value).__name__} is not a JSON value: an answer is a JSON value, str, bytes, None or an exception"
        ) from None


_unfit = QuietLog()
encode_json = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain).encode
