# SPDX-License-Identifier: Apache-2.0
"""The state of all streams: one tensor per kind with a place per slot, on the model's device. A step gathers the places of its
rows, and scatters the new states.

The library's modules ask a cache for the frames before their input. Its own caches are for streams that begin together and have
equal chunks. The three classes at the end of this file take their place.
"""

import torch
from torch import nn
from transformers import NemotronAsrStreamingConfig


class Caches:
    """The state per slot. ``Streams.clear`` makes a place that of a stream that begins."""

    def __init__(self, config: NemotronAsrStreamingConfig, slots: int, kept: int, device: torch.device) -> None:
        """``kept``: encoder frames before a chunk that the attention sees."""
        encoder, layers = config.encoder_config, config.encoder_config.num_hidden_layers
        heads, size = encoder.num_attention_heads, encoder.hidden_size

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.keys = zeros(layers, slots, heads, kept, size // heads)
        self.values = torch.zeros_like(self.keys)
        self.convolved = zeros(layers, slots, size, encoder.conv_kernel_size - 1)
        self.seen = zeros(slots, dtype=torch.long)  # number of kept frames that are real; they are the newest
        self.predictor = tuple(zeros(config.num_decoder_layers, slots, config.decoder_hidden_size) for _ in range(2))
        self.predicted = zeros(slots, config.decoder_hidden_size)  # after the newest token

    def clear(self, slots: torch.Tensor) -> None:
        """Forgets the frames and tokens before. The predictor then needs its first input."""
        for state in (self.keys, self.values, self.convolved, *self.predictor):
            state[:, slots] = 0
        self.seen[slots] = 0


class Rows:
    """The slots of the rows of a step, and the number of real frames among the new ones of each: on the host, where they come
    from, and on the device."""

    def __init__(self, slots: list[int], frames: list[int], width: int, device: torch.device) -> None:
        self.slots, self.frames = slots, frames
        self.places, self.counts = torch.tensor((slots, frames)).to(device, non_blocking=True)
        self._all_full = min(frames) == width

    def extend(self, state: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Returns the kept frames and the new ones of each row, and keeps the newest. Frames are dimension 2 of both."""
        frames = torch.cat((state.index_select(0, self.places), new), 2)
        state.index_copy_(0, self.places, self._newest(frames, state.shape[2]))
        return frames

    def _newest(self, frames: torch.Tensor, count: int) -> torch.Tensor:
        """Returns the newest ``count`` frames. The padding at the end of a row does not count."""
        if self._all_full:
            return frames[:, :, frames.shape[2] - count :]
        places = torch.arange(count, device=frames.device) + self.counts[:, None]
        places = places.view(len(places), 1, count, *(1,) * (frames.dim() - 3))
        return frames.take_along_dim(places, 2)


class Attention:
    """Stands for the library's ``cache`` in one step."""

    def __init__(self, caches: Caches, rows: Rows) -> None:
        self._caches, self._rows = caches, rows

    def mask(self, width: int) -> torch.Tensor:
        """Returns the keys that each row sees: [rows, 1, 1, kept + width]. All frames of a chunk see the same keys."""
        kept, device = self._caches.keys.shape[3], self._caches.keys.device
        old = torch.arange(kept, device=device) >= kept - self._caches.seen[self._rows.places, None]
        new = torch.arange(width, device=device) < self._rows.counts[:, None]
        return torch.cat((old, new), 1)[:, None, None]

    def update(self, key: torch.Tensor, value: torch.Tensor, layer: int, **_: object) -> tuple[torch.Tensor, torch.Tensor]:
        return self._rows.extend(self._caches.keys[layer], key), self._rows.extend(self._caches.values[layer], value)

    def end(self) -> None:
        """Ends the step: its frames are kept ones now."""
        caches, places = self._caches, self._rows.places
        caches.seen[places] = (caches.seen[places] + self._rows.counts).clamp(max=caches.keys.shape[3])


class Convolution:
    """Stands for the library's ``padding_cache`` of the encoder's layers in one step."""

    def __init__(self, caches: Caches, rows: Rows) -> None:
        self._states, self._rows = iter(caches.convolved), rows

    def update(self, new: torch.Tensor, _: str, __: nn.Module) -> torch.Tensor:
        return self._rows.extend(next(self._states), new)  # the layers ask in their order


class RunBegin:
    """Stands for the library's ``padding_cache`` of the subsampling. Nothing is kept there, because rows have the frames before
    their body. In each convolution, a column that is before the begin of the run is zero, as the library pads it."""

    def __init__(self, missing: torch.Tensor) -> None:
        self._missing = missing

    def update(self, frames: torch.Tensor, _: str, convolution: nn.Conv2d) -> torch.Tensor:
        before = torch.arange(frames.shape[2], device=frames.device) < self._missing[:, None]
        width, stride = convolution.kernel_size[0], convolution.stride[0]
        self._missing = ((self._missing - width + stride) // stride).clamp(min=0)  # columns made of these alone
        return frames.masked_fill(before[:, None, :, None], 0)
