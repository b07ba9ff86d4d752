# SPDX-License-Identifier: Apache-2.0
"""Twice the load that a worker can process: the configuration bounds the waiting rows, however long the load lasts. Their
waiting time is a figure of overload.py, and is not tested."""
import asyncio
import unittest

from overload import BATCH, CREDITS, MB, PACKET, RATE, READY, ROWS, Overload

BLOCK = 4096  # bytes; frames are held in whole blocks


class TwiceTheLoad(unittest.TestCase):
    def overload(self, shed_after=None):
        overload = Overload(load=2, shed_after=shed_after)
        self.addCleanup(overload.close)
        asyncio.run(overload.run(seconds=6))
        streams, rate = overload.streams, ROWS / BATCH
        of_a_stream = 2 * (overload.buffer * RATE + PACKET) + 2 * BLOCK
        for record in overload.records:
            self.assertLessEqual(record["held"], streams * of_a_stream)
            self.assertLessEqual(record["waiting"], streams * READY)
            self.assertLessEqual(record["handed"], CREDITS * (ROWS + streams))  # batches also have marker rows
        self.assertLess(overload.answered, overload.seconds * rate + CREDITS * ROWS)  # else it was no overload
        if not overload.service.sanitized():
            first, last = overload.records[len(overload.records) // 3]["memory"], overload.records[-1]["memory"]
            # After a stall of the machine, the streams hold all that was sent meanwhile.
            self.assertLess(last - first, streams * of_a_stream + 2 * MB)
        return overload

    def test_waiting_rows_are_bounded_and_memory_is_flat(self):  # F4
        overload = self.overload()
        self.assertGreater(max(record["paused"] for record in overload.records), overload.streams / 2)

    def test_with_shed_after_no_client_is_paused_and_the_bound_is_the_same(self):  # F4
        overload = self.overload(shed_after=500)
        self.assertEqual([record["paused"] for record in overload.records], [0] * len(overload.records))
        self.assertGreater(overload.figures()["shed_s"], 0)


if __name__ == "__main__":
    unittest.main()
