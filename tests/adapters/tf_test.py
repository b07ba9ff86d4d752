# SPDX-License-Identifier: Apache-2.0
"""millrace.tf with TensorFlow: the batches are those of a plain loop, and those of a replica are its own."""
import itertools
import unittest

import millrace.tf
import numpy as np
import tensorflow as tf
from folders import Folders, epochs_of, plain


def listed(batch):
    """A dict of tensors as lists."""
    return {name: listed(value) if isinstance(value, dict) else value.numpy().tolist() for name, value in batch.items()}


class TensorFlow(Folders):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

    def test_a_dataset_gives_the_batches_of_a_plain_loop_epoch_after_epoch(self):
        given = millrace.tf.dataset(self.dataset())
        self.assertEqual([listed(batch) for _ in range(2) for batch in given], epochs_of(self.dataset(), 2))

    def test_a_pass_that_takes_all_batches_is_followed_by_the_next_epoch(self):
        data = self.dataset()
        given = millrace.tf.dataset(data)
        steps = len(data)
        passes = [[(int(batch["epoch"]), int(batch["step"])) for batch in itertools.islice(given, len(data))] for _ in range(2)]
        self.assertEqual(passes, [[(epoch, step) for step in range(steps)] for epoch in range(2)])

    def test_a_data_set_whose_last_batch_was_taken_continues_with_the_next_epoch(self):
        data = self.dataset()
        steps = len(data)
        for _ in itertools.islice(data, steps):
            pass
        self.assertEqual([listed(batch) for batch in millrace.tf.dataset(data)], epochs_of(self.dataset(), 2)[steps:])

    def test_an_iteration_of_replicas_that_is_left_early_is_followed_by_the_next_epoch(self):
        given = millrace.tf.dataset(self.dataset(), tf.distribute.InputContext(num_replicas_in_sync=2))
        begun = [[int(batch["epoch"]) for batch in itertools.islice(given, 3)] for _ in range(3)]
        self.assertEqual(begun, [[0] * 3, [1] * 3, [2] * 3])

    def test_eager_tensors_use_the_memory_of_the_batch(self):
        batch = next(iter(self.dataset()))
        tensors = millrace.tf.tensors(batch)
        self.assertEqual(listed(tensors), plain(batch))
        batch.data[0, 0, 0] = 0.75
        self.assertEqual(float(tensors["data"][0, 0, 0]), 0.75)

    def test_tensors_keep_their_memory(self):
        kept = [(tensors, np.array(tensors["data"])) for tensors in map(millrace.tf.tensors, self.dataset(buffers=200))]
        for tensors, values in kept:
            np.testing.assert_array_equal(tensors["data"], values)

    def test_shapes_and_types_are_known_before_the_first_batch(self):
        spec = millrace.tf.dataset(self.dataset()).element_spec
        self.assertEqual((spec["data"].shape.as_list(), spec["data"].dtype), ([None, None, 1], tf.float32))
        self.assertEqual((spec["slot"].shape.as_list(), spec["slot"].dtype), ([None], tf.int32))
        self.assertEqual(spec["reset"].dtype, tf.bool)
        self.assertEqual((spec["companions"]["label"].shape.as_list(), spec["companions"]["label"].dtype), ([None, None, 1], tf.int64))

    def test_batch_j_of_a_step_is_that_of_replica_j(self):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        data = self.dataset()
        given = strategy.distribute_datasets_from_function(lambda context: millrace.tf.dataset(data, context))
        steps = [[strategy.experimental_local_results(tensor) for tensor in (batch["data"], batch["slot"], batch["step"])]
                 for batch in given]
        ranks = [epochs_of(self.dataset(rank=rank, world=2), 1) for rank in range(2)]
        self.assertEqual(len(steps), len(ranks[0]))
        for step, (values, slots, numbers) in enumerate(steps):
            for replica in range(2):
                expected = ranks[replica][step]
                self.assertEqual(values[replica].numpy().tolist(), expected["data"])
                self.assertEqual(slots[replica].numpy().tolist(), expected["slot"])
                self.assertEqual(int(numbers[replica]), step)

    def test_each_input_pipeline_has_the_batches_of_its_own_replicas(self):
        for pipeline in range(2):
            context = tf.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=pipeline, num_replicas_in_sync=4)
            given = [listed(batch) for batch in millrace.tf.dataset(self.dataset(), context)]
            ranks = [epochs_of(self.dataset(rank=2 * pipeline + replica, world=4), 1) for replica in range(2)]
            self.assertEqual(given, [batch for step in zip(*ranks) for batch in step])

    def test_a_number_of_replicas_that_does_not_divide_the_slots_is_an_error(self):
        context = tf.distribute.InputContext(num_replicas_in_sync=3)
        with self.assertRaisesRegex(ValueError, "world"):
            millrace.tf.dataset(self.dataset(), context)

    def test_an_error_of_the_data_ends_the_iteration_with_its_text(self):
        def fails(stream, generator):
            if stream.name == self.dataset().name(7):
                raise RuntimeError("no such noise")
            return stream

        with self.assertRaisesRegex(tf.errors.OpError, "no such noise"):
            for _ in millrace.tf.dataset(self.dataset(augment=fails)):
                pass


if __name__ == "__main__":
    unittest.main()
