# SPDX-License-Identifier: Apache-2.0
"""Streams over ZeroMQ, with a client that was written from the documents alone. Ids like B1 are those of
docs/internals/guarantees.md; tests/transport has the other faults of ZeroMQ clients."""
import json
import os
import re
import struct
import unittest

import client_wire as wire
from conformance_test import crc32c
from faults import PACKET, FaultTest
from flatbuffer import u64
from harness import samples
from zeromq_client import Peer


def patched(message, at, value):
    out = bytearray(message)
    struct.pack_into("<I", out, at, value)
    return bytes(out)


GOOD = wire.frames(7, 0, samples(0, 8))
ROOT = struct.unpack_from("<I", GOOD)[0]
INVALID_MESSAGES = {  # B1, B2, B6
    "one byte": b"x", "eleven bytes": bytes(11), "random": bytes(range(7, 207)),
    "another identifier": GOOD[:4] + b"MRW1" + GOOD[8:], "cut short": GOOD[:-9],
    "the root outside": patched(GOOD, 0, 1 << 20), "the root beyond 2^31": patched(GOOD, 0, 0xFFFFFFF0),
    "the root in itself": patched(GOOD, 0, 0), "a vtable outside": patched(GOOD, ROOT, 1 << 20),
    "a vtable that is its table": patched(GOOD, ROOT, 0),
    "a length before it": struct.pack("<I", len(GOOD)) + GOOD,
    "no bytes in frames": wire.message(wire.FRAMES, u64(7), u64(0)),
}
LAST = 1 << 53  # no position or mark is as large
NOT_FOR_A_SERVICE = {  # B5
    "a message of the service": wire.message(wire.CREDIT, u64(7), u64(1)),
    "a gap of 0": wire.gap(7, 0), "a gap over the limit": wire.gap(7, LAST),
    "a mark over the limit": wire.flush(7, LAST),
}


class GoodPeer:
    """A stream over ZeroMQ that does everything right, row by row."""

    def __init__(self, service, **parameters):
        self.peer = Peer(service.zeromq_port)
        self.stream = self.peer.open(**parameters)
        self.rows = 0

    def row(self):
        self.stream.send(samples(self.rows * PACKET, PACKET))
        result = self.stream.next()
        assert (result["type"], result["seq"], result["begin"]) == ("result", self.rows, self.rows * PACKET), result
        self.rows += 1

    def end(self):
        self.stream.command(wire.end)
        last, closed = self.stream.rest()[-2:]
        assert last["type"] == "result" and "END" in last["flags"], last
        assert (closed["type"], closed["frames"], closed["chunks"]) == ("closed", self.rows * PACKET, self.rows), closed
        self.peer.close()


class ZeroMQ(FaultTest):
    good_stream = GoodPeer

    def client(self, service, **options):
        peer = Peer(service.zeromq_port, **options)
        self.addCleanup(peer.close)
        return peer

    def test_a_stream_is_opened_sent_answered_and_closed(self):
        service = self.service()
        self.tap(service)
        stream = self.client(service).open(id="kitchen", options='{"language":"de"}')
        self.assertEqual((stream.name, stream.frame), ("kitchen", 2))
        stream.send(samples(0, PACKET + 800)).command(wire.end)
        ready, first, last, closed = stream.rest()
        self.assertEqual(ready["pipeline"], "default")
        self.assertEqual([(r["seq"], r["begin"], r["end"], r["begin_s"], r["end_s"], r["flags"]) for r in (first, last)],
                         [(0, 0, 1600, 0.0, 0.1, ["START", "RESET", "SEGMENT"]),
                          (1, 1600, 2400, 0.1, 0.15, ["LAST", "END"])])
        self.assertEqual(json.loads(last["data"])["size"], 800)
        self.assertEqual((closed["type"], closed["frames"], closed["chunks"]), ("closed", 2400, 2))

    def test_the_message_that_the_document_shows_is_valid(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "protocol.md")) as file:
            lines = re.findall(r"^00[0-9a-f]0  ((?:[0-9a-f]{2} ?){1,16})", file.read(), re.MULTILINE)
        shown = bytes.fromhex(" ".join(lines))
        service = self.service()
        self.tap(service)
        peer = self.client(service)
        peer.numbers = iter([7])
        stream = peer.open().gap(1600)
        peer.send(shown)
        stream.command(wire.end)
        self.assertEqual(stream.rest()[-1]["frames"], 3)
        self.assertEqual(wire.frames(7, 1600, struct.pack("<3h", 1, -2, 300))[:len(shown)], shown)

    def answered(self, service, message):
        with Peer(service.zeromq_port) as peer:
            answer = peer.send(message).next(None)
        return answer["type"], answer["code"]

    def test_an_invalid_message_is_answered_and_disturbs_no_stream(self):  # B1 B2 B6
        cases = {name: (sent, ("error", "schema")) for name, sent in INVALID_MESSAGES.items()}
        self.each(self.served(), cases, self.answered, ("messages_rejected", "verify"))

    def test_a_message_that_means_nothing_to_a_service_is_answered(self):  # B5
        service = self.served()
        cases = {name: (sent, ("error", "schema")) for name, sent in NOT_FOR_A_SERVICE.items()}
        self.each(service, cases, self.answered, ("messages_rejected", "schema"))
        self.assertEqual(self.answered(service, wire.message(200, u64(7))), ("error", "schema"))  # an unknown message

    def test_members_of_later_versions_are_ignored(self):  # B5
        service = self.served()
        with self.moved(service, {}), self.unharmed(service):
            stream = self.client(service).open()
            stream.peer.send(wire.message(wire.FRAMES, u64(stream.number), u64(0), samples(0, PACKET), u64(1), b"later"))
            self.assertEqual(stream.next()["end"], PACKET)
            stream.command(wire.end).rest()

    def test_a_message_is_read_at_any_address_in_memory(self):  # B3
        service = self.service(f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\n")
        tap = self.tap(service, "default", "--data", "crc32c")
        stream = self.client(service).open(id="anywhere")
        at = 0
        for count in range(1, 400):  # many of them are received in one piece
            stream.send(samples(at, count))
            at += count
        self.assertEqual(stream.command(wire.end).rest()[-1]["frames"], at)
        rows = [row for row in self.rows(tap, "anywhere") if row["size"]]
        self.assertEqual([row["crc32c"] for row in rows],
                         [crc32c(samples(begin, min(PACKET, at - begin)).ljust(2 * PACKET, b"\0"))
                          for begin in range(0, at, PACKET)])


if __name__ == "__main__":
    unittest.main()
