# SPDX-License-Identifier: Apache-2.0
"""A worker's memory does not grow with its batches. bench/worker_bench tests ten million rows."""
import asyncio
import collections
import gc
import os
import sys
import unittest

from streams import WorkerTest

BATCHES = 10_000  # in each of three parts; a batch has a row of each stream, or of some
STREAMS = 4


class Memory(WorkerTest):
    def work(self, worker, batches):
        """Reads every attribute of the batches, and answers every row."""
        for _ in range(batches):
            batch = self.batch(worker)
            seen = (batch.data.sum(), batch.slot, batch.reset, batch.left, batch.size, batch.right, batch.flags,
                    batch.framed["seq"], list(batch.framed), batch.opened, batch.id, batch.trigger)
            marks = [b"mark"] * len(batch.marks)
            batch.done([{"sum": int(seen[0])}, 0.5, "text", ValueError("none")][:batch.rows], marks)

    def held(self):
        """Blocks of Python's memory, and bytes of the process's."""
        gc.collect()
        with open("/proc/self/statm") as file:
            return sys.getallocatedblocks(), int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def speak(self, stream):
        """Sends frames without end, as fast as they are read."""
        async def send():
            while True:
                await stream.connection.send(b"\1\0" * 4096)

        stream.messages = collections.deque(maxlen=1)
        # The service stops reading the stream when no worker takes batches.
        self.addCleanup(stream.loop.call_soon_threadsafe, stream.connection.transport.abort)
        self.addCleanup(asyncio.run_coroutine_threadsafe(send(), stream.loop).cancel)

    def test_the_memory_of_a_worker_does_not_grow_with_its_batches(self):
        worker = self.worker()
        for _ in range(STREAMS):
            self.speak(self.stream())
        for _ in range(2):  # by then the clients' buffers have their size
            self.work(worker, BATCHES)
        blocks, memory = self.held()
        self.work(worker, BATCHES)
        more_blocks, more_memory = self.held()
        self.assertLess(more_blocks - blocks, BATCHES // 10)
        self.assertLess(more_memory - memory, 512 << 10)


if __name__ == "__main__":
    unittest.main()
