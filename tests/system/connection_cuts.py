# SPDX-License-Identifier: Apache-2.0
"""A proxy on loopback that cuts the connections of WebSocket clients."""
import contextlib
import json
import socket
import threading


class Cuts:
    """Passes connections on to a port. `limits`: the bytes (up, down) after the heads of HTTP at which each of the next
    connections is cut; after them no connection is. `targets`: their request lines."""

    def __init__(self, port, limits=(), refused=None):
        """`refused`: a parameter that this service does not know."""
        self.port, self.limits, self.refused = port, list(limits), refused
        self.targets, self.sockets = [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.url = f"ws://{self.address}/v1/stream"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError), client:
            head = self._head(client)
            target, is_stream = head.split(b"\r\n")[0].decode(), b"upgrade: websocket" in head.lower()
            if is_stream:
                self.targets.append(target)
            if self.refused and self.refused + "=" in target:
                body = json.dumps({"error": {"code": "schema", "parameter": self.refused, "message": "no such parameter"}})
                return client.sendall(f"HTTP/1.1 400 Bad Request\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: {len(body)}\r\n"
                                      f"Connection: close\r\n\r\n{body}".encode())
            up, down = self.limits.pop(0) if is_stream and self.limits else (None, None)
            with socket.create_connection(("127.0.0.1", self.port)) as service:
                pair = client, service
                self.sockets += pair
                service.sendall(head)
                answers = threading.Thread(target=self._answer, args=(*pair, down), daemon=True)
                answers.start()
                self._pass(client, service, up)
                self._end(pair)
                answers.join()

    @staticmethod
    def _head(source):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = source.recv(1)
            if not part:
                raise OSError("disconnected")
            head += part
        return head

    def _answer(self, client, service, limit):
        with contextlib.suppress(OSError):
            client.sendall(self._head(service))
            self._pass(service, client, limit)
        self._end((client, service))

    @staticmethod
    def _pass(source, sink, limit):
        with contextlib.suppress(OSError):
            while limit != 0 and (data := source.recv(min(limit or 1 << 16, 1 << 16))):
                sink.sendall(data)
                limit = limit and limit - len(data)

    @staticmethod
    def _end(pair):
        for one in pair:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Cuts all connections."""
        self._end(self.sockets)

    def close(self):
        """Accepts no more connections, and cuts those that there are."""
        self._end([self.listener])
        self.listener.close()
        self.cut()
