# SPDX-License-Identifier: Apache-2.0
"""Batches are as wide as the narrowest of `width_buckets` that holds their rows, on this machine and over TCP."""
import array
import asyncio
import json
import random
import unittest

import worker_wire as wire
from conformance_test import contract, crc32c
from harness import SystemTest, run, sample, samples
from raw_worker import RawWorker

SPEC = contract.Spec(size=8, left=4, right=2)
BUCKETS = [6, 9, 20]  # the widest row needs 14 columns
PIPELINE = f"""[[pipeline]]
slots = 8
chunk = {{ size = 8, left = 4, right = 2 }}
batch = {{ rows = 3, max_wait = "20ms", width_buckets = {BUCKETS} }}
"""


def bucket(left, size, right):
    """The narrowest bucket that holds the row."""
    return next(width for width in BUCKETS if max(left, SPEC.left) + size + right <= width)


def values(begin, left, size, right, width):
    """The row of the contract in a tensor of this width."""
    columns = contract.row_values(SPEC, (0, begin, left, size, right, 0, 0), sample, width)
    return array.array("h", columns).tobytes()


async def talk(service, count, shuffle):
    """Streams of one to ten frames in each of their segments."""
    async def one(lengths):
        async with service.connect() as connection:
            position = 0
            for length in lengths:
                await connection.send(samples(position, length))
                await connection.send(json.dumps({"type": "flush"}))
                position += length
            await connection.send(json.dumps({"type": "end"}))
            async for message in connection:
                if isinstance(message, str) and json.loads(message)["type"] == "closed":
                    return

    await asyncio.gather(*(one([shuffle.randint(1, 10) for _ in range(6)]) for _ in range(count)))


class Widths(SystemTest):
    def service_and_worker(self, remote):
        service = self.service(PIPELINE, 'workers_remote = "tcp://127.0.0.1:0"\n')
        worker = RawWorker(service.workers_remote if remote else service.workers).attached().beat()
        self.addCleanup(worker.close)
        return service, worker

    def check(self, remote):
        service, worker = self.service_and_worker(remote)
        self.assertEqual((worker.welcome.width, worker.welcome.width_buckets), (BUCKETS[-1], BUCKETS))
        seen, frames, real = set(), 0, 0

        def work():
            nonlocal frames, real
            ended = 0
            while ended < 6:
                batch = worker.batch()
                widest = max((bucket(row.left, row.size, row.right) for row in batch.framed), default=BUCKETS[0])
                self.assertEqual(batch.width, widest)
                for i, row in enumerate(batch.framed):
                    self.assertEqual(worker.row(batch, i), values(row.begin, row.left, row.size, row.right, widest))
                    real += row.left + row.size + row.right
                if batch.rows:
                    seen.add(batch.width)
                frames += batch.rows * batch.width
                ended += sum(bool(row.flags & wire.END) for row in batch.framed + batch.marks)
                worker.answer(batch)

        async def both():
            await asyncio.gather(asyncio.to_thread(work), talk(service, 6, random.Random(3)))

        run(both())
        self.assertGreater(len(seen), 1)
        self.assertEqual(service.metric("millrace_batch_frames_total"), frames)
        self.assertEqual(service.metric("millrace_batch_frames_padded_total"), frames - real)

    def test_the_tensor_is_as_wide_as_its_widest_row_needs(self):
        self.check(remote=False)

    def test_over_tcp_the_tensor_is_as_wide_as_its_widest_row_needs(self):
        self.check(remote=True)

    def test_the_checksum_of_a_row_does_not_depend_on_the_other_rows_of_its_batch(self):
        service = self.service(PIPELINE)
        tap = self.tap(service, "default", "--data", "crc32c")
        run(talk(service, 6, random.Random(4)))
        rows = [json.loads(line) for line in tap.lines]
        framed = [row for row in rows if row["size"]]
        self.assertGreater(len(framed), 20)
        for row in framed:
            where = row["left"], row["size"], row["right"]
            self.assertEqual(row["crc32c"], crc32c(values(row["begin"], *where, bucket(*where))), row)


if __name__ == "__main__":
    unittest.main()
