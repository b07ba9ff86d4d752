# SPDX-License-Identifier: Apache-2.0
"""The pictures and the program of docs/rules.md agree with `millrace chunk`."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MILLRACE = os.environ["MILLRACE"]
sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "tests/support"))
import printed_programs as printed  # noqa: E402
import rule_pictures  # noqa: E402


class Rules(unittest.TestCase):
    def test_each_picture_is_what_the_program_draws(self):
        with tempfile.TemporaryDirectory() as folder:
            rule_pictures.make(MILLRACE, folder)
            names = sorted(os.listdir(folder))
            self.assertGreater(len(names), 3)
            for name in names:
                with self.subTest(name):
                    self.assertEqual((Path(folder) / name).read_text(), (ROOT / "docs/pictures" / name).read_text())

    def test_the_printed_program_draws_the_sizes_of_the_rows(self):
        program = {}
        exec(printed.programs()["drawn_sizes"].text, program)
        rows = subprocess.run([MILLRACE, "chunk", "--spec", "rule=random,seed=7,size=4,sizes=2+3+4+9", "--name", "mic", "--frames", "500"],
                              check=True, capture_output=True, text=True).stdout.splitlines()
        sizes = [json.loads(row)[3] for row in rows]
        self.assertGreater(len(sizes), 50)
        self.assertEqual(sizes[:-2], [program["drawn_size"]([2, 3, 4, 9], 7, "mic", row) for row in range(len(sizes) - 2)])


if __name__ == "__main__":
    unittest.main()
