# SPDX-License-Identifier: Apache-2.0
"""The Nemotron worker at a running service, with random weights."""
import concurrent.futures
import json
import re
import shutil
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
from harness import Process, SystemTest, wait_for
from random_nemotron import processor, random_model, tones
from safetensors.torch import load_file, save_file

import millrace
from millrace import Flag

EXAMPLE = Path(__file__).parents[3] / "examples" / "nemotron"
WORKER = str(EXAMPLE / "worker.py")
SCHEMA = json.loads((EXAMPLE.parents[1] / "docs" / "transcript.schema.json").read_text())

sys.path.insert(0, str(EXAMPLE))
from features import chunk_rule  # noqa: E402
from model import load  # noqa: E402
from worker import lookahead_of  # noqa: E402


class Saved(unittest.TestCase):
    """Has the folder of a model."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        random_model().save_pretrained(cls.folder)
        processor().save_pretrained(cls.folder)

    def copy(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory())) / "model"
        return Path(shutil.copytree(self.folder, folder))


class Loading(Saved):
    def check(self, folder, pattern, device="cpu"):
        with self.assertRaisesRegex(RuntimeError, pattern) as raised:
            load(str(folder), device)
        self.assertNotIn("\n", str(raised.exception))

    def test_a_folder_without_a_model_is_refused(self):
        self.check("/nowhere", "^/nowhere is not the folder of a model: config.json is missing$")

    def test_missing_files_are_refused(self):
        for name in ("model.safetensors", "processor_config.json", "tokenizer.json"):
            folder = self.copy()
            (folder / name).unlink()
            with self.subTest(name=name):
                self.check(folder, "^cannot load the model in ")

    def test_damaged_weights_are_refused(self):
        folder = self.copy()
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1000])
        self.check(folder, "^cannot load the model in ")

    def test_a_missing_device_is_refused(self):
        self.check(self.folder, "^cannot load the model in .*: .+", device="cuda:99")

    def test_missing_weights_and_those_of_another_shape_are_refused(self):
        name = "encoder.layers.1.self_attn.q_proj.weight"
        for change in (lambda tensors: tensors.pop(name), lambda tensors: tensors.update({name: tensors[name][:5].clone()})):
            folder = self.copy()
            tensors = load_file(folder / "model.safetensors")
            change(tensors)
            save_file(tensors, folder / "model.safetensors", {"format": "pt"})
            self.check(folder, f"weights in .* are not complete: {name} is missing or has another shape")

    def test_a_model_with_other_mel_frames_is_refused(self):
        folder = self.copy()
        config = json.loads((folder / "processor_config.json").read_text())
        config["feature_extractor"]["hop_length"] = 200
        (folder / "processor_config.json").write_text(json.dumps(config))
        self.check(folder, "has other mel frames")


class NemotronWorker(Saved, SystemTest):
    def worker(self, service, *more):
        worker = Process(sys.executable, WORKER, "--model", self.folder, "--threads", "1",
                         "--url", service.workers, *more)
        self.addCleanup(worker.kill)
        return worker

    def attached(self, service):
        worker = self.worker(service, "--pipeline", "160ms")
        wait_for(lambda: worker.lines or worker.process.poll() is not None, "the worker to attach")
        self.assertTrue(worker.lines, worker.errors)
        return worker

    def served(self):
        config = re.sub(r"slots( *)= \d+", r"slots\1= 4", (EXAMPLE / "millrace.toml").read_text())
        return self.service(re.sub(r"rows = \d+", "rows = 4", config))

    def test_streams_together_get_the_transcripts_that_they_get_alone(self):
        service = self.served()
        worker = self.attached(service)
        client = self.enterContext(millrace.Client(service.url()))
        audio = [tones(16000 + 3333 * number, number).tobytes() for number in range(4)]

        def answers(number):
            with client.open(pipeline="160ms") as stream:
                stream.send(audio[number])
                stream.end()
                return [result.data for result in stream]

        alone = [answers(number) for number in range(4)]
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            together = list(threads.map(answers, range(4)))
        self.assertEqual(together, alone)
        for transcripts in alone:
            for transcript in transcripts:
                jsonschema.validate(transcript, SCHEMA)
            self.assertTrue(transcripts[-1]["final"] and transcripts[-1]["text"])
            for before, after in zip(transcripts, transcripts[1:]):
                self.assertTrue(after["text"].startswith(before["stable"]))
        self.assertEqual(worker.stop(), 0, worker.errors)

    def test_after_the_loss_of_a_worker_the_text_begins_anew(self):
        service = self.served()
        worker = self.attached(service)
        client = self.enterContext(millrace.Client(service.url()))
        stream, audio = client.open(pipeline="160ms"), tones(48000, 1).tobytes()
        stream.send(audio[:60000])
        results = iter(stream)
        before = [next(results).data["text"] for _ in range(9)]
        worker.kill()
        self.attached(service)
        stream.send(audio[60000:])
        stream.end()
        after = list(results)
        begins = [i for i, result in enumerate(after) if Flag.RESET in result.flags]
        self.assertEqual(len(begins), 1)
        texts = [result.data["text"] for result in after[begins[0]:]]
        self.assertLess(len(texts[0]), len(before[-1]))
        self.assertTrue(texts[-1].startswith(texts[0]) and after[-1].data["final"])

    def test_a_pipeline_for_another_model_is_refused_with_the_line_to_write(self):
        service = self.service('[[pipeline]]\nname = "160ms"\ndtype = "f32"\nchunk = { size = "160ms" }\n')
        worker = self.worker(service, "--pipeline", "160ms")
        self.assertEqual(worker.wait(), 1)
        self.assertEqual(worker.errors[-1], (
            'nemotron: pipeline 160ms is not for this model; it needs: rate = 16000, dtype = "f32", '
            'chunk = { preset = "nemo-70-6" }, no width_buckets '
            "(presets for this model: nemo-70-0, nemo-70-1, nemo-70-6, nemo-70-13)"))

    def test_the_pipelines_of_the_configuration_have_the_four_look_aheads(self):
        configuration = (EXAMPLE / "millrace.toml").read_text()
        service, found = self.service(configuration), []
        for pipeline in tomllib.loads(configuration)["pipeline"]:
            with millrace.Worker(service.workers, pipeline=pipeline["name"]) as worker:
                found.append(lookahead_of(worker, processor()))
        self.assertEqual(found, [0, 1, 6, 13])


class Pipelines(unittest.TestCase):
    def lookahead(self, supported=(0, 1, 6, 13), **changed):
        form = {"channels": 1, "dtype": np.dtype("f4"), "rate": 16000, "width_buckets": (4240,), "chunk": chunk_rule(1), **changed}
        return lookahead_of(SimpleNamespace(**form), SimpleNamespace(supported_num_lookahead_tokens=list(supported)))

    def test_the_look_ahead_is_that_of_the_chunk_rule(self):
        self.assertEqual(self.lookahead(), 1)
        self.assertEqual(self.lookahead(chunk=chunk_rule(13)), 13)

    def test_each_property_that_does_not_fit_is_refused(self):
        rules = ({"size": 1600}, {"first": 0}, {"left": 0}, {"step": 1280}, {"align": "body"}, {"sizes": [1280, 2560]})
        for changed in ({"channels": None}, {"dtype": np.dtype("i2")}, {"rate": 8000}, {"width_buckets": (2000, 4240)},
                        {"supported": (0, 6)}, *({"chunk": {**chunk_rule(1), **rule}} for rule in rules)):
            with self.subTest(changed=changed), self.assertRaisesRegex(ValueError, "^it needs: rate = 16000"):
                self.lookahead(**changed)


if __name__ == "__main__":
    unittest.main()
