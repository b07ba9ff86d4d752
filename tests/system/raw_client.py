# SPDX-License-Identifier: Apache-2.0
"""A client on plain sockets, which can send any bytes, valid or not."""
import base64
import contextlib
import json
import os
import socket
import struct

PATIENCE = 30
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = base64.b64encode(bytes(16)).decode()


def upgrade(target="/v1/stream", **fields):
    """The upgrade request of a correct client. A field that is None is left out; a field with a list is repeated."""
    fields = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade",
              "Sec_WebSocket_Key": KEY, "Sec_WebSocket_Version": "13", **fields}
    lines = [f"GET {target} HTTP/1.1"]
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            if value is not None:
                lines.append(f"{name.replace('_', '-')}: {value}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def frame(opcode, payload=b"", fin=True, rsv=0, masked=True, length=None):
    """A WebSocket frame. `length` replaces the bytes of its length field."""
    size = len(payload)
    if length is None:
        length = (bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size)
                  if size < 1 << 16 else b"\x7f" + struct.pack(">Q", size))
    head = bytes([fin << 7 | rsv << 4 | opcode, length[0] | masked << 7]) + length[1:]
    if not masked:
        return head + payload
    mask = os.urandom(4)
    if size > 1000:  # a mask of zeros is valid, and fast
        return head + bytes(4) + payload
    return head + mask + bytes(byte ^ mask[i & 3] for i, byte in enumerate(payload))


def closing(code, reason=b""):
    return frame(CLOSE, struct.pack(">H", code) + reason)


class RawClient:
    """One connection, which keeps the messages that it reads. It answers a close, and no pings. `tls`: the context of a
    connection with TLS."""

    def __init__(self, port, request=None, receive_buffer=None, tls=None):
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.buffer, self.messages, self.close_code, self.reset = b"", [], None, False
        if request is not None:
            self.send(request)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Sends data, or less if the service closes the connection. PATIENCE is that for each part, not for all data."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self.socket.send(rest):]
        except (BrokenPipeError, ConnectionResetError):
            self.reset = True
        return self

    def abort(self):
        """Ends the connection with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def block(self, data, most=64 << 20):
        """Sends data again and again, until the service reads no more of it. Returns the number of bytes sent."""
        self.socket.settimeout(0.3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < most:
                sent += self.socket.send(memoryview(data)[sent % len(data):])
            raise AssertionError(f"the service has read {sent} bytes")
        self.socket.settimeout(PATIENCE)
        return sent

    def receive(self):
        """Waits for data. False at the end of the connection."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            self.reset, data = True, b""
        self.buffer += data
        return bool(data)

    def head(self):
        """(status, fields) of an HTTP answer; (None, {}) if the connection ended without one."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.receive():
                return None, {}
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        first, *lines = head.decode().split("\r\n")
        return int(first.split()[1]), {name.lower(): value for name, value in
                                       (line.split(": ", 1) for line in lines)}

    def body(self, fields):
        """The body of an answer."""
        while len(self.buffer) < int(fields["content-length"]) and self.receive():
            pass
        return self.buffer

    def opened(self):
        """Reads the answer to an upgrade, and the ready that follows."""
        status, _ = self.head()
        assert status == 101, status
        assert self.message()["type"] == "ready"
        return self

    def frame(self):
        """(opcode, payload) of the next frame from the service, which masks none; None at the end."""
        def need(count):
            while len(self.buffer) < count:
                if not self.receive():
                    return False
            return True

        if not need(2):
            return None
        size, begin = self.buffer[1], 2
        if size >= 126:
            begin = 4 if size == 126 else 10
            if not need(begin):
                return None
            size = int.from_bytes(self.buffer[2:begin], "big")
        if not need(begin + size):
            return None
        opcode, payload = self.buffer[0] & 15, self.buffer[begin:begin + size]
        self.buffer = self.buffer[begin + size:]
        return opcode, payload

    def message(self):
        """The next message; None at the end. Keeps the code of a close."""
        while (got := self.frame()) is not None:
            opcode, payload = got
            if opcode == TEXT:
                self.messages.append(json.loads(payload))
                return self.messages[-1]
            if opcode == BINARY:
                self.messages.append(payload)
                return payload
            if opcode == CLOSE:
                self.close_code = int.from_bytes(payload[:2], "big") if payload else 1005
                self.send(frame(CLOSE, payload[:2]))
        return None

    def rest(self):
        """All messages until the connection ends."""
        while self.message() is not None:
            pass
        return self.messages

    def ended(self):
        """Reads to the end. Returns the code of the last error message, or None, and the close code."""
        self.rest()
        errors = [m["code"] for m in self.messages if isinstance(m, dict) and m["type"] == "error"]
        return (errors[-1] if errors else None), self.close_code
