# SPDX-License-Identifier: Apache-2.0
"""Folders of speech and labels, and the batches that a plain loop gets of them."""
import tempfile
import unittest
import wave
from pathlib import Path

import numpy as np

import millrace

SLOTS = 4
OPTIONS = {"chunk": {"size": 160}, "dtype": "f32", "slots": SLOTS, "seed": 3}
ARRAYS = ("data", "slot", "flags", "left", "size", "right")


def write_speech(folder, lengths, seed=1):
    """Writes speech/NUMBER.wav, and labels/NUMBER.npy with an entry for each 40 frames."""
    random = np.random.default_rng(seed)
    (folder / "speech").mkdir()
    (folder / "labels").mkdir()
    for number, length in enumerate(lengths):
        with wave.open(str(folder / f"speech/{number:02}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, length, "NONE", ""))
            file.writeframes(random.integers(-30000, 30000, length, np.int16).tobytes())
        np.save(folder / f"labels/{number:02}.npy", random.integers(0, 50, -(-length // 40)))


class Folders(unittest.TestCase):
    """Has a folder with streams of several lengths."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        write_speech(cls.folder, np.random.default_rng(5).integers(30, 3000, 23).tolist())
        cls.speech = str(cls.folder / "speech")
        cls.options = {**OPTIONS, "companions": {"label": str(cls.folder / "labels")}}

    def dataset(self, **options):
        return millrace.Dataset(self.speech, **{**self.options, **options})


def plain(batch):
    """The content of a batch, for comparisons."""
    streams = np.full(batch.rows, -1)
    streams[:len(batch.framed)] = batch.framed["stream"]
    return {"epoch": batch.epoch, "step": batch.step, "stream": streams.tolist(),
            **{name: np.array(getattr(batch, name)).tolist() for name in ARRAYS},
            "reset": np.array(batch.reset).tolist(),
            "companions": {name: np.array(array).tolist() for name, array in batch.companions.items()}}


def epochs_of(data, count):
    """The batches of the next epochs."""
    return [plain(batch) for _ in range(count) for batch in data]
