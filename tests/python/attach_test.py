# SPDX-License-Identifier: Apache-2.0
"""Worker(…): a service that does not listen yet, and invalid arguments."""
import os
import signal
import tempfile
import threading
import unittest

from harness import wait_for
from streams import WorkerTest

import millrace


class Attaching(WorkerTest):
    def test_a_worker_waits_for_a_service_that_does_not_listen_yet(self):
        with tempfile.TemporaryDirectory() as folder, self.assertLogs("millrace", "WARNING") as logs:
            late = os.path.join(folder, "workers.sock")

            def listen():
                wait_for(lambda: logs.output, "the line about the wait")
                os.symlink(self.served.workers.removeprefix("unix:"), late)

            listening = threading.Thread(target=listen)
            listening.start()
            with millrace.Worker(f"unix:{late}") as worker:
                self.assertEqual(worker.attachments, 1)
            listening.join()
        self.assertRegex(logs.output[0], r"no service at unix:.*; waiting for up to 30 s")

    def test_the_wait_for_a_service_can_be_interrupted_and_has_a_timeout(self):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt), self.assertLogs("millrace", "WARNING"):
            millrace.Worker("unix:/nowhere/at/all")
        with self.assertRaises(millrace.ServiceGone), self.assertLogs("millrace", "WARNING"):
            millrace.Worker("unix:/nowhere/at/all", wait=0.01)

    def test_an_invalid_argument_is_named(self):
        for parameters, error, words in (
            ({"credits": 0}, ValueError, "credits must be 1 to 1024, not 0"),
            ({"credits": 5000}, ValueError, "credits must be 1 to 1024, not 5000"),
            ({"credits": -1}, ValueError, "credits must be 1 to 1024, not -1"),
            ({"credits": "2"}, TypeError, "credits must be a whole number, not '2'"),
            ({"name": "a\nb"}, ValueError, "name must be text of at most 256 bytes without control characters"),
            ({"name": "x" * 300}, ValueError, "name must be text of at most 256 bytes"),
            ({"name": 7}, TypeError, "name must be a string, not 7"),
            ({"pipeline": None}, TypeError, "pipeline must be a string, not None"),
            ({"wait": -1}, ValueError, "wait must be seconds, 0 or more, not -1"),
            ({"wait": "1"}, TypeError, "wait must be seconds"),
            ({"reattach": "x"}, TypeError, "reattach must be seconds, not 'x'"),
            ({"reattach": -1}, ValueError, "reattach must be seconds, 0 or more, not -1"),
        ):
            with self.subTest(parameters), self.assertRaisesRegex(error, words):
                millrace.Worker(self.served.workers, **parameters)


if __name__ == "__main__":
    unittest.main()
