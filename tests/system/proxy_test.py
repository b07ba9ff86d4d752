# SPDX-License-Identifier: Apache-2.0
"""The commands that are clients, over wss://: through the nginx that docs/deploy.md prints, and against wrong servers."""
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

from harness import MILLRACE, PATIENCE, Process, SystemTest, samples, wait_for
from tls_front import TlsTest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

TOKEN = "S4jkQ_0FvWmY-kitchen"


class Commands(TlsTest, SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.make_certificates(cls.folder)
        with wave.open(str(cls.folder / "audio.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(samples(0, 4000))
        (cls.folder / "token").write_text(TOKEN + "\n")
        (cls.folder / "other_token").write_text("other\n")

    def setUp(self):
        self.served = self.service("[[pipeline]]\nslots = 8\nchunk = { size = 1600 }\n")

    def command(self, *arguments, token="token", ca=None):
        ended = subprocess.run([MILLRACE, *arguments, "--ca", ca or self.authority.ca, "--token-file", self.folder / token],
                               capture_output=True, text=True, timeout=PATIENCE)
        self.assertNotIn(TOKEN, ended.stdout + ended.stderr)
        return ended.returncode, ended.stderr, [json.loads(line) for line in ended.stdout.splitlines()]

    def stream(self, url, **files):
        return self.command("stream", self.folder / "audio.wav", "--json", "--url", url, **files)

    def bench(self, url, *arguments, **files):
        return self.command("bench", "--json", "--url", url, "--streams", "4", "--warm-up", "100ms", "--duration", "500ms", *arguments, **files)

    def test_each_command_streams_over_tls_and_sends_the_token(self):
        front = self.front(self.served.port, self.good)
        code, errors, (report,) = self.bench(f"wss://localhost:{front.port}", "--worker", "answer", "--workers", self.served.workers)
        self.assertEqual((code, errors, report["opened"], report["ended"]), (0, "", 4, 4))
        self.assertEqual(report["packets"], report["results"])
        self.tap(self.served, "default")
        for host in "localhost", "127.0.0.1":
            code, errors, lines = self.stream(f"wss://{host}:{front.port}")
            self.assertEqual((code, errors, lines[-1]["frames"]), (0, "", 4000))
        self.assertEqual(len(front.requests), 6)
        for request in front.requests:
            self.assertIn(f"\r\nAuthorization: Bearer {TOKEN}\r\n", request)

    def test_replay_streams_over_tls_and_sends_the_token(self):
        recordings = self.enterContext(tempfile.TemporaryDirectory())
        recorder = self.service(f'[recording]\ndirectory = "{recordings}"\n[[pipeline]]\nchunk = {{ size = 1600 }}\nrecord = true\n')
        self.tap(recorder, "default")
        self.assertEqual(self.stream(f"wss://localhost:{self.front(recorder.port, self.good).port}")[0], 0)
        recorder.stop()
        self.tap(self.served, "default")
        front = self.front(self.served.port, self.good)
        code, errors, lines = self.command("replay", recordings, "--url", f"wss://localhost:{front.port}")
        self.assertEqual((code, lines[-1]["frames"]), (0, 4000), errors)
        (request,) = front.requests
        self.assertIn(f"\r\nAuthorization: Bearer {TOKEN}\r\n", request)
        code, errors, _ = self.command("replay", recordings, "--workers", f"unix:{recordings}/w.sock")
        self.assertEqual(code, 1)
        self.assertIn("--ca, --certificate, --key and --token-file apply to --url", errors)

    def test_a_certificate_that_cannot_be_trusted_is_named_by_each_command(self):
        for certificate, ca, cause in ((self.good, self.stranger.ca, "not among the trusted ones"),
                                       (self.elsewhere, None, "hostname mismatch"), (self.expired, None, "certificate has expired")):
            front = self.front(self.served.port, certificate)
            code, errors, _ = self.stream(f"wss://localhost:{front.port}", ca=ca)
            self.assertEqual(code, 1)
            self.assertIn(cause, errors)
            code, _, (report,) = self.bench(f"wss://localhost:{front.port}", ca=ca)
            self.assertEqual(code, 1)
            (reason,) = report["refused"]
            self.assertIn(cause, reason)
            self.assertEqual(front.requests, [])

    def test_a_port_without_tls_is_named_by_each_command(self):
        url = f"wss://localhost:{self.served.port}"
        self.assertIn("ws://", self.stream(url)[1])
        self.assertIn("ws://", next(iter(self.bench(url)[2][0]["refused"])))

    def test_a_file_that_cannot_be_used_is_an_error_that_names_it(self):
        (self.folder / "two").write_text("one two\n")
        (self.folder / "empty").write_text("\n")
        for command in self.stream, self.bench:
            for files, cause in (({"token": "nowhere"}, "--token-file: .*nowhere: No such file"), ({"token": "two"}, "one token"),
                                 ({"token": "empty"}, "one token"), ({"ca": self.folder / "token"}, "ca: .*PEM")):
                code, errors, _ = command("wss://localhost:1", **files)
                self.assertEqual(code, 1)
                self.assertRegex(errors, cause)
            self.assertRegex(command(f"tcp://127.0.0.1:{self.served.zeromq_port}")[1], "wss://")

    def test_the_printed_nginx_lets_clients_with_a_token_through(self):
        self.tap(self.served, "default")
        port = self.nginx()
        code, errors, lines = self.stream(f"wss://localhost:{port}/v1/stream")
        self.assertEqual((code, errors, lines[-1]["frames"]), (0, "", 4000))
        code, errors, _ = self.stream(f"wss://localhost:{port}", token="other_token")
        self.assertEqual(code, 1)
        self.assertRegex(errors, "refused as unauthenticated: HTTP 401")
        self.assertEqual(self.bench(f"wss://localhost:{port}")[0], 0)

    def nginx(self):
        """Starts the proxy of the document, with files and ports of this test. Returns its port."""
        (text,) = re.findall(r"```nginx\n(.*?)```", (printed.ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        certificate, key = self.good
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for old, new in (("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"), ("/etc/ssl/speech.pem", str(certificate)),
                         ("/etc/ssl/speech.key", str(key)), ("/etc/nginx/millrace.tokens", f"{folder}/tokens"),
                         ("127.0.0.1:8080", f"127.0.0.1:{self.served.port}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        (folder / "tokens").write_text(f'"~^Bearer {TOKEN}$" kitchen;\n')
        temporary = "".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "conf").write_text(f"daemon off; master_process off; error_log stderr; pid {folder}/pid; events {{}}\n"
                                     f"http {{ access_log off; {temporary}\n{text}\n}}\n")
        proxy = Process(shutil.which("nginx") or "/usr/sbin/nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "conf"))
        self.addCleanup(proxy.kill)
        wait_for(lambda: (folder / "pid").exists() or proxy.process.poll() is not None, "nginx to listen")
        self.assertIsNone(proxy.process.poll(), proxy.errors)
        return port


if __name__ == "__main__":
    unittest.main()
