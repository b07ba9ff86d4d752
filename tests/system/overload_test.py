# SPDX-License-Identifier: Apache-2.0
"""Twice the load that a worker can take: what waits is bounded by the configuration, not by how long
it goes on. How long it waits is a figure of overload.py, not a test's."""
import asyncio
import unittest

from overload import BATCH, CREDITS, MB, PACKET, RATE, READY, ROWS, Overload

BLOCK = 4096  # bytes; frames are held in whole ones


class TwiceTheLoad(unittest.TestCase):
    def overload(self, shed_after=None):
        overload = Overload(load=2, shed_after=shed_after)
        self.addCleanup(overload.close)
        asyncio.run(overload.run(seconds=6))
        streams, rate = overload.streams, ROWS / BATCH
        of_a_stream = 2 * (overload.buffer * RATE + PACKET) + 2 * BLOCK
        for look in overload.looks:
            self.assertLessEqual(look["held"], streams * of_a_stream)
            self.assertLessEqual(look["waiting"], streams * READY)
            self.assertLessEqual(look["handed"], CREDITS * (ROWS + streams))  # marker rows ride along
        self.assertLess(overload.answered, overload.seconds * rate + CREDITS * ROWS)  # else it was no overload
        self.assertGreater(overload.sent, 1.5 * overload.answered)
        if not overload.service.sanitized():
            first, last = overload.looks[2]["memory"], overload.looks[-1]["memory"]
            self.assertLess(last - first, 2 * MB)
        return overload

    def test_what_waits_is_bounded_and_memory_flat(self):  # F4
        overload = self.overload()
        self.assertGreater(max(look["paused"] for look in overload.looks), overload.streams / 2)

    def test_with_shed_after_nobody_is_paused_and_the_bound_is_the_same(self):  # F4
        overload = self.overload(shed_after=500)
        self.assertEqual([look["paused"] for look in overload.looks], [0] * len(overload.looks))


if __name__ == "__main__":
    unittest.main()
