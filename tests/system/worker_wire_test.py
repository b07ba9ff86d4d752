# SPDX-License-Identifier: Apache-2.0
"""The messages of worker_wire.py are those of the golden files, which the service writes."""
import os
import unittest

import worker_wire as wire

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")


def golden(name):
    with open(os.path.join(GOLDEN, name), "rb") as file:
        return file.read()


class Wire(unittest.TestCase):
    def test_a_welcome_is_read(self):
        self.assertEqual(wire.read(golden("worker_welcome.bin")), (wire.WELCOME, wire.Welcome(
            version=1, slots=64, rows=16, width=1600, element=2, values=2, rate=12.5, features=0,
            chunk='{"size":1600}', slabs=3, slab_bytes=1 << 20, width_buckets=[400, 1600])))

    def test_a_batch_is_read(self):
        framed = [wire.Row(11, 0, 0, 0, -1, 5, 0, 3, 1, wire.START | wire.RESET | wire.SEGMENT, 1),
                  wire.Row(12, 9, 1 << 40, 17, 3, 6, 1, 2, 0, wire.GAP | wire.LAST, 0)]
        marks = [wire.Row(12, 10, (1 << 40) + 2, 0, -1, 0, 0, 0, 0, wire.LAST | wire.END, 0)]
        opened = [wire.Opened(11, 5, "mic-7", ""), wire.Opened(12, 6, "b", '{"l":"de"}')]
        self.assertEqual(wire.read(golden("worker_batch.bin")), (wire.BATCH, wire.Batch(
            7, 2, 3, 4, 2, 5_000_000_000, 5_000_100_000, framed, marks, opened, b"\1\2\3" + bytes(21), [])))

    def test_the_messages_of_clients_in_a_batch_are_read(self):
        _, batch = wire.read(golden("worker_batch_posts.bin"))
        self.assertEqual(batch.posts, [wire.Post(1, 3, 7, '["a","\\u0062"]', False), wire.Post(2, 0, 1 << 53, '{"lang":"de"}', True)])

    def test_written_messages_are_aligned(self):
        # The number of a Done is at a multiple of 8, whatever is before it.
        text = wire.done(0x1122334455667788, [(wire.JSON, b"1")])
        self.assertEqual(text.index(bytes.fromhex("8877665544332211")) % 8, 0)


if __name__ == "__main__":
    unittest.main()
