# SPDX-License-Identifier: Apache-2.0
"""A small model with state: is there speech in each 32 ms of a stream?"""

import torch

FRAME = 512  # samples of one answer: 32 ms at 16 kHz
BANDS = 32
STATES = 64


class VoiceActivity(torch.nn.Module):
    """The energies of 32 bands of each 32 ms, and a GRU over them. The model keeps no state: the state of a row is an argument
    and a result."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(FRAME))
        self.register_buffer("bands", _bands())
        self.gru = torch.nn.GRU(BANDS, STATES, batch_first=True)
        self.speech = torch.nn.Linear(STATES, 1)

    def forward(self, samples: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Takes samples [rows, width] and states [rows, STATES]. Returns logits [rows, width / FRAME] and the new states."""
        frames = samples.unflatten(1, (-1, FRAME))
        energy = torch.fft.rfft(frames * self.window).abs().square() @ self.bands
        hidden, state = self.gru(torch.log(energy + 1e-4), state[None].contiguous())
        return self.speech(hidden)[:, :, 0], state[0]


def _bands() -> torch.Tensor:
    """Returns the weight of each frequency of the spectrum in each band. Bands are as wide as on the mel scale."""
    frequencies = torch.linspace(0, 8000, FRAME // 2 + 1)
    mel = 2595 * torch.log10(1 + frequencies / 700)
    centers = torch.linspace(0, float(mel[-1]), BANDS + 2)[1:-1]
    return (1 - (mel[:, None] - centers).abs() / (centers[1] - centers[0])).clamp(min=0)
