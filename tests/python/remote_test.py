# SPDX-License-Identifier: Apache-2.0
"""The tests of a local worker with a worker on another machine: its tensors come over TCP, into its own memory."""
import re
import unittest

import arrays_test
import padding_test
import service_lost_test
import worker_test


class Remote:
    listen = 'workers_remote = "tcp://127.0.0.1:0"\n'

    def url(self):
        line = next(line for line in self.served.errors if "workers_remote=" in line)
        return re.search(r"workers_remote=(tcp://\S+)", line)[1]


class Batches(Remote, worker_test.Batches):
    pass


class Widths(Remote, padding_test.Widths):
    pass


class Padding(Remote, padding_test.Padding):
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


if __name__ == "__main__":
    unittest.main()
