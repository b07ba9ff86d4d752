# SPDX-License-Identifier: Apache-2.0
"""The Moonshine worker at a running service, and the pipelines and weights that it refuses."""
import asyncio
import base64
import hashlib
import json
import platform
import sys
import tempfile
import types
import unittest
import wave
from pathlib import Path
from unittest import mock

import jsonschema
import numpy as np
from harness import Process, SystemTest, read_all, run, wait_for

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "moonshine"
sys.path[:0] = [str(EXAMPLE), str(ROOT / "examples" / "demo")]
import model  # noqa: E402
import worker  # noqa: E402
from measures import spoken, word_errors  # noqa: E402
from recognisers import Moonshine, librivox  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "transcript.schema.json").read_text())
END = '{"type":"end"}'
SECOND = 16000
with_weights = unittest.skipUnless(platform.machine() == "x86_64", "the wheel with the weights is for x86-64")


def frames_of(path):
    with wave.open(path) as file:
        return file.readframes(file.getnframes())


async def send(connection, frames):
    for at in range(0, len(frames), 3200):
        await connection.send(frames[at:at + 3200])


def results_in(messages):
    results = [message for message in messages if message["type"] == "result"]
    for result in results:
        jsonschema.validate(result["data"], SCHEMA)
    return results


@with_weights
class Worker(SystemTest):
    def served(self):
        return self.service(Moonshine.pipeline)

    def worker(self, service, *more, within=()):
        process = Process(*within, sys.executable, str(EXAMPLE / "worker.py"), "--url", service.workers, *more)
        self.addCleanup(process.kill)
        wait_for(lambda: process.lines or process.process.poll() is not None, "the worker to attach")
        self.assertTrue(process.lines, process.errors)
        return process

    def test_five_utterances_at_once_have_at_most_8_percent_of_their_words_wrong(self):
        service = self.served()
        process = self.worker(service)

        async def stream(path):
            async with service.connect() as connection:
                await send(connection, frames_of(path))
                await connection.send(END)
                return results_in((await read_all(connection))[0])

        async def all_streams(paths):
            return await asyncio.gather(*map(stream, paths))

        paths, references = zip(*librivox().values())
        errors = 0
        for results, reference in zip(run(all_streams(paths)), references):
            self.assertIn("LAST", results[-1]["flags"])
            text = " ".join(result["data"]["text"] for result in results if result["data"].get("final"))
            errors += word_errors(reference, spoken(text))
        self.assertLessEqual(errors / sum(len(reference.split()) for reference in references), 0.08)
        self.assertEqual(process.stop(), 0, process.errors)
        self.assertEqual(process.errors, ["left at SIGTERM"])

    def test_the_text_begins_anew_if_the_worker_is_killed_in_mid_segment(self):
        service = self.served()
        first = self.worker(service)
        path, reference = librivox()["0870"]
        frames = frames_of(path)
        half = 2 * 3 * SECOND

        async def stream():
            async with service.connect() as connection:
                await send(connection, frames[:half])
                messages = [json.loads(await connection.recv()), json.loads(await connection.recv())]
                first.kill()
                self.second = await asyncio.to_thread(self.worker, service, "--threads", "4", within=("taskset", "-c", "0"))
                await send(connection, frames[half:])
                await connection.send(END)
                return results_in([*messages, *(await read_all(connection))[0]])

        results = run(stream())
        texts = [spoken(result["data"]["text"]) for result in (results[0], results[-1])]
        self.assertTrue(texts[0].startswith(reference[:len("and mister")]), texts)
        self.assertFalse(texts[1].startswith("and"), texts)
        self.assertTrue(texts[1].endswith(reference.split("consider ")[1]), texts)  # however many rows the first worker has done
        self.assertTrue(results[-1]["data"]["final"])
        self.assertTrue(any("RESET" in result["flags"] for result in results))  # so the client knows
        self.assertEqual(self.second.errors, [])

    def test_the_worker_refuses_a_pipeline_for_another_model_with_the_line_to_write(self):
        service = self.service()
        for more, lines in ((), 'dtype = "f32"'), (("--silero",), 'dtype = "f32", chunk = { size = 1536, left = 64 }'):
            process = Process(sys.executable, str(EXAMPLE / "worker.py"), "--url", service.workers, *more)
            self.addCleanup(process.kill)
            self.assertEqual(process.wait(), 1)
            self.assertEqual(process.errors, [f"moonshine: pipeline default does not fit the model; it needs: {lines}"])


