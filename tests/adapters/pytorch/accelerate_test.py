# SPDX-License-Identifier: Apache-2.0
"""millrace.torch.loader in accelerate, which makes a DataLoader of its own of it."""
import unittest

import accelerate
import millrace.torch
from folders import Folders, epochs_of
from torch_test import listed


class Accelerate(Folders):
    def test_a_prepared_loader_gives_the_batches_of_a_plain_loop(self):
        expected = epochs_of(self.dataset(), 2)
        for workers in 0, 2:
            with self.subTest(workers=workers):
                prepared = accelerate.Accelerator(cpu=True).prepare(millrace.torch.loader(self.dataset(), workers))
                self.assertEqual([listed(batch) for _ in range(2) for batch in prepared], expected)


if __name__ == "__main__":
    unittest.main()
