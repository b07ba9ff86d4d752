# SPDX-License-Identifier: Apache-2.0
"""Twice the load that a worker can process: the configuration bounds the waiting rows, however long the load lasts. Their
waiting time is a figure of overload.py, and is not tested."""
import asyncio
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import COUNTED, samples, wait_for
from overload import CREDITS, MB, PACKET, RATE, READY, ROWS, Overload
from raw_worker import RawWorker

BLOCK = 4096  # bytes; frames are held in whole blocks


class HalfAsFast:
    """A worker that answers half of the rows that the clients have sent, however fast they are."""

    def __init__(self, overload):
        self.overload, self.over = overload, threading.Event()
        self.link = RawWorker(overload.service.workers, credits=CREDITS).attached().beat()
        self.pool = ThreadPoolExecutor(1)
        self.work = self.pool.submit(self._work)

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
        self.pool.shutdown()
        self.link.close()
        self.work.result()  # or its exception


class TwiceTheWorker(Overload):
    def attach(self):
        return HalfAsFast(self)

    async def stream(self, number, until):
        connection, reader = await super().stream(number, until)
        if self.shed_after:  # frames that have waited too long are shed when a message comes
            await asyncio.sleep(self.shed_after * 17 / 16)
            await connection.send(samples(0, 1))
        return connection, reader

    def most_held(self):
        """The most bytes that the streams hold. With shed_after, after a stall of the machine, they hold more until that
        time is over: all that was sent meanwhile was read at once."""
        seconds = self.buffer
        if self.shed_after:  # frames are shed in groups of a sixteenth of that time
            seconds = self.shed_after * 17 / 16 + (READY + CREDITS) * PACKET / RATE
        return self.bytes_of(seconds)

    def bytes_of(self, seconds):
        """The bytes that all streams take if each holds `seconds`, and one message more."""
        return self.streams * (2 * (seconds * RATE + PACKET) + 2 * BLOCK)

    def settle(self):
        wait_for(lambda: self.answered, "an answer")
        wait_for(lambda: self.service.metric("millrace_chunk_buffer_bytes") <= self.most_held(), "the rest to be shed", COUNTED)
        super().settle()


class TwiceTheLoad(unittest.TestCase):
    def overload(self, shed_after=None):
        overload = TwiceTheWorker(load=2, shed_after=shed_after)
        self.addCleanup(overload.close)
        asyncio.run(overload.run(seconds=5))
        self.assertFalse(overload.worker.work.done())
        streams, buffers = overload.streams, overload.bytes_of(overload.buffer)
        for record in overload.records:
            self.assertLessEqual(record["held"], buffers)
            self.assertLessEqual(record["waiting"], streams * READY)
            self.assertLessEqual(record["handed"], CREDITS * (ROWS + streams))  # batches also have marker rows
        if not overload.service.sanitized():
            first, last = overload.records[len(overload.records) // 3]["memory"], overload.records[-1]["memory"]
            held = max(record["held"] for record in overload.records)
            self.assertLess(last - first, max(held, overload.most_held()) + 2 * MB)
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
