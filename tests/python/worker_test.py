# SPDX-License-Identifier: Apache-2.0
"""millrace.Worker with a running service: the content of a batch, and the effect of its answers."""
import json
import time
import unittest
from unittest import mock
from urllib.parse import quote

import numpy as np
import torch
from harness import PATIENCE, wait_for
from streams import WorkerTest

import millrace
from millrace import Flag
from millrace.quiet_log import QuietLog


class Shape(WorkerTest):
    def setUp(self):
        pass

    def shape(self, pipeline):
        self.served = self.service(pipeline)
        worker = self.worker(pipeline="of")
        self.assertEqual(worker.attachments, 1)
        return worker

    def test_a_pipeline_of_audio(self):
        worker = self.shape('[[pipeline]]\nname = "of"\nrate = 8000\nchannels = 2\ndtype = "f32"\nslots = 3\n'
                            'chunk = { size = "10ms", left = 5 }\nbatch = { rows = 2 }\n')
        self.assertEqual((worker.slots, worker.rows, worker.width), (3, 2, 85))
        self.assertEqual((worker.channels, worker.dim, worker.values), (2, None, 2))
        self.assertEqual((worker.dtype, worker.rate), (np.dtype("float32"), 8000.0))
        self.assertEqual(millrace.chunks(worker.chunk, [("frames", 85)]), [[0, 0, 0, 80, 0, 7, 0]])

    def test_a_pipeline_of_features(self):
        worker = self.shape('[[pipeline]]\nname = "of"\nrate = 12.5\ndim = 13\nchunk = { size = 7 }\n')
        self.assertEqual((worker.channels, worker.dim, worker.values), (None, 13, 13))
        self.assertEqual((worker.dtype, worker.rate), (np.dtype("float32"), 12.5))


class Batches(WorkerTest):
    def test_the_arrays_of_a_batch_describe_its_rows(self):
        worker = self.worker()
        begin = time.monotonic_ns()
        stream, batch = self.one_row(worker, 1, 2, 3, 4)
        self.assertEqual((batch.rows, batch.width, len(batch.framed), len(batch.marks)), (1, 4, 1, 0))
        self.assertEqual(batch.data.tolist(), [[[1], [2], [3], [4]]])
        self.assertEqual((batch.data.dtype, batch.slot.dtype, batch.flags.dtype), (np.int16, np.int32, np.uint8))
        self.assertEqual((batch.left.tolist(), batch.size.tolist(), batch.right.tolist()), ([0], [4], [0]))
        self.assertEqual((batch.flags.tolist(), batch.reset.tolist()), ([7], [True]))
        self.assertLess(batch.slot[0], worker.slots)
        row = batch.framed[0]
        self.assertEqual(row, (batch.opened[0].stream, 0, 0, 0, None, batch.slot[0], 0, 4, 0, 7, "start"))
        self.assertTrue(begin < batch.closed < batch.taken < time.monotonic_ns())
        self.assertEqual(batch.trigger, "complete")
        batch.done()
        stream.frames(5, 6, 7, 8)
        batch = self.batch(worker)
        self.assertEqual((batch.data[0, :, 0].tolist(), batch.reset.tolist()), ([5, 6, 7, 8], [False]))
        self.assertEqual((batch.framed["seq"].tolist(), batch.framed["begin"].tolist()), ([1], [4]))
        self.assertEqual((batch.framed[-1].reason, batch.opened), (None, []))

    def test_marker_rows_have_no_place_in_the_tensor(self):
        worker = self.worker()
        stream, batch = self.one_row(worker)
        batch.done()
        stream.command("flush", mark=7)
        batch = self.batch(worker)
        self.assertEqual((batch.rows, batch.data.shape, batch.slot.shape), (0, (0, 4, 1), (0,)))
        (mark,) = batch.marks
        self.assertEqual((mark.seq, mark.begin, mark.size, mark.flags, mark.mark), (1, 4, 0, Flag.LAST, 7))
        self.assertEqual(batch.marks[:], [mark])
        batch.done([], ["answer"])
        self.assertEqual(stream.received("result")[0]["data"], "answer")
        self.assertEqual(stream.received("flushed")[0]["mark"], 7)
        stream.frames(1, 2, 3, 4)
        batch = self.batch(worker)
        self.assertEqual((batch.flags.tolist(), batch.reset.tolist()), ([Flag.SEGMENT], [False]))

    def test_the_markers_have_the_numbers_of_the_protocol(self):
        self.assertEqual([(flag.name, flag.value) for flag in Flag],
                         [("START", 1), ("RESET", 2), ("SEGMENT", 4), ("GAP", 8), ("LAST", 16), ("END", 32), ("ABORT", 64)])

    def test_a_stream_opens_with_its_name_and_options(self):
        worker = self.worker()
        options = {"language": "español", "words": ["no", None, 1.5]}
        stream = self.stream(id="anna", options=quote(json.dumps(options)))
        stream.frames(1, 2, 3, 4)
        batch = self.batch(worker)
        self.assertEqual(batch.opened, [(batch.framed[0].stream, batch.slot[0], "anna", options)])
        plain, batch = self.stream(), batch.done()
        plain.frames(1, 2, 3, 4)
        self.assertEqual(self.batch(worker).opened[0].options, {})

    def test_a_row_after_a_gap_has_its_gap_reset_and_reason(self):
        worker = self.worker()
        stream, batch = self.one_row(worker)
        batch.done()
        stream.command("gap", frames=10)
        stream.frames(1, 2, 3, 4)
        seen = []
        while not seen or not seen[-1].size:
            batch = self.batch(worker)
            seen += [*batch.framed, *batch.marks]
            batch.done()
        self.assertEqual((seen[-1].begin, seen[-1].gap, seen[-1].reason), (14, 10, "gap"))
        self.assertTrue(seen[-1].flags & Flag.GAP and seen[-1].flags & Flag.RESET)

    def test_a_worker_with_a_state_tensor_keeps_the_state_of_each_stream(self):
        streams = [self.stream() for _ in range(3)]
        worker = self.worker()
        state = torch.zeros(worker.slots + 1, 1)
        for times in range(3):
            for number, stream in enumerate(streams):
                stream.frames(*[number + 1] * 4)
            answered = 0
            while answered < 3:
                batch, y = self.batch(worker), []
                if batch.rows:
                    state[batch.slot[batch.reset]] = 0
                    y = state[batch.slot] = state[batch.slot] + torch.from_dlpack(batch.data).float().sum(1)
                    answered += batch.rows
                batch.done(y)
        for number, stream in enumerate(streams):
            sums = [message["data"] for message in stream.received("result", 3)]
            self.assertEqual(sums, [[4.0 * (number + 1) * (i + 1)] for i in range(3)])


