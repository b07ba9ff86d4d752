# SPDX-License-Identifier: Apache-2.0
"""A minute of the random kill schedule; MILLRACE_SEED repeats what another run drew."""
import os
import random
import unittest

import kill_schedule


class KillSchedule(unittest.TestCase):
    def test_nothing_that_was_promised_is_lost_whatever_the_workers_do(self):
        seed = int(os.environ.get("MILLRACE_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}", flush=True)
        wrong, there_was = kill_schedule.run(60, seed)
        print(there_was)
        self.assertEqual(wrong, [], f"seed {seed}: {there_was}")
        self.assertGreater(there_was["results"], 1000)
        self.assertGreater(there_was["workers"]["lost"], 5)


if __name__ == "__main__":
    unittest.main()
