# SPDX-License-Identifier: Apache-2.0
"""An array of a batch that lies on a device."""

import operator
from typing import Any, NoReturn

import numpy as np

from millrace import _core

_CUDA = 2  # as DLPack calls it
_LEGACY = 1  # CUDA's default stream, as DLPack and its array interface call it
_NO_STREAM = -1  # for DLPack: the consumer sees to it that the array is there, and read in time


class DeviceArray:
    """An array of a batch where it lies: in the memory of a CUDA device.

    It can nothing but say so, without a copy and without waiting: ``torch.from_dlpack``,
    ``cupy.from_dlpack`` and ``jax.dlpack.from_dlpack`` take it by DLPack, Numba by CUDA's array interface.

    By DLPack the consumer names its stream. What it puts there from then on finds the batch, and the
    memory is written again only when the stream is through with what it was given before ``done()``.
    Any other stream that reads the batch has to be named too, with ``Batch.use_on``.

    Valid until ``done()``; afterwards everything here raises RuntimeError. One thread, the worker's.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.DeviceMemory) -> None:
        self._core = core

    @property
    def shape(self) -> tuple[int, ...]:
        return self._core.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._core.dtype)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of DLPack, for the stream with that handle: 1 or None the legacy default stream, 2
        the default stream of the thread. -1: the library knows nothing of the consumer, which must not
        read before another stream of its device was named, nor after ``done()``.

        Raises BufferError for what it cannot give: a copy, or the array on another device. WorkerError
        where the device has failed.
        """
        if copy:
            raise BufferError("an array of a batch is not copied: it lies where the worker is to read it")
        device = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != device:
            raise BufferError(f"the array lies on cuda:{device[1]}, and is not moved")
        handle = _LEGACY if stream is None else operator.index(stream)
        if handle == 0 or handle < _NO_STREAM:
            raise ValueError(f"stream {handle} is none: 1 is the legacy default stream, 2 that of the thread")
        if handle != _NO_STREAM:
            self._core.use_on(handle)
        return self._core.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CUDA, self._core.ordinal)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For consumers that do not speak DLPack. The legacy default stream is the one that finds the
        batch, and that ``done()`` lets finish: a consumer that reads it on a stream which does not wait
        for that one, and that one not for it, has to be named with ``Batch.use_on``."""
        shape = self._core.shape
        self._core.use_on(_LEGACY)
        return {
            "version": 3,
            "shape": shape,
            "typestr": self.dtype.str,
            "data": (self._core.address if all(shape) else 0, False),
            "strides": None,
            "stream": _LEGACY,
        }

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"the array lies on cuda:{self._core.ordinal}: NumPy cannot read it")

    def __repr__(self) -> str:
        try:
            return f"<millrace.DeviceArray on cuda:{self._core.ordinal}: {self.shape} {self.dtype}>"
        except RuntimeError:
            return "<millrace.DeviceArray, given back>"
