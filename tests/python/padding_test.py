# SPDX-License-Identifier: Apache-2.0
"""The shape of batches that are padded: widths that follow the rows, and padding rows."""
import unittest

import numpy as np
import torch
from streams import PIPELINE, WorkerTest

BUCKETS = PIPELINE.replace("rows = 4", 'rows = 4, row_buckets = [3, 4], max_wait = "1min"')


class Widths(WorkerTest):
    pipeline = PIPELINE.replace("rows = 4", "rows = 4, width_buckets = [2, 4]")

    def test_the_shape_of_the_data_follows_the_widest_row_of_the_batch(self):
        worker = self.worker()
        self.assertEqual((worker.width, worker.width_buckets), (4, (2, 4)))
        stream, batch = self.one_row(worker, 1, 2, 3, 4)
        self.assertEqual((batch.width, batch.data.shape), (4, (1, 4, 1)))
        batch.done()
        stream.frames(5)
        stream.command("flush")
        batch = self.batch(worker)
        self.assertEqual((batch.width, batch.data.shape, batch.size.tolist()), (2, (1, 2, 1), [1]))
        self.assertEqual(torch.from_dlpack(batch.data).tolist(), [[[5], [0]]])
        batch.done()
        stream.frames(6, 7, 8, 9)
        batch = self.batch(worker)
        self.assertEqual(batch.data.tolist(), [[[6], [7], [8], [9]]])


class Padding(WorkerTest):
    pipeline = BUCKETS

    def test_padding_rows_have_the_spare_slot_and_no_answers(self):
        worker = self.worker()
        stream, batch = self.one_row(worker)
        self.assertEqual((batch.rows, batch.slot.tolist()[1:], batch.size.tolist()), (3, [4, 4], [4, 0, 0]))
        self.assertEqual((len(batch.framed), batch.reset.tolist()), (1, [True, False, False]))
        batch.done(np.array([1, 2, 3]))
        stream.frames(1, 2, 3, 4)
        self.batch(worker).done(["alone"])
        self.assertEqual([message["data"] for message in stream.received("result", 2)], [1, "alone"])


if __name__ == "__main__":
    unittest.main()
