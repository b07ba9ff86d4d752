# SPDX-License-Identifier: Apache-2.0
"""Certificates, and a server with TLS in front of a service: Python's ssl, and certificates of the program `openssl`."""
import base64
import contextlib
import hashlib
import socket
import ssl
import subprocess
import threading
from pathlib import Path

HOST = "DNS:localhost,IP:127.0.0.1"


def openssl(*arguments, program=("openssl",)):
    subprocess.run([*program, *arguments], check=True, capture_output=True)


def pin(certificate):
    """The digest of a certificate's public key in base64, by which a browser trusts it."""
    public = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-pubkey"], check=True, capture_output=True).stdout
    der = base64.b64decode(b"".join(public.splitlines()[1:-1]))
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Authority:
    """Signs certificates for servers. Its own is in the file `ca`."""

    def __init__(self, folder, name="authority"):
        self.folder, self.name = Path(folder), name
        self.ca, self.key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                "-out", self.ca, "-days", "9999", "-subj", f"/CN={name}")

    def certificate(self, name, hosts=HOST, program=("openssl",)):
        """(certificate, key): files. `program` may change the date."""
        key, request, names, signed = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "ext", "pem"))
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
                "-subj", f"/CN={name}")
        names.write_text(f"subjectAltName={hosts}\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.key, "-CAcreateserial", "-days", "30",
                "-extfile", names, "-out", signed, program=program)
        return signed, key


class TlsFront:
    """Listens with a certificate, and passes each connection on to a port without TLS. `requests`: the first bytes of
    each connection. `names`: the host names that clients asked for. While `reads` is not set, it reads nothing of clients."""

    def __init__(self, to, certificate, key):
        self.to, self.requests, self.names, self.sockets = to, [], [], []
        self.reads = threading.Event()
        self.reads.set()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                self.sockets.append(accepted)
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.to)) as behind, accepted:
            # Not the socket of Python's ssl: it may not read in one thread and write in another.
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = self.context.wrap_bio(incoming, outgoing, server_side=True)
            lock = threading.Lock()

            def answers():
                with contextlib.suppress(OSError):
                    while received := behind.recv(65536):
                        with lock:
                            session.write(received)
                            accepted.sendall(outgoing.read())
                    with lock:
                        with contextlib.suppress(ssl.SSLError):
                            session.unwrap()  # close_notify
                        accepted.sendall(outgoing.read())

            passing = None
            while self.reads.wait() and (received := accepted.recv(65536)):
                with lock:
                    incoming.write(received)
                    with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                        while plain := session.read(65536):
                            if passing is None:
                                self.requests.append(plain.decode("latin1"))
                                passing = threading.Thread(target=answers, daemon=True)
                                passing.start()
                            behind.sendall(plain)
                    accepted.sendall(outgoing.read())

    def cut(self):
        """Ends all connections without close_notify."""
        for accepted in self.sockets:
            with contextlib.suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


class TlsTest:
    """For a SystemTest: certificates of one authority, made once, and fronts that end with the test."""

    @classmethod
    def make_certificates(cls, folder):
        cls.authority, cls.stranger = Authority(folder), Authority(folder, "stranger")
        cls.good = cls.authority.certificate("good")
        cls.elsewhere = cls.authority.certificate("elsewhere", "DNS:elsewhere.example,IP:127.0.0.9")
        cls.expired = cls.authority.certificate("expired", program=("faketime", "2 years ago", "openssl"))

    def front(self, to, certificate):
        front = TlsFront(to, *certificate)
        self.addCleanup(front.close)
        return front
