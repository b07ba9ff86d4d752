# SPDX-License-Identifier: Apache-2.0
"""Trainers of one server that want the same rank: of other threads, and of the same one."""
import threading
import unittest
import unittest.mock

from datasets import contents
from served_test import ServedTest

import millrace


class Ranks(ServedTest):
    def attached_by_a_thread(self):
        """A data set that another thread has taken a batch of."""
        data = self.dataset()
        thread = threading.Thread(target=data.next)
        thread.start()
        thread.join()
        return data

    def test_two_trainers_of_one_rank_are_refused(self):
        data = self.attached_by_a_thread()
        with unittest.mock.patch("millrace.batch_server._CONFLICT", 0.2):
            with self.assertRaisesRegex(millrace.Refused, r"rank 0 is in use by .+ \d+, rank 0, which has been attached for \d+ s"):
                self.dataset()
            with self.assertRaisesRegex(millrace.Refused, "world = 1 is in use by .*; this trainer has world = 2") as refused:
                self.dataset(rank=1, world=2)
            self.assertEqual(refused.exception.code, "conflict")
        data.close()
        self.assertIsNotNone(self.dataset().next())

    def test_a_new_data_set_takes_the_place_of_an_older_one_of_its_thread(self):
        old = self.dataset()
        old.next()
        for keys in {}, {"rank": 1, "world": 2}:
            with self.assertLogs("millrace", "WARNING") as logged:
                new = self.dataset(**keys)
            self.assertRegex(logged.output[0], "the connection to .* of another Dataset of this process ends: .* is in use by")
            self.assertIsNotNone(new.next())
            with self.assertLogs("millrace", "WARNING"):
                old.next()
        self.assertEqual(contents(old), self.local[3:])

    def test_data_sets_of_one_thread_with_different_steps_keep_their_places(self):
        both = [self.dataset(stride=2, first_step=first) for first in range(2)]
        with self.assertNoLogs("millrace", "WARNING"):
            self.assertEqual([data.next().step for _ in range(3) for data in both], list(range(6)))

    def test_a_rank_that_becomes_free_soon_is_waited_for(self):
        first = self.attached_by_a_thread()
        timer = threading.Timer(0.5, first.close)
        timer.start()
        with self.assertLogs("millrace", "WARNING"):
            second = self.dataset()
        self.assertIsNotNone(second.next())
        timer.join()


if __name__ == "__main__":
    unittest.main()
