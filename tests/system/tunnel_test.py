# SPDX-License-Identifier: Apache-2.0
"""ZeroMQ through stunnel, with the configurations and the lines of Python that docs/hardening.md prints."""
import re
import shutil
import socket
import ssl
import sys
import tempfile
import unittest
from pathlib import Path

import client_wire as wire
import zmq
from harness import PATIENCE, Process, SystemTest, samples, wait_for
from tls_front import Authority
from zeromq_client import Peer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

STUNNEL = shutil.which("stunnel4") or "/usr/bin/stunnel4"
USER = "setuid = stunnel4\nsetgid = stunnel4\n"  # a test need not be root
HOST = "speech.example"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Tunnel(SystemTest):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.authority, self.stranger = Authority(self.folder), Authority(self.folder, "stranger")
        for name in "service", "client":
            self.authority.certificate(name, f"DNS:{HOST}")
        self.authority.ca.with_name("clients.pem").write_text(self.authority.ca.read_text())
        self.far, self.near = free_port(), free_port()
        self.served = self.service()
        self.tap(self.served)
        text = (printed.ROOT / "docs" / "hardening.md").read_text()
        self.server_end, self.client_end = (block for block in re.findall(r"```ini\n(.*?)```", text, re.DOTALL) if "verifyChain" in block)

    def start(self, text, *changes):
        """An end of the tunnel, with files and ports of this test."""
        for old, new in ((USER, ""), ("/etc/stunnel/", f"{self.folder}/"), *changes):
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.folder / f"{len(list(self.folder.glob('*.conf')))}.conf"
        path.write_text("foreground = yes\n" + text)
        process = Process(STUNNEL, str(path))
        self.addCleanup(process.kill)
        wait_for(lambda: "Configuration successful" in "\n".join(process.errors) or process.process.poll() is not None, "stunnel to listen")
        self.assertIsNone(process.process.poll(), process.errors)
        return process

    def start_server_end(self):
        return self.start(self.server_end, ("0.0.0.0:5556", f"127.0.0.1:{self.far}"), ("127.0.0.1:5555", f"127.0.0.1:{self.served.zeromq_port}"))

    def start_client_end(self, *changes):
        return self.start(self.client_end, ("127.0.0.1:5555", f"127.0.0.1:{self.near}"), (f"{HOST}:5556", f"127.0.0.1:{self.far}"), *changes)

    def test_the_printed_lines_open_a_stream_through_the_printed_tunnel(self):
        self.start_server_end()
        self.start_client_end()
        lines = printed.programs()["hardening_tunnel"].text
        self.assertIn(":5555", lines)
        names = {"zmq": zmq, "opened": wire.open_(1)}
        exec(lines.replace(":5555", f":{self.near}"), names)
        self.addCleanup(names["socket"].close, 0)
        self.assertTrue(names["socket"].poll(PATIENCE * 1000))
        self.assertEqual(wire.read(names["socket"].recv())["type"], "ready")

    def test_streams_through_the_tunnel_lose_no_frame(self):
        self.start_server_end()
        self.start_client_end()
        with Peer(self.near) as peer:
            streams = [peer.open() for _ in range(3)]
            for stream in streams:
                stream.send(samples(0, 48000)).command(wire.end)
            for stream in streams:
                self.assertEqual(stream.rest()[-1]["frames"], 48000)

    def test_a_machine_without_a_certificate_of_the_authority_does_not_reach_the_service(self):
        self.start_server_end()
        for certificate in None, self.stranger.certificate("other"):
            context = ssl.create_default_context(cafile=self.authority.ca)
            if certificate:
                context.load_cert_chain(*certificate)
            with self.assertRaises((ssl.SSLError, ConnectionError)), socket.create_connection(("127.0.0.1", self.far), timeout=PATIENCE) as plain, \
                    context.wrap_socket(plain, server_hostname=HOST) as client:
                client.sendall(bytes(64))
                client.recv(64)
        self.assertEqual(self.served.metric("millrace_zmq_connections"), 0)

    def test_a_service_with_another_name_or_authority_gets_no_byte(self):
        self.start_server_end()
        for old, new in (("authority.pem", "stranger.pem"), (f"checkHost = {HOST}", "checkHost = other.example")):
            near = self.start_client_end((old, new))
            with socket.create_connection(("127.0.0.1", self.near), timeout=PATIENCE) as client:
                client.sendall(bytes(64))
                self.assertIn(self.received(client), (b"", None))
            near.stop()
        self.assertEqual(self.served.metric("millrace_zmq_connections"), 0)

    @staticmethod
    def received(client):
        try:
            return client.recv(64)
        except ConnectionError:
            return None


if __name__ == "__main__":
    unittest.main()
