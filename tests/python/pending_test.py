# SPDX-License-Identifier: Apache-2.0
"""Answers that follow later than their batch, at a running service."""
import threading
import unittest

import numpy as np
from harness import PATIENCE
from streams import PIPELINE, WorkerTest

import millrace


class Pending(WorkerTest):
    pipeline = PIPELINE.replace("chunk", 'answer_wait = "1s"\nfirst_answer_wait = "60s"\nendpoint = { by = "worker" }\nchunk')

    def setUp(self):
        super().setUp()
        self.attached = self.worker()

    def pending_row(self, stream):
        """Sends a row, gives its batch back without an answer, and returns the row."""
        stream.frames(1, 2, 3, 4)
        batch = self.batch(self.attached)
        row, = batch.framed
        batch.done([millrace.pending])
        return row

    def test_the_client_receives_a_late_answer_before_those_of_later_rows(self):
        stream = self.stream()
        first = self.pending_row(stream)
        stream.frames(1, 2, 3, 4)
        self.batch(self.attached).done(["second"])
        other = self.stream()
        other.frames(1, 2, 3, 4)
        self.batch(self.attached).done(["of another stream"])
        other.received("result")
        self.assertEqual([m for m in stream.messages if m["type"] == "result"], [])
        self.attached.answer(first, {"final": True})
        self.assertEqual([m["data"] for m in stream.received("result", 2)], [{"final": True}, "second"])

    def test_a_second_pass_answers_from_its_own_thread_and_may_end_the_segment(self):
        stream = self.stream()
        row = self.pending_row(stream)
        threading.Thread(target=self.attached.answer, args=(row, np.float32(0.5)), kwargs={"endpoint": True}).start()
        self.assertEqual(stream.received("result")[0]["data"], 0.5)
        batch = self.batch(self.attached)
        mark, = batch.marks
        self.assertEqual(mark.flags, millrace.Flag.LAST)
        batch.done(marks=[millrace.pending])
        self.attached.answer(mark, None)

    def test_an_end_whose_answer_is_pending_keeps_the_stream(self):
        stream = self.stream()
        stream.frames(1, 2, 3, 4)
        self.batch(self.attached).done()
        stream.command("end")
        batch = self.batch(self.attached)
        end, = batch.marks
        batch.done(marks=[millrace.pending])
        self.assertTrue(self.attached.send(end.stream, "still here"))
        self.attached.answer(end, "at last")
        stream.received("closed")
        self.assertEqual([m.get("data") for m in stream.messages], [None, "still here", "at last", None])
        with self.assertRaises(millrace.StreamGone):
            self.attached.answer(end, "again")

    def test_a_missed_deadline_is_an_error_of_the_row_alone(self):
        stream = self.stream()
        row = self.pending_row(stream)
        result, = stream.received("result")
        self.assertEqual(result["error"], "worker_failed")
        self.attached.answer(row, "too late")
        self.await_metric(self.served, 1, "millrace_results_total", status="late")
        self.assertIn("did not come within answer_wait", "\n".join(self.served.errors))
        self.attached.answer(self.pending_row(stream), "in time")
        self.assertEqual(stream.received("result", 2)[1]["data"], "in time")

    def test_rows_of_a_lost_worker_fail_and_its_stream_continues(self):
        stream = self.stream()
        row = self.pending_row(stream)
        self.attached.close()
        self.assertEqual(stream.received("result")[0]["error"], "worker_failed")
        second = self.worker()
        stream.frames(1, 2, 3, 4)
        batch = self.batch(second)
        self.assertEqual(batch.framed[0].reason, "worker_lost")
        with self.assertRaisesRegex(ValueError, "row 0 of stream .* is not pending"):
            second.answer(row, "by another worker")
        batch.done(["continues"])
        self.assertEqual(stream.received("result", 2)[1]["data"], "continues")

    def test_a_row_that_is_not_pending_takes_no_answer_and_a_wrong_answer_leaves_it_pending(self):
        stream = self.stream()
        row = self.pending_row(stream)
        for value, error in ((float("nan"), ValueError), (object(), TypeError), (millrace.pending, ValueError)):
            with self.subTest(repr(value)), self.assertRaises(error):
                self.attached.answer(row, value)
        with self.assertRaisesRegex(TypeError, "row must be a Row"):
            self.attached.answer(row.seq, "answer")
        self.attached.answer(row, millrace.Failure("no text"))
        with self.assertRaisesRegex(ValueError, "is not pending: its answer was sent"):
            self.attached.answer(row, "again")
        self.assertEqual(stream.received("result")[0]["error"], "worker_failed")

    def test_a_stream_with_eight_pending_rows_waits_and_others_go_on(self):
        stream, other = self.stream(), self.stream()
        rows = [self.pending_row(stream) for _ in range(8)]
        other.frames(1, 2, 3, 4)
        self.batch(self.attached).done([0])
        other.received("result")  # so the service has the answers before it too
        stream.frames(1, 2, 3, 4)
        other.frames(1, 2, 3, 4)
        batch = self.batch(self.attached)
        self.assertNotEqual(batch.framed[0].stream, rows[0].stream)
        batch.done()
        self.assertIsNone(self.attached.next(0.05))
        self.attached.answer(rows[0], 0)
        self.batch(self.attached).done([8])
        for number, row in enumerate(rows[1:], 1):
            self.attached.answer(row, number)
        self.assertEqual([m["data"] for m in stream.received("result", 9)], list(range(9)))


if __name__ == "__main__":
    unittest.main()
