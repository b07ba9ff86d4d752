# SPDX-License-Identifier: Apache-2.0
"""What a service tells of a pipeline before a worker attaches, and the warm-up of a model."""
import os
import signal
import tempfile
import threading
import unittest

import numpy as np
from harness import PATIENCE
from remote_test import Remote
from streams import WorkerTest

import millrace

WIDE = """[[pipeline]]
name = "wide"
slots = 8
dtype = "f32"
channels = 2
chunk = { size = 4, left = 2, right = 1 }
batch = { row_buckets = [2, 4], width_buckets = [5, 7] }
"""


class Described(WorkerTest):
    pipeline = WorkerTest.pipeline + WIDE

    def test_a_pipeline_is_described_as_to_a_worker_and_nothing_attaches(self):
        wide = millrace.describe(self.url(), "wide")
        self.assertEqual(self.served.attached(), 0)
        self.assertEqual((wide.slots, wide.rows, wide.row_buckets, wide.width, wide.width_buckets), (8, 4, (2, 4), 7, (5, 7)))
        self.assertEqual((wide.values, wide.channels, wide.dim, wide.dtype, wide.rate), (2, 2, None, np.float32, 16000))
        self.assertEqual((wide.chunk["size"], wide.chunk["left"], wide.chunk["right"]), (4, 2, 1))
        self.assertEqual(wide.sizes, ((4, 7), (2, 7), (4, 5), (2, 5)))
        worker = self.worker(pipeline="wide")
        for name in ("slots", "rows", "row_buckets", "width", "width_buckets", "values", "channels", "dim", "dtype", "rate", "chunk"):
            self.assertEqual(getattr(wide, name), getattr(worker, name), name)
        self.assertRegex(repr(wide), r"slots=8 rows=4 row_buckets=\(2, 4\) width_buckets=\(5, 7\) channels=2 dtype=float32")

    def test_without_row_buckets_one_row_and_the_most_rows_warm_up(self):
        default = millrace.describe(self.url())
        self.assertEqual((default.row_buckets, default.sizes), ((), ((4, 4), (1, 4))))

    def test_an_unknown_pipeline_is_named(self):
        with self.assertRaisesRegex(millrace.Refused, "there is no pipeline vad") as refused:
            millrace.describe(self.url(), "vad")
        self.assertEqual(refused.exception.code, "pipeline")

    def test_a_model_warms_up_before_its_worker_attaches(self):
        seen = []

        def warm_up(batch):
            self.assertEqual(self.served.attached(), 0)
            seen.append(batch.data.shape)
            self.assertEqual((batch.data.dtype, np.count_nonzero(batch.data)), (np.float32, 0))
            rows = len(batch.framed)
            self.assertEqual((batch.rows, batch.width), batch.data.shape[:2])
            self.assertEqual(batch.slot.tolist(), list(range(rows)))
            self.assertTrue(batch.reset.all())
            self.assertTrue((batch.flags == millrace.Flag.START | millrace.Flag.RESET | millrace.Flag.SEGMENT
                             | millrace.Flag.LAST | millrace.Flag.END).all())
            self.assertEqual((batch.left.tolist(), batch.right.tolist()), ([0] * rows, [1] * rows))
            self.assertEqual(batch.size.tolist(), [batch.width - 3] * rows)
            self.assertEqual([(one.slot, one.options) for one in batch.opened], [(slot, {}) for slot in range(rows)])
            self.assertEqual({one.stream for one in batch.opened}, set(batch.framed["stream"].tolist()))
            batch.data[:] = 7  # a model may work in place
            kept.append(batch)
            return "not used"

        kept = []
        worker = self.worker(pipeline="wide", warm_up=warm_up)
        self.assertEqual(seen, [(4, 7, 2), (2, 7, 2), (4, 5, 2), (2, 5, 2)])
        self.await_metric(self.served, 1, "millrace_workers", pipeline="wide")
        self.assertEqual(worker.attachments, 1)
        with self.assertRaisesRegex(RuntimeError, "was given back"):
            kept[0].data

    def test_the_function_of_run_warms_up_too(self):
        state = np.zeros(millrace.describe(self.url()).slots + 1, np.int64)

        def step(batch):
            state[batch.slot[batch.reset]] = 0
            state[batch.slot] += batch.data.sum(axis=(1, 2))
            batch.done(state[batch.slot] + 1)

        worker = self.worker(warm_up=step)
        thread = threading.Thread(target=worker.run, args=(step,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(worker.close)
        stream = self.stream()
        stream.frames(1, 2, 3, 4)
        self.assertEqual(stream.received("result")[0]["data"], 11)

    def test_a_warm_up_that_fails_is_an_error_of_the_call_and_nothing_attaches(self):
        with self.assertRaisesRegex(ZeroDivisionError, "by zero"):
            self.worker(warm_up=lambda batch: 1 // 0)
        self.assertEqual(self.served.attached(), 0)
        with self.assertRaisesRegex(TypeError, "warm_up must be a function, not 3"):
            self.worker(warm_up=3)
        with self.assertRaises(millrace.DeviceError):
            self.worker(device="cuda:77", warm_up=self.fail)
        self.assertEqual(self.worker().attachments, 1)


class Remotely(Remote, Described):
    pass


class Changed(WorkerTest):
    def test_only_a_worker_that_has_warmed_up_depends_on_the_row_buckets(self):
        other = self.service(self.pipeline.replace("rows = 4", "row_buckets = [2, 4]"))
        with tempfile.TemporaryDirectory() as folder:
            socket = os.path.join(folder, "workers.sock")
            os.symlink(self.served.workers.removeprefix("unix:"), socket)
            warmed, plain = (millrace.Worker(f"unix:{socket}", warm_up=warm_up) for warm_up in (lambda _: None, None))
            self.addCleanup(warmed.close)
            self.addCleanup(plain.close)
            os.unlink(socket)
            os.symlink(other.workers.removeprefix("unix:"), socket)
            self.served.stop(signal.SIGKILL)
            with self.assertRaisesRegex(millrace.Refused, "have another shape now"):
                warmed.next(PATIENCE)
            while plain.attachments < 2:
                self.assertIsNone(plain.next(PATIENCE / 10))

    def test_a_pipeline_that_has_changed_since_its_description_refuses_the_worker(self):
        other = self.service(self.pipeline.replace("rows = 4", "rows = 3"))
        with tempfile.TemporaryDirectory() as folder:
            socket = os.path.join(folder, "workers.sock")
            os.symlink(self.served.workers.removeprefix("unix:"), socket)

            def restart(_):
                os.unlink(socket)
                os.symlink(other.workers.removeprefix("unix:"), socket)

            with self.assertRaisesRegex(millrace.Refused, "have another shape now") as refused:
                millrace.Worker(f"unix:{socket}", warm_up=restart)
        self.assertEqual(refused.exception.code, "pipeline")


if __name__ == "__main__":
    unittest.main()
