# SPDX-License-Identifier: Apache-2.0
"""The random kill schedule. MILLRACE_SEED repeats the random choices of another run."""
import os
import random
import unittest

import kill_schedule
from harness import ALL_INPUTS


class KillSchedule(unittest.TestCase):
    def test_no_promise_is_broken_whatever_the_workers_do(self):
        seed = int(os.environ.get("MILLRACE_SEED", random.randrange(1 << 32)))
        print(f"seed {seed}", flush=True)
        seconds = 60 if ALL_INPUTS else 20
        wrong, summary = kill_schedule.run(seconds, seed, thorough=True)
        print(summary)
        self.assertEqual(wrong, [], f"seed {seed}: {summary}")
        self.assertGreater(summary["results"], kill_schedule.RESULTS * seconds)
        self.assertGreater(summary["messages"], 2 * seconds)
        self.assertGreater(summary["faults"]["cut"], seconds)
        self.assertGreater(summary["workers"]["lost"], kill_schedule.LOSSES * seconds)


if __name__ == "__main__":
    unittest.main()
