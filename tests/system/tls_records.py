# SPDX-License-Identifier: Apache-2.0
"""A client of TLS 1.3 that writes any records. Python's ssl makes the handshake; after it, the records are made here, with
the keys that it logs (RFC 8446, 5.2 and 7)."""
import socket
import ssl
import struct
import tempfile

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from harness import PATIENCE

ALERT, HANDSHAKE, DATA = 21, 22, 23
CLOSE_NOTIFY = b"\1\0"
KEY_UPDATE = 24


class RecordClient:
    def __init__(self, port, ca):
        with tempfile.NamedTemporaryFile("r") as log:
            context = ssl.create_default_context(cafile=ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.keylog_filename = log.name
            self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self.session = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
            self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            self.shake_hands()
            secret = next(line for line in log.read().splitlines() if line.startswith("CLIENT_TRAFFIC_SECRET_0"))
        assert self.session.cipher()[0] == "TLS_AES_128_GCM_SHA256"
        self.use(bytes.fromhex(secret.split()[2]))

    def shake_hands(self):
        while True:
            try:
                return self.session.do_handshake()
            except ssl.SSLWantReadError:
                self.socket.sendall(self.outgoing.read())
                self.incoming.write(self.socket.recv(65536))
            finally:
                if self.outgoing.pending:
                    self.socket.sendall(self.outgoing.read())

    def expand(self, label, length):
        name = b"tls13 " + label
        return HKDFExpand(hashes.SHA256(), length, struct.pack(">HB", length, len(name)) + name + b"\0").derive(self.secret)

    def use(self, secret):
        self.secret, self.sequence = secret, 0
        self.key, self.iv = AESGCM(self.expand(b"key", 16)), self.expand(b"iv", 12)

    def record(self, content, kind=DATA, padding=0):
        """The bytes of the next record."""
        inner = content + bytes([kind]) + bytes(padding)
        head = struct.pack(">BHH", DATA, 0x0303, len(inner) + 16)
        nonce = (int.from_bytes(self.iv, "big") ^ self.sequence).to_bytes(12, "big")
        self.sequence += 1
        return head + self.key.encrypt(nonce, inner, head)

    def new_keys(self, asks=False):
        """The record that announces new keys, which count from the next one on."""
        record = self.record(bytes([KEY_UPDATE, 0, 0, 1, asks]), HANDSHAKE)
        self.use(self.expand(b"traffic upd", 32))
        return record

    def send(self, data):
        """False if the service has closed the connection."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def read(self):
        """The next decrypted bytes; empty at the end of the connection, and after an alert."""
        while True:
            try:
                return self.session.read(65536)
            except ssl.SSLWantReadError:
                try:
                    received = self.socket.recv(65536)
                except ConnectionResetError:
                    return b""
                if not received:
                    return b""
                self.incoming.write(received)
            except ssl.SSLError:
                return b""
