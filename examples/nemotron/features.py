# SPDX-License-Identifier: Apache-2.0
"""From the audio of rows to mel frames, as the feature extractor makes them from a whole recording."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from transformers import NemotronAsrStreamingFeatureExtractor

from millrace import Flag, Row

RATE, HOP, FFT = 16000, 160, 512  # samples per second, of a mel frame's step, and of a mel frame's window
FACTOR = 8  # mel frames of an encoder frame
CONTEXT = FACTOR - 1  # mel frames before the body that the subsampling sees: three convolutions of width 3 and stride 2


def chunk_rule(lookahead: int) -> dict[str, int | str]:
    """Returns the chunk rule for a look-ahead in encoder frames: preset nemo-70-LOOKAHEAD, for audio at 16 kHz.

    The body of a row is cut into pieces of HOP samples. Each gives the mel frame whose window is centred on its first sample.
    """
    size = FACTOR * (lookahead + 1)
    lengths = {"size": size * HOP, "first": (size - CONTEXT) * HOP, "left": 9 * HOP, "right": HOP * 3 // 2}
    return {**lengths, "step": 0, "min": 0, "tail": "every_start", "align": "packed", "pad": "zero"}


class Mel(NamedTuple):
    """The mel frames of rows, with the body's columns at the same place in all."""

    frames: torch.Tensor  # [rows, CONTEXT + FACTOR * (lookahead + 1), bins]; zero after the last frame
    missing: torch.Tensor  # [rows] columns on the left that are before the begin of the run
    encoded: list[int]  # per row: encoder frames that the model makes of them; the others are padding


class Features:
    """Makes mel frames. Keeps no state: each row has the samples that its frames need."""

    def __init__(self, extractor: NemotronAsrStreamingFeatureExtractor, lookahead: int) -> None:
        """``lookahead``: of the pipeline's chunks, in encoder frames."""
        rule = chunk_rule(lookahead)
        self.lookahead = lookahead
        self._extractor = extractor
        self._left, self._size, self._right = (int(rule[part]) for part in ("left", "size", "right"))

    def __call__(self, audio: torch.Tensor, rows: Sequence[Row]) -> Mel:
        """``audio``: samples from -1 to 1 of these rows [rows, width], which the call changes.

        The first body of a run is shorter. It is moved to the end of the columns, so that it fits into the same batch.
        """
        left, size, right = (np.array([getattr(row, part) for row in rows]) for part in ("left", "size", "right"))
        late = np.where(left == 0, CONTEXT, 0)
        body = self._left + HOP * late  # column of its first sample
        for row in np.flatnonzero(body > left):
            audio[row] = audio[row].roll(int(body[row] - left[row]))
        end = CONTEXT + late + size // HOP  # column after the last mel frame

        missing = np.maximum(CONTEXT + late - left // HOP, 0)
        numbers = torch.from_numpy(np.stack((body + size + right, end, missing))).to(audio.device, non_blocking=True)
        frames = self._mel(audio, numbers[0])
        frames = frames.masked_fill(_from(numbers[1], frames.shape[1])[:, :, None], 0)
        return Mel(frames, numbers[2], (end // FACTOR).tolist())

    def silence(self, count: int) -> tuple[torch.Tensor, list[Row]]:
        """Returns the samples of this number of rows, [count, width], and the rows: full ones, in the slots from 0 on."""
        lengths = self._left, self._size, self._right
        rows = [Row(slot, 1, self._left, 0, None, slot, *lengths, Flag(0), None) for slot in range(count)]
        return torch.zeros(count, sum(lengths)), rows

    def _mel(self, audio: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        audio = torch.cat((audio[:, :1], audio[:, 1:] - self._extractor.preemphasis * audio[:, :-1]), 1)
        audio = audio.masked_fill(_from(end, audio.shape[1]), 0)
        begin = self._left - CONTEXT * HOP - FFT // 2
        window = audio[:, begin : self._left + self._size - HOP + FFT // 2]
        # Private, because the public call makes a list of arrays of the batch, on the host.
        return self._extractor._torch_extract_fbank_features(window, window.device, center=False)


def _from(begin: torch.Tensor, width: int) -> torch.Tensor:
    """Returns a mask [rows, width] of the columns from the row's ``begin`` on."""
    return torch.arange(width, device=begin.device) >= begin[:, None]
