# SPDX-License-Identifier: Apache-2.0
"""What comes where frames of WebSocket are expected."""
import collections
import json
import select
import socket
import struct
import time
import unittest

from faults import FaultTest, RawClient, text, upgrade
from harness import PATIENCE, samples, wait_for
from raw_client import BINARY, CLOSE, PING, PONG, TEXT, frame

DATA = samples(0, 100)
MOST = 64 * 1024  # bytes of a message


def closing(code):
    return frame(CLOSE, struct.pack(">H", code))


# What is sent, the close that answers it, and what it counts as.
PROTOCOL = {
    "an unmasked frame": frame(BINARY, DATA, masked=False),
    "the first reserved bit": frame(BINARY, DATA, rsv=4),
    "the second reserved bit": frame(BINARY, DATA, rsv=2),
    "the third reserved bit": frame(BINARY, DATA, rsv=1),
    "a compressed message, which was not agreed": frame(TEXT, b"\xaa\x56\x2a", rsv=4),
    **{f"opcode {opcode}": frame(opcode, DATA) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    "a fragmented ping": frame(PING, b"a", fin=False),
    "a ping of 126 bytes": frame(PING, bytes(126)),
    "a close of 126 bytes": frame(CLOSE, struct.pack(">H", 1000) + b"a" * 124),
    "a continuation of nothing": frame(0, DATA),
    "a message inside a fragmented one": frame(BINARY, DATA, fin=False) + frame(BINARY, DATA),
    "16 bits for a length below 126": frame(BINARY, bytes(5), length=b"\x7e\x00\x05"),
    "64 bits for a length below 65536": frame(BINARY, bytes(5), length=b"\x7f" + struct.pack(">Q", 5)),
    "a close of one byte": frame(CLOSE, b"\x03"),
    "a close with a reason that is no UTF-8": frame(CLOSE, struct.pack(">H", 1000) + b"\xff\xfe"),
    **{f"close code {code}": closing(code) for code in (0, 999, 1004, 1005, 1006, 1016, 2999)},
}
UTF8 = {
    "a text that is no UTF-8": frame(TEXT, b'{"type":"\xc3\x28"}'),
    "a text that ends within a character": frame(TEXT, b'"\xe2\x82'),
    "a surrogate": frame(TEXT, b'"\xed\xa0\x80"'),
}
TOO_BIG = {
    "a byte over the limit": frame(BINARY, bytes(MOST + 1)),
    "16 MiB": frame(BINARY, bytes(16 << 20)),
    "4 GiB declared": frame(BINARY, b"", length=b"\x7f" + struct.pack(">Q", 1 << 32)),
    "2^63 - 1 declared": frame(BINARY, b"", length=b"\x7f" + struct.pack(">Q", (1 << 63) - 1)),
    "2^63 declared": frame(BINARY, b"", length=b"\x7f" + struct.pack(">Q", 1 << 63)),
    "fragments over the limit": frame(BINARY, bytes(MOST), fin=False) + frame(0, b"ab", fin=True),
    "a text over the limit": frame(TEXT, b'{"type":"' + b"a" * MOST),
    "a minute of audio": frame(BINARY, bytes(60 * 32000)),
}
SCHEMA = {
    "no JSON": b"hello", "nothing": b"", "a list": b"[]", "a number": b"1", "a string": b'"end"', "null": b"null",
    "no type": b"{}", "an unknown type": b'{"type":"dance"}', "a type that is no string": b'{"type":1}',
    "an unknown field": b'{"type":"end","now":1}',
    "a sender's clock": b'{"type":"keepalive","at":12.5}',
    "something behind it": b'{"type":"end"}x', "deep nesting": b'{"type":' + b"[" * 5000,
    "a gap without frames": b'{"type":"gap"}', "a gap of a half": b'{"type":"gap","frames":0.5}',
    "a gap backwards": b'{"type":"gap","frames":-1}', "a gap in words": b'{"type":"gap","frames":"1"}',
    "a mark of 2^53": b'{"type":"flush","mark":9007199254740992}', "a mark below 0": b'{"type":"flush","mark":-1}',
    "a NUL": b'{"type":"end"}\0', "a newline in the type": b'{"type":"end\\n"}',
}


class Frames(FaultTest):
    def end_after(self, service, sent):
        """How the connection ends: what our error says, and the close code."""
        with RawClient(service.port, upgrade()) as client:
            return client.opened().send(sent).ended()

    def check(self, cases, answers, counters):
        service = self.service("[[pipeline]]\nslots = 1000\nchunk = { size = 1600 }\n")
        self.tap(service)
        expected = collections.Counter()
        with self.moved(service, expected), self.unharmed(service) as good:
            for name, sent in cases.items():
                with self.subTest(name):
                    self.assertIn(self.end_after(service, sent), answers)
                for counter in counters:
                    expected[counter] += 1
                good.row()

    def test_what_is_not_the_protocol_is_closed_with_1002(self):
        self.check(PROTOCOL, [(None, 1002)], [("connections_closed", "protocol")])

    def test_what_is_no_utf8_is_closed_with_1007(self):
        self.check(UTF8, [(None, 1007)], [("connections_closed", "protocol")])

    def test_a_message_over_the_limit_is_closed_with_1009_before_it_is_read(self):
        self.check(TOO_BIG, [(None, 1009)], [("connections_closed", "too_big")])

    def test_a_text_that_is_no_message_is_an_error_of_its_connection(self):
        self.check({name: frame(TEXT, sent) for name, sent in SCHEMA.items()}, [("schema", 4400)],
                   [("connections_closed", "protocol"), ("messages_rejected", "schema"),
                    ("streams_closed", "error")])

    def test_a_message_of_the_limit_is_taken_in_one_frame_and_in_65536(self):
        service = self.service("[[pipeline]]\nchunk = { size = 32768 }\n")
        self.tap(service)
        with self.moved(service, {}):
            for frames in ([frame(BINARY, samples(0, MOST // 2))],
                           [frame(0 if i else BINARY, samples(0, MOST // 2)[i:i + 1], fin=i == MOST - 1)
                            for i in range(MOST)]):
                with RawClient(service.port, upgrade()) as client:
                    client.opened().send(b"".join(frames)).send(text(type="end"))
                    self.assertEqual(client.rest()[-1], {"type": "closed", "frames": 32768, "chunks": 1})

    def test_compression_that_is_offered_is_not_taken(self):
        service = self.service()
        request = upgrade(Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits")
        with RawClient(service.port, request) as client:
            status, fields = client.head()
            self.assertEqual(status, 101)
            self.assertNotIn("sec-websocket-extensions", fields)

    def test_empty_messages_are_a_sign_of_life_and_nothing_else(self):
        service = self.service()
        self.tap(service)
        with self.moved(service, {}), RawClient(service.port, upgrade()) as client:
            client.opened().send(frame(BINARY) * 1000 + frame(PONG, b"unasked") * 1000)
            client.send(frame(BINARY, samples(0, 1)) + text(type="keepalive") + text(type="end"))
            self.assertEqual(client.rest()[-1], {"type": "closed", "frames": 1, "chunks": 1})


class Losses(FaultTest):
    def lines(self, tap, stream):
        return [row for row in map(json.loads, list(tap.lines)) if row["stream"] == stream]

    def test_half_a_message_is_dropped_and_the_stream_aborted(self):
        service = self.service()
        tap = self.tap(service)
        half = frame(BINARY, samples(1600, 3200))[:-100]
        with self.moved(service, {}), self.unharmed(service):
            for name in ("fin", "rst", "half-closed"):
                with self.subTest(name):
                    with RawClient(service.port, upgrade(f"/v1/stream?id={name}")) as client:
                        client.opened().send(frame(BINARY, samples(0, 1600)))
                        self.assertEqual(client.message()["type"], "result")
                        client.send(half)
                        if name == "rst":
                            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        if name == "half-closed":
                            client.socket.shutdown(socket.SHUT_WR)
                            self.assertEqual(client.ended(), (None, None))
                    rows = wait_for(lambda: self.lines(tap, name)[1:], "the ABORT row")
                    self.assertEqual([(row["flags"], row["size"]) for row in rows],
                                     [(["LAST", "END", "ABORT"], 0)])

    def test_a_close_without_an_end_of_the_connection_is_answered(self):
        service = self.service()
        self.tap(service)
        with self.moved(service, {}), RawClient(service.port, upgrade()) as client:
            client.opened().send(frame(BINARY, samples(0, 100)) + closing(1000))
            self.assertEqual(client.ended(), (None, 1000))


class SlowClients(FaultTest):
    def test_limits_of_seconds_for_messages_closes_and_reading(self):
        service = self.service("[[pipeline]]\nslots = 1000\nchunk = { size = 1600 }\n")
        self.tap(service)
        expected = {("connections_closed", "idle"): 2, ("streams_closed", "idle"): 2,
                    ("connections_closed", "slow_reader"): 1, ("streams_closed", "error"): 1}
        with self.moved(service, expected), self.unharmed(service) as good:
            names = ("empty fragments", "a byte at a time", "no answer to a close", "no reading")
            clients = {name: RawClient(service.port, upgrade()).opened() for name in names}
            began = time.monotonic()
            fragments, trickle, close, deaf = clients.values()
            pieces = {fragments: iter([frame(BINARY, fin=False)] + [frame(0, fin=False)] * 100),
                      trickle: (bytes([byte]) for byte in frame(BINARY, samples(0, 100)))}
            close.send(text(type="end"))
            ended = {}
            while len(ended) < 3 and time.monotonic() - began < PATIENCE:
                for name, client in clients.items():
                    if client is not deaf and select.select([client.socket], [], [], 0)[0]:
                        # Whoever is not to answer the close hears of it, and waits for the end.
                        if not client.receive():
                            ended[name] = time.monotonic() - began
                for client, each in pieces.items():
                    client.send(next(each))
                time.sleep(0.3)
                good.row()
            self.assertEqual(fragments.ended(), ("idle", 4408))
            self.assertEqual(trickle.ended(), ("idle", 4408))
            self.assertEqual(close.ended(), (None, 1000))
            for name in names[:3]:
                self.assertGreater(ended[name], 4.5, name)


if __name__ == "__main__":
    unittest.main()
