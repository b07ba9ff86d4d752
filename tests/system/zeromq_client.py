# SPDX-License-Identifier: Apache-2.0
"""A client of the ZeroMQ door, written from docs/protocol.md: pyzmq, and messages by hand."""
import collections

import client_wire as wire
import zmq

PATIENCE = 30


class Peer:
    """One DEALER, for many streams. What is read for a stream that nobody asked for yet is kept."""

    def __init__(self, port, **options):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.sndtimeo = 1000 * PATIENCE
        for name, value in options.items():
            setattr(self.socket, name, value)
        self.socket.connect(f"tcp://127.0.0.1:{port}")
        self.unread = collections.defaultdict(collections.deque)  # by number; None: of no stream
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
        """Takes in one message of any stream; False when none comes."""
        if not self.socket.poll(int(1000 * patience)):
            return False
        message = wire.read(self.socket.recv())
        if message["type"] == "credit":
            self.credit[message["number"]] += message["frames"]
        else:
            self.unread[message["number"]].append(message)
        return True

    def next(self, number):
        """The next message of this stream but credit."""
        while not self.unread[number]:
            assert self.read(), f"nothing came for {number}"
        return self.unread[number].popleft()

    def open(self, **parameters):
        return Stream(self, next(self.numbers), **parameters)


class Stream:
    """A stream that sends no more than it may, and splits what is too much at once."""

    def __init__(self, peer, number, **parameters):
        self.peer, self.number, self.position = peer, number, 0
        self.said, self.over = [], False
        peer.send(wire.open_(number, **parameters))
        first = self.next()
        self.refusal = first if first["type"] == "error" else None
        if not self.refusal:
            assert (first["type"], first["version"], first["frames"]) == ("ready", 1, 0), first
            self.name, self.frame = first["stream"], first["frame_bytes"]

    def next(self):
        message = self.peer.next(self.number)
        self.said.append(message)
        self.over = message["type"] in ("closed", "error")
        return message

    def credit(self):
        """Waits until something may be sent; how many frames."""
        while self.peer.credit[self.number] <= 0:
            assert self.peer.read(), f"no credit came for {self.number}"
        return self.peer.credit[self.number]

    def send(self, data, most=1 << 14):
        """Whole frames, at the position that is next."""
        while data:
            count = min(len(data) // self.frame, self.credit(), most)
            self.send_at(self.position, data[:count * self.frame])
            self.position += count
            data = data[count * self.frame:]
        return self

    def send_at(self, at, data):
        """Anything anywhere."""
        self.peer.send(wire.frames(self.number, at, data))
        self.peer.credit[self.number] -= len(data) // self.frame
        return self

    def gap(self, count):
        self.peer.send(wire.gap(self.number, count))
        self.position += count
        return self

    def say(self, message):
        self.peer.send(message(self.number))
        return self

    def rest(self):
        """Everything until it is over."""
        while not self.over:
            self.next()
        return self.said
