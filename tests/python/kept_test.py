# SPDX-License-Identifier: Apache-2.0
"""The memory of a Dataset's batches: used again only when no batch, array or tensor refers to it."""
import gc
import os
import sys
import unittest

import numpy as np
import torch
from datasets import DatasetTest, arrays, content, contents

STREAMS = arrays(*[40] * 8)


class Kept(DatasetTest):
    def data(self, streams=STREAMS, **keys):
        return super().data(streams, **{"slots": 4, **keys})

    def test_kept_batches_stay_as_they_were(self):
        data = self.data()
        expected = contents(data)
        data.seek(0)
        batches = list(data)
        self.assertEqual([content(batch) for batch in batches], expected)
        self.assertEqual(data.stats.kept, len(batches))

    def test_each_kind_of_reference_keeps_the_memory_of_its_batch(self):
        kinds = {"batch": lambda batch: batch, "array": lambda batch: batch.data, "column": lambda batch: batch.slot,
                 "view": lambda batch: batch.data[1:, 2], "dlpack": lambda batch: torch.from_dlpack(batch.data),
                 "torch": lambda batch: torch.from_numpy(batch.data)[1:],
                 "memoryview": lambda batch: memoryview(batch.size)}
        for name, keep in kinds.items():
            with self.subTest(name):
                data = self.data(prefetch=1)
                batch = data.next()
                address = batch.data.ctypes.data
                kept = keep(batch)
                del batch
                gc.collect()
                self.assertEqual(data.stats.kept, 1)
                addresses = {batch.data.ctypes.data for batch in data}
                self.assertNotIn(address, addresses)
                del kept
                gc.collect()
                self.assertEqual(data.stats.kept, 0)
                self.assertIn(address, {batch.data.ctypes.data for batch in data})

    def test_a_loop_uses_few_buffers_again(self):
        data = self.data(prefetch=2)
        addresses = [batch.data.ctypes.data for _ in range(3) for batch in data]
        self.assertLessEqual(len(set(addresses)), 5)

    def test_the_last_batches_may_be_kept_for_back_propagation(self):
        data = self.data(buffers=8)
        window = []
        for batch in data:
            window = [*window[-3:], torch.from_dlpack(batch.data)]
            self.assertEqual(len({tensor.data_ptr() for tensor in window}), len(window))

    def test_if_all_buffers_are_kept_the_error_tells_the_reason(self):
        data = self.data(buffers=3, prefetch=1)
        kept = []
        with self.assertRaisesRegex(RuntimeError, "buffers"):
            for batch in data:
                kept.append(batch.data)
        self.assertEqual(len(kept), 3)
        step = data.step
        del kept[0]
        self.assertEqual(data.next().step, step)

    def test_arrays_outlive_their_data_set(self):
        data = self.data()
        batch = data.next()
        tensor, expected = torch.from_dlpack(batch.data), batch.data.copy()
        data.close()
        del data, batch
        gc.collect()
        np.testing.assert_array_equal(tensor.numpy(), expected)

    def test_a_program_may_write_into_its_batch(self):
        data = self.data()
        expected = contents(data)
        data.seek(0)
        for batch in data:
            batch.data[:] = 7
        data.seek(0)
        self.assertEqual(contents(data), expected)

    def test_done_is_not_needed_and_does_nothing(self):
        batch = self.data().next()
        expected = content(batch)
        batch.done(["answer"] * batch.rows)
        batch.fail(ValueError())
        self.assertFalse(batch.given_back)
        self.assertEqual(content(batch), expected)

    def test_memory_does_not_grow_with_the_batches(self):
        data = self.data(threads=1)

        def held():
            gc.collect()
            with open("/proc/self/statm") as file:
                return sys.getallocatedblocks(), int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def work(epochs):
            for _ in range(epochs):
                for batch in data:
                    seen = batch.data, batch.slot, batch.companions, list(batch.framed), batch.opened, batch.flags
            del seen

        work(200)
        blocks, memory = held()
        work(200)
        more_blocks, more_memory = held()
        self.assertLess(more_blocks - blocks, 200)
        self.assertLess(more_memory - memory, 512 << 10)


if __name__ == "__main__":
    unittest.main()
