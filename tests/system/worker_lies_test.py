# SPDX-License-Identifier: Apache-2.0
"""Workers that send invalid messages. Ids like F5 are those of docs/internals/guarantees.md."""
import struct
import unittest

import worker_wire as wire
from faults import text
from worker_faults import WorkerFaultTest, packet

PROTOCOL = ("worker_failures", "protocol")
TWO = [(wire.JSON, b"1")] * 2
GARBAGE = bytes(range(256))


def raw_done(kinds, lengths, answers):
    """A Done whose fields may contradict each other."""
    return lambda batch: wire.message(wire.DONE, wire.u64(batch.id), wire.u64(0), wire.u64(0), wire.Table([
        wire.Vector("B", kinds), wire.Vector("I", lengths), wire.Vector("B", answers)]))


# Invalid messages of a worker that holds two batches of one row each. Each function gets the first batch.
INVALID = {
    "an unknown batch": lambda batch: wire.done(batch.id + 100),
    "the second batch first": lambda batch: wire.done(batch.id + 1),
    "too many answers": lambda batch: wire.done(batch.id, TWO),
    "answers to marker rows that do not exist": lambda batch: wire.done(batch.id, None, TWO),
    "an unknown kind of answer": raw_done([6], [1], b"1"),
    "more lengths than kinds": raw_done([1], [1, 0], b"1"),
    "lengths beyond the text": raw_done([1], [2], b"1"),
    "lengths that leave text over": raw_done([1], [0], b"1"),
    "more endpoints than answers": lambda batch: wire.done(batch.id, TWO[:1], endpoints=[1, 0]),
    "fewer endpoints than answers": lambda batch: wire.done(batch.id, TWO[:1], endpoints=[]),
    "an endpoint that is neither 0 nor 1": lambda batch: wire.done(batch.id, TWO[:1], endpoints=[2]),
    "a message that is no JSON": lambda batch: wire.send(batch.framed[0].stream, b"{"),
    "a message that is an error": lambda batch: wire.send(batch.framed[0].stream, b"no", wire.ERROR),
    "a message longer than any": lambda batch: wire.send(batch.framed[0].stream, bytes((48 << 10) - 63), wire.BYTES),
    "a message about a row that it never had": lambda batch: wire.send(batch.framed[0].stream, b"1", seq=3),
    "a second Hello": lambda batch: wire.hello(),
    "a message that only a service sends": lambda batch: wire.message(wire.COMPANY, wire.u32(1)),
    "an unknown kind of message": lambda batch: wire.message(77),
    "an empty message": lambda batch: b"",
    "garbage": lambda batch: GARBAGE,
    "garbage with our identifier": lambda batch: GARBAGE[:4] + wire.IDENTIFIER + GARBAGE,
    "half a message": lambda batch: wire.done(batch.id, TWO[:1])[:-9],
    "another identifier": lambda batch: wire.heartbeat.replace(b"MRW1", b"MRW9"),
}


class InvalidMessages(WorkerFaultTest):
    def test_a_worker_that_sends_an_invalid_message_is_disconnected_and_another_gets_its_rows(self):  # F5, F6
        service = self.service()
        with self.moved(service, {PROTOCOL: len(INVALID)}), self.beside(service) as (good, _):
            for name, invalid in INVALID.items():
                with self.subTest(name):
                    sender, client = self.worker(service, name="invalid"), self.client(service)
                    client.send(packet(0) + packet(1) + text(type="end"))
                    batch = sender.batch()
                    self.assertEqual(sender.batch().id, batch.id + 1)
                    sender.send(invalid(batch))
                    self.assertEqual(sender.ended(), "protocol")
                    self.assertEqual(self.results(client), [(0, ["START", "RESET", "SEGMENT"], 1), (1, [], 1),
                                                            (2, ["LAST", "END"], 1)])
                good.row()

    def test_a_message_length_over_the_limit_disconnects_before_memory_is_taken(self):  # F6
        service = self.service()
        lengths = (64 << 20) + 1, 1 << 30, (1 << 32) - 1
        with self.moved(service, {PROTOCOL: len(lengths)}), self.beside(service):
            before = service.peak_memory()
            for length in lengths:
                sender = self.worker(service)
                sender.send_bytes(struct.pack("<I", length))
                self.assertEqual(sender.ended(), "protocol")
            self.assertLess(service.peak_memory() - before, 8 << 20)


if __name__ == "__main__":
    unittest.main()
