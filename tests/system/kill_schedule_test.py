# SPDX-License-Identifier: Apache-2.0
"""A minute of the random kill schedule. MILLRACE_SEED repeats the random choices of another run."""
import os
import random
import unittest

import kill_schedule


class KillSchedule(unittest.TestCase):
    def test_no_promise_is_broken_whatever_the_workers_do(self):
        seed = int(os.environ.get("MILLRACE_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}", flush=True)
        wrong, summary = kill_schedule.run(60, seed)
        print(summary)
        self.assertEqual(wrong, [], f"seed {seed}: {summary}")
        self.assertGreater(summary["results"], 1000)
        self.assertGreater(summary["workers"]["lost"], 5)


if __name__ == "__main__":
    unittest.main()
