# SPDX-License-Identifier: Apache-2.0
"""A ZeroMQ client, written from docs/protocol.md with pyzmq and client_wire.py."""
import collections

import client_wire as wire
import zmq

PATIENCE = 30


class Peer:
    """One DEALER for many streams. Messages are kept until their stream asks for them."""

    def __init__(self, port, **options):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.sndtimeo = 1000 * PATIENCE
        for name, value in options.items():
            setattr(self.socket, name, value)
        self.socket.connect(f"tcp://127.0.0.1:{port}")
        self.unread = collections.defaultdict(collections.deque)  # by number of the stream, or None without a stream
        self.credit = collections.Counter()  # frames that may be sent, by number
        self.numbers = iter(range(1, 1 << 62))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.context.destroy(linger=0)

    def send(self, *parts):
        self.socket.send_multipart(parts)
        return self

    def read(self, patience=PATIENCE):
        """Reads one message of any stream. False if none comes in time."""
        if not self.socket.poll(int(1000 * patience)):
            return False
        message = wire.read(self.socket.recv())
        if message["type"] == "credit":
            self.credit[message["number"]] += message["frames"]
        else:
            self.unread[message["number"]].append(message)
        return True

    def next(self, number):
        """The next message of this stream, except credit."""
        while not self.unread[number]:
            assert self.read(), f"nothing came for {number}"
        return self.unread[number].popleft()

    def open(self, **parameters):
        return Stream(self, next(self.numbers), **parameters)


class Stream:
    """A stream that sends no more than its credit, and splits frames that are too many for one message."""

    def __init__(self, peer, number, **parameters):
        self.peer, self.number = peer, number
        self.received, self.over = [], False
        peer.send(wire.open_(number, **parameters))
        first = self.next()
        self.refusal = first if first["type"] == "error" else None
        if not self.refusal:
            assert (first["type"], first["version"]) == ("ready", 1), first
            assert first["frames"] == 0 or parameters.get("resume_token"), first
            self.name, self.frame, self.position = first["stream"], first["frame_bytes"], first["frames"]

    def next(self):
        message = self.peer.next(self.number)
        self.received.append(message)
        self.over = message["type"] in ("closed", "error")
        return message

    def credit(self):
        """Waits for credit. Returns the number of frames that may be sent."""
        while self.peer.credit[self.number] <= 0:
            assert self.peer.read(), f"no credit came for {self.number}"
        return self.peer.credit[self.number]

    def send(self, data, most=1 << 14):
        """Sends whole frames at the next position."""
        while data:
            count = min(len(data) // self.frame, self.credit(), most)
            self.send_at(self.position, data[:count * self.frame])
            self.position += count
            data = data[count * self.frame:]
        return self

    def send_at(self, at, data):
        """Sends any bytes at any position."""
        self.peer.send(wire.frames(self.number, at, data))
        self.peer.credit[self.number] -= len(data) // self.frame if self.frame else bool(data)
        return self

    def gap(self, count):
        self.peer.send(wire.gap(self.number, count))
        self.position += count
        return self

    def command(self, message):
        self.peer.send(message(self.number))
        return self

    def rest(self):
        """All messages until the stream is over."""
        while not self.over:
            self.next()
        return self.received
