# SPDX-License-Identifier: Apache-2.0
"""A worker of bare sockets, over a path or TCP, which can say anything, right or wrong."""
import contextlib
import mmap
import os
import select
import socket
import struct
import threading

import worker_wire as wire

PATIENCE = 30
SIZES = (2, 2, 4)  # bytes of s16, f16, f32


def connected(url):
    """A socket to "unix:PATH" or "tcp://ADDRESS:PORT"."""
    if url.startswith("tcp://"):
        address, port = url.removeprefix("tcp://").rsplit(":", 1)
        connection = socket.create_connection((address, int(port)), PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    connection.connect(url.removeprefix("unix:"))
    return connection


class RawWorker:
    """One connection. What it is sent it reads when it is asked to; heartbeats are skipped."""

    def __init__(self, url, hello=None, **of_hello):
        self.socket = connected(url)
        self.buffer, self.descriptor, self.slabs = b"", None, None
        self.welcome, self.refused, self.said_bye = None, None, False
        self.sending, self.stopped, self.heart = threading.Lock(), threading.Event(), None
        self.send(wire.hello(**of_hello) if hello is None else hello)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def hang_up(self):
        """As a process that dies."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def wait_for_ever(self):
        self.socket.settimeout(None)

    def close(self):
        self.stopped.set()
        if self.heart:
            self.heart.join()
        if self.slabs is not None:
            self.slabs.close()
            self.slabs = None
        self.socket.close()

    # --- what it says

    def send_bytes(self, data):
        """As much as the service takes before it hangs up."""
        with self.sending, contextlib.suppress(OSError):
            self.socket.sendall(data)

    def send(self, message):
        self.send_bytes(struct.pack("<I", len(message)) + message)

    def answer(self, batch, text=b"1", **times):
        """Gives it back with the same answer for every row."""
        self.send(wire.done(batch.id, [(wire.JSON, text)] * len(batch.framed),
                            [(wire.JSON, text)] * len(batch.marks), **times))

    def beat(self):
        """Heartbeats from a thread, until it is closed."""
        def beats():
            while not self.stopped.wait(1.0):
                self.send(wire.heartbeat)

        self.heart = threading.Thread(target=beats, daemon=True)
        self.heart.start()
        return self

    # --- what it hears

    def _more(self):
        """Waits for something to come; False at the end."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, 1)
        except OSError:
            return False
        if descriptors:
            self.descriptor = descriptors[0]
        self.buffer += data
        return bool(data)

    def _need(self, count):
        while len(self.buffer) < count:
            if not self._more():
                return False
        return True

    def receive(self):
        """(kind, what it says) of the next message; None at the end."""
        if not self._need(4):
            return None
        size, = struct.unpack_from("<I", self.buffer)
        if not self._need(4 + size):
            return None
        text, self.buffer = self.buffer[4:4 + size], self.buffer[4 + size:]
        return self.heard(text)

    def heard(self, text):
        kind, said = wire.read(text)
        if kind == wire.REFUSED:
            self.refused = said[0]
        elif kind == wire.BYE:
            self.said_bye = True
        return kind, said

    def attached(self):
        """Reads the Welcome, and maps the slabs that come with it."""
        kind, self.welcome = self.receive()
        assert kind == wire.WELCOME, (kind, self.welcome)
        if self.welcome.slabs:
            self.slabs = mmap.mmap(self.descriptor, self.welcome.slabs * self.welcome.slab_bytes,
                                   prot=mmap.PROT_READ)
            os.close(self.descriptor)
        return self

    def batch(self):
        """The next batch; None at the end."""
        while (got := self.receive()) is not None:
            if got[0] == wire.BATCH:
                return got[1]
        return None

    def row(self, batch, i):
        """The values of a row of its tensor, padding included, as bytes."""
        size = batch.width * self.welcome.values * SIZES[self.welcome.element]
        if self.slabs is None:
            return batch.tensor[i * size:(i + 1) * size]
        begin = batch.slab * self.welcome.slab_bytes + i * size
        return self.slabs[begin:begin + size]

    def wait_for_hang_up(self):
        """Until the service closes the connection; reads nothing."""
        hang_up = select.poll()
        hang_up.register(self.socket, select.POLLRDHUP)
        hang_up.poll()

    def ended(self):
        """Reads to the end: the code it was refused with; None where it was not."""
        while self.receive() is not None:
            pass
        return self.refused


class Honest:
    """Answers every row that a worker gets, from a thread of its own; `rows` are those."""

    def __init__(self, link, answer=b"1"):
        self.link, self.rows = link, []
        self.thread = threading.Thread(target=self._work, args=(answer,), daemon=True)
        self.thread.start()

    def _work(self, answer):
        self.link.wait_for_ever()
        while (batch := self.link.batch()) is not None:
            self.rows += batch.framed + batch.marks
            self.link.answer(batch, answer)

    def close(self):
        """Without Bye."""
        self.link.hang_up()
        self.thread.join()
        self.link.close()
