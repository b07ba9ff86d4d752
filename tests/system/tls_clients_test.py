# SPDX-License-Identifier: Apache-2.0
"""Clients of this project at a service with TLS, which asks for a certificate and a token: the commands, and the page in a
browser. The lines of some are cut below TLS."""
import hashlib
import json
import subprocess
import tempfile
import unittest
import wave
from pathlib import Path

from browser import Browser, Page
from cutting_proxy import CuttingProxy, at_random
from harness import MILLRACE, PATIENCE, SystemTest, run, samples
from tls_front import Authority, pin

TOKEN = "S4jkQ_0FvWmY-kitchen"
PIPELINE = "[[pipeline]]\nslots = 8\nchunk = { size = 1600 }\n"


class TlsClients(SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.authority, cls.stranger = Authority(cls.folder), Authority(cls.folder, "stranger")
        cls.server, cls.own = cls.authority.certificate("server"), cls.authority.certificate("own")
        cls.other = cls.stranger.certificate("other")
        cls.token, cls.tokens, cls.audio = (cls.folder / name for name in ("token", "tokens", "audio.wav"))
        cls.token.write_text(TOKEN)
        cls.tokens.write_text(hashlib.sha256(TOKEN.encode()).hexdigest() + " kitchen\n")
        with wave.open(str(cls.audio), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(samples(0, 32000))

    def serve(self, tls=None, listen="", pipeline=PIPELINE):
        certificate, key = self.server
        tls = f'client_ca = "{self.authority.ca}"\n' if tls is None else tls
        self.served = self.service(pipeline, f'{listen}[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n{tls}'
                                             f'[access]\ntokens = "{self.tokens}"\n')
        self.url = f"wss://localhost:{self.served.port}"

    def command(self, name, *arguments, url=None, own=None):
        certificate, key = own or self.own
        ended = subprocess.run([MILLRACE, name, "--url", url or self.url, "--ca", self.authority.ca, "--certificate", certificate,
                                "--key", key, "--token-file", self.token, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        return ended.returncode, ended.stderr, [json.loads(line) for line in ended.stdout.splitlines()]

    def bench(self, *arguments, **how):
        return self.command("bench", "--json", "--streams", "4", "--warm-up", "100ms", "--duration", "500ms", *arguments, **how)

    def test_each_command_shows_its_certificate_and_its_token(self):
        with tempfile.TemporaryDirectory() as recordings:
            self.serve(pipeline=f'[recording]\ndirectory = "{recordings}"\n{PIPELINE}record = true\n')
            code, errors, (report,) = self.bench("--worker", "answer", "--workers", self.served.workers)
            self.assertEqual((code, errors, report["opened"], report["ended"]), (0, "", 4, 4))
            self.tap(self.served)
            code, errors, lines = self.command("stream", "--json", self.audio, "--id", "one")
            self.assertEqual((code, errors, lines[-1]["frames"]), (0, "", 32000))
            self.served.stop()
            self.serve()
            self.tap(self.served)
            code, errors, lines = self.command("replay", recordings, "one")
            self.assertEqual((code, lines[-1]["frames"]), (0, 32000), errors)

    def test_a_certificate_that_the_service_does_not_trust_is_named_by_each_command(self):
        self.serve()
        code, errors, _ = self.command("stream", self.audio, own=self.other)
        self.assertEqual(code, 1)
        self.assertRegex(errors, "certificate|unknown ca")
        code, _, (report,) = self.bench(own=self.other)
        self.assertEqual(code, 1)
        self.assertRegex(next(iter(report["refused"])), "certificate|unknown ca")

    def test_a_key_that_cannot_be_used_is_an_error_that_names_its_argument_and_file(self):
        certificate, key = self.own
        readable = self.folder / "readable.key"
        readable.write_text(key.read_text())
        readable.chmod(0o644)
        for own, cause in (((certificate, readable), f"key: {readable}: has mode 0644"), ((key, key), f"certificate: {key}: .*PEM"),
                           ((certificate, self.other[1]), f"key: {self.other[1]}: does not fit"),
                           ((certificate, ""), "must be given together")):
            for command in self.bench, lambda **how: self.command("stream", self.audio, **how):
                code, errors, _ = command(url="wss://localhost:1", own=own)
                self.assertEqual(code, 1)
                self.assertRegex(errors, cause)
        self.assertIn("wss://", self.command("stream", self.audio, url="ws://localhost:1")[1])

    def test_streams_continue_over_lines_that_are_cut_below_tls(self):
        self.serve(tls="")
        self.tap(self.served)
        plain = self.command("stream", "--json", self.audio)[2]
        proxy = CuttingProxy(self.served.port, at_random(1, 8000, 20000))
        self.addCleanup(proxy.close)
        code, errors, lines = self.command("stream", "--json", self.audio, url=f"wss://localhost:{proxy.port}")
        self.assertEqual(code, 0, errors)
        self.assertGreater(proxy.count, 1)
        self.assertEqual(lines[-1]["frames"], plain[-1]["frames"])
        rows = [[(line["seq"], line["begin"], line["end"]) for line in each if line["type"] == "result"] for each in (lines, plain)]
        self.assertEqual(*rows)

    def test_the_try_page_streams_in_a_browser_over_https_and_wss(self):
        self.serve(tls="", listen="try_page = true\n")
        self.tap(self.served)
        browser = Browser(self.audio, pinned=pin(self.server[0]))
        self.addCleanup(browser.close)

        async def use():
            async with Page(browser, self.url.replace("wss:", "https:") + "/") as page:
                await page.value(f"token.value = '{TOKEN}'")
                await page.click("listen")
                await page.until("results.rows.length >= 5")
                await page.click("stop")
                await page.until("state.textContent.includes('has ended')")
                self.assertTrue(await page.value("isSecureContext"))

        run(use())


if __name__ == "__main__":
    unittest.main()
