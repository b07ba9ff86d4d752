# SPDX-License-Identifier: Apache-2.0
"""The package's clients over wss://, with certificates, tokens and headers. The servers that misbehave, or show what they
received, are Python's."""
import base64
import contextlib
import hashlib
import socket
import ssl
import tempfile
import threading
import unittest
from unittest import mock

from clients import PIPELINE, ClientTest, comparable
from cutting_proxy import CuttingProxy, at_random
from harness import run, samples
from tls_front import TlsTest

import millrace

TOKEN = "c2VjcmV0.of-a_kitchen=="


class Tls(TlsTest, ClientTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_certificates(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def behind(self, certificate=None, host="localhost"):
        """The URL of a front with this certificate; its front is self.fronted."""
        self.fronted = self.front(self.served.port, certificate or self.good)
        return f"wss://{host}:{self.fronted.port}"

    def secure(self, more=""):
        """A service with TLS in the place of the one without. Returns its URL."""
        certificate, key = self.good
        self.served = self.service(PIPELINE, f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n{more}')
        self.attached = self.tap(self.served, "default", "--data", "crc32c")
        return f"wss://localhost:{self.served.port}"

    def tokens(self):
        """The table for TOKEN."""
        file = self.enterContext(tempfile.NamedTemporaryFile("w"))
        file.write(hashlib.sha256(TOKEN.encode()).hexdigest() + " kitchen\n")
        file.flush()
        return f'[access]\ntokens = "{file.name}"\n'

    def talk(self, client):
        with client.open(rate=16000) as stream:
            return comparable(stream.run([samples(0, 4000)] * 5)), stream.totals

    def lost(self, url, cause, **access):
        with self.assertRaisesRegex(millrace.ConnectionLost, cause) as caught:
            millrace.Client(url, **access).open()
        self.assertIn(url.removeprefix("wss://").removeprefix("ws://"), str(caught.exception))

    def test_a_stream_over_tls_has_the_results_of_one_without(self):
        plain = self.talk(millrace.Client(self.url("websocket")))
        url = self.secure(self.tokens())
        access = {"ca": self.authority.ca, "token": TOKEN}
        for host in "localhost", "127.0.0.1":
            self.assertEqual(self.talk(millrace.Client(url.replace("localhost", host), **access)), plain)

        async def asynchronously():
            async with millrace.connect(url, **access).open(rate=16000) as stream:
                return comparable([result async for result in stream.run([samples(0, 4000)] * 5)]), stream.totals

        self.assertEqual(run(asynchronously()), plain)
        with self.assertRaises(millrace.StreamRefused) as caught:
            millrace.Client(url, ca=self.authority.ca).open()
        self.assertEqual(caught.exception.code, "unauthenticated")

    def test_a_client_names_the_host_to_its_server(self):
        for host, name in ("localhost", "localhost"), ("127.0.0.1", None):
            self.talk(millrace.Client(self.behind(host=host), ca=self.authority.ca))
            self.assertEqual(self.fronted.names, [name])

    def test_a_client_shows_its_own_certificate_to_a_service_that_asks(self):
        own, other = self.authority.certificate("own"), self.stranger.certificate("other")
        url = self.secure(f'client_ca = "{self.authority.ca}"\n')
        access = {"ca": self.authority.ca, "certificate": own[0], "key": own[1]}
        self.talk(millrace.Client(url, **access))

        async def asynchronously():
            async with millrace.connect(url, **access).open(rate=16000) as stream:
                return [result async for result in stream.run([samples(0, 4000)])]

        self.assertTrue(run(asynchronously()))
        self.lost(url, "certificate required", ca=self.authority.ca)
        self.lost(url, "unknown ca", ca=self.authority.ca, certificate=other[0], key=other[1])

    def test_a_certificate_or_key_that_cannot_be_used_is_named_with_its_argument(self):
        certificate, key = self.good
        for named, arguments in ((f"key: {self.expired[1]}: does not fit", {"certificate": certificate, "key": self.expired[1]}),
                                 ("key: /nowhere: .*No such file", {"certificate": certificate, "key": "/nowhere"}),
                                 ("certificate: /nowhere: .*No such file", {"certificate": "/nowhere", "key": key}),
                                 ("given together", {"certificate": certificate}), ("given together", {"key": key})):
            with self.subTest(arguments), self.assertRaisesRegex(ValueError, named):
                millrace.Client("wss://localhost", **arguments)
        for transport in "websocket", "zeromq":
            with self.assertRaisesRegex(ValueError, "wss://"):
                millrace.Client(self.url(transport), certificate=certificate, key=key)
        with self.assertRaisesRegex(TypeError, "certificate"):
            millrace.Client("wss://localhost", certificate=b"file", key=key)

    def test_a_stream_continues_over_lines_that_are_cut_below_tls(self):
        self.secure(self.tokens())
        proxy = CuttingProxy(self.served.port, at_random(1, 8000, 20000))
        self.addCleanup(proxy.close)
        access = {"ca": self.authority.ca, "token": TOKEN}
        cut, whole = (self.talk(millrace.Client(f"wss://localhost:{port}", **access)) for port in (proxy.port, self.served.port))
        self.assertGreater(proxy.count, 1)
        self.assertEqual(cut, whole)

    def test_the_authorities_of_the_system_are_the_default(self):
        url = self.behind()
        self.lost(url, "certificate was refused: .*not among the trusted ones")
        with mock.patch.dict("os.environ", {"SSL_CERT_FILE": str(self.authority.ca)}):
            self.talk(millrace.Client(url))

    def test_a_certificate_that_cannot_be_trusted_is_refused_and_the_error_names_the_cause(self):
        ca = self.authority.ca
        self.lost(self.behind(), "not among the trusted ones", ca=self.stranger.ca)
        self.lost(self.behind(self.elsewhere), "hostname mismatch", ca=ca)
        self.lost(self.behind(self.elsewhere, "127.0.0.1"), "IP address mismatch", ca=ca)
        self.lost(self.behind(self.expired), "certificate has expired", ca=ca)
        self.assertEqual(self.fronted.requests, [])

    def test_frames_wait_while_the_server_reads_nothing_and_all_arrive(self):
        packet = samples(0, 16000)

        def stream(url, packets, **access):
            with millrace.Client(url, **access).open(rate=16000) as stream:
                yield stream
                for _ in range(packets):
                    stream.send(packet)
                stream.end()
                yield comparable(stream)

        secure = stream(self.behind(), 10, ca=self.authority.ca)
        first, sent = next(secure), 0
        self.fronted.reads.clear()
        with self.assertRaises(TimeoutError):
            while sent < 10_000:
                first.send(packet, timeout=0.2)
                sent += 1
        self.fronted.reads.set()
        results = next(secure)
        plain = stream(self.url("websocket"), sent + 10)
        next(plain)
        self.assertEqual(results, next(plain))
        self.assertEqual(results[-1][2], (sent + 10) * 16000)

    def test_a_server_of_the_other_kind_is_an_error_that_names_the_url(self):
        self.lost(f"wss://localhost:{self.served.port}", "ws://", ca=self.authority.ca)
        self.lost(f"wss://localhost:{self.served.zeromq_port}", "ws://", ca=self.authority.ca)
        with self.assertRaises(millrace.ConnectionLost):
            millrace.Client(self.behind().replace("wss:", "ws:")).open()

    def test_a_server_that_stalls_in_the_handshake_is_lost_after_the_time_to_connect(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"wss://localhost:{silent.getsockname()[1]}"
            self.lost(url, "does not answer", settings=millrace.ClientSettings(connect=0.2))

    def test_a_connection_that_ends_without_close_notify_is_lost(self):
        with millrace.Client(self.behind(), millrace.ClientSettings(resume=False), ca=self.authority.ca).open() as stream:
            stream.send(samples(0, 1600))
            next(iter(stream))
            self.fronted.cut()
            with self.assertRaisesRegex(millrace.ConnectionLost, "lost"):
                list(stream)

    def test_messages_in_one_record_with_the_answer_to_the_upgrade_are_read(self):
        ready = b'{"type":"ready","stream":"s","pipeline":"default","frames":0}'

        def serve(listener):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.good)
            accepted, _ = listener.accept()
            with context.wrap_socket(accepted, server_side=True) as secure:
                key = secure.recv(65536).split(b"Sec-WebSocket-Key: ")[1].split(b"\r")[0]
                accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
                secure.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                               b"Sec-WebSocket-Accept: " + accept + b"\r\nX-Trace: " + b"x" * 3000 + b"\r\n\r\n"
                               + bytes([0x81, len(ready)]) + ready)
                secure.recv(65536)

        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
            with millrace.Client(f"wss://localhost:{listener.getsockname()[1]}", ca=self.authority.ca).open() as stream:
                self.assertEqual(stream.name, "s")

    def test_an_answer_that_ends_without_close_notify_is_not_taken_for_a_whole_one(self):
        def serve(listener):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.good)
            accepted, _ = listener.accept()
            with context.wrap_socket(accepted, server_side=True) as secure:
                secure.recv(65536)
                secure.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\nwhy")  # as long as the connection
                secure.close()

        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
            self.lost(f"wss://localhost:{listener.getsockname()[1]}", "lost", ca=self.authority.ca)

    def test_a_token_and_headers_are_sent_with_each_stream(self):
        for access, lines in (({"token": TOKEN}, [f"Authorization: Bearer {TOKEN}"]),
                              ({"headers": {"Authorization": "Basic dTpw", "X-Room": "kitchen, east"}},
                               ["Authorization: Basic dTpw", "X-Room: kitchen, east"])):
            url = self.behind()
            with millrace.Client(url, ca=self.authority.ca, **access) as client:
                for _ in range(2):
                    self.talk(client)
            self.assertEqual(len(self.fronted.requests), 2)
            for request in self.fronted.requests:
                self.assertEqual([line for line in request.split("\r\n") if line in lines], lines)

    def test_a_token_or_header_that_cannot_be_sent_is_an_error_that_does_not_show_it(self):
        url = self.url("websocket")
        for error, named, arguments in (
                (ValueError, "token", {"token": "secret\r\nX: y"}), (ValueError, "token", {"token": "secret one"}),
                (ValueError, "token", {"token": ""}), (TypeError, "token", {"token": b"secret"}),
                (ValueError, "X-A", {"headers": {"X-A": "secret\n"}}), (TypeError, "X-A", {"headers": {"X-A": 7}}),
                (ValueError, "name", {"headers": {"X A": "secret"}}), (ValueError, "itself", {"headers": {"host": "secret"}}),
                (ValueError, "itself", {"headers": {"Sec-WebSocket-Key": "secret"}}),
                (ValueError, "beside a token", {"headers": {"authorization": "secret"}, "token": "secret"}),
                (ValueError, "wss://", {"ca": self.authority.ca})):
            with self.subTest(arguments), self.assertRaisesRegex(error, named) as caught:
                millrace.Client(url, **arguments)
            self.assertNotIn("secret", str(caught.exception))
        for arguments in {"headers": {"X": "y"}}, {"ca": self.authority.ca}:
            with self.assertRaisesRegex(ValueError, "wss://"):
                millrace.Client(self.url("zeromq"), **arguments)
        with self.assertRaisesRegex(ValueError, "ca: /nowhere: .*No such file"):
            millrace.Client("wss://localhost", ca="/nowhere")

    def test_a_token_is_sent_over_each_transport(self):
        self.served = self.service(extra=self.tokens())
        self.attached = self.tap(self.served, "default", "--data", "crc32c")
        for url in self.urls():
            self.talk(millrace.Client(url, token=TOKEN))
            for wrong in None, TOKEN + "=":
                with self.assertRaises(millrace.StreamRefused) as caught:
                    millrace.Client(url, token=wrong).open()
                self.assertEqual(caught.exception.code, "unauthenticated")

    def test_a_refused_token_is_a_refusal(self):
        def serve(listener):
            accepted, _ = listener.accept()
            with accepted, contextlib.suppress(OSError):
                accepted.recv(65536)
                accepted.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
            with self.assertRaisesRegex(millrace.StreamRefused, "HTTP 401") as caught:
                millrace.Client(f"ws://127.0.0.1:{listener.getsockname()[1]}", token=TOKEN).open()
            self.assertEqual(caught.exception.code, "unauthenticated")
            self.assertNotIn(TOKEN, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
