# SPDX-License-Identifier: Apache-2.0
"""A worker on another machine is told and says the same: tensors come over TCP, into memory of its own."""
import re
import signal
import sys
import threading
import time
import unittest

import arrays_test
import service_lost_test
import worker_test
from harness import PATIENCE
from streams import WorkerTest

import millrace


class Remote:
    listen = 'workers_remote = "tcp://127.0.0.1:0"\n'

    def url(self):
        line = next(line for line in self.served.errors if "workers_remote=" in line)
        return re.search(r"workers_remote=(tcp://\S+)", line)[1]


class Batches(Remote, worker_test.Batches):
    pass


class Padding(Remote, worker_test.Padding):
    pass


class Answers(Remote, worker_test.Answers):
    pass


class Misuse(Remote, worker_test.Misuse):
    pass


class Losses(Remote, service_lost_test.Losses):
    pass


class Attempts(Remote, service_lost_test.Attempts):
    pass


class Silence(Remote, service_lost_test.Silence):
    pass


class Arrays(Remote, arrays_test.Arrays):
    pass


class Closing(Remote, WorkerTest):
    """The end of a connection waits a second for the service to take what was said last."""

    def closed_meanwhile(self, close):
        """What a thread has done when this one runs again."""
        def run():
            steps.append("closes")
            close()
            steps.append("closed")

        steps = []
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(PATIENCE)  # who does not give the GIL up keeps it
        thread = threading.Thread(target=run)
        thread.start()
        while not steps:
            time.sleep(0)
        seen = steps[:]
        thread.join()
        return seen

    def held(self):
        """In a list, a worker that nothing else holds, and what it said last is more than TCP takes."""
        worker = millrace.Worker(self.url())
        _, batch = self.one_row(worker)
        self.addCleanup(self.served.process.send_signal, signal.SIGCONT)
        self.served.process.send_signal(signal.SIGSTOP)
        batch.done([b"x" * (30 << 20)])
        return [worker]

    def test_other_threads_run_while_one_closes_a_worker(self):
        (worker,) = self.held()
        self.assertEqual(self.closed_meanwhile(worker.close), ["closes"])

    def test_other_threads_run_while_one_lets_go_of_a_worker(self):
        self.assertEqual(self.closed_meanwhile(self.held().clear), ["closes"])


if __name__ == "__main__":
    unittest.main()
