# SPDX-License-Identifier: Apache-2.0
"""Streams over ZeroMQ, with a client that was written from the documents alone."""
import json
import os
import re
import struct
import unittest

import client_wire as wire
from conformance_test import crc32c
from harness import SystemTest, samples
from zeromq_client import Peer

PACKET = 1600


class ZeroMQ(SystemTest):
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

    def test_many_streams_on_one_socket_do_not_mix(self):
        service = self.service("[[pipeline]]\nslots = 40\nchunk = { size = 160 }\n")
        tap = self.tap(service, "default", "--data", "crc32c")
        peer = self.client(service)
        streams = [peer.open(id=f"s{i}") for i in range(40)]
        for begin in range(0, 4000, 400):
            for i, stream in enumerate(streams):
                stream.send(samples(i * 5000 + begin, 400))
        for stream in streams:
            stream.command(wire.end)
        for i, stream in enumerate(streams):
            results = stream.rest()[1:-1]
            # 25 rows of 160 frames, and the END row after them.
            self.assertEqual([r["seq"] for r in results], list(range(26)))
            rows = [row for row in self.rows(tap, f"s{i}") if row["size"]]
            self.assertEqual([row["crc32c"] for row in rows],
                             [crc32c(samples(i * 5000 + row["begin"], 160)) for row in rows])

    def test_credit_is_back_pressure(self):
        service = self.service('[[pipeline]]\nworker_wait = "1h"\nchunk = { size = 1600 }\n',
                               '[limits]\nstream_buffer = "1s"\n')
        peer = self.client(service)
        held, other = peer.open(), peer.open()
        self.assertEqual(held.credit(), 16000)
        for begin in range(0, 16000, 1600):
            held.send(samples(begin, 1600))
        peer.send(wire.end(999))  # is answered when everything sent before it was read
        self.assertEqual(peer.next(999)["code"], "unknown_stream")
        self.assertEqual(peer.credit[held.number], 0)  # there is no worker
        other.send(samples(0, 1600))
        self.tap(service)
        held.send(samples(16000, 32000)).command(wire.end)
        self.assertEqual(held.rest()[-1]["frames"], 48000)

    def test_a_drain_sends_goaway_and_closes_every_stream_with_its_results(self):
        service = self.service()
        self.tap(service)
        peer = self.client(service)
        streams = [peer.open().send(samples(0, 2000)) for _ in range(3)]
        for stream in streams:
            stream.next()
        service.stop()
        for stream in streams:
            messages = stream.rest()
            self.assertEqual([m["type"] for m in messages], ["ready", "result", "goaway", "result", "closed"])
            self.assertEqual(messages[-2]["flags"], ["LAST", "END"])
        self.assertEqual(service.wait(), 0)

    def test_an_open_that_is_not_allowed_is_refused_with_the_parameters_name(self):
        service = self.service("[[pipeline]]\nslots = 1\n")
        self.tap(service)
        peer = self.client(service)
        first = peer.open(id="mic")
        refused = [({"pipeline": "x"}, "unknown_pipeline", "pipeline"), ({"id": "mic"}, "conflict", "id"),
                   ({"format": "s16be"}, "format", "format"), ({"rate": 7999.0}, "format", "rate"),
                   ({"options": "{"}, "schema", "options"), ({}, "no_room", ""), ({"version": 9}, "schema", "version")]
        for parameters, code, parameter in refused:
            with self.subTest(parameters):
                refusal = peer.open(**parameters).refusal
                self.assertEqual((refusal["code"], refusal["parameter"]), (code, parameter))
                self.assertIn(refusal["retry_after_ms"],
                              range(1000, 5001, 1000) if code in ("no_room", "conflict") else [None])
        first.send(samples(0, 1600)).command(wire.end)
        self.assertEqual(first.rest()[-1]["frames"], 1600)


if __name__ == "__main__":
    unittest.main()
