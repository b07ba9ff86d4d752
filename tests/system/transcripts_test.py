# SPDX-License-Identifier: Apache-2.0
"""Transcripts: a recogniser answers with them, and readers show them (docs/transcripts.md)."""
import json
import os
import subprocess
import sys
import unittest
import wave
from pathlib import Path

import jsonschema
from harness import MILLRACE, PATIENCE, Process, SystemTest, await_decoder, read_all, run, samples, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import printed_programs as printed  # noqa: E402

PYTHON, WORKER = os.environ["PYTHON"], os.environ.get("POCKETSPHINX_WORKER")
SCHEMA = json.loads((printed.ROOT / "docs" / "transcript.schema.json").read_text())
SPEECH = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav"


class Transcripts(SystemTest):
    def worker(self, service):
        """Starts the printed worker: each text is the length of its segment so far."""
        worker = Process(PYTHON, "-c", printed.programs()["transcripts_segments"].text, environment={"MILLRACE_WORKERS": service.workers})
        self.addCleanup(worker.kill)
        wait_for(lambda: service.get("/readyz")[0] == 200 or worker.process.poll() is not None, "the worker to attach")
        self.assertIsNone(worker.process.poll(), worker.errors)

    def test_the_printed_client_shows_the_text_as_it_grows(self):
        service = self.service()
        self.worker(service)
        shown = subprocess.run([PYTHON, "-c", printed.programs()["transcripts_client"].text, f"ws://127.0.0.1:{service.port}"],
                               input=samples(0, 4480), capture_output=True, timeout=PATIENCE)
        self.assertEqual((shown.stderr, shown.stdout), (b"", b"\r\x1b[Ksegment 0: 0.1 s\r\x1b[Ksegment 0: 0.2 s\r\x1b[Ksegment 0: 0.3 s\n"))

    def test_the_command_prints_a_line_for_each_final_text_among_the_other_messages(self):
        service = self.service('[[pipeline]]\nchunk = { size = 1600 }\nendpoint = { by = "length", max = "200ms" }\n')
        self.worker(service)
        printed_lines = subprocess.run([MILLRACE, "stream", "-", "--format", "s16le", "--rate", "16000", "--url",
                                        f"ws://127.0.0.1:{service.port}"], input=samples(0, 8000), capture_output=True, timeout=PATIENCE)
        ready, *texts, closed = printed_lines.stdout.decode().splitlines()
        self.assertEqual([json.loads(line)["type"] for line in (ready, closed)], ["ready", "closed"])
        self.assertEqual(texts, ["segment 0: 0.2 s", "segment 1: 0.2 s", "segment 2: 0.1 s"])

    @unittest.skipUnless(WORKER, "PocketSphinx is not there")
    def test_pocketsphinx_answers_with_transcripts_whose_words_have_times(self):
        service = self.service("[[pipeline]]\nchunk = { size = 1600 }\n")
        decoder = Process(WORKER, "--url", service.workers, "--warm", "1")
        self.addCleanup(decoder.kill)
        await_decoder(decoder)
        with wave.open(SPEECH) as file:
            speech = file.readframes(file.getnframes())

        async def stream():
            async with service.connect() as connection:
                await connection.send(speech[:64000])
                await connection.send(speech[64000:])
                await connection.send('{"type":"end"}')
                return (await read_all(connection))[0]

        results = [message for message in run(stream()) if message["type"] == "result"]
        for result in results:
            jsonschema.validate(result["data"], SCHEMA)
            words = result["data"]["words"]
            self.assertEqual(" ".join(word["word"] for word in words), result["data"]["text"])
            times = [time for word in words for time in (word["start"], word["end"])]
            self.assertEqual(times, sorted(times))
            self.assertLessEqual(max(times, default=0), result["end_s"])
        self.assertEqual([result["data"].get("final", False) for result in results], [False] * (len(results) - 1) + [True])
        self.assertGreater(len(results[-1]["data"]["words"]), 5)


if __name__ == "__main__":
    unittest.main()
