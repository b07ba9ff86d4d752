# SPDX-License-Identifier: Apache-2.0
"""Streams for the tests of data sets. Frame p of stream i has the value of `frames_of(i, n)[p]`, so each is known."""
import gc
import tempfile
import unittest
import wave
from pathlib import Path

import numpy as np

import millrace

RULE = {"size": 4, "left": 2}


def frames_of(stream, count):
    """Values from 1 on, which no other stream has near."""
    return (np.arange(count) + 1 + 100 * stream).astype(np.int16)


def arrays(*lengths):
    return [frames_of(stream, length) for stream, length in enumerate(lengths)]


def write_wav(path, frames, rate=16000):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1 if frames.ndim == 1 else frames.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(frames.astype("<i2").tobytes())


def rows_of(batch):
    """The rows of a batch: stream, first frame, size, flags, and the values of the body."""
    left = millrace_left(batch)
    return [(row.stream, row.begin, row.size, row.flags,
             batch.data[number, left:left + row.size].ravel().tolist())
            for number, row in enumerate(batch.framed)]


def millrace_left(batch):
    """The columns before the bodies of RULE."""
    return batch.width - RULE["size"]


def content(batch):
    """The content of a batch as values that can be compared; without `opened`, which depends on the first step."""
    return (batch.epoch, batch.step, batch.data.tobytes(), batch.slot.tolist(), batch.flags.tolist(),
            batch.size.tolist(), list(batch.framed), list(batch.marks),
            {name: array.tobytes() for name, array in batch.companions.items()})


def go(data, epoch, step):
    """Continues as after a checkpoint: the states of the slots are there, too."""
    data.load_state_dict({**data.state_dict(), "epoch": epoch, "step": step})


def contents(data):
    return [content(batch) for batch in data]


class DatasetTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(gc.collect)

    def data(self, streams=None, **keys):
        """A data set of arrays; 2 slots, and RULE."""
        keys = {"chunk": RULE, "slots": 2, **keys}
        data = millrace.Dataset(arrays(10, 7, 21, 4) if streams is None else streams, **keys)
        self.addCleanup(data.close)
        return data
