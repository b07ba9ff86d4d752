# SPDX-License-Identifier: Apache-2.0
"""millrace-onnx-worker at a running service: each stream gets the answers of the model alone. docs/onnx.md prints the configurations."""
import json
import random
import signal
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import numpy as np
import onnx_models
from harness import MILLRACE, PATIENCE, Process, SystemTest, wait_for

import millrace
from millrace.onnx_worker.answers import LONGEST

ROOT = Path(__file__).resolve().parents[2]
COMMAND = str(Path(sys.executable).with_name("millrace-onnx-worker"))
SCHEMA = json.loads((ROOT / "docs" / "transcript.schema.json").read_text())
STREAMS, AT_ONCE, SLOTS = 40, 8, 12
GRU = '[[pipeline]]\nrate = 100\ndtype = "f32"\ndim = 4\nchunk = { size = 8 }\n'
CTC = GRU.replace("size = 8", "size = 8, left = 2")


def printed(name):
    """A configuration that the document prints."""
    page = (ROOT / "docs" / "onnx.md").read_text()
    return page[page.index(f"# {name}"):].partition("```")[0]


def events_of(shuffle, frames):
    """Events of a stream with all kinds of ends and beginnings of rows."""
    at, events = 0, []
    while at < frames:
        n = min(shuffle.choice((1, 7, 8, 16, shuffle.randrange(1, 60))), frames - at)
        kind = shuffle.choice(("frames", "flush", "reset", "gap"))
        events += [("frames", n), *([] if kind == "frames" else [(kind, 3 if kind == "gap" else 0)])]
        at += n + (3 if kind == "gap" else 0)
    return [*events, ("end", 0)]


class Stream:
    """A stream of vectors, and the events of its client."""

    def __init__(self, number):
        shuffle = random.Random(number)
        self.events = events_of(shuffle, shuffle.randrange(1, 400))
        self.frames = np.random.default_rng(number).standard_normal((500, 4), np.float32)

    def answers(self, client):
        """(seq, data) of each result."""
        at = 0
        with client.open(dim=4) as stream:
            for kind, n in self.events:
                if kind == "frames":
                    stream.send(self.frames[at:at + n].tobytes())
                else:
                    getattr(stream, kind)(*([n] if kind == "gap" else []))
                at += n
            return [(result.seq, result.data) for result in stream if isinstance(result, millrace.Result)]


