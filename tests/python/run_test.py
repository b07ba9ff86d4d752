# SPDX-License-Identifier: Apache-2.0
"""A worker whose model raises exceptions: worker.run and batch.fail."""
import gc
import threading
import unittest
from unittest import mock
from urllib.parse import quote

from harness import wait_for
from streams import WorkerTest

import millrace
from millrace.quiet_log import QuietLog


class Runs(WorkerTest):
    def run_beside(self, function, **settings):
        """Runs the function in a thread until the test ends, and returns its worker."""
        worker = self.worker(**settings)
        thread = threading.Thread(target=worker.run, args=(function,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(worker.close)
        return worker

    def answer(self, stream, count=1):
        """The answer to the stream's last row, or its error."""
        stream.frames(1, 2, 3, 4)
        result = stream.received("result", count)[count - 1]
        return result.get("data", result.get("error"))

    def test_an_exception_fails_the_rows_of_its_batch_and_the_worker_continues(self):
        words, language = {"en": "hello"}, {}

        def step(batch):
            for opened in batch.opened:
                language[opened.slot] = opened.options.get("lang", "en")
            return [words[language[row.slot]] for row in batch.framed]

        worker = self.run_beside(step)
        good, bad = self.stream(), self.stream(options=quote('{"lang": "xx"}'))
        with self.assertLogs("millrace", "ERROR") as logs:
            self.assertEqual(self.answer(bad), "worker_failed")
        self.assertIn("a batch failed: KeyError: 'xx'", logs.output[0])
        self.assertIn("Traceback", logs.output[0])
        for count in (1, 2):
            self.assertEqual(self.answer(good, count), "hello")
        self.assertEqual(self.answer(bad, 2), "worker_failed")
        self.assertEqual(worker.attachments, 1)
        wait_for(lambda: any("why=\"KeyError: 'xx'\"" in line for line in self.served.errors), "the service's log")

    def test_the_garbage_collector_leaves_out_what_exists_before_the_first_batch(self):
        model = [[]]

        def step(batch):
            return [any(each is model for each in gc.get_objects())] * len(batch.framed)  # frozen objects are not among them

        self.addCleanup(gc.unfreeze)
        self.assertTrue(any(each is model for each in gc.get_objects()))
        self.run_beside(step)
        self.assertIs(self.answer(self.stream()), False)

    def test_the_function_may_give_the_batch_back_itself(self):
        def step(batch):
            batch.done(["own"] * len(batch.framed), marks=["mark"] * len(batch.marks))

        self.run_beside(step)
        stream = self.stream()
        self.assertEqual(self.answer(stream), "own")
        stream.command("flush")
        self.assertEqual(stream.received("result", 2)[1]["data"], "mark")

    def test_an_exception_after_done_is_only_logged(self):
        def step(batch):
            batch.done(["answered"])
            raise ValueError("late")

        self.run_beside(step)
        with self.assertLogs("millrace", "ERROR") as logs:
            self.assertEqual(self.answer(self.stream()), "answered")
            wait_for(lambda: logs.output, "the log")
        self.assertIn("late", logs.output[0])

    def test_invalid_answers_fail_their_batch(self):
        for wrong in (["one", "too many"], 1.0, [object()]):
            worker = self.run_beside(lambda batch: wrong)
            with self.assertLogs("millrace", "ERROR"):
                self.assertEqual(self.answer(self.stream()), "worker_failed")
            worker.close()

    def test_an_exception_without_a_text_fails_only_its_batch(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError("no words")

        answers = [Mute(), [Mute()], ["fine"]]

        def step(batch):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        worker = self.run_beside(step)
        stream = self.stream()
        with self.assertLogs("millrace", "ERROR") as logs:
            self.assertEqual([self.answer(stream, count) for count in (1, 2, 3)],
                             ["worker_failed", "worker_failed", "fine"])
        self.assertIn("a batch failed: Mute\n", logs.output[0])
        self.assertEqual(worker.attachments, 1)
        wait_for(lambda: any("why=Mute" in line or 'why="Mute"' in line for line in self.served.errors), "the service's log")

    def test_run_ends_with_the_batches(self):
        worker = self.worker()
        worker.interrupt()
        worker.run(self.fail)
        worker.close()
        worker.run(self.fail)


class Failing(WorkerTest):
    def next(self, stream, worker):
        stream.frames(1, 2, 3, 4)
        return self.batch(worker)

    def test_after_a_failed_batch_its_streams_begin_with_a_reset(self):
        worker = self.worker()
        stream, batch = self.one_row(worker)
        batch.done()
        other = self.stream()
        self.next(other, worker).done()
        batch = self.next(stream, worker)
        self.assertEqual(batch.reset.tolist(), [False])
        batch.fail(RuntimeError("out of memory"))
        self.assertTrue(batch.given_back)
        self.assertEqual(stream.received("result")[0]["error"], "worker_failed")
        batch = self.next(other, worker)
        self.assertEqual(batch.reset.tolist(), [False])
        batch.done()
        batch = self.next(stream, worker)
        self.assertEqual((batch.reset.tolist(), batch.flags.tolist(), batch.framed[0].reason, batch.framed[0].flags),
                         ([True], [millrace.Flag.RESET], "worker_lost", millrace.Flag.RESET))
        batch.done()
        self.assertEqual(self.next(stream, worker).reset.tolist(), [False])

    def test_marker_rows_fail_too(self):
        worker = self.worker()
        stream, batch = self.one_row(worker)
        batch.done()
        stream.command("flush")
        self.batch(worker).fail(ValueError("x" * 5000))
        self.assertEqual(stream.received("result")[0]["error"], "worker_failed")

    def test_a_batch_fails_once_and_by_an_exception(self):
        _, batch = self.one_row(self.worker())
        with self.assertRaisesRegex(TypeError, "error must be an exception, not 'x'"):
            batch.fail("x")
        batch.fail(ValueError("x"))
        for again in (lambda: batch.fail(ValueError("x")), batch.done):
            with self.assertRaisesRegex(RuntimeError, "given back"):
                again()


class Reports(unittest.TestCase):
    def test_tracebacks_are_logged_once_a_second_with_the_number_of_others(self):
        clock, failures = mock.Mock(), QuietLog()
        with mock.patch("millrace.quiet_log.time", clock), self.assertLogs("millrace") as logs:
            for clock.monotonic.return_value in (0, 0.1, 0.9, 1.1, 2.5):
                failures.error("a batch failed: ValueError: no", ValueError("no"))
        self.assertEqual([line.splitlines()[0].split(":", 2)[2] for line in logs.output],
                         ["a batch failed: ValueError: no",
                          "a batch failed: ValueError: no; 2 more failed since the last report",
                          "a batch failed: ValueError: no"])


if __name__ == "__main__":
    unittest.main()