class Answers(WorkerTest):
    def answered(self, answer):
        """The messages of the client for a row with this answer."""
        stream, batch = self.one_row(self.attached)
        batch.done(answer)
        stream.command("end")
        self.batch(self.attached).done()
        stream.received("closed")
        return [message for message in stream.messages
                if isinstance(message, bytes) or message["type"] == "result"]

    def setUp(self):
        super().setUp()
        self.attached = self.worker()

    def test_json_values_reach_the_client_unchanged(self):
        for answer in (True, 5, -1.5, 1e300, 2**70, [1, "zwei"], {"text": "ja", "at": [0.5, None]}, 5.0):
            with self.subTest(answer=answer):
                (result,) = self.answered([answer])
                self.assertEqual((result["data"], type(result["data"])), (answer, type(answer)))

    def test_numpy_values_become_json(self):
        for answer, expected in ((np.float32(0.5), 0.5), (np.int64(7), 7), (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
                             ({"p": np.array([0.5, 0.25], np.float16)}, {"p": [0.5, 0.25]})):
            with self.subTest(answer=answer):
                self.assertEqual(self.answered([answer])[0]["data"], expected)

    def test_a_float_of_16_or_32_bits_has_only_the_digits_of_its_type(self):
        for answer, text in ((np.float32(0.1), "0.1"), (np.float16(0.1), "0.1"), (np.float64(1) / 3, "0.3333333333333333"),
                             ({"p": np.array([[1 / 3], [1e30]], np.float32)}, '{"p":[[0.33333334],[1e+30]]}'),
                             (np.array([1 / 3, 6e-8], np.float16), "[0.3333,6e-08]"), (np.arange(2), "[0,1]")):
            with self.subTest(answer=answer):
                self.assertEqual(json.dumps(self.answered([answer])[0]["data"], separators=(",", ":")), text)
        self.assertEqual(self.answered(np.array([0.1], np.float32))[0]["data"], 0.1)

    def test_the_first_axis_of_an_array_is_its_rows(self):
        self.assertEqual(self.answered(np.array([0.5], np.float32))[0]["data"], 0.5)
        self.assertEqual(self.answered(np.array([[1, 2]]))[0]["data"], [1, 2])

    def test_text_is_text_and_bytes_are_bytes(self):
        self.assertEqual(self.answered(["über \"alles\""])[0]["data"], "über \"alles\"")
        for answer in (b"\0\1\2", bytearray(b"\0\1\2"), memoryview(b"\0\1\2")):
            (message,) = self.answered([answer])
            self.assertIn(b"\0\1\2", message)

    def test_none_is_no_answer(self):
        for answers in (None, [], (), [None], np.array([])):
            self.assertEqual(self.answered(answers), [])

    def test_an_exception_is_an_error_of_its_row(self):
        for answer in (millrace.Failure("no model"), ValueError("x"), float("nan"), [float("inf")],
                       "\ud800", ["\ud800"], ValueError("\ud800")):
            with self.subTest(answer=answer):
                (result,) = self.answered([answer])
                self.assertEqual(result.get("error"), "worker_failed", result)
        line = wait_for(lambda: next((line for line in list(self.served.errors) if "row failed" in line), None),
                        "the error of the worker in the log")
        self.assertRegex(line, r'pipeline=default stream=\S+ why="Failure: no model"$')

    def test_a_value_that_is_not_finite_is_named_by_its_exception_in_the_log(self):
        self.answered([[float("nan")]])
        line = wait_for(lambda: next((line for line in list(self.served.errors) if "row failed" in line), None),
                        "the error of the worker in the log")
        self.assertIn('why="ValueError: Out of range float values', line)

    def test_an_answer_that_cannot_be_sent_is_logged_by_the_worker_with_its_row(self):
        stream, batch = self.one_row(self.attached)
        with mock.patch("millrace.batch._unfit", QuietLog()), self.assertLogs("millrace") as logs:
            batch.done([float("nan")])
        self.assertRegex(logs.output[0], rf"batch \d+: the answer to row 0 cannot be sent: ValueError: Out of range"
                                         r" float values.*; the client receives worker_failed")

    def test_invalid_answers_are_refused_and_leave_the_batch_unchanged(self):
        stream, batch = self.one_row(self.attached)
        for wrong, kind in (([1, 2], ValueError), ([object()], TypeError), ("x", TypeError), ({0: 1}, TypeError),
                            ([b"x" * (64 << 20)], ValueError), (7, TypeError), ([{1, 2}], TypeError),
                            ({1}, TypeError), (frozenset([1]), TypeError)):
            with self.subTest(wrong=str(wrong)[:20]), self.assertRaises(kind):
                batch.done(wrong)
        for answers, marks, error, words in (
            ([1, 2], None, ValueError, "2 answers for 1 row: give one for each, or None"),
            ([1], [1, 2, 3], ValueError, "3 marks for 0 marker rows"),
            (1.0, None, TypeError, "answers must be a sequence or an array, one for each row, not float"),
            (np.float32(1), None, TypeError, "answers must be .* not float32"),
            ([1], 7, TypeError, "marks must be a sequence or an array, one for each marker row, not int"),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                batch.done(answers, marks)
        batch.done(["right"])
        self.assertEqual(stream.received("result")[0]["data"], "right")


class Misuse(WorkerTest):
    def test_a_batch_that_was_given_back_is_closed(self):
        worker = self.worker()
        _, batch = self.one_row(worker)
        batch.done()
        for name in ("id", "data", "slot", "reset", "flags", "framed", "marks", "opened", "rows"):
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "given back"):
                getattr(batch, name)
        with self.assertRaisesRegex(RuntimeError, "given back"):
            batch.done()
        self.assertEqual(repr(batch), "<millrace.Batch, given back>")

    def test_batches_are_given_back_in_their_order(self):
        worker = self.worker()
        _, first = self.one_row(worker)
        _, second = self.one_row(worker)
        with self.assertRaisesRegex(RuntimeError, "in the order"):
            second.done()
        first.done()
        second.done()

    def test_waiting_while_all_credits_are_taken_is_an_error(self):
        worker = self.worker(credits=1)
        _, batch = self.one_row(worker)
        with self.assertRaisesRegex(RuntimeError, "you hold all 1 batch .*give one back"):
            worker.next(PATIENCE)
        batch.done()
        self.one_row(worker)[1].done()

    def test_arrays_outlive_their_batch_and_worker_without_harm(self):
        worker = millrace.Worker(self.url())  # which nothing else holds
        _, batch = self.one_row(worker, 1, 2, 3, 4)
        data, slot, framed = batch.data, batch.slot, batch.framed
        worker.close()
        del worker, batch
        self.assertEqual((data[0, :, 0].tolist(), slot.shape, framed[0].size), ([1, 2, 3, 4], (1,), 4))


if __name__ == "__main__":
    unittest.main()
