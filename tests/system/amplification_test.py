# SPDX-License-Identifier: Apache-2.0
"""For any input over an open connection, the io threads need at most 100 times the CPU of as many bytes of frames. Where
a conversion begins or begins anew, it is 700 times; for Opus, it is 100 times the CPU of as many frames.
The CPU time of the threads is measured, because other work on the machine changes it little. Each run is compared with the
run of frames just before it, because both then have the same share of caches; the best of up to twenty pairs counts."""
import math
import struct
import threading
import time
import unittest

import client_wire as wire
from faults import FaultTest, text
from harness import samples, wait_for
from raw_client import BINARY, PING, PONG, TEXT, RawClient, frame, upgrade

CONTINUATION = 0
TALK = 320  # frames of a message: 20 ms, as in telephony
MOST = 100
MOST_CONVERTED = 700  # if a resampler or a decoder begins anew
ROUNDS = 20
DEEP = b'{"type":' + b"[" * 1000 + b"}"
FRAMES = b"".join(frame(BINARY, samples(i * TALK, TALK)) for i in range(1000))


def commands(count, **message):
    return text(**message) * count


# The input of a client after its upgrade. Each input has its own connection.
INPUTS = {
    "a frame and a reset": (frame(BINARY, b"\1\0") + text(type="reset")) * 500,
    "empty messages": frame(BINARY, b"") * 20_000,
    "messages of a byte": frame(BINARY, b"\0") * 20_000,
    "fragments of a byte": (frame(BINARY, b"\0", fin=False) + frame(CONTINUATION, b"\0", fin=False) * 998
                            + frame(CONTINUATION, b"\0")) * 20,
    "empty fragments": (frame(BINARY, b"", fin=False) + frame(CONTINUATION, b"", fin=False) * 999
                        + frame(CONTINUATION, b"")) * 20,
    "empty pings": frame(PING, b"") * 20_000,
    "pings": frame(PING, b"p" * 125) * 5000,
    "pongs": frame(PONG, b"") * 20_000,
    "keepalives": commands(5000, type="keepalive"),
    "resets": commands(5000, type="reset"),
    "gaps": commands(2000, type="gap", frames=1),
    "flushes": commands(2000, type="flush"),
    "marks": commands(2000, type="flush", mark=7),
    "a deep value": frame(TEXT, DEEP),
    "a long command": frame(TEXT, b'{"type":"keepalive"' + b" " * 60_000 + b"}"),
    "a deep command": frame(TEXT, DEEP * 60),
    "bytes that are not UTF-8": frame(TEXT, b"\xff" * 1000),
}

RESET, GAP = text(type="reset"), text(type="gap", frames=1)
NAN = struct.pack("<f", math.nan)

# The query of the stream, and its input.
CONVERTED = {
    "44.1 kHz, frames and resets": ("?rate=44100", (frame(BINARY, b"\1\0") + RESET) * 500),
    "44.1 kHz, frames and gaps": ("?rate=44100", (frame(BINARY, b"\1\0") + GAP) * 500),
    "44.1 kHz, frames and NaN": ("?rate=44100&format=f32le", (frame(BINARY, bytes(4)) + frame(BINARY, NAN)) * 500),
    "191 999 Hz, frames and resets": ("?rate=191999&format=mulaw", (frame(BINARY, b"\1" * 12) + RESET) * 500),
}

# The query of the stream, a packet of signal, and one whose frames are lost: the decoder conceals them.
SIGNAL = bytes(i * 151 % 256 for i in range(60))
OPUS = {
    "12 lost hybrid frames, stereo": ("?format=opus&channels=2&channel=mean", b"\x74" + SIGNAL, b"\x77\x0c"),
    "12 lost hybrid frames, mono": ("?format=opus", b"\x70" + SIGNAL, b"\x73\x0c"),
    "2 lost SILK frames, mono": ("?format=opus", b"\x58" + SIGNAL, b"\x59"),
}
PACKETS, PACKET = 300, 1920  # packets of OPUS; frames of the pipeline in each: 120 ms


def zmtp(body, flags=0):
    """A frame of ZMTP 3."""
    return (bytes([flags, len(body)]) if len(body) < 256 else bytes([flags | 2]) + struct.pack(">Q", len(body))) + body


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
COMMAND, MORE = 4, 1
OPEN, LAST = 1 << 40, 1 << 41  # numbers of streams


def ready(socket_type):
    return zmtp(b"\5READY\x0bSocket-Type" + struct.pack(">I", len(socket_type)) + socket_type, COMMAND)


def messages(make, count, *others):
    return b"".join(zmtp(one(number)) for number in range(count) for one in (make, *others))


