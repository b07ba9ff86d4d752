# SPDX-License-Identifier: Apache-2.0
"""Workers that send invalid messages. Ids like F5 are those of docs/internals/guarantees.md."""
import struct
import unittest

import worker_wire as wire
from faults import PACKET, text
from raw_worker import RawWorker
from worker_faults import WorkerFaultTest, packet

PROTOCOL = ("worker_failures", "protocol")
TWO = [(wire.JSON, b"1")] * 2
GARBAGE = bytes(range(256))


def raw_done(kinds, lengths, answers):
    """A Done whose fields may contradict each other."""
    return lambda batch: wire.message(wire.DONE, wire.u64(batch.id), wire.u64(0), wire.u64(0), wire.Table([
        wire.Vector("B", kinds), wire.Vector("I", lengths), wire.Vector("B", answers)]))


ENDPOINTS = '[[pipeline]]\nchunk = {{ size = 1600 }}\nendpoint = {{ by = "{}", max = "20s" }}\n'

# Invalid messages of a worker that holds two batches of one row each. Each function gets the first batch.
INVALID = {
    "an unknown batch": lambda batch: wire.done(batch.id + 100),
    "the second batch first": lambda batch: wire.done(batch.id + 1),
    "too many answers": lambda batch: wire.done(batch.id, TWO),
    "answers to marker rows that do not exist": lambda batch: wire.done(batch.id, None, TWO),
    "an unknown kind of answer": raw_done([5], [1], b"1"),
    "more lengths than kinds": raw_done([1], [1, 0], b"1"),
    "lengths beyond the text": raw_done([1], [2], b"1"),
    "lengths that leave text over": raw_done([1], [0], b"1"),
    "more endpoints than answers": lambda batch: wire.done(batch.id, TWO[:1], endpoints=[1, 0]),
    "fewer endpoints than answers": lambda batch: wire.done(batch.id, TWO[:1], endpoints=[]),
    "an endpoint that is neither 0 nor 1": lambda batch: wire.done(batch.id, TWO[:1], endpoints=[2]),
    "a second Hello": lambda batch: wire.hello(),
    "a message that only a service sends": lambda batch: wire.message(wire.COMPANY, wire.u32(1)),
    "an unknown kind of message": lambda batch: wire.message(77),
    "an empty message": lambda batch: b"",
    "garbage": lambda batch: GARBAGE,
    "garbage with our identifier": lambda batch: GARBAGE[:4] + wire.IDENTIFIER + GARBAGE,
    "half a message": lambda batch: wire.done(batch.id, TWO[:1])[:-9],
    "another identifier": lambda batch: wire.heartbeat.replace(b"MRW1", b"MRW9"),
}
HELLOS = {
    "another version": (wire.hello(version=2), "version"), "version 0": (wire.hello(version=0), "version"),
    "an unknown pipeline": (wire.hello(pipeline="none"), "pipeline"),
    "an unknown device": (wire.hello(device="abacus"), "device"),
    "no credits": (wire.hello(credits=0), "protocol"), "1025 credits": (wire.hello(credits=1025), "protocol"),
    "credits for more slabs than allowed": (wire.hello(credits=1024), "no_room"),
    "a name of 257 bytes": (wire.hello(name="a" * 257), "protocol"), "a newline": (wire.hello(name="a\nb"), "protocol"),
    "no Hello": (wire.heartbeat, "protocol"), "garbage": (GARBAGE, "protocol"), "an empty message": (b"", "protocol"),
}


class InvalidMessages(WorkerFaultTest):
    HELLOS = HELLOS

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

    def test_an_unfinished_message_takes_only_the_memory_of_its_received_bytes(self):  # F6
        service = self.service()
        with self.moved(service, {("worker_failures", "disconnect"): 1}), self.beside(service):
            before = service.peak_memory()
            sender = self.worker(service)
            sender.send_bytes(struct.pack("<I", 64 << 20) + bytes(1 << 16))
            sender.close()
            self.await_metric(service, 1, "millrace_worker_failures_total", reason="disconnect")
            self.assertLess(service.peak_memory() - before, 8 << 20)

    def test_a_second_answer_to_a_batch_is_ignored(self):  # F5
        service = self.service()
        worker, client = self.worker(service), self.client(service)
        with self.moved(service, {("results", "late"): 2}):
            for row in range(2):
                client.send(packet(row))
                batch = worker.batch()
                worker.answer(batch, b'"first"')
                worker.answer(batch, b'"second"')
            client.send(text(type="end"))
            worker.answer(worker.batch(), b'"end"')
            self.assertEqual([data for _, _, data in self.results(client)], ["first", "first", "end"])

    def test_an_endpoint_counts_only_in_the_answer_that_counts(self):
        service = self.service(ENDPOINTS.format("worker"))
        first, client = self.worker(service), self.client(service)
        client.send(packet(0) + packet(1))
        first.batch()
        first.send(wire.done(first.batch().id, TWO[:1], endpoints=[1]))  # the second batch first
        self.assertEqual(first.ended(), "protocol")
        second = self.worker(service)
        batch = second.batch()
        second.answer(batch)
        second.send(wire.done(batch.id, TWO[:1], endpoints=[1]))  # for the second time
        second.send(wire.done(second.batch().id, TWO[:1], endpoints=[1]))
        second.answer(second.batch())  # the marker row
        client.send(text(type="end"))
        second.answer(second.batch())
        self.assertEqual([flags for _, flags, _ in self.results(client)][1:],
                         [[], ["LAST"], ["SEGMENT", "LAST", "END"]])
        self.await_metric(service, 1, "millrace_endpoints_total", by="worker")
        self.await_metric(service, 0, "millrace_endpoints_late_total")

    def test_an_endpoint_where_workers_end_no_segments_has_no_effect_and_is_counted(self):
        for by in "length", "vad":
            with self.subTest(by):
                service = self.service(ENDPOINTS.format(by))
                worker, client = self.worker(service), self.client(service)
                client.send(packet(0))
                worker.send(wire.done(worker.batch().id, TWO[:1], endpoints=[1]))
                self.assertEqual(client.message()["seq"], 0)
                client.send(text(type="end"))
                worker.answer(worker.batch())
                self.assertEqual([flags for _, flags, _ in self.results(client)],
                                 [["START", "RESET", "SEGMENT"], ["LAST", "END"]])
                self.await_metric(service, 1, "millrace_endpoints_late_total")

    def test_answers_that_do_not_match_their_kind_are_errors_of_their_rows(self):
        service = self.service()
        worker, client = self.worker(service), self.client(service)
        bad = (wire.JSON, b"{"), (wire.JSON, b""), (wire.TEXT, b"\xff"), (wire.ERROR, b"no")
        with self.moved(service, {("results", "error"): len(bad)}):
            for row, answer in enumerate(bad):
                client.send(packet(row))
                worker.send(wire.done(worker.batch().id, [answer]))
                self.assertEqual(client.message()["error"], "worker_failed")
            client.send(text(type="end"))
            worker.answer(worker.batch())
            self.assertEqual(client.rest()[-1], {"type": "closed", "frames": len(bad) * PACKET, "chunks": len(bad)})

    def test_an_invalid_hello_is_refused_with_a_code_and_does_not_count_as_a_worker(self):
        service = self.service(extra='[limits]\nslab_bytes = "1MiB"\n')
        with self.moved(service, {}), self.beside(service):
            for name, (hello, code) in self.HELLOS.items():
                with self.subTest(name), RawWorker(self.url(service), hello) as worker:
                    self.assertEqual(worker.ended(), code)


if __name__ == "__main__":
    unittest.main()
