# SPDX-License-Identifier: Apache-2.0
"""Data sets on simulated CUDA devices: the same batches as on the host, in memory that is used again in time."""
import gc
import unittest

import numpy as np
from datasets import DatasetTest, arrays
from device_reader import content, managed, release

COLUMNS = ("data", "slot", "left", "size", "right", "flags", "reset")


def on_host(batch):
    return [getattr(batch, name).copy() for name in COLUMNS] + [batch.companions["copy"].copy()]


def on_device(batch):
    return [content(getattr(batch, name)) for name in COLUMNS] + [content(batch.companions["copy"])]


class Cuda(DatasetTest):
    def data(self, device="cuda:0", **keys):
        streams = arrays(*range(5, 25))
        return super().data(streams, **{"slots": 4, "device": device, "companions": {"copy": streams}, **keys})

    def test_batches_are_those_of_the_host(self):
        for dtype in "s16", "f16", "f32":
            for threads in 0, 2:
                host = self.data("host", dtype=dtype, threads=threads)
                for mine, other in zip(host, self.data(dtype=dtype, threads=threads), strict=True):
                    for expected, found in zip(on_host(mine), on_device(other), strict=True):
                        np.testing.assert_array_equal(found, expected)
                    self.assertEqual((other.epoch, other.step, list(other.framed)), (mine.epoch, mine.step, list(mine.framed)))

    def test_kept_batches_stay_as_they_were(self):
        expected = [on_host(batch) for batch in self.data("host")]
        kept = list(self.data())
        for batch, arrays_of in zip(kept, expected, strict=True):
            for array, wanted in zip(on_device(batch), arrays_of, strict=True):
                np.testing.assert_array_equal(array, wanted)

    def test_a_tensor_keeps_its_batch(self):
        data = self.data(prefetch=1)
        batch = data.next()
        capsule = batch.data.__dlpack__()
        address = managed(capsule).tensor.data
        del batch
        gc.collect()
        self.assertEqual(data.stats.kept, 1)
        others = [managed(batch.data.__dlpack__()).tensor.data for batch in data]
        self.assertNotIn(address, others)
        release(capsule)
        del capsule
        gc.collect()
        self.assertEqual(data.stats.kept, 0)

    def test_a_device_that_does_not_exist_is_named(self):
        with self.assertRaisesRegex(Exception, "cuda:7"):
            self.data("cuda:7").next()


if __name__ == "__main__":
    unittest.main()
