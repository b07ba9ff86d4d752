# SPDX-License-Identifier: Apache-2.0
"""A second model on the same streams: Silero VAD finds where speech ends, and with it the segments that Moonshine transcribes."""

import importlib.metadata
from typing import Any

import numpy as np
import onnxruntime
from model import RATE
from numpy.typing import NDArray

import millrace

WINDOW, CONTEXT = 512, 64  # samples that the model takes at a time, and those before them
# A row has three windows, and the next row begins behind them.
CHUNK: dict[str, Any] = {"size": 3 * WINDOW, "step": 3 * WINDOW, "left": CONTEXT, "right": 0, "align": "body", "pad": "zero"}
SPEECH = 0.5  # the probability above which a window is speech
SILENCE = 9600  # samples without speech that end a segment
NO_SPEECH = -1


class Voice:
    """The Silero VAD model, for many streams at once."""

    def __init__(self, threads: int) -> None:
        """``threads``: threads of ONNX Runtime. Raises RuntimeError if the model is missing."""
        try:
            wheel = importlib.metadata.distribution("silero-vad")
        except importlib.metadata.PackageNotFoundError:
            raise RuntimeError("the model of voice activity is missing: pip install --no-deps silero-vad") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        path = str(wheel.locate_file("silero_vad/data/silero_vad.onnx"))
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._rate = np.array(RATE)

    def __call__(self, windows: NDArray[np.float32], state: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
        """Takes samples [rows, 576] and states [2, rows, 128]. Returns probabilities [rows] and the new states."""
        inputs = {"input": windows, "state": state, "sr": self._rate}
        probability, state = self._session.run(["output", "stateN"], inputs)
        return probability[:, 0], state


class Endpoints:
    """The ends of the segments of all slots. Confined to one thread."""

    def __init__(self, voice: Voice, slots: int) -> None:
        self._voice = voice
        self._state = np.zeros((2, slots + 1, 128), np.float32)  # one per slot, and one for padding rows
        self._quiet = np.full(slots + 1, NO_SPEECH)  # samples since the newest speech

    def of(self, batch: millrace.Batch) -> NDArray[np.bool_]:
        """Returns for each row whether its segment ends: there was speech, and then silence."""
        begins = batch.slot[batch.reset]
        self._state[:, begins] = 0
        segments = batch.slot[(batch.flags & (millrace.Flag.RESET | millrace.Flag.SEGMENT)) != 0]
        self._quiet[segments] = NO_SPEECH  # a segment may also end by a flush or its greatest length
        for at in range(0, CHUNK["size"], WINDOW):
            rows = np.flatnonzero(batch.size > at)
            if not len(rows):  # ONNX Runtime ends the process over this model without rows
                break
            slot = batch.slot[rows]
            speech, self._state[:, slot] = self._voice(batch.data[rows, at : at + CONTEXT + WINDOW, 0], self._state[:, slot])
            quiet = self._quiet[slot]
            self._quiet[slot] = np.where(speech > SPEECH, 0, np.where(quiet == NO_SPEECH, NO_SPEECH, quiet + WINDOW))
        ends = self._quiet[batch.slot] >= SILENCE
        self._quiet[batch.slot[ends]] = NO_SPEECH
        return ends
