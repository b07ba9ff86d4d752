# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``open``, and the frames that a client sends, checked."""

import dataclasses
import json
import numbers
import operator
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from millrace import _core

Frames: TypeAlias = bytes | bytearray | memoryview | NDArray[Any]

_DTYPES = {"s16le": "<i2", "f16le": "<f2", "f32le": "<f4"}
_PACKETS = "opus"  # the format in which each send is one packet
_MOST = 2**53 - 1  # the largest position or mark


def whole(name: str, given: SupportsIndex, least: int, most: int = _MOST) -> int:
    """Returns a whole number. Raises TypeError or ValueError that names the argument."""
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {given!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be {least} to {most}, not {number}")
    return number


def seconds_of(name: str, given: float) -> float:
    """Returns a time. Raises TypeError or ValueError that names the argument."""
    if not isinstance(given, (int, float)):
        raise TypeError(f"{name} must be seconds, not {given!r}")
    if not given >= 0:
        raise ValueError(f"{name} must be seconds, 0 or more, not {given!r}")
    return float(given)


def text(name: str, given: str) -> str:
    """Returns a string. Raises TypeError that names the argument."""
    if not isinstance(given, str):
        raise TypeError(f"{name} must be a string, not {given!r}")
    return given


def json_of(name: str, data: Any) -> str:
    """Returns JSON. Raises TypeError or ValueError that names the argument."""
    try:
        text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        text.encode()
        return text
    except UnicodeEncodeError:
        raise ValueError(f"{name}: a string has a lone surrogate, which UTF-8 cannot encode") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}; JSON has no NaN and no infinity") from None
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def options_of(given: dict[str, Any]) -> str:
    """Returns options as JSON. Raises TypeError or ValueError."""
    if not isinstance(given, dict):
        raise TypeError(f"options must be a dict, not {given!r}")
    return json_of("options", given)


def mark_of(given: SupportsIndex | None) -> int | None:
    """Returns the argument of ``flush``, checked."""
    return None if given is None else whole("mark", given, 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of ``open``. The pipeline decides those that are None, except the format, which is always sent:
    arrays are checked against it. Raises TypeError and ValueError that name the argument."""

    pipeline: str = "default"
    id: str | None = None
    format: str | None = None
    rate: float | None = None
    channels: int | None = None
    dim: int | None = None
    channel: int | str | None = None
    chunk: int | str | None = None
    options: dict[str, Any] | None = None
    record: bool = True
    explain: bool = False

    def __post_init__(self) -> None:
        for name in ("pipeline", "id", "format"):
            self._check(name, str, "a string")
        self._check("rate", numbers.Real, "a number")
        self._check("options", dict, "a dict")
        for name in ("record", "explain"):
            self._check(name, bool, "True or False")
        for name in ("channels", "dim"):
            if (given := getattr(self, name)) is not None:
                whole(name, given, 1, 2**32 - 1)
        self._check("channel", (int, str), 'a whole number or "mean"')
        if isinstance(self.channel, str) and self.channel != "mean":
            raise ValueError(f'channel must be a whole number or "mean", not {self.channel!r}')
        self._check("chunk", (int, str), 'a time such as "160ms" or a number of frames')

    def _check(self, name: str, kind: type | tuple[type, ...], words: str) -> None:
        given = getattr(self, name)
        if given is not None and not isinstance(given, kind):
            raise TypeError(f"{name} must be {words}, not {given!r}")

    def start(self, client: _core.Client) -> _core.Stream:
        return client.start(
            self.pipeline,
            self.id or "",
            self.sent_as,
            self.rate,
            self.channels,
            self.dim,
            None if self.channel is None else str(self.channel),
            None if self.chunk is None else str(self.chunk),
            "" if self.options is None else options_of(self.options),
            self.record,
            self.explain,
        )

    @property
    def sent_as(self) -> str:
        return self.format or ("f32le" if self.dim else "s16le")

    def frames(self, frames: Frames) -> bytes | bytearray | memoryview | NDArray[Any]:
        """Returns the frames, or the Opus packet, as the extension sends them.

        An array must have the dtype of the format, and whole frames. With two dimensions, each line is a frame: without
        ``channels`` and ``dim`` the stream is then mono. Raises TypeError and ValueError.
        """
        if not isinstance(frames, np.ndarray):
            return frames
        if self.sent_as == _PACKETS:
            raise TypeError("an Opus packet must be bytes, not an array")
        if frames.dtype != np.dtype(_DTYPES.get(self.sent_as, "V")):
            raise TypeError(
                f"an array of {frames.dtype} does not have the stream's format {self.sent_as}: convert it, or open the"
                " stream with its format"
            )
        values = self.dim or self.channels or (1 if frames.ndim > 1 else None)
        if values and (frames.size % values if frames.ndim < 2 else frames.shape[-1] != values):
            raise ValueError(self._wrong_shape(frames, values))
        return np.ascontiguousarray(frames)

    def _wrong_shape(self, frames: NDArray[Any], values: int) -> str:
        what = "values" if self.dim else "channel" if values == 1 else "channels"
        sentence = f"an array of shape {frames.shape}, but a frame of this stream has {values} {what}: give (n, {values})"
        if frames.ndim == 2 and frames.shape[0] == values:
            return sentence + ", as array.T does"
        if frames.ndim == 2 and not (self.dim or self.channels):
            shorter = min(frames.shape)
            return sentence + f", or open the stream with channels={shorter} (dim={shorter} for features)"
        return sentence
