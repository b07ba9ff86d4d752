# SPDX-License-Identifier: Apache-2.0
"""What a client asks for when it opens a stream, and what it sends."""

import dataclasses
import json
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from millrace import _core

Frames: TypeAlias = bytes | bytearray | memoryview | NDArray[Any]

_DTYPES = {"s16le": "<i2", "f16le": "<f2", "f32le": "<f4"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """What is None is as the pipeline has it, but for the format, which is always said: what arrays
    are checked against is what the service reads."""

    pipeline: str = "default"
    id: str | None = None
    format: str | None = None
    rate: float | None = None
    channels: int | None = None
    dim: int | None = None
    options: dict[str, Any] | None = None

    def start(self, client: _core.Client) -> _core.Stream:
        options = "" if self.options is None else json.dumps(self.options)
        return client.start(
            self.pipeline, self.id or "", self.sent_as, self.rate, self.channels, self.dim, options
        )

    @property
    def sent_as(self) -> str:
        return self.format or ("f32le" if self.dim else "s16le")

    def frames(self, frames: Frames) -> bytes | bytearray | memoryview | NDArray[Any]:
        """As the extension sends them. An array has the values of the format, and no others."""
        if not isinstance(frames, np.ndarray):
            return frames
        if frames.dtype != np.dtype(_DTYPES.get(self.sent_as, "V")):
            raise TypeError(
                f"an array of {frames.dtype} is no {self.sent_as}: convert it, or open the stream with"
                " its format"
            )
        return np.ascontiguousarray(frames)
