# SPDX-License-Identifier: Apache-2.0
"""A worker on plain sockets, over a path or TCP, which can send any bytes, valid or not."""
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
    """One connection. It reads only in calls that wait for a message."""

    def __init__(self, url, hello=None, **of_hello):
        self.socket = connected(url)
        self.buffer, self.descriptor, self.slabs = b"", None, None
        self.welcome, self.refused, self.received_bye = None, None, False
        self.sending, self.stopped, self.heart = threading.Lock(), threading.Event(), None
        self.send(wire.hello(**of_hello) if hello is None else hello)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def hang_up(self):
        """Ends the connection, as a process that dies does."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def wait_forever(self):
        self.socket.settimeout(None)

    def close(self):
        self.stopped.set()
        if self.heart:
            self.heart.join()
        if self.slabs is not None:
            self.slabs.close()
            self.slabs = None
        self.socket.close()

    # --- Sending

    def send_bytes(self, data):
        """Sends data, or less if the service closes the connection."""
        with self.sending, contextlib.suppress(OSError):
            self.socket.sendall(data)

    def send(self, message):
        self.send_bytes(struct.pack("<I", len(message)) + message)

    def answer(self, batch, text=b"1", **times):
        """Gives a batch back, with the same answer for every row."""
        self.send(wire.done(batch.id, [(wire.JSON, text)] * len(batch.framed),
                            [(wire.JSON, text)] * len(batch.marks), **times))

    def beat(self):
        """Sends heartbeats from a thread, until the worker is closed."""
        def beats():
            while not self.stopped.wait(1.0):
                self.send(wire.heartbeat)

        self.heart = threading.Thread(target=beats, daemon=True)
        self.heart.start()
        return self

    # --- Receiving

    def _more(self):
        """Waits for data. False at the end of the connection."""
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
        """(kind, content) of the next message; None at the end."""
        if not self._need(4):
            return None
        size, = struct.unpack_from("<I", self.buffer)
        if not self._need(4 + size):
            return None
        text, self.buffer = self.buffer[4:4 + size], self.buffer[4 + size:]
        return self.keep(text)

    def keep(self, text):
        kind, content = wire.read(text)
        if kind == wire.REFUSED:
            self.refused = content[0]
        elif kind == wire.BYE:
            self.received_bye = True
        return kind, content

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
        return self.next(wire.BATCH)

    def next(self, kind):
        """The content of the next message of this kind; None at the end. Skips others."""
        while (got := self.receive()) is not None:
            if got[0] == kind:
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
        """Waits until the service closes the connection, and reads nothing."""
        hang_up = select.poll()
        hang_up.register(self.socket, select.POLLRDHUP)
        hang_up.poll()

    def ended(self):
        """Reads to the end. Returns the code with which the worker was refused, or None."""
        while self.receive() is not None:
            pass
        return self.refused


class Honest:
    """Answers every row that a worker gets, in a thread. `rows` are these rows."""

    def __init__(self, link, answer=b"1"):
        self.link, self.rows = link, []
        self.thread = threading.Thread(target=self._work, args=(answer,), daemon=True)
        self.thread.start()

    def _work(self, answer):
        self.link.wait_forever()
        while (batch := self.link.batch()) is not None:
            self.rows += batch.framed + batch.marks
            self.link.answer(batch, answer)

    def close(self):
        """Ends the connection without Bye."""
        self.link.hang_up()
        self.thread.join()
        self.link.close()
