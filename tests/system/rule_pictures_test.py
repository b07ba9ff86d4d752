# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/rules.md are those that `millrace chunk --plot` draws from the configurations above them."""
import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import rule_pictures  # noqa: E402


class RulePictures(unittest.TestCase):
    def test_each_picture_is_what_the_program_draws(self):
        with tempfile.TemporaryDirectory() as folder:
            rule_pictures.make(os.environ["MILLRACE"], folder)
            names = sorted(os.listdir(folder))
            self.assertGreater(len(names), 3)
            for name in names:
                with self.subTest(name):
                    self.assertEqual((Path(folder) / name).read_text(), (ROOT / "docs/pictures" / name).read_text())


if __name__ == "__main__":
    unittest.main()
