# SPDX-License-Identifier: Apache-2.0
"""millrace.returnn in RETURNN's engine for TensorFlow: one step of the engine is one batch of the plan."""
import subprocess
import sys
import tempfile
import unittest

import millrace.returnn
import numpy as np
import tensorflow as tf
from folders import SLOTS, Folders, epochs_of
from returnn.config import Config, global_config_ctx
from returnn.datasets.basic import init_dataset
from returnn.tf.engine import Engine

STEPS = []  # what the engine gave to each step


def note(data, slot, reset):
    """A layer that notes its inputs, and gives the first one. The others have axes of length 1 for time and features."""
    def noted(data, slot, reset):
        STEPS.append((data.copy(), slot.ravel().tolist(), reset.ravel().tolist()))
        return data

    return tf.ensure_shape(tf.numpy_function(noted, [data, slot, reset], tf.float32), [None, None, 1])


class ReturnnTensorFlow(Folders):
    def test_one_step_of_the_engine_is_one_batch_of_the_plan(self):
        train = {"class": millrace.returnn.Dataset, "streams": self.speech, **self.options}
        config = Config({
            "task": "train", "backend": "tensorflow-net-dict", "device": "cpu", "num_epochs": 2, "train": train,
            "max_seqs": SLOTS, "batch_size": 10**9, "note": note,
            "extern_data": {"data": {"dim": 1}, "slot": {"dtype": "int32", "shape": (), "dim": None},
                            "reset": {"dtype": "bool", "shape": (), "dim": None}},
            "network": {
                "noted": {"class": "eval", "from": ["data", "data:slot", "data:reset"],
                          "eval": "self.network.get_config().typed_value('note')(source(0), source(1), source(2))"},
                "hidden": {"class": "linear", "from": "noted", "n_out": 1, "activation": None},
                "output": {"class": "reduce", "mode": "mean", "axis": "T", "from": "hidden", "loss": "as_is"}},
            "optimizer": {"class": "adam"}, "learning_rate": 1e-3, "log_verbosity": 1, "behavior_version": 20,
            "model": self.enterContext(tempfile.TemporaryDirectory()) + "/model"})
        with global_config_ctx(config):
            engine = Engine(config)
            engine.init_train_from_config(config, train_data=init_dataset(train))
            engine.train()
        expected = epochs_of(self.dataset(), 2)
        self.assertEqual(len(STEPS), len(expected))
        for (data, slot, reset), batch in zip(STEPS, expected):
            self.assertEqual((slot, reset), (batch["slot"], batch["reset"]))
            np.testing.assert_array_equal(data, np.array(batch["data"])[:, : max(batch["size"])])

    def test_it_needs_no_pytorch(self):
        program = "import sys; sys.modules['torch'] = None; import millrace.returnn"
        subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    unittest.main()
