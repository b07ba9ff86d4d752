# SPDX-License-Identifier: Apache-2.0
"""Twice the load that a worker can process: the configuration bounds the waiting rows, however long the load lasts. Their
waiting time is a figure of overload.py, and is not tested."""
import asyncio
import threading
import unittest

from overload import CREDITS, MB, PACKET, RATE, READY, ROWS, Overload
from raw_worker import RawWorker

BLOCK = 4096  # bytes; frames are held in whole blocks


class HalfAsFast:
    """A worker that answers half of the rows that the clients have sent, however fast they are."""

    def __init__(self, overload):
        self.overload, self.over = overload, threading.Event()
        self.link = RawWorker(overload.service.workers, credits=CREDITS).attached().beat()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        rows = 0
        self.link.wait_forever()
        while (batch := self.link.batch()) is not None:
            rows += len(batch.framed)
            while self.overload.sent < 2 * rows and not self.over.wait(0.01):
                pass
            self.link.answer(batch)

    def kill(self):
        self.over.set()
        self.link.hang_up()
        self.thread.join()
        self.link.close()


class TwiceTheWorker(Overload):
    def attach(self):
        return HalfAsFast(self)


class TwiceTheLoad(unittest.TestCase):
    def overload(self, shed_after=None):
        overload = TwiceTheWorker(load=2, shed_after=shed_after)
        self.addCleanup(overload.close)
        asyncio.run(overload.run(seconds=6))
        streams = overload.streams
        of_a_stream = 2 * (overload.buffer * RATE + PACKET) + 2 * BLOCK
        for record in overload.records:
            self.assertLessEqual(record["held"], streams * of_a_stream)
            self.assertLessEqual(record["waiting"], streams * READY)
            self.assertLessEqual(record["handed"], CREDITS * (ROWS + streams))  # batches also have marker rows
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
