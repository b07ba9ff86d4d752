# SPDX-License-Identifier: Apache-2.0
"""ZeroMQ connections that are invalid, do not read, or are gone. Ids like D1 are those of docs/internals/guarantees.md."""
import contextlib
import os
import socket
import struct
import unittest

import client_wire as wire
from faults import PACKET
from harness import COUNTED, samples, wait_for
from zeromq_client import Peer
from zeromq_faults import PeerFaultTest

GREETING = b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL" + bytes(16 + 32)


class Peers(PeerFaultTest):
    def ended(self, service, sent):
        """Sends these bytes over a plain connection, and waits until the service closes it."""
        with socket.create_connection(("127.0.0.1", service.zeromq_port), 30) as raw:
            with contextlib.suppress(ConnectionError):
                raw.sendall(sent)
                while raw.recv(4096):
                    pass
        return True

    def test_a_connection_that_is_not_zeromq_is_closed(self):  # D1 D2
        service = self.served()
        cases = {"HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "TLS": bytes.fromhex("160301020001000200"),
                 "nothing": b"",
                 "ZMTP 1": b"\x01\0", "another mechanism": GREETING.replace(b"NULL\0", b"CURVE")}
        self.each(service, {name: (sent, True) for name, sent in cases.items()}, self.ended,
                  ("connections_rejected", "handshake"))

    def test_a_handshake_that_is_too_large_takes_no_memory(self):  # D12 D13
        service = self.served()
        socket_type = b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"
        properties = b"".join(bytes([2, 33 + i % 94, 33 + i // 94]) + bytes(4) for i in range(8836))
        name = b"\x08Identity" + struct.pack(">I", 70_000) + bytes([1]) * 70_000
        with self.moved(service, {("connections_rejected", "handshake"): 101}), self.unharmed(service) as good:
            before = service.peak_memory()
            for body in [properties] * 100 + [name]:
                body = b"\5READY" + socket_type + body
                sent = GREETING + b"\x06" + struct.pack(">Q", len(body)) + body
                self.assertTrue(self.ended(service, sent))
            good.row()
            self.assertLess(service.peak_memory() - before, 10 << 20)  # 62 KB from each of 100

    def test_a_message_of_endless_parts_takes_no_memory(self):  # D5
        service = self.served()
        with self.moved(service, {("connections_rejected", "handshake"): 1}), self.unharmed(service) as good:
            before = service.peak_memory()
            raw = socket.create_connection(("127.0.0.1", service.zeromq_port), 30)
            self.addCleanup(raw.close)
            raw.sendall(GREETING + b"\x04\x1c\5READY\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER")
            for _ in range(300):
                raw.sendall(b"\x01\x00" * 512)  # each part would be 64 bytes in libzmq
            good.row()
            raw.settimeout(30)
            with contextlib.suppress(ConnectionError):
                while raw.recv(4096):  # until the service closes it: the message takes longer than 5 s
                    pass
            self.assertLess(service.peak_memory() - before, 4 << 20)

    def test_two_peers_with_one_routing_id_are_both_served(self):  # D4
        service = self.served()
        with self.moved(service, {}), self.unharmed(service) as good:
            streams = [self.peer(service, routing_id=b"same").open() for _ in range(2)]
            good.row()
            for stream in streams:
                stream.send(samples(0, PACKET)).command(wire.end)
                self.assertEqual(stream.rest()[-1]["frames"], PACKET)
            for name in (b"\x01", b"x" * 255):
                self.assertIsNone(self.peer(service, routing_id=name).open().refusal)

    def test_a_message_of_several_parts_is_answered_with_an_error(self):  # D5
        service = self.served()
        with self.moved(service, {("messages_rejected", "schema"): 2}), self.unharmed(service):
            for parts in (2, 1000):
                peer = self.peer(service).send(*[wire.end(1)] * parts)
                self.assertEqual(peer.next(None)["code"], "schema")

    def test_a_message_over_the_limit_is_rejected_and_one_far_over_it_ends_the_peer(self):  # D5 B16
        service = self.served()
        with self.moved(service, {("messages_rejected", "size"): 1}), self.unharmed(service) as good:
            stream = self.peer(service).open()
            stream.send_at(0, samples(0, (1 << 15) + 1))
            rejected = stream.next()
            self.assertEqual((rejected["code"], rejected["frames"]), ("too_long", (1 << 15) + 1))
            lost = self.peer(service, reconnect_ivl=-1).open()
            lost.send_at(0, bytes(1 << 20))
            self.await_metric(service, 1, "millrace_streams_closed_total", reason="client_gone")
            good.row()

    def test_a_peer_that_does_not_read_is_ended_and_delays_no_other_peer(self):  # D6
        service = self.service(f"[[pipeline]]\nchunk = {{ size = {PACKET} }}\n"
                               '[[pipeline]]\nname = "tiny"\nchunk = { size = 1 }\nbatch = { rows = 64 }\n',
                               '[limits]\nsend_buffer = "64KiB"\n')
        self.worker = self.tap(service)
        self.tap(service, "tiny")
        expected = {("streams_closed", "error"): 1, ("connections_closed", "slow_reader"): 1}
        with self.moved(service, expected), self.unharmed(service) as good:
            stream = self.peer(service, rcvhwm=1, rcvbuf=4096).open(pipeline="tiny")
            for at in range(0, 6_000, 1000):  # each frame is a row, and answered
                stream.send_at(at, samples(at, 1000))
                good.row()
            wait_for(lambda: service.metric("millrace_streams_closed_total", reason="error"),
                     "the stream to be ended", COUNTED)
            good.row()
            received = stream.rest()
            self.assertEqual(received[-1]["code"], "slow_reader")
            results = [message["seq"] for message in received if message["type"] == "result"]
            self.assertEqual(results, list(range(len(results))))
            self.await_metric(service, 1, "millrace_ingest_connections_closed_total", reason="slow_reader")
            service.recount()
            late = "messages_rejected", "unknown_stream"  # messages that were sent after its end
            if count := self.counts(service).get(late):
                expected[late] = count

    def test_the_streams_of_a_peer_that_is_gone_abort_at_once(self):  # D7
        service = self.served()
        with self.moved(service, {}), self.unharmed(service) as good:
            peer = self.peer(service)
            names = [peer.open(id=f"s{i}").send(samples(0, PACKET + 5)).next() and f"s{i}" for i in range(5)]
            peer.close()
            for name in names:
                self.assertIn("ABORT", self.rows(self.worker, name)[-1]["flags"])
            good.row()

    def test_a_stop_does_not_wait_for_a_peer_that_does_not_read(self):  # D8
        service = self.service('[[pipeline]]\nchunk = { size = 1 }\nbatch = { rows = 64 }\n', '[limits]\ndrain = "1s"\n')
        self.tap(service)
        stream = self.peer(service, rcvhwm=1, rcvbuf=4096).open()
        for at in range(0, 80_000, 1000):  # its first credit; each frame is a row, and answered
            stream.send_at(at, samples(at, 1000))
        wait_for(lambda: service.metric("millrace_send_buffer_bytes", transport="zmq") > 0, "results to wait", COUNTED)
        self.assertEqual(service.stop(), 1)  # not every stream was drained
        self.assertIn('"drain cut off" why="the [limits] drain time is over"', "\n".join(service.errors))

    def test_connections_that_come_and_go_leave_nothing_behind(self):  # D9
        service = self.served()
        with self.unharmed(service) as good:
            def descriptors():
                return len(os.listdir(f"/proc/{service.process.pid}/fd"))

            before = descriptors()
            for _ in range(20):
                for peer in [Peer(service.zeromq_port) for _ in range(10)]:
                    self.assertIsNone(peer.open().refusal)
                    peer.close()
                good.row()
            wait_for(lambda: descriptors() <= before, "the descriptors to be free")
            wait_for(lambda: service.metric("millrace_ingest_connections", transport="zmq") == 1,
                     "the good one to be left", COUNTED)


if __name__ == "__main__":
    unittest.main()
