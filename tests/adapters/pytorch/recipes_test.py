# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/recipes.md for Lightning and Hugging Face, run as they are printed."""
import sys
import unittest
from pathlib import Path

import millrace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from recipes import Recipes  # noqa: E402


class Programs(Recipes):
    def places(self):
        data = millrace.Dataset("speech", chunk={"size": "100ms"}, slots=4, seed=1)
        return [[str(batch.epoch), str(batch.step)] for _ in range(4) for batch in data]

    def test_the_program_for_lightning_learns_from_all_batches(self):
        lines, variables = self.run_program("recipe_lightning")
        self.assertEqual([line.split()[:2] for line in lines], self.places())
        self.assert_learned([float(line.split()[2]) for line in lines])
        self.assertGreater(float(variables["trainer"].model.state[:4].abs().max()), 0)

    def test_the_program_for_hugging_face_learns_from_all_batches(self):
        lines, _ = self.run_program("recipe_trainer")
        losses = eval(lines[-1])
        self.assertEqual(len(losses), len(self.places()))
        self.assert_learned(losses)


if __name__ == "__main__":
    unittest.main()
