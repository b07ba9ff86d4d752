# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/training.md for PyTorch and TensorFlow, run as they are printed. returnn_test.py runs that for RETURNN."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from folders import SLOTS, write_speech

import millrace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402


class Documents(unittest.TestCase):
    def check(self, name):
        """Each line begins with epoch and step, and has the slots at its end or before the resets."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        write_speech(folder, [20000, 9000, 16000, 8001, 12345])
        done = subprocess.run([sys.executable, "-c", printed.programs()[name].text], cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        data = millrace.Dataset(str(folder / "speech"), chunk={"size": "100ms"}, slots=SLOTS, seed=1)
        self.assertEqual([line.split()[:2] for line in lines], [[str(batch.epoch), str(batch.step)] for batch in data])
        self.assertIn(str([0, 1, 2, 3]), lines[0])

    def test_the_program_for_pytorch_gives_the_batches_of_the_plan(self):
        self.check("training_torch")

    def test_the_program_for_tensorflow_gives_the_batches_of_the_plan(self):
        self.check("training_tf")


if __name__ == "__main__":
    unittest.main()