# The input of a ZeroMQ peer with one open stream.
ZEROMQ = {
    "opens and ends": messages(wire.open_, 500, wire.end),
    "opens of an unknown pipeline": messages(lambda number: wire.open_(number, pipeline="x"), 5000),
    "opens of another format": messages(lambda number: wire.open_(number, format="s16be"), 5000),
    "opens of another rate": messages(lambda number: wire.open_(number, rate=-1.0), 5000),
    "opens of an open number": messages(lambda _: wire.open_(OPEN), 5000),
    "opens with invalid options": messages(lambda number: wire.open_(number, options="["), 5000),
    "ends of unknown streams": messages(wire.end, 5000),
    "repeated ends of unknown streams": messages(lambda number: wire.end(number % 1024), 20_000),
    "frames of unknown streams": messages(lambda number: wire.frames(number, 0, b"xx"), 5000),
    "resets": messages(lambda _: wire.reset(OPEN), 5000),
    "gaps": messages(lambda _: wire.gap(OPEN, 1), 2000),
    "flushes": messages(lambda _: wire.flush(OPEN), 2000),
    "marks": messages(lambda _: wire.flush(OPEN, 7), 2000),
    "repeated frames": messages(lambda _: wire.frames(OPEN, 0, b"xx"), 5000),
    "half a frame": messages(lambda _: wire.frames(OPEN, 0, b"x"), 5000),
    "pings": zmtp(b"\4PING\0\0", COMMAND) * 20_000,
    "pings with a context": zmtp(b"\4PING\0\0" + b"c" * 16, COMMAND) * 20_000,
    "unknown commands": zmtp(b"\0", COMMAND) * 20_000,
    "parts of two bytes": zmtp(b"", MORE) * 30_000 + zmtp(b""),  # a message must be complete within 5 s
}

OPENS = {
    "opens and ends, 44.1 kHz": messages(lambda number: wire.open_(number, rate=44_100.0), 500, wire.end),
    "opens and ends, Opus": messages(lambda number: wire.open_(number, format="opus"), 500, wire.end),
}


def let_data_gather():
    """Called before each read of a client. If a thread waits on an idle processor of a virtual machine, each write that
    wakes it takes several microseconds more. They are caused neither by the input nor by the service."""
    time.sleep(0.001)


class PatientClient(RawClient):
    def receive(self):
        let_data_gather()
        return super().receive()


class Amplification(FaultTest):
    def client(self, query):
        """A client with an open stream. Streams of the input before may need their slots for a moment longer."""
        def opened():
            client = PatientClient(self.service_.port, upgrade("/v1/stream" + query))
            if client.head()[0] == 101:
                return client
            client.socket.close()

        client = wait_for(opened, "a free slot")
        self.assertEqual(client.message()["type"], "ready")
        return client

    def over_websocket(self, data, query=""):
        with self.client(query) as client:
            before = self.service_.io_cpu()
            # The service may stop reading until the client reads.
            sender = threading.Thread(target=client.send, args=(data + text(type="end"),))
            sender.start()
            client.ended()
            sender.join()
            return self.service_.io_cpu() - before

    def over_zeromq(self, data):
        with RawClient(self.service_.zeromq_port, GREETING + ready(b"DEALER") + zmtp(wire.open_(OPEN))) as peer:
            self.wait_for(peer, OPEN)
            before = self.service_.io_cpu()
            sender = threading.Thread(target=peer.send, args=(data + zmtp(wire.end(LAST)),))
            sender.start()
            self.wait_for(peer, LAST)
            sender.join()
            return self.service_.io_cpu() - before

    @staticmethod
    def wait_for(peer, number):
        """Reads up to the first message about this stream."""
        wanted, last = struct.pack("<Q", number), b""
        while wanted not in last:
            let_data_gather()
            came = peer.socket.recv(1 << 16)
            assert came, "the connection ended"
            last = last[-7:] + came

    def serve(self):
        self.service_ = self.served()
        if self.service_.sanitized():
            self.skipTest("a sanitizer slows down some code much more than other code")

    def check(self, most, cost, units):
        """`cost` is the CPU time of input that counts as much as this number of bytes of frames."""
        times = math.inf
        for _ in range(ROUNDS):
            control = self.over_websocket(FRAMES) / len(FRAMES)
            times = min(times, cost() / units / control)
            if times < most:
                break
        self.assertLess(times, most)

    def test_no_input_costs_100_times_the_cpu_of_as_many_bytes_of_frames(self):
        self.serve()
        for cost, inputs in (self.over_websocket, INPUTS), (self.over_zeromq, ZEROMQ):
            for name, data in inputs.items():
                with self.subTest(name, transport=cost.__name__):
                    self.check(MOST, lambda: cost(data), len(data))

    def test_no_beginning_of_a_conversion_costs_700_times_the_cpu_of_as_many_bytes_of_frames(self):
        self.serve()
        for name, (query, data) in CONVERTED.items():
            with self.subTest(name):
                self.check(MOST_CONVERTED, lambda: self.over_websocket(data, query), len(data))
        for name, data in OPENS.items():
            with self.subTest(name):
                self.check(MOST_CONVERTED, lambda: self.over_zeromq(data), len(data))

    def test_no_packet_of_opus_costs_100_times_the_cpu_of_as_many_frames(self):
        self.serve()
        for name, (query, signal, lost) in OPUS.items():
            with self.subTest(name):
                data = frame(BINARY, signal) + frame(BINARY, lost) * PACKETS
                self.check(MOST, lambda: self.over_websocket(data, query), PACKETS * PACKET * 2)


if __name__ == "__main__":
    unittest.main()
