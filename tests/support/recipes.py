# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/recipes.md, run as they are printed, in a folder with speech, labels, noise and rooms."""
import contextlib
import io
import os
import tempfile
import unittest
import wave
from pathlib import Path

import numpy as np
import printed_programs as printed

PROGRAMS = printed.programs()


def write_wav(path, samples):
    path.parent.mkdir(exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, len(samples), "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())


def write_folders(folder):
    """A tone comes and goes. Each 10 ms has the label 1 while it is there."""
    random = np.random.default_rng(1)
    (folder / "labels").mkdir()
    for number in range(8):
        count = 160 * random.integers(100, 200)
        loud = np.repeat(random.random(-(-count // 1600)) > 0.5, 1600)[:count]
        write_wav(folder / f"speech/{number}.wav", np.where(loud, 8000 * np.sin(0.3 * np.arange(count)), random.normal(0, 50, count)))
        np.save(folder / f"labels/{number}.npy", loud[::160].astype(np.int64))
    for number in range(2):
        write_wav(folder / f"noise/{number}.wav", random.normal(0, 3000, 5000))
    impulse = np.zeros(400)
    impulse[0] = 20000
    write_wav(folder / "rooms/none.wav", impulse)


class Recipes(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        write_folders(self.folder)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def run_program(self, name, text=None):
        """The lines that it prints, and its variables."""
        variables = {}
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(text or PROGRAMS[name].text, variables)
        return output.getvalue().splitlines(), variables

    def assert_learned(self, losses):
        first, last = (sum(part) / len(part) for part in (losses[: len(losses) // 4], losses[-len(losses) // 4 :]))
        self.assertLess(last, 0.97 * first)
