# SPDX-License-Identifier: Apache-2.0
"""Functions in processes that fail, hang, or end their process."""
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import unittest

from datasets import DatasetTest, contents
from pool_streams import LENGTHS, Fails, Streams

import millrace


class Faults(DatasetTest):
    def data(self, augment, processes=2, **keys):
        return super().data(Streams(), augment=augment, processes=processes, **keys)

    def error(self, how, **keys):
        """The error of a function that fails."""
        with self.assertRaises(millrace.DataError) as raised:
            contents(self.data(Fails(how), **keys))
        self.assertEqual((raised.exception.stream, raised.exception.name, raised.exception.reason),
                         (2, "stream 2", "function"))
        return str(raised.exception)

    def test_an_exception_has_the_text_that_it_has_in_one_process(self):
        for how in "raises", "exits", "shortens", "returns_floats", "returns_more":
            with self.subTest(how):
                first = [self.error(how, processes=processes).splitlines()[0] for processes in (0, 2)]
                self.assertEqual(*first)
        self.assertIn("Traceback", self.error("raises"))
        self.assertIn('raise RuntimeError("no luck")', self.error("raises"))

    def test_a_process_that_ends_is_an_error_of_its_stream(self):
        self.assertIn("augment: its process has ended with exit code 3", self.error("ends"))
        self.assertIn("augment: its process was ended by signal 9 (Killed)", self.error("is_killed"))

    def test_a_call_that_does_not_return_is_an_error_of_its_stream(self):
        self.assertIn("augment: it has not returned in time, and its process was ended",
                      self.error("hangs", longest_call=5))

    def test_with_skip_the_other_streams_are_delivered(self):
        for how in "raises", "ends", "hangs":
            with self.subTest(how):
                data = self.data(Fails(how), on_error="skip", longest_call=5)
                rows = [row for batch in data for row in batch.framed]
                self.assertEqual({row.stream for row in rows}, set(range(len(LENGTHS))) - {2})
                self.assertEqual([(failed.stream, failed.reason) for failed in data.failed], [(2, "function")])

    def test_a_function_that_forks_is_answered_once(self):
        self.assertEqual(contents(self.data(Fails("forks"))), contents(self.data(None)))

    def test_a_reader_that_fails_is_an_error_of_its_stream(self):
        def fail(i):
            if i == 4:
                raise OSError("the disk is gone")

        data = super().data(Streams(then=fail), processes=2)
        with self.assertRaisesRegex(millrace.DataError, "stream 4 .*frames: OSError: the disk is gone") as raised:
            contents(data)
        self.assertEqual(raised.exception.reason, "read")

    def test_ctrl_c_ends_a_wait_for_a_function_that_hangs(self):
        data = self.data(Fails("hangs"))
        main = threading.main_thread().ident
        timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            contents(data)
        timer.join()

    def test_a_loop_can_be_left_while_a_function_hangs_and_run_again(self):
        hangs = self.folder / "hangs"
        hangs.touch()

        def augment(stream, generator):
            while stream.stream == 2 and hangs.exists():
                pass
            return stream

        data = self.data(augment)
        first = next(iter(data))
        hangs.unlink()
        self.assertEqual(first.step, 0)
        self.assertEqual([batch.step for batch in data], list(range(1, len(data))))

    def test_a_program_ends_after_a_process_was_replaced(self):
        program = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import millrace
from pool_streams import Fails, Streams
data = millrace.Dataset(Streams(), chunk={{"size": 4}}, slots=2, processes=2, augment=Fails("ends"), on_error="skip")
print(sum(len(batch.framed) for batch in data) > 0)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)

    def test_a_text_that_is_not_utf_8_is_kept(self):
        def fail(stream, generator):
            raise ValueError("caf\udce9 is gone")

        with self.assertRaisesRegex(millrace.DataError, "augment: ValueError: caf.* is gone"):
            contents(self.data(fail))

    def test_a_process_that_closes_its_connection_is_ended(self):
        data = self.data(Fails("closes"))
        with self.assertRaisesRegex(millrace.DataError, "augment: its process has closed its connection"):
            contents(data)
        data.close()
        self.assertEqual(multiprocessing.active_children(), [])

    def test_a_function_that_cannot_be_pickled_is_named(self):
        for method in "forkserver", "spawn":
            data = self.data(lambda stream, generator: stream, start_method=method)
            with self.assertRaisesRegex(TypeError, 'augment cannot be pickled.*start_method="fork"'):
                next(iter(data))
            data = super().data(Streams(then=lambda i: None), processes=2, start_method=method)
            with self.assertRaisesRegex(TypeError, "Streams cannot be pickled"):
                next(iter(data))

    def test_wrong_arguments_are_named(self):
        for keys, text in [({"processes": -1}, "processes must be 0"), ({"processes": 1.5}, "processes must be a whole number"),
                           ({"start_method": "thread"}, "start_method must be fork, forkserver, spawn, not 'thread'"),
                           ({"longest_call": 0}, "longest_call must be a number of seconds above 0"),
                           ({"longest_call": float("nan")}, "longest_call")]:
            with self.subTest(keys), self.assertRaisesRegex((ValueError, TypeError), text):
                self.data(None, **keys)

    def test_shared_memory_that_is_full_is_an_error_of_the_stream(self):
        import resource
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        data = self.data(lambda stream, generator: stream)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, limits[1]))
            with self.assertRaisesRegex(millrace.DataError, "no shared memory for its values"):
                contents(data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


if __name__ == "__main__":
    unittest.main()
