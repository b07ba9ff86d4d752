# SPDX-License-Identifier: Apache-2.0
"""Segments that a worker ends with `batch.done(endpoint=mask)`, at a running service."""
import unittest

import numpy as np
import torch
from streams import PIPELINE, WorkerTest

from millrace import Flag


class Endpoints(WorkerTest):
    """A row has all frames that were sent. So a segment that the worker ends has a marker row with LAST."""

    pipeline = PIPELINE.replace("chunk", 'endpoint = { by = "worker" }\nchunk').replace("rows = 4", "rows = 4, row_buckets = [3, 4]")

    def setUp(self):
        super().setUp()
        self.attached = self.worker()

    def mark(self):
        """The next batch, which has a marker row alone."""
        batch = self.batch(self.attached)
        self.assertEqual((batch.rows, len(batch.marks)), (0, 1))
        return batch

    def test_a_mask_of_any_kind_ends_the_segments_of_its_rows(self):
        stream = self.stream()
        for mask in ([True], [1], (True,), np.array([True]), [np.bool_(True)], np.array([1], np.int32), torch.tensor([True]),
                     [torch.tensor(True)], iter([True]), [True, False, False], np.array([True, False, True])):
            with self.subTest(mask=repr(mask)):
                stream.frames(1, 2, 3, 4)
                self.batch(self.attached).done([0.5], endpoint=mask)
                mark = self.mark()
                self.assertEqual(mark.marks[0].flags, Flag.LAST)
                mark.done()
        self.assertEqual([result["data"] for result in stream.received("result", 11)], [0.5] * 11)

    def test_a_row_without_an_answer_may_end_its_segment(self):
        stream, batch = self.one_row(self.attached)
        batch.done(endpoint=[True])
        self.mark().done(marks=["end"])
        self.assertEqual([(result["seq"], result["data"]) for result in stream.received("result")], [(1, "end")])

    def test_a_row_whose_endpoint_is_false_ends_no_segment(self):
        for mask in None, [False], np.zeros(3, bool), [0]:
            with self.subTest(mask=repr(mask)):
                stream, batch = self.one_row(self.attached)
                batch.done(["answer"], endpoint=mask)
                stream.received("result")
                stream.command("end")
                mark = self.mark()
                self.assertEqual(mark.marks[0].flags, Flag.LAST | Flag.END)
                mark.done()

    def test_answers_to_marker_rows_stand_beside_endpoints(self):
        first, batch = self.one_row(self.attached)
        second = self.stream()
        second.frames(1, 2, 3, 4)
        other = self.batch(self.attached)  # while the first batch is not given back
        batch.done(endpoint=[True])
        other.done(["answer"], marks=None, endpoint=[False])
        self.mark().done(None, ["mark"], endpoint=[])
        self.assertEqual((first.received("result")[0]["data"], second.received("result")[0]["data"]), ("mark", "answer"))

    def test_invalid_endpoints_are_refused_and_leave_the_batch_unchanged(self):
        stream, batch = self.one_row(self.attached)
        for mask, error, words in (
            ([], ValueError, "0 endpoints for 1 row: give one for each, or None"),
            ([True, True], ValueError, "2 endpoints for 1 row"),
            (np.ones(4, bool), ValueError, "4 endpoints for 1 row"),
            (True, TypeError, "endpoints must be a sequence or an array, one for each row, not bool"),
            (np.bool_(True), TypeError, "endpoints must be .* not bool"),
            ({0: True}, TypeError, "endpoints must be .* not dict"),
            ([[False]], TypeError, r"each endpoint must be a bool, not \[False\]"),
            (np.zeros((1, 1), bool), TypeError, r"each endpoint must be a bool, not \[False\]"),
            ([0.0], TypeError, "each endpoint must be a bool, not 0.0"),
            ([2], TypeError, "each endpoint must be a bool, not 2"),
            ([1 << 70], TypeError, "each endpoint must be a bool, not 1180591620717411303424"),
            ([None], TypeError, "each endpoint must be a bool, not None"),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                batch.done(["answer"], endpoint=mask)
        batch.done(["right"], endpoint=[False])
        self.assertEqual(stream.received("result")[0]["data"], "right")


if __name__ == "__main__":
    unittest.main()
