# SPDX-License-Identifier: Apache-2.0
"""The program of docs/recipes.md for TensorFlow's MirroredStrategy, run as it is printed, on two logical devices."""
import sys
import unittest
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from recipes import PROGRAMS, Recipes  # noqa: E402


class Mirrored(Recipes):
    @classmethod
    def setUpClass(cls):
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

    def test_two_replicas_learn_with_states_of_their_own(self):
        program = PROGRAMS["recipe_mirrored"].text.replace("MirroredStrategy()", 'MirroredStrategy(["CPU:0", "CPU:1"])')
        lines, variables = self.run_program("recipe_mirrored", program)
        self.assert_learned([float(line.split()[1]) for line in lines])
        first, second = (state.numpy() for state in variables["strategy"].experimental_local_results(variables["state"]))
        self.assertEqual(first.shape, (3, 32))
        self.assertFalse((first[:2] == second[:2]).all())


if __name__ == "__main__":
    unittest.main()
