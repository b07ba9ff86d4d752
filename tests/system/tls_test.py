# SPDX-License-Identifier: Apache-2.0
"""TLS of the service's own listeners: independent clients, certificates of clients, versions, bytes that are no TLS,
and certificates that change while streams run."""
import asyncio
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest
import urllib.request

import websockets
from faults import text
from harness import MILLRACE, PATIENCE, UNHURRIED, SystemTest, read_all, run, samples, wait_for
from raw_client import BINARY, frame, upgrade
from tls_front import Authority
from tls_records import ALERT, CLOSE_NOTIFY, RecordClient

REFUSED = "millrace_ingest_connections_rejected_total"
EXPIRY = "millrace_tls_certificate_expiry_seconds"


class TlsTest(SystemTest):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.authority, self.stranger = (Authority(self.folder, name) for name in ("authority", "stranger"))
        self.certificate, self.key = self.authority.certificate("service")

    def serve(self, more="", listen=""):
        self.serving = self.service('[[pipeline]]\nchunk = { size = 1600 }\n',
                                    f'{listen}\n[tls]\ncertificate = "{self.certificate}"\nkey = "{self.key}"\n{more}')
        self.worker = self.tap(self.serving)
        return self.serving

    def context(self, ca=None, certificate=None):
        context = ssl.create_default_context(cafile=ca or self.authority.ca)
        if certificate:
            context.load_cert_chain(*certificate)
        return context

    def url(self, **parameters):
        return self.serving.url(rate=16000, **parameters).replace("ws://127.0.0.1", "wss://localhost")

    def open(self, context=None, **parameters):
        return websockets.connect(self.url(**parameters), ssl=context or self.context(), max_size=None, **UNHURRIED)

    async def stream(self, context=None, frames=4800):
        """The number of frames that the service answered in a whole stream."""
        async with self.open(context) as connection:
            await connection.send(samples(0, frames))
            await connection.send('{"type":"end"}')
            messages, _ = await read_all(connection)
        self.assertEqual(messages[-2]["end"], messages[-1]["frames"], messages)
        return messages[-1]["frames"]

    def raw(self, context=None):
        """A socket with TLS."""
        plain = socket.create_connection(("127.0.0.1", self.serving.port), timeout=PATIENCE)
        return (context or self.context()).wrap_socket(plain, server_hostname="localhost")

    def reload(self, event):
        before = len(self.serving.errors)
        self.serving.process.send_signal(signal.SIGHUP)
        return wait_for(lambda: next((line for line in self.serving.errors[before:] if event in line), None), event)

    def replace(self, name, authority=None):
        """New files in the place of the service's."""
        certificate, key = (authority or self.authority).certificate(name)
        os.replace(certificate, self.certificate)
        os.replace(key, self.key)

    def test_independent_clients_stream_over_tls_1_2_and_1_3(self):
        self.serve()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            self.assertEqual(run(self.stream(context)), 4800)
        for version in ("TLSv1", "TLSv1.1"):
            old = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{self.serving.port}", "-cipher", "ALL:@SECLEVEL=0",
                                  "-" + version.lower().replace("v1.1", "1_1").replace("v1", "1")],
                                 input=b"", capture_output=True, timeout=PATIENCE)
            self.assertNotEqual(old.returncode, 0, old.stdout)

    def test_a_message_longer_than_a_record_and_one_in_many_records_arrive_whole(self):
        self.serve()
        self.assertEqual(run(self.stream(frames=32000)), 32000)  # 64000 bytes are four records

        async def byte_by_byte():
            async with self.open() as connection:
                transport = connection.transport
                frame = bytes([0x82, 0x80 | 64]) + bytes(4) + samples(0, 32)  # masked with zeros
                for byte in frame:
                    transport.write(bytes([byte]))
                    await asyncio.sleep(0)
                await connection.send(samples(32, 1568))
                await connection.send('{"type":"end"}')
                return await read_all(connection)

        messages, _ = run(byte_by_byte())
        self.assertEqual(messages[-1]["frames"], 1600)

    def test_the_programs_own_client_streams_with_the_authority(self):
        self.serve()
        audio = os.path.join(self.folder, "audio.raw")
        with open(audio, "wb") as file:
            file.write(samples(0, 4800))
        streamed = subprocess.run([MILLRACE, "stream", "--url", f"wss://localhost:{self.serving.port}", "--ca", str(self.authority.ca),
                                   "--format", "s16le", "--rate", "16000", audio], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(streamed.returncode, 0, streamed.stderr)

    def test_only_clients_with_a_certificate_of_the_authority_are_accepted(self):
        client, stranger = self.authority.certificate("client"), self.stranger.certificate("other")
        expired = self.authority.certificate("expired", program=("faketime", "2020-01-01", "openssl"))
        self.serve(f'client_ca = "{self.authority.ca}"\n')
        self.assertEqual(run(self.stream(self.context(certificate=client))), 4800)
        for wrong in (None, stranger, expired):
            with self.assertRaises((ssl.SSLError, OSError, websockets.InvalidHandshake)):
                run(self.stream(self.context(certificate=wrong)))
        self.await_metric(self.serving, 3, REFUSED, reason="handshake")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):  # behind a ticket it would not be checked again
            context = self.context(certificate=client)
            context.minimum_version = context.maximum_version = version
            with self.raw(context) as connection:
                connection.sendall(upgrade())
                connection.recv(4096)
                self.assertFalse(connection.session and connection.session.has_ticket)
        self.assertIn("certificate", "\n".join(self.serving.errors))

    def test_a_client_that_is_refused_reads_the_reason_although_its_request_is_unread(self):
        self.serve(f'client_ca = "{self.authority.ca}"\n')
        with self.raw(self.context(certificate=self.stranger.certificate("other"))) as client:
            self.await_metric(self.serving, 1, REFUSED, reason="handshake")
            client.sendall(bytes(1000))
            with self.assertRaisesRegex(ssl.SSLError, "alert unknown ca"):
                client.recv(1)

    def test_plain_http_is_answered_with_a_hint(self):
        self.serve()
        with socket.create_connection(("127.0.0.1", self.serving.port), timeout=PATIENCE) as plain:
            plain.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = plain.makefile("rb").read().decode()
        self.assertIn("HTTP/1.1 400 ", answer)
        self.assertIn("use wss://", answer)
        self.assertEqual(run(self.stream()), 4800)

    def test_a_request_and_frames_in_one_record_are_read_although_the_socket_is_silent(self):
        self.serve()
        client = RecordClient(self.serving.port, self.authority.ca)
        self.addCleanup(client.socket.close)
        client.send(client.record(upgrade() + frame(BINARY, samples(0, 7000))))
        received = []
        wait_for(lambda: received.append(client.read()) or b'"end":6400' in b"".join(received), "the last whole row")

    def test_only_the_end_of_tls_is_the_end_of_a_clients_messages(self):
        self.serve()
        self.worker.kill()  # no row is answered before the end has arrived
        clients = [RecordClient(self.serving.port, self.authority.ca) for _ in range(2)]
        for number, client in enumerate(clients):
            self.addCleanup(client.socket.close)
            client.send(client.record(upgrade(f"/v1/stream?id={number}")))
            client.send(client.record(frame(BINARY, samples(0, 1600)) + text(type="end")))
        whole = clients[0]
        whole.send(whole.record(CLOSE_NOTIFY, ALERT))
        for client in clients:
            client.socket.shutdown(socket.SHUT_WR)
        self.await_metric(self.serving, 1, "millrace_streams_closed_total", reason="client_gone")
        self.worker = self.tap(self.serving)
        received = []
        wait_for(lambda: received.append(whole.read()) or b'"closed"' in b"".join(received), "the end of the stream")

    def test_streams_go_on_while_the_certificate_is_replaced(self):
        self.serve()
        before = self.serving.metric(EXPIRY)

        async def conversation():
            async with self.open() as connection:
                await connection.send(samples(0, 1600))
                await connection.recv()
                await connection.recv()
                self.replace("second", self.stranger)
                self.reload("configuration reloaded")
                await connection.send(samples(1600, 1600))
                await connection.send('{"type":"end"}')
                return await read_all(connection)

        messages, _ = run(conversation())
        self.assertEqual(messages[-1]["frames"], 3200)
        self.assertEqual(run(self.stream(self.context(self.stranger.ca))), 4800)
        with self.assertRaises(ssl.SSLError):
            run(self.stream())
        self.assertGreaterEqual(self.serving.metric(EXPIRY), before)

    def test_a_certificate_that_cannot_be_used_keeps_the_old_one(self):
        self.serve()
        other, other_key = (path.read_text() for path in self.authority.certificate("other"))
        for path, text, why in ((self.certificate, other, "does not fit"), (self.key, other_key[:40], "must have a key")):
            good = path.read_text()
            path.write_text(text)
            self.assertIn(why, self.reload("reload refused"))
            self.assertEqual(self.serving.metric("millrace_config_last_reload_successful"), 0)
            self.assertEqual(run(self.stream()), 4800)
            path.write_text(good)
        os.chmod(self.key, 0o644)
        self.assertIn("has mode 0644", self.reload("reload refused"))
        os.chmod(self.key, 0o600)
        self.reload("configuration reloaded")

    def test_the_admin_listener_speaks_tls_if_it_is_set(self):
        self.serving = self.service(extra=f'[tls]\ncertificate = "{self.certificate}"\nkey = "{self.key}"\n'
                                          f'client_ca = "{self.authority.ca}"\nadmin = true\n')
        page = f"https://localhost:{self.serving.admin_port}/livez"
        with urllib.request.urlopen(page, context=self.context(), timeout=PATIENCE) as answer:
            self.assertEqual(answer.status, 200)
        for trust, code, errors in (("--ca", self.authority.ca), 0, "^$"), (("--ca", self.stranger.ca), 1, "not among the trusted"), \
                (("--ca", self.authority.ca, "--name", "other.example"), 1, "hostname mismatch"):
            checked = subprocess.run([MILLRACE, "healthcheck", "--url", page.replace("localhost", "127.0.0.1"), *trust],
                                     capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(checked.returncode, code)
            self.assertRegex(checked.stderr, errors)

    def test_a_ticket_resumes_a_session(self):
        self.serve()
        context = self.context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.raw(context) as first:
            session = first.session
        plain = socket.create_connection(("127.0.0.1", self.serving.port), timeout=PATIENCE)
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as second:
            self.assertTrue(second.session_reused)


if __name__ == "__main__":
    unittest.main()