class OnnxWorker(SystemTest):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "tokens.txt").write_text("".join(f"{token} {i}\n" for i, token in enumerate(onnx_models.TOKENS)))

    def served(self, pipeline, **batch):
        keys = ", ".join(f"{key} = {value}" for key, value in {"rows": SLOTS, **batch}.items())
        return self.service(f'{pipeline}slots = {SLOTS}\nbatch = {{ max_wait = "5ms", {keys} }}\n')

    def written(self, configuration):
        path = self.folder / "model.toml"
        path.write_text(configuration)
        return str(path)

    def worker(self, service, model, configuration):
        worker = Process(COMMAND, model, "--config", self.written(configuration), "--url", service.workers)
        self.addCleanup(worker.kill)
        return worker

    def streamed(self, service):
        """Each stream and its answers, with batches of several rows."""
        streams = [Stream(number) for number in range(STREAMS)]
        with millrace.Client(f"ws://127.0.0.1:{service.port}") as client, ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(lambda stream: stream.answers(client), streams))
        service.recount()
        self.assertGreater(service.metric("millrace_batch_rows_total"), service.metric("millrace_batches_total"))
        return zip(streams, answers)

    def test_a_gru_with_lengths_and_an_initial_state_answers_as_alone(self):
        model, service = onnx_models.gru(self.folder / "gru.onnx"), self.served(GRU, row_buckets=[3, 7, 12], width_buckets=[4, 8])
        worker = self.worker(service, model, printed("gru.toml").partition("answer")[0])
        for stream, answers in self.streamed(service):
            alone = onnx_models.gru_alone(model, stream.frames, stream.events, 0.5)
            self.assertEqual([seq for seq, _ in answers], [seq for seq, _ in alone])
            np.testing.assert_allclose([data for _, data in answers], [data for _, data in alone], rtol=0, atol=1e-5)
        self.assertEqual(worker.stop(), 0, worker.errors)
        self.assertEqual(worker.errors, ["left at SIGTERM"])

    def test_labels_are_the_likeliest_ones_with_their_number(self):
        model, service = onnx_models.gru(self.folder / "gru.onnx"), self.served(GRU)
        self.worker(service, model, printed("gru.toml"))
        for stream, answers in self.streamed(service):
            alone = onnx_models.gru_alone(model, stream.frames, stream.events, 0.5)
            self.assertEqual([data["label"] for _, data in answers], [onnx_models.LABELS[data.argmax()] for _, data in alone])
            np.testing.assert_allclose([data["score"] for _, data in answers], [data.max() for _, data in alone], rtol=0, atol=1e-5)

    def check_transcripts(self, service, model):
        texts = set()
        for stream, answers in self.streamed(service):
            self.assertEqual(answers, onnx_models.ctc_alone(model, stream.frames, stream.events, LONGEST))
            for _, answer in answers:
                jsonschema.validate(answer, SCHEMA)
                texts.add(answer["text"])
        self.assertGreater(len(texts), STREAMS)  # the model does say something

    def test_a_ctc_model_with_states_and_left_context_answers_transcripts_as_alone(self):
        model, service = onnx_models.ctc(self.folder / "ctc.onnx"), self.served(CTC)
        worker = self.worker(service, model, printed("ctc.toml"))
        self.check_transcripts(service, model)
        self.assertEqual(worker.errors, [])

    def test_check_worker_passes_for_the_printed_configurations(self):
        pipeline = self.folder / "millrace.toml"
        for name, keys, model in (("gru.toml", GRU, onnx_models.gru(self.folder / "gru.onnx")), ("ctc.toml", CTC, onnx_models.ctc(self.folder / "ctc.onnx"))):
            with self.subTest(name):
                pipeline.write_text(f"{keys}slots = {SLOTS}\nbatch = {{ rows = 4 }}\n")
                checked = subprocess.run([MILLRACE, "check-worker", "--config", pipeline, "--tolerance", "1e-5", "--", COMMAND, model,
                                          "--config", self.written(printed(name))], capture_output=True, text=True, timeout=10 * PATIENCE)
                self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_batches_are_cut_and_padded_to_the_fixed_rows_of_a_model(self):
        alone, fixed = onnx_models.ctc(self.folder / "ctc.onnx"), onnx_models.batched(self.folder / "batched.onnx", 5)
        service = self.served(CTC)
        worker = self.worker(service, fixed, """
            chunk  = { input = "x", sizes = "x_lens" }
            inputs = { gain = 1 }
            states = { "cache_*" = "new_cache_*" }
            answer = { output = "log_probs", axis = 1, lengths = "lens", tokens = ["<blk>", "▁a", "b", "c", "▁", "d"] }""")
        self.check_transcripts(service, alone)
        self.assertEqual(worker.errors, [])

    def refused(self, service, model, configuration):
        worker = self.worker(service, model, configuration)
        self.assertEqual(worker.wait(), 1)
        error, = worker.errors
        return error.removeprefix("millrace-onnx-worker: ")

    def test_pipelines_that_do_not_fit_are_refused_with_the_lines_to_write(self):
        model = onnx_models.gru(self.folder / "gru.onnx")
        for right, wrong, line in (("dim = 4", "dim = 5", "dim = 4"),
                                   ("size = 8", "size = 9", "a chunk of 8 frames with its context, not 9")):
            self.assertEqual(self.refused(self.served(GRU.replace(right, wrong)), model, printed("gru.toml")),
                             f"pipeline default: it does not fit the model, which needs: {line}")
        self.assertEqual(self.refused(self.served(CTC.replace("= 100", "= 50")), onnx_models.ctc(self.folder / "ctc.onnx"),
                                      printed("ctc.toml").replace("left = 2", "left = 1")),
                         "pipeline default: it does not fit the model, which needs: rate = 100, chunk = { size = 8, left = 1 }")

    def test_a_signal_ends_a_worker_that_waits_for_its_service(self):
        worker = Process(COMMAND, onnx_models.gru(self.folder / "gru.onnx"), "--url", f"unix:{self.folder}/none", "--config", self.written(printed("gru.toml")))
        self.addCleanup(worker.kill)
        wait_for(lambda: worker.errors, "the log of the wait")
        self.assertEqual(worker.stop(), 128 + signal.SIGTERM)

    def test_a_pipeline_without_states_fails_rows_of_one_stream_in_a_batch(self):
        service = self.served(GRU + 'state = "none"\n')
        worker = self.worker(service, onnx_models.gru(self.folder / "gru.onnx"), printed("gru.toml"))
        with millrace.Client(f"ws://127.0.0.1:{service.port}") as client, client.open(dim=4) as stream:
            stream.send(np.zeros((80, 4), np.float32).tobytes())
            stream.end()
            self.assertIn("worker_failed", [event.error for event in stream if isinstance(event, millrace.Result)])
        failure = 'a batch failed: ValueError: a batch has several rows of a stream, but the model has a state: the pipeline must not have state = "none"'
        wait_for(lambda: failure in worker.errors, "the log line")

    def test_a_missing_package_is_named_with_the_command_that_installs_it(self):
        program = "import runpy, sys; sys.modules['onnxruntime'] = None; runpy.run_module('millrace.onnx_worker', run_name='__main__')"
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (1, "millrace-onnx-worker: onnxruntime is missing: pip install 'millrace[onnx]'\n"))

    def test_a_file_that_is_no_model_is_refused(self):
        self.assertIn("tokens.txt: ", self.refused(self.served(GRU), str(self.folder / "tokens.txt"), ""))


if __name__ == "__main__":
    unittest.main()
