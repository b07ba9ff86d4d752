# SPDX-License-Identifier: Apache-2.0
"""The service with the protocols of OpenAI and Deepgram, and the workers that answer their clients."""
import audioop
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import unittest
import wave
from pathlib import Path
from unittest import mock

from harness import MILLRACE, PATIENCE, Process, SystemTest, wait_for
from tls_front import Authority

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = os.environ["MILLRACE_PYTHON"]  # it has the package
sys.path.append(str(ROOT / "examples" / "demo"))
from recognisers import Moonshine, librivox  # noqa: E402

PROTOCOLS = '[[protocol]]\nname = "openai"\n[[protocol]]\nname = "deepgram"\n'
PIPELINE = '[[pipeline]]\nname = "default"\nslots = 8\nchunk = { size = "250ms" }\n'
PAUSE = 1.5  # seconds of silence that end an utterance
with_moonshine = unittest.skipUnless(platform.machine() == "x86_64", "the wheel with the weights is for x86-64")


def speech(name, rate=16000):
    """The s16 samples of one of the recordings, and a pause."""
    with wave.open(librivox()[name][0]) as file:
        samples = file.readframes(file.getnframes()) + bytes(2 * int(PAUSE * file.getframerate()))
        return audioop.ratecv(samples, 2, 1, file.getframerate(), rate, None)[0]


def packets(audio, rate=16000, seconds=0.1):
    """The audio in messages of this length."""
    size = 2 * int(rate * seconds)
    return [audio[at:at + size] for at in range(0, len(audio), size)]


class Served(SystemTest):
    """Starts services and workers. `self.service` is a service with these protocols, `self.host` its address."""

    def serve(self, pipelines=PIPELINE, protocols=PROTOCOLS, extra=""):
        self.served = self.service(pipelines + protocols, extra)
        self.host = f"127.0.0.1:{self.served.port}"

    def serve_with_tls(self, token):
        """A service with TLS, whose authority is one of the system's, and with this token."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        authority = Authority(folder)
        certificate, key = authority.certificate("service")
        tokens = Path(folder) / "tokens"
        tokens.write_text(hashlib.sha256(token.encode()).hexdigest() + " kitchen\n")
        self.serve(extra=f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n[access]\ntokens = "{tokens}"\n')
        self.enterContext(mock.patch.dict("os.environ", {"SSL_CERT_FILE": str(authority.ca)}))
        return self.worker()

    def worker(self, *options, script=HERE / "scripted_worker.py"):
        """Starts a worker, by default the scripted one."""
        worker = Process(PYTHON, "-B", str(script), "--url", self.served.workers, *options)
        self.addCleanup(worker.kill)
        self.addCleanup(self.served.close)  # before the worker: the last rows of streams need it
        wait_for(lambda: worker.lines or worker.process.poll() is not None, "the worker to attach", patience=4 * PATIENCE)
        self.assertTrue(worker.lines, worker.errors)
        return worker

    def recognise(self):
        """Serves Moonshine, whose pipeline ends an utterance after 600 ms of silence."""
        self.serve(Moonshine.pipeline)
        self.worker(script=ROOT / "examples" / "moonshine" / "worker.py")

    def words(self, audio, rate):
        """The final texts that `millrace stream` gets for this audio."""
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            with wave.open(file, "wb") as written:
                written.setparams((1, 2, rate, 0, "NONE", ""))
                written.writeframes(audio)
            done = subprocess.run([MILLRACE, "stream", "--url", f"ws://{self.host}", "--json", file.name],
                                  capture_output=True, text=True, timeout=4 * PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        results = [json.loads(line) for line in done.stdout.splitlines()]
        texts = [each["data"]["text"] for each in results if each["type"] == "result" and each["data"].get("final")]
        self.assertTrue(any(texts))
        return [text for text in texts if text]

    def limited(self, close):
        """Calls close() if the test takes too long: clients wait without a limit."""
        timer = threading.Timer(4 * PATIENCE, close)
        timer.start()
        self.addCleanup(timer.cancel)
