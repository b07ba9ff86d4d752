# SPDX-License-Identifier: Apache-2.0
"""A worker's memory does not grow with what it has done. Ten million rows: bench/worker_bench."""
import collections
import gc
import os
import sys
import unittest

from streams import WorkerTest

BATCHES = 4000  # in each of two halves


class Memory(WorkerTest):
    def work(self, worker, batches):
        """Looks at everything and answers everything that there is."""
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

    def test_it_stays_as_it_is(self):
        worker = self.worker()
        stream = self.stream()
        stream.messages = collections.deque(maxlen=1)
        frames = b"\1\0" * 4 * BATCHES
        for _ in range(2):
            stream.loop.call_soon_threadsafe(lambda: stream.loop.create_task(stream.connection.send(frames)))
        self.work(worker, BATCHES)
        blocks, memory = self.held()
        self.work(worker, BATCHES)
        more_blocks, more_memory = self.held()
        self.assertLess(more_blocks - blocks, BATCHES // 10)
        self.assertLess(more_memory - memory, 2 << 20)


if __name__ == "__main__":
    unittest.main()
