# SPDX-License-Identifier: Apache-2.0
"""Two small models with random weights as ONNX files, and what each answers to one stream alone: a loop over its rows with ONNX
Runtime, with nothing of the worker."""
import sys
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import chunk_reference as contract  # noqa: E402

TOKENS = ["<blk>", "▁a", "b", "c", "▁", "d"]
LABELS = ["quiet", "speech", "music"]
CTC = contract.Spec(size=8, left=2)
GRU = contract.Spec(size=8)


class Gru(torch.nn.Module):
    """Takes frames [rows, 4, 8] and how many of the 8 are real. Its state has the rows on axis 1."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = torch.nn.GRUCell(4, 16), torch.nn.Linear(16, 3)

    def forward(self, frames, lens, h):
        state = h[0]
        for t in range(8):
            state = torch.where((lens > t)[:, None], self.cell(frames[:, :, t], state), state)
        return self.head(state), state[None]


class Ctc(torch.nn.Module):
    """Takes frames [rows, 10, 4], 2 of them left context, and gives 4 times of 6 tokens. Its states have different axes and types."""

    def __init__(self):
        super().__init__()
        self.conv, self.gru, self.head = torch.nn.Conv1d(4, 16, 4, 2), torch.nn.GRU(16, 16, batch_first=True), torch.nn.Linear(16, 6)

    def forward(self, x, cache_h, cache_n):
        y, new_h = self.gru(torch.tanh(self.conv(x.transpose(1, 2))).transpose(1, 2), cache_h)
        tokens = 4 * self.head(y) + torch.sin(cache_n.float() + torch.arange(6)[:, None]).T[:, None]
        return tokens.log_softmax(-1), new_h, cache_n + 1


class Batched(torch.nn.Module):
    """Ctc with lengths, a gain for each row, and time as the first axis of the answer."""

    def __init__(self):
        super().__init__()
        self.ctc = Ctc()

    def forward(self, x, x_lens, gain, cache_h, cache_n):
        log_probs, new_h, new_n = self.ctc(gain[:, None, None] * x, cache_h, cache_n)
        return log_probs.transpose(0, 1), torch.div(x_lens - 1, 2, rounding_mode="floor"), new_h, new_n


def export(path, model, inputs, names, outputs, axes):
    """`axes`: the axis of the rows of each input and output by name, if they are to be of any number."""
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model().eval(), inputs, path, input_names=names, output_names=outputs,
                          dynamic_axes={name: {axis: "N"} for name, axis in axes.items()})
    return str(path)


def gru(path):
    return export(path, Gru, (torch.zeros(2, 4, 8), torch.ones(2, dtype=torch.int32), torch.zeros(1, 2, 16)), ["frames", "lens", "h"],
                  ["mean", "h_new"], {"frames": 0, "lens": 0, "h": 1, "mean": 0, "h_new": 1})


def ctc(path):
    return export(path, Ctc, (torch.zeros(2, 10, 4), torch.zeros(1, 2, 16), torch.zeros(2, dtype=torch.int64)),
                  ["x", "cache_h", "cache_n"], ["log_probs", "new_cache_h", "new_cache_n"],
                  {"x": 0, "cache_h": 1, "cache_n": 0, "log_probs": 0, "new_cache_h": 1, "new_cache_n": 0})


def batched(path, rows):
    """The model of `ctc`, with this number of rows in each call."""
    numbers = torch.ones(rows, dtype=torch.int64)
    return export(path, Batched, (torch.zeros(rows, 10, 4), numbers, torch.ones(rows), torch.zeros(1, rows, 16), numbers),
                  ["x", "x_lens", "gain", "cache_h", "cache_n"], ["log_probs", "lens", "new_cache_h", "new_cache_n"], {})


def rows_of(spec, events):
    return contract.stream_rows(spec, events)


def gru_alone(path, frames, events, initial):
    """(seq, answer) of each row with frames."""
    session, answers = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), []
    for seq, begin, _, size, _, flags, _ in rows_of(GRU, events):
        if flags & contract.RESET:
            state = np.full((1, 1, 16), initial, np.float32)
        if size:
            window = np.zeros((1, 4, 8), np.float32)
            window[0, :, :size] = frames[begin:begin + size].T
            mean, state = session.run(None, {"frames": window, "lens": np.array([size], np.int32), "h": state})
            answers.append((seq, mean[0]))
    return answers


def ctc_alone(path, frames, events, longest):
    """(seq, transcript) of each row that changes the text, or is the last of a segment, or begins anew after a RESET."""
    session, answers = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), []
    for seq, begin, left, size, _, flags, _ in rows_of(CTC, events):
        if flags & (contract.RESET | contract.SEGMENT):
            text = ""
        before = text.strip()
        begins = flags & contract.RESET and not flags & contract.START
        if flags & contract.RESET:
            states, token = {"cache_h": np.zeros((1, 1, 16), np.float32), "cache_n": np.zeros(1, np.int64)}, None
        if size:
            window = np.zeros((1, 10, 4), np.float32)
            window[0, 2 - left:2 + size] = frames[begin - left:begin + size]
            probabilities, states["cache_h"], states["cache_n"] = session.run(None, {"x": window, **states})
            for probability in probabilities[0, :(size + 1) // 2]:
                if (best := int(probability.argmax())) != token and best != 0:
                    text += TOKENS[best].replace("▁", " ")
                token = best
        if flags & contract.LAST or len(text.strip()) > longest:
            answers.append((seq, {"text": text.strip(), "final": True}))
            text = ""
        elif begins or text.strip() != before:
            answers.append((seq, {"text": text.strip(), "stable": text.strip()}))
    return answers
