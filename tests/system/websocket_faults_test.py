# SPDX-License-Identifier: Apache-2.0
"""Invalid WebSocket frames and messages. Ids like A12 are those of docs/internals/guarantees.md."""
import itertools
import socket
import string
import struct
import unittest

from faults import FaultTest, text
from harness import samples, wait_for
from raw_client import BINARY, CLOSE, PING, TEXT, RawClient, closing, frame, upgrade

DATA = samples(0, 100)
MOST = 64 * 1024  # bytes of a message


def declared(length):
    """The begin of a frame that declares this length."""
    return frame(BINARY, length=b"\x7f" + struct.pack(">Q", length))


PROTOCOL = {
    # A12
    "an unmasked frame": frame(BINARY, DATA, masked=False),
    # A13
    "the first reserved bit": frame(BINARY, DATA, rsv=4),
    "the second reserved bit": frame(BINARY, DATA, rsv=2),
    "the third reserved bit": frame(BINARY, DATA, rsv=1),
    **{f"opcode {opcode}": frame(opcode, DATA) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    # A14
    "a fragmented ping": frame(PING, b"a", fin=False),
    "a ping of 126 bytes": frame(PING, bytes(126)),
    "a close of 126 bytes": frame(CLOSE, struct.pack(">H", 1000) + b"a" * 124),
    # A15
    "a continuation of nothing": frame(0, DATA),
    "a message inside a fragmented one": frame(BINARY, DATA, fin=False) + frame(BINARY, DATA),
    # A16
    "16 bits for a length below 126": frame(BINARY, bytes(5), length=b"\x7e\x00\x05"),
    "64 bits for a length below 65536": frame(BINARY, bytes(5), length=b"\x7f" + struct.pack(">Q", 5)),
    "2^63 for a length": declared(1 << 63),
    # A18
    "a close of one byte": frame(CLOSE, b"\x03"),
    **{f"close code {code}": closing(code) for code in (0, 999, 1004, 1005, 1006, 1016, 2999, 5000, 65535)},
    # A23
    "a compressed message, which was not agreed": frame(TEXT, b"\xaa\x56\x2a", rsv=4),
}
UTF8 = {  # A17
    "a text that is not UTF-8": frame(TEXT, b'{"type":"\xc3\x28"}'),
    "a text that ends within a character": frame(TEXT, b'"\xe2\x82'),
    "a surrogate": frame(TEXT, b'"\xed\xa0\x80"'),
    # A41
    "a text that ends within a character, and then an empty fragment":
        frame(TEXT, b'"\xe2\x82', fin=False) + frame(0, b"", fin=True),
    # A18
    "a close with a reason that is not UTF-8": closing(1000, b"\xff\xfe"),
}
TOO_BIG = {
    # A19: refused by its first bytes
    "a byte over the limit": frame(BINARY, bytes(MOST + 1)),
    "16 MiB": frame(BINARY, bytes(16 << 20)),
    "4 GiB declared": declared(1 << 32),
    "fragments over the limit": frame(BINARY, bytes(MOST), fin=False) + frame(0, b"ab", fin=True),
    "a text over the limit": frame(TEXT, b'{"type":"' + b"a" * MOST),
    # A16
    "2^63 - 1 declared": declared((1 << 63) - 1),
    # B16
    "a minute of audio": frame(BINARY, bytes(60 * 32000)),
}
SCHEMA = {  # A17
    "not JSON": b"hello", "an empty text": b"", "a list": b"[]", "a number": b"1", "a string": b'"end"', "null": b"null",
    "no type": b"{}", "an unknown type": b'{"type":"dance"}', "a type that is not a string": b'{"type":1}',
    "an unknown field": b'{"type":"end","now":1}', "a sender's clock": b'{"type":"keepalive","at":12.5}',
    "text after the object": b'{"type":"end"}x', "deep nesting": b'{"type":' + b"[" * 5000,
    "a gap without frames": b'{"type":"gap"}', "a gap of 0": b'{"type":"gap","frames":0}',
    "a gap of a half": b'{"type":"gap","frames":0.5}', "a gap backwards": b'{"type":"gap","frames":-1}',
    "a gap in words": b'{"type":"gap","frames":"1"}', "a gap of 2^53": b'{"type":"gap","frames":9007199254740992}',
    "a mark of 2^53": b'{"type":"flush","mark":9007199254740992}', "a mark below 0": b'{"type":"flush","mark":-1}',
    "a NUL": b'{"type":"end"}\0', "a newline in the type": b'{"type":"end\\n"}',
}


def colliding_keys(count, salt=0x030):
    """Keys of 5 letters that have the same FNV-1a hash modulo 4096. Boost.JSON's objects use this hash, and salt its start with
    an address. `salt` is the low 12 bits of this address; the default is that of the first large block of a process."""
    prime, mask = 0x100000001B3, 0xFFF
    inverse = pow(prime, -1, mask + 1)
    letters = (string.ascii_letters + string.digits + "_-").encode()
    known = set(letters)

    def keys():
        for prefix in itertools.product(letters, repeat=3):
            value = (0xCBF29CE484222325 + salt) & mask
            for byte in prefix:
                value = ((byte ^ value) * prime) & mask
            for last in letters:  # the letter between them that leads to a hash of 0
                between = (last * inverse & mask) ^ value
                if between in known:
                    yield bytes((*prefix, between, last))

    return list(itertools.islice(keys(), count))


class Frames(FaultTest):
    def end_after(self, service, sent):
        """How the connection ends: the code of an error, and that of the close."""
        with RawClient(service.port, upgrade()) as client:
            return client.opened().send(sent).ended()

    def all_end(self, cases, how, *counters):
        self.each(self.served(), {name: (sent, how) for name, sent in cases.items()}, self.end_after, *counters)

    def test_a_protocol_error_is_closed_with_1002(self):
        self.all_end(PROTOCOL, (None, 1002), ("connections_closed", "protocol"))

    def test_text_that_is_not_utf8_is_closed_with_1007(self):
        self.all_end(UTF8, (None, 1007), ("connections_closed", "protocol"))

    def test_a_message_over_the_limit_is_closed_with_1009_before_it_is_read(self):
        service = self.served()
        with RawClient(service.port, upgrade()) as client:  # the memory of a first connection does not count
            client.opened().send(frame(BINARY, samples(0, MOST // 2))).send(text(type="end")).rest()
        before = service.peak_memory()

        def end_after(service, sent):
            end = self.end_after(service, sent)
            self.assertLess(service.peak_memory() - before, 8 << 20)  # no memory was taken for declared bytes
            return end

        self.each(service, {name: (sent, (None, 1009)) for name, sent in TOO_BIG.items()}, end_after,
                  ("connections_closed", "too_big"))

    def test_a_text_that_is_not_a_message_is_an_error_of_its_connection(self):
        self.all_end({name: frame(TEXT, sent) for name, sent in SCHEMA.items()}, ("schema", 4400),
                     ("connections_closed", "protocol"), ("messages_rejected", "schema"), ("streams_closed", "error"))

    def test_each_byte_of_a_message_in_65536_fragments_costs_at_most_100_times_as_much(self):  # A20
        service = self.served()
        size = MOST // 16 if service.sanitized() else MOST  # a message must be complete within 5 s
        audio = samples(0, size // 2)
        crumbs = b"".join(frame(0 if i else BINARY, audio[i:i + 1], fin=i == size - 1) for i in range(size))

        def cost(message, times):
            """The CPU seconds of one message."""
            before = service.io_cpu()
            with RawClient(service.port, upgrade()) as client:
                client.opened()
                for _ in range(times):
                    client.send(message).message()
                client.send(text(type="end"))
                self.assertEqual(client.rest()[-1]["frames"], times * size // 2)
            return (service.io_cpu() - before) / times

        with self.moved(service, {}), self.unharmed(service):
            whole, fragmented = cost(frame(BINARY, audio), 50), cost(crumbs, 3)
        ratio = fragmented / whole / (len(crumbs) / size)  # for each byte that was sent
        print(f"CPU in fragments of one byte: {ratio:.1f} times of that in one frame")
        self.assertLess(ratio, 100)

    def test_keys_that_collide_cost_at_most_100_times_as_much_as_frames(self):  # A34
        service = self.served()
        keys = colliding_keys(4096)
        hostile = frame(TEXT, b"{" + b",".join(b'"%s":1' % key for key in keys) + b"}")
        frames = frame(BINARY, samples(0, len(hostile) // 2))

        def cost(sent, how):
            """The CPU seconds of a connection with this message."""
            before = service.io_cpu()
            for _ in range(20):
                self.assertEqual(self.end_after(service, sent), how)
            return (service.io_cpu() - before) / 20

        moved = {("connections_closed", "protocol"): 40, ("messages_rejected", "schema"): 40,
                 ("streams_closed", "error"): 40}
        with self.moved(service, moved), self.unharmed(service):
            for name, text_message in {"above 1 KiB": hostile, "below": frame(
                    TEXT, b"{" + b",".join(b'"%s":1' % key for key in keys[:100]) + b"}")}.items():
                refused = cost(text_message, ("schema", 4400))
                taken = cost(frames + text(type="end"), (None, 1000))
                print(f"CPU of colliding keys {name}: {refused / taken:.1f} times of that of as many frames")
                self.assertLess(refused / taken, 100)


class Losses(FaultTest):
    def test_half_a_message_is_dropped_and_the_stream_aborted(self):  # A28, C15
        service = self.service("[[pipeline]]\nslots = 2\nchunk = { size = 1600 }\n")  # one slot is left for these streams
        tap = self.tap(service)
        half = frame(BINARY, samples(2000, 3200))[:-100]
        with self.moved(service, {}), self.unharmed(service):
            for name in ("fin", "rst", "half-closed"):
                with self.subTest(name), RawClient(service.port, upgrade(f"/v1/stream?id={name}")) as client:
                    client.opened().send(frame(BINARY, samples(0, 2000)))
                    self.assertEqual(client.message()["type"], "result")
                    client.send(half)
                    if name == "rst":
                        client.abort()
                    if name == "half-closed":
                        client.socket.shutdown(socket.SHUT_WR)
                        self.assertEqual(client.ended(), (None, None))
                    client.socket.close()
                    rows = self.rows(tap, name, "ABORT")
                    self.assertEqual([(row["begin"], row["size"], row["flags"]) for row in rows],
                                     [(0, 1600, ["START", "RESET", "SEGMENT"]), (2000, 0, ["LAST", "END", "ABORT"])])
                    wait_for(lambda: len(service.streams()) == 1, "room for the next")


if __name__ == "__main__":
    unittest.main()
