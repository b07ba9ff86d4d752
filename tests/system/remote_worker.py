# SPDX-License-Identifier: Apache-2.0
"""A worker of another machine: the same as raw_worker's, over ZeroMQ, tensors in its batches."""
import contextlib
import threading
import time

import worker_wire as wire
import zmq
from raw_worker import PATIENCE, SIZES, RawWorker

LOOKS = 0.001  # seconds between two, where two threads share a socket that is for one


class RemoteRawWorker(RawWorker):
    def __init__(self, url, hello=None, **of_hello):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger, self.socket.reconnect_ivl = 1000, -1
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED)
        self.socket.connect(url)
        self.welcome, self.refused, self.said_bye, self.patience = None, None, False, PATIENCE
        self.sending, self.stopped, self.heart, self.over = threading.Lock(), threading.Event(), None, False
        self.send(wire.hello(**of_hello) if hello is None else hello)

    def hang_up(self):
        with self.sending:
            self.over = True
            self.socket.close(0)
            self.monitor.close(0)

    def close(self):
        self.stopped.set()
        if self.heart:
            self.heart.join()
        if not self.over:
            self.hang_up()
        self.context.destroy(0)

    def wait_for_ever(self):
        self.patience = float("inf")

    def send(self, *parts):
        """As much as goes: the service may be gone."""
        with self.sending, contextlib.suppress(zmq.Again):
            if not self.over:
                self.socket.send_multipart(parts, zmq.NOBLOCK if self.welcome else 0)

    def _next(self):
        """What has come; b"" is a message. None when nothing has; EOFError at the end."""
        with self.sending:
            if self.over:
                raise EOFError
            ended = self.monitor.poll(0)
            with contextlib.suppress(zmq.Again):
                return self.socket.recv(zmq.NOBLOCK)
            if ended:
                raise EOFError
            return None

    def receive(self):
        until = time.monotonic() + self.patience
        try:
            while (text := self._next()) is None:
                if time.monotonic() > until:
                    raise TimeoutError
                time.sleep(LOOKS)
        except EOFError:
            return None
        return self.heard(text)

    def attached(self):
        kind, self.welcome = self.receive()
        assert kind == wire.WELCOME and self.welcome.slabs == 0, (kind, self.welcome)
        return self

    def row(self, batch, i):
        size = batch.width * self.welcome.values * SIZES[self.welcome.element]
        return batch.tensor[i * size:(i + 1) * size]


def raw_worker(url, *hello, **of_hello):
    """Of either kind."""
    return (RemoteRawWorker if url.startswith("tcp:") else RawWorker)(url, *hello, **of_hello)