@with_weights
class Model(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = model.Model(1)

    def test_segments_of_different_length_have_the_same_texts_together_as_alone(self):
        segments = [np.frombuffer(frames_of(path), "<i2").astype(np.float32) / 32768 for path, _ in librivox().values()]
        segments = [*segments[2:], segments[0][:SECOND // 2], segments[0][:50]]
        self.assertEqual(self.model.transcribe(segments), [self.model.transcribe([each])[0] for each in segments])

    def test_audio_without_speech_has_at_most_6_5_tokens_per_second(self):
        noise = np.random.default_rng(1).normal(0, 0.001, 20 * SECOND).astype(np.float32)
        times = np.arange(20 * SECOND) / SECOND
        music = sum(np.sign(np.sin(2 * np.pi * tone * times)) for tone in (220, 277, 330, 440)).clip(-1, 1).astype(np.float32)
        for audio in (noise, music, np.zeros_like(noise), 0 * noise + 0.5):
            with mock.patch.object(self.model, "_decoder", wraps=self.model._decoder) as decoder:
                self.model.transcribe([audio])
            self.assertLessEqual(decoder.run.call_count, 6.5 * 20 + 1)

    def test_silence_has_no_text(self):
        self.assertEqual(self.model.transcribe([np.zeros(SECOND, np.float32)]), [""])


class Weights(unittest.TestCase):
    """Weights of a package in a folder, the only package that can be found."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        found = mock.patch.object(sys, "path", [folder.name])
        found.start()
        self.addCleanup(found.stop)
        self.folder = Path(folder.name)

    def package(self, listed, installed):
        """Makes the package with one file of weights. `listed`, `installed`: its content in the package's list, and on disk."""
        path = self.folder / "moonshine_voice" / "assets" / "tiny-en" / "tokenizer.bin"
        path.parent.mkdir(parents=True)
        path.write_bytes(installed)
        listing = self.folder / "moonshine_voice-0.0.49.dist-info"
        listing.mkdir()
        (listing / "METADATA").write_text("Metadata-Version: 2.1\nName: moonshine-voice\nVersion: 0.0.49\n")
        digest = base64.urlsafe_b64encode(hashlib.sha256(listed).digest()).decode().rstrip("=")
        (listing / "RECORD").write_text(f"{path.relative_to(self.folder)},sha256={digest},{len(listed)}\n")

    def test_a_file_as_the_package_lists_it_is_read(self):
        self.package(b"weights", b"weights")
        self.assertEqual(model.weights("tokenizer.bin"), b"weights")

    def test_a_damaged_file_is_an_error(self):
        self.package(b"weights", b"weighty")
        with self.assertRaisesRegex(RuntimeError, r"the weights are damaged: \S+tokenizer.bin; install moonshine-voice again$"):
            model.weights("tokenizer.bin")

    def test_a_version_without_weights_is_an_error(self):
        self.package(b"weights", b"weights")
        with self.assertRaisesRegex(RuntimeError, r"moonshine-voice has no weights: install the version in \S+requirements.txt$"):
            model.weights("encoder_model.ort")

    def test_a_missing_package_is_an_error_with_the_command_that_installs_it(self):
        with self.assertRaisesRegex(RuntimeError, r"weights are missing: pip install --require-hashes --no-deps -r \S+requirements.txt$"):
            model.weights("encoder_model.ort")


class Pipelines(unittest.TestCase):
    def corrections(self, chunk={"size": 1600}, **other):
        pipeline = {"rate": SECOND, "channels": 1, "dtype": np.dtype(np.float32), "width": chunk["size"], **other}
        return worker.corrections(types.SimpleNamespace(chunk=chunk, **pipeline))

    def test_bodies_end_to_end_of_any_size_fit(self):
        for chunk in ({"size": 1600}, {"size": 512, "first": 256}, {"size": 10 * SECOND}):
            self.assertEqual(self.corrections(chunk), [], chunk)

    def test_audio_of_another_form_is_corrected(self):
        self.assertEqual(self.corrections(rate=8000), ["rate = 16000"])
        self.assertEqual(self.corrections(channels=2), ["channels = 1"])
        self.assertEqual(self.corrections(channels=None, dtype=np.dtype(np.int16)), ["channels = 1", 'dtype = "f32"'])

    def test_rows_that_overlap_or_skip_frames_or_are_too_long_are_corrected(self):
        for chunk in ({"size": 1600, "step": 800}, {"size": 1600, "step": 3200}, {"size": 1600, "left": 64},
                      {"size": 1600, "right": 64}, {"size": 1600, "tail": "drop"}, {"size": 11 * SECOND}):
            self.assertEqual(self.corrections(chunk), ['chunk = { size = "100ms" }'], chunk)


if __name__ == "__main__":
    unittest.main()
