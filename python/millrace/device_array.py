# SPDX-License-Identifier: Apache-2.0
"""An array of a batch in the memory of a device."""

import operator
from typing import Any, NoReturn

import numpy as np

from millrace import _core

_CUDA = 2  # as DLPack calls it
_LEGACY = 1  # CUDA's default stream, as DLPack and its array interface call it
_NO_STREAM = -1  # for DLPack: the consumer itself makes sure that the array is complete, and read in time


class DeviceArray:
    """An array of a batch in the memory of a CUDA device.

    It has no operations; a framework makes its own array of it, without a copy and without waiting.
    ``torch.from_dlpack``, ``cupy.from_dlpack`` and ``jax.dlpack.from_dlpack`` use DLPack, Numba uses the CUDA array
    interface.

    With DLPack the consumer names its CUDA stream. Work that it puts on this stream afterwards finds the complete
    batch. The service writes the memory again only when the stream has finished the work that it was given before
    ``done``. Any other stream that reads the batch must be named with ``Batch.use_on``.

    Valid until ``done``; afterwards the array raises RuntimeError. Confined to the worker's thread.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.DeviceMemory) -> None:
        self._core = core

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes: [rows, width, channels or dim] of ``data``, else [rows]."""
        return self._core.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements, as in NumPy."""
        return np.dtype(self._core.dtype)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Returns a DLPack capsule for the CUDA stream with the handle ``stream``.

        None or 1: the legacy default stream. 2: the default stream of the thread. -1: no synchronization; the consumer
        must not read before another stream of its device has been named, nor after ``done``.

        Raises BufferError for a copy or another device, ValueError if ``stream`` is 0 or below -1, and WorkerError if
        the device fails or the service is lost.
        """
        if copy:
            raise BufferError("copy=True is not supported: import the array without a copy, and copy the result")
        device = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != device:
            raise BufferError(f"the array is on cuda:{device[1]}; it cannot be exported to another device")
        handle = _LEGACY if stream is None else operator.index(stream)
        if handle == 0 or handle < _NO_STREAM:
            raise ValueError(
                f"stream must be a CUDA stream or -1, not {handle}:"
                " 1 is the legacy default stream, 2 that of the thread"
            )
        if handle != _NO_STREAM:
            self._core.use_on(handle)
        return self._core.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CUDA, self._core.ordinal)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3, for consumers without DLPack. It names the legacy default stream. If a
        consumer reads on a stream that does not synchronize with this one, name its stream with ``Batch.use_on``."""
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
        raise TypeError(
            f"NumPy cannot read an array on cuda:{self._core.ordinal}: use from_dlpack of PyTorch, CuPy or JAX"
        )

    def __repr__(self) -> str:
        try:
            return f"<millrace.DeviceArray on cuda:{self._core.ordinal}: {self.shape} {self.dtype}>"
        except RuntimeError:
            return "<millrace.DeviceArray, given back>"
