# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that cuts connections."""
import contextlib
import socket
import threading


class CuttingProxy:
    """Relays connections to a port of the loopback. The n-th connection is cut after the n-th of `limits`, a number of
    bytes in either direction; None: never. Later ones are cut only by `cut`. `count` counts connections."""

    def __init__(self, to, limits=()):
        self.to, self.limits, self.count, self.pairs = to, iter(limits), 0, []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                limit = next(self.limits, None)
                self.count += 1
                try:
                    service = socket.create_connection(("127.0.0.1", self.to))
                except OSError:
                    client.close()
                    continue
                pair = (client, service)
                with self.lock:
                    self.pairs.append(pair)
                for one in pair:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for one, other in (pair, pair[::-1]):
                    threading.Thread(target=self._relay, args=(pair, one, other, limit), daemon=True).start()

    def _relay(self, pair, source, sink, limit):
        with contextlib.suppress(OSError):
            while limit is None or limit > 0:
                data = source.recv(65536 if limit is None else min(limit, 65536))
                if not data:
                    break
                sink.sendall(data)
                limit = limit if limit is None else limit - len(data)
        self._close(pair)

    @staticmethod
    def _close(pair):
        for one in pair:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def cut(self):
        """Cuts all connections."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            self._close(pair)

    def close(self):
        """Cuts all connections, and accepts no others."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
